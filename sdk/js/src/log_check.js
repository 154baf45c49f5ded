/** Require that an answer is in the transparency log, before anybody sees it. */

import { NotYetProven } from "./failures.js";
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
   * Accept only a digest that the log proves, or will within ten seconds.
   *
   * A log may publish a checkpoint before its witnesses have cosigned it, so too few of them are awaited, too.
   *
   * @param {string} digest
   * @param {(digest: string) => Promise<Uint8Array | null>} fetchProof returns null if the log does not have it
   * @throws {ReceiverFailure} unverifiable; what `fetchProof` throws
   */
  async require(digest, fetchProof) {
    for (let count = 1; !this._proven.has(digest); count += 1) {
      try {
        await this._prove(digest, await fetchProof(digest));
      } catch (failure) {
        if (!(failure instanceof NotYetProven) || count === REQUESTS_MAX) throw failure;
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      }
    }
  }

  /**
   * @param {string} digest
   * @param {Uint8Array | null} proof
   * @throws {ReceiverFailure} unverifiable
   */
  async _prove(digest, proof) {
    if (proof === null) throw new NotYetProven("The transparency log does not have the answer.");
    await verifyLogProof(proof, this._policy, "code.issued/answer", digest);
    this._proven.add(digest);
    const [oldest] = this._proven;
    if (this._proven.size > PROVEN_MAX) this._proven.delete(oldest);
  }
}
