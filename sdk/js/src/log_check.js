/** Require that an answer is in the transparency log, before anybody sees it. */

import { refuse } from "./failures.js";
import { verifyLogProof } from "./verifying/log_proof.js";

// A fresh Code is in the log five seconds after its issuance was answered: one request at once, ten a second apart.
const REQUESTS_MAX = 11;
const PAUSE_MS = 1000;
const PROVEN_MAX = 1000;

/** @import { LogPolicy } from "./verifying/log_policy.js" */

/** The answers that were proven. A log only grows, so a proof is asked for once. */
export class LogCheck {
  /** @param {LogPolicy} policy */
  constructor(policy) {
    this._policy = policy;
    /** @type {Set<string>} */
    this._proven = new Set();
  }

  /**
   * Accept only a digest that the log has, or gets within ten seconds.
   *
   * @param {string} digest
   * @param {(digest: string) => Promise<Uint8Array | null>} fetchProof returns null if the log does not have it
   * @throws {ReceiverFailure} unverifiable; what `fetchProof` throws
   */
  async require(digest, fetchProof) {
    if (this._proven.has(digest)) return;
    let proof = await fetchProof(digest);
    for (let count = 1; proof === null; count += 1) {
      if (count === REQUESTS_MAX) refuse("The transparency log does not have the answer.");
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      proof = await fetchProof(digest);
    }
    await verifyLogProof(proof, this._policy, "code.issued/answer", digest);
    this._proven.add(digest);
    if (this._proven.size <= PROVEN_MAX) return;
    const [oldest] = this._proven;
    this._proven.delete(oldest);
  }
}
