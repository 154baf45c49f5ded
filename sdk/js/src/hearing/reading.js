/** Reads the frame at one place: alignment, likelihoods, decoding, and the evidence that decides. */

import { align, follow } from "./alignment.js";
import { KNOWN_GROUPS, PREFIX, TOKEN_BYTES } from "./frame_code.js";
import { findEvidence, findKnownBits, findLikelihoods } from "./likelihoods.js";
import { boundBits, decode, normalise, SETS_MAX } from "./ordered_statistics.js";

/**
 * What a frame that nobody sent must overcome. There are 2^96 frames, so 10 bits beyond 96 are one wrong frame in a
 * thousand sounds that begin like one; 28 bits with the known part, which says where it is.
 */
const UNKNOWN_MIN_BITS = 106;
const TOGETHER_MIN_BITS = 144;
/** Below this, a place matches only by chance. */
const KNOWN_MIN_BITS = 12;
const CLEAR_KNOWN_BITS = 24;
const SETS_OF_DOUBT = 2;
const FAILED_KEPT = 8;
/** In parts of a group: an echo may be stronger than the first sound. The last try follows a clock that changes. */
const SHIFTS = [1 / 6, -1 / 12, 0];

/** @import { Baseband } from "./baseband.js" */
/** @import { Candidate } from "./prefix_search.js" */
/** @import { PowerSums } from "./power_sums.js" */
/** @import { Group, ToneGrid } from "./tone_grid.js" */

/** @typedef {{evidence: Float64Array, knownBits: number}} Evidence */

/** A reader of candidates, one at a time, which remembers those that it could not read. */
export class Reader {
  /**
   * @param {Baseband} band
   * @param {PowerSums} powerSums
   */
  constructor(band, powerSums) {
    this._band = band;
    this._powerSums = powerSums;
    /** @type {(Evidence & {protocol: number})[]} */
    this._failed = [];
  }

  /**
   * Return the text of the frame at a place, or null. It yields every millisecond or so, to let other work in.
   *
   * @param {Candidate} candidate
   * @param {ToneGrid} grid
   * @param {boolean} isDoubtful near a frame that was read: less is tried
   * @returns {Generator<undefined, string | null, undefined>}
   */
  *read(candidate, grid, isDoubtful) {
    if (candidate.score === 0) return yield* this._powerSums.read(candidate);
    if (candidate.earlier?.[1]) return yield* this._readCopies(candidate, grid);
    // Clear sounds have many places that only look like a beginning, and none is worth an alignment.
    if ((yield* this._findKnownBits(grid, candidate)) < KNOWN_MIN_BITS) return null;
    const { start, clock } = yield* align(this._band, grid, candidate);
    const first = yield* this._measure(grid, grid.groupsOf(start, clock));
    const text = yield* this._judge(first, isDoubtful ? SETS_OF_DOUBT : SETS_MAX);
    if (text !== null || first.knownBits < KNOWN_MIN_BITS) return text;
    const summed = yield* this._powerSums.read({ ...candidate, start });
    if (summed !== null || isDoubtful) return summed;
    let clearest = first;
    for (const shift of SHIFTS) {
      const groups = shift
        ? grid.groupsOf(start + shift * grid.group, clock)
        : yield* follow(this._band, grid, { start, clock });
      const again = yield* this._measure(grid, groups);
      const found = yield* this._judge(again, SETS_OF_DOUBT);
      if (found !== null) return found;
      // A clock that is followed fits what is known by choice, also in noise.
      if (shift && again.knownBits > clearest.knownBits) clearest = again;
    }
    return yield* this._combine(candidate.protocol, clearest);
  }

  /**
   * Read a frame and its earlier repetitions as one.
   *
   * @param {Candidate} candidate
   * @param {ToneGrid} grid
   * @returns {Generator<undefined, string | null, undefined>}
   */
  *_readCopies(candidate, grid) {
    const { start, clock } = yield* align(this._band, grid, candidate);
    let total = yield* this._measure(grid, grid.groupsOf(start, clock));
    for (const earlier of candidate.earlier?.slice(1) ?? [])
      total = add(total, yield* this._measure(grid, grid.groupsOf(start - earlier, clock)));
    return yield* this._judge(total, SETS_MAX);
  }

  /**
   * @param {ToneGrid} grid
   * @param {Candidate} candidate
   * @returns {Generator<undefined, number, undefined>}
   */
  *_findKnownBits(grid, { start, clock }) {
    const powers = yield* grid.measure(this._band, grid.groupsOf(start, clock, KNOWN_GROUPS));
    return findKnownBits(...powers, grid);
  }

  /**
   * @param {ToneGrid} grid
   * @param {Group[]} groups
   * @returns {Generator<undefined, Evidence, undefined>}
   */
  *_measure(grid, groups) {
    const powers = yield* grid.measure(this._band, groups);
    return findEvidence(yield* findLikelihoods(...powers, grid));
  }

  /**
   * Return the text of the frame if the evidence suffices.
   *
   * @param {Evidence} evidence
   * @param {number} setsMax
   * @returns {Generator<undefined, string | null, undefined>}
   */
  *_judge({ evidence, knownBits }, setsMax) {
    const neededBits = Math.max(UNKNOWN_MIN_BITS, TOGETHER_MIN_BITS - knownBits);
    if (knownBits < KNOWN_MIN_BITS || boundBits(evidence) < neededBits) return null;
    const sets = knownBits >= CLEAR_KNOWN_BITS ? setsMax : SETS_OF_DOUBT;
    const decoded = yield* decode(evidence, neededBits, sets);
    return decoded && PREFIX + String.fromCharCode(...decoded.content.subarray(0, TOKEN_BYTES));
  }

  /**
   * Add what earlier failures heard, if they begin as clearly as this: it may be the same frame again.
   *
   * @param {number} protocol
   * @param {Evidence} evidence
   * @returns {Generator<undefined, string | null, undefined>}
   */
  *_combine(protocol, { evidence, knownBits }) {
    if (knownBits < CLEAR_KNOWN_BITS) return null;
    const earlier = this._failed.filter((each) => each.protocol === protocol);
    this._failed = [{ protocol, evidence, knownBits }, ...this._failed].slice(0, FAILED_KEPT);
    /** @type {Evidence} */
    let total = { evidence, knownBits };
    for (const other of earlier) {
      total = add(total, other);
      const text = yield* this._judge(total, SETS_OF_DOUBT);
      if (text === null) continue;
      this._failed = [];
      return text;
    }
    return null;
  }
}

/** @type {(one: Evidence, other: Evidence) => Evidence} */
const add = (one, other) => ({
  evidence: normalise(one.evidence.map((bits, at) => bits + other.evidence[at])),
  knownBits: one.knownBits + other.knownBits,
});
