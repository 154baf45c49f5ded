/** The offline packs of a receiver, and what they prove about its clock. */

import { hash } from "./verifying/commitments.js";
import { findInPacks, PACK_LIFE_MAX_MS } from "./verifying/offline_pack.js";
import { CLOCK_SKEW_MAX_MS } from "./verifying/verification.js";

/** @import { LogPolicy } from "./verifying/log_policy.js" */
/** @import { OfflinePack } from "./verifying/offline_pack.js" */

/**
 * The packs that one receiver knows. Ended ones stay for as long as they can silence an older one.
 *
 * It must be at least as late as the service wrote in any pack or answer, plus the time that has passed since that was
 * received. A clock that says otherwise was set back, and then no pack answers.
 */
export class PackShelf {
  /** @param {LogPolicy | null} requireLogged */
  constructor(requireLogged) {
    this._requireLogged = requireLogged;
    /** @type {OfflinePack[]} */
    this.packs = [];
    // A time that the service signed, less the monotonic time at which it was received.
    this._offsetMs = -Infinity;
  }

  /**
   * Keep a pack; forget those that are too old to answer, and to silence what still answers.
   *
   * @param {OfflinePack} pack
   */
  add(pack) {
    this.noteTime(pack.issuedAt);
    this.packs = [...this.packs, pack].filter(({ issuedAt }) => this._earliestMs() - issuedAt < PACK_LIFE_MAX_MS);
  }

  /**
   * Take note of a time that the service signed and that is therefore past.
   *
   * @param {number} signedAtMs
   */
  noteTime(signedAtMs) {
    this._offsetMs = Math.max(this._offsetMs, signedAtMs - performance.now());
  }

  /**
   * Return what a pack says of a token now; null if none may answer, or the clock was set back.
   *
   * @param {string} token
   */
  async find(token) {
    const [nowMs, earliestMs] = [Date.now(), this._earliestMs()];
    if (earliestMs - nowMs > CLOCK_SKEW_MAX_MS) return null;
    return findInPacks(this.packs, await hash(token), Math.max(nowMs, earliestMs), this._requireLogged);
  }

  _earliestMs() {
    return this._offsetMs + performance.now();
  }
}
