/**
 * Why there is no verified intent: the only words that a failure carries come from this package, never from a server.
 *
 * @typedef {"codeUnavailable" | "expired" | "rateLimited" | "temporarilyUnavailable" | "unverifiable" | "network"} Reason
 */

const RETRYABLE = new Set(["rateLimited", "temporarilyUnavailable"]);

/** There is no verified intent, for one of six reasons. */
export class ReceiverFailure extends Error {
  /**
   * @param {Reason} reason
   * @param {string} explanation an English sentence for a developer's log
   * @param {number | null} [retryAfterS] the pause that the server asked for
   */
  constructor(reason, explanation, retryAfterS = null) {
    super(`${reason}: ${explanation}`);
    this.name = "ReceiverFailure";
    this.reason = reason;
    this.retryAfterS = retryAfterS;
  }

  /** Whether resolving again later can help without any other change. */
  get retryable() {
    return RETRYABLE.has(this.reason);
  }
}

/** The key set lacks the signing key; a newer set may have it. */
export class KeyUnknown extends ReceiverFailure {
  constructor() {
    super("unverifiable", "The signing key is not among the published keys.");
  }
}

/** @returns {never} */
export function refuse(explanation) {
  throw new ReceiverFailure("unverifiable", explanation);
}
