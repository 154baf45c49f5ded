/** Resolve broadcast tokens at one service, and verify every answer here. */

import { KeyUnknown, ReceiverFailure, refuse } from "./failures.js";
import { KeyCache } from "./key_cache.js";
import { Service } from "./network.js";
import { readKeySet } from "./verifying/keys.js";
import { TOKEN } from "./verifying/shapes.js";
import { verifyAnswer } from "./verifying/verification.js";

/** @import { Reason } from "./failures.js" */

/** @typedef {"spam" | "malware" | "impersonation" | "illegal" | "other"} AbuseCategory */

/** A receiver of one service. Keep one for as long as the page listens, because it caches keys. */
export class Receiver {
  /**
   * @param {string} baseUrl https, or http on a loopback address
   * @param {import("./network.js").Limits} [limits]
   * @throws {TypeError} for another address
   */
  constructor(baseUrl, limits = {}) {
    this._service = new Service(baseUrl, limits);
    this._keyCache = new KeyCache();
  }

  /**
   * Return the verified intent behind a broadcast token. Repeating it is safe: resolving changes nothing.
   *
   * @param {string} token
   * @returns {Promise<import("./verifying/verification.js").Resolution>}
   * @throws {ReceiverFailure} when there is no verified intent
   */
  async resolve(token) {
    if (!TOKEN.test(token)) throw new ReceiverFailure("codeUnavailable", "That is not a broadcast token.");
    const retry = this._service.makeRetry();
    // Asks for the signed envelope, without which no answer is accepted.
    const headers = { "X-Svc-Resolution-Proof": "ed25519-v1" };
    /** @type {Record<number, Reason>} */
    const reasons = { 404: "codeUnavailable", 410: "expired" };
    const { body } = await retry(() => this._get(`/v1/resolve/${token}`, headers, reasons));
    const fetchKeys = () => retry(() => this._fetchKeys());
    const keys = await this._keyCache.getFresh(fetchKeys);
    try {
      return await verifyAnswer(body, token, keys, Date.now());
    } catch (failure) {
      const newer = failure instanceof KeyUnknown ? await this._keyCache.getNewer(keys, fetchKeys) : null;
      if (newer === null) throw failure;
      return verifyAnswer(body, token, newer, Date.now());
    }
  }

  /**
   * Report a Code that harms people to the operator of the service. It is sent once: a failure leaves open whether it
   * arrived.
   *
   * @param {string} token
   * @param {AbuseCategory} category
   * @param {{text?: string, contact?: string | null}} [words] what happened, and how to reach the person, if they wish
   * @returns {Promise<void>}
   * @throws {ReceiverFailure} if the service did not say that it received the report
   */
  async reportAbuse(token, category, { text = "", contact = null } = {}) {
    if (!TOKEN.test(token)) throw new ReceiverFailure("codeUnavailable", "That is not a broadcast token.");
    const request = {
      method: "POST",
      headers: { Accept: "application/json", "Content-Type": "application/json" },
      body: JSON.stringify({ token, category, text, contact }),
    };
    const { status, retryAfterS } = await this._service.send("/v1/abuse-reports", request);
    if (status === 202) return;
    /** @type {Record<number, Reason | undefined>} */
    const reasons = { 0: "network", 429: "rateLimited" };
    const reason = status >= 500 ? "temporarilyUnavailable" : reasons[status];
    if (reason) throw new ReceiverFailure(reason, undefined, retryAfterS);
    refuse("The service did not accept the report.");
  }

  async _fetchKeys() {
    const { body, maxAgeS } = await this._get("/v1/keys", {}, {});
    return { keys: await readKeySet(body), maxAgeS };
  }

  /**
   * @param {string} path
   * @param {Record<string, string>} headers
   * @param {Record<number, Reason>} ofStatus the reasons that only this path has
   */
  async _get(path, headers, ofStatus) {
    const request = { headers: { Accept: "application/json", ...headers } };
    const { status, body, retryAfterS, maxAgeS } = await this._service.send(path, request);
    /** @type {Record<number, Reason | undefined>} */
    const reasons = { 0: "network", 429: "rateLimited", ...ofStatus };
    const reason = status >= 500 ? "temporarilyUnavailable" : reasons[status];
    if (reason) throw new ReceiverFailure(reason, undefined, retryAfterS);
    if (status !== 200) refuse("The contract does not allow this status.");
    if (body === null) refuse("The body is too large.");
    return { body, maxAgeS };
  }
}
