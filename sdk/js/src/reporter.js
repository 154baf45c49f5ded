/** Report measurements to the publisher's backend. */

import { DeliveryFailure } from "./failures.js";
import { Service } from "./network.js";

/**
 * The meaning of a status, with its problem code where that matters.
 *
 * @type {Record<string, import("./failures.js").DeliveryReason | undefined>}
 */
const REASONS = {
  "403 organization_suspended": "organizationSuspended",
  "409 proof_replayed": "proofReplayed",
  "409 event_conflict": "eventConflict",
  "409 integration_revoked": "integrationRevoked",
  "409 entitlement_required": "entitlementRequired",
  "422 proof_invalid": "proofInvalid",
  "429 event_quota_exceeded": "quotaExceeded",
  0: "network",
  400: "eventInvalid",
  401: "unauthenticated",
  403: "unauthenticated",
  408: "temporarilyUnavailable",
  413: "eventInvalid",
  415: "eventInvalid",
  422: "eventInvalid",
  429: "rateLimited",
};

/** @type {Record<number, "recorded" | "duplicate" | undefined>} */
const OUTCOMES = { 200: "duplicate", 201: "recorded" };

/** A reporter to one publisher's backend. */
export class Reporter {
  /**
   * @param {string} baseUrl https, or http on a loopback address
   * @param {() => string | Promise<string>} getToken called before each attempt; returns the current reporting token
   * @param {import("./network.js").Limits} [limits]
   * @throws {TypeError} for another address
   */
  constructor(baseUrl, getToken, limits = {}) {
    this._service = new Service(baseUrl, { attemptsMax: 4, ...limits });
    this._getToken = getToken;
  }

  /**
   * Deliver a measurement, the same bytes in each attempt. Repeating it is safe: it is the same event.
   *
   * @param {{body: string}} measurement
   * @returns {Promise<"recorded" | "duplicate">}
   * @throws {DeliveryFailure}
   */
  report({ body }) {
    return this._service.makeRetry()(() => this._attempt(body));
  }

  /**
   * @param {string} body
   * @returns {Promise<"recorded" | "duplicate">}
   */
  async _attempt(body) {
    const headers = { Authorization: `Bearer ${await this._getToken()}`, "Content-Type": "application/json" };
    const answer = await this._service.send("/v1/events", { method: "POST", headers, body });
    // An answer without JSON is judged by its status alone.
    /** @type {{status?: unknown, code?: unknown} | null} */
    const members = await new Response(answer.body).json().catch(() => null);
    const { status } = answer;
    const outcome = OUTCOMES[status];
    if (outcome && members?.status === outcome) return outcome;
    const reason = REASONS[`${status} ${members?.code}`] ?? REASONS[status] ?? "unintelligible";
    throw new DeliveryFailure(status >= 500 ? "temporarilyUnavailable" : reason, answer.retryAfterS);
  }
}
