/** The offline packs of a receiver, and what they prove about its clock. */

import { hash } from "./verifying/commitments.js";
import { findInPacks, PACK_LIFE_MAX_MS } from "./verifying/offline_pack.js";
import { CLOCK_SKEW_MAX_MS } from "./verifying/verification.js";

export const PACKS_MAX = 20;

/** @import { LogPolicy } from "./verifying/log_policy.js" */
/** @import { OfflinePack } from "./verifying/offline_pack.js" */

/**
 * The packs that one receiver knows: the newest `PACKS_MAX` that can answer, or silence an older one.
 *
 * It must be at least as late as the service wrote in any pack or answer, plus the time that has passed since that was
 * received. A clock that says otherwise was set back, and then no pack answers.
 */
export class PackShelf {
  /** @param {LogPolicy | null} requireLogged */
  constructor(requireLogged) {
    this._requireLogged = requireLogged;
    /** @type {OfflinePack[]} the newest first */
    this.packs = [];
    // Nothing this old is kept: it has ended, or a newer pack that may have silenced it is forgotten.
    this._floorMs = 0;
    // A time that the service signed, less the monotonic time at which it was received.
    this._offsetMs = -Infinity;
  }

  /**
   * Keep a pack once; forget what a newer one replaces, what is older than any that lasts, and the oldest.
   *
   * The same pack replaces itself only if it comes with a proof.
   *
   * @param {OfflinePack} pack
   */
  add(pack) {
    this.noteTime(pack.issuedAt);
    const known = new Map(this.packs.map((each) => [each.digest, each]));
    if (pack.proof !== null || !known.has(pack.digest)) known.set(pack.digest, pack);
    const [all, earliestMs] = [[...known.values()], this._earliestMs()];
    const useful = all
      .filter((each) => !all.some((newer) => newer.replaces(each, earliestMs)))
      .sort((left, right) => right.issuedAt - left.issuedAt);
    this._floorMs = Math.max(this._floorMs, earliestMs - PACK_LIFE_MAX_MS, useful[PACKS_MAX]?.issuedAt ?? 0);
    this.packs = useful.filter(({ issuedAt }) => issuedAt > this._floorMs);
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
