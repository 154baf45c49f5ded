/**
 * Why there is no verified intent, or why an event was not delivered. The only words that a failure carries come from
 * this package, never from a server.
 *
 * @typedef {"codeUnavailable" | "expired" | "rateLimited" | "temporarilyUnavailable" | "unverifiable" | "network"} Reason
 * @typedef {"unauthenticated" | "organizationSuspended" | "eventInvalid" | "proofInvalid" | "proofReplayed" |
 *   "eventConflict" | "integrationRevoked" | "entitlementRequired" | "quotaExceeded" | "rateLimited" |
 *   "temporarilyUnavailable" | "network" | "unintelligible"} DeliveryReason
 */

/** @type {Record<Reason, string>} */
const EXPLANATIONS = {
  codeUnavailable: "There is no such Code, or it was revoked.",
  expired: "The Code has expired.",
  rateLimited: "The service asked for a pause.",
  temporarilyUnavailable: "The service cannot answer now.",
  unverifiable: "The answer does not verify.",
  network: "No connection, or no response in time.",
};

/** There is no verified intent, for one of six reasons. */
export class ReceiverFailure extends Error {
  /**
   * @param {Reason} reason
   * @param {string} [explanation] an English sentence for a developer's log
   * @param {number | null} [retryAfterS] the pause that the server asked for
   * @param {boolean} [isUnreachable] no complete answer, or one of 502, 503 and 504: only then do offline packs answer
   */
  constructor(reason, explanation = EXPLANATIONS[reason], retryAfterS = null, isUnreachable = false) {
    super(`${reason}: ${explanation}`);
    this.name = "ReceiverFailure";
    this.reason = reason;
    this.isUnreachable = isUnreachable;
    this.retryAfterS = retryAfterS;
  }

  /** Whether resolving again later can help without any other change. */
  get retryable() {
    return ["rateLimited", "temporarilyUnavailable"].includes(this.reason);
  }
}

/** The key set lacks the signing key; a newer set may have it. */
export class KeyUnknown extends ReceiverFailure {
  constructor() {
    super("unverifiable", "The signing key is not published.");
  }
}

/** The log does not prove it now, and may do so in a few seconds. */
export class NotYetProven extends ReceiverFailure {
  /** @param {string} explanation */
  constructor(explanation) {
    super("unverifiable", explanation);
  }
}

/** An event was not delivered, or the answer was lost, for one of thirteen reasons. */
export class DeliveryFailure extends Error {
  /**
   * @param {DeliveryReason} reason
   * @param {number | null} [retryAfterS] the pause that the server asked for
   */
  constructor(reason, retryAfterS = null) {
    super(`Not delivered: ${reason}`);
    this.reason = reason;
    this.retryAfterS = retryAfterS;
  }

  /** Whether delivering the same bytes again later can help without any other change. */
  get retryable() {
    return ["rateLimited", "temporarilyUnavailable", "network"].includes(this.reason);
  }
}

/**
 * @param {string} explanation
 * @returns {never}
 */
export function refuse(explanation) {
  throw new ReceiverFailure("unverifiable", explanation);
}
