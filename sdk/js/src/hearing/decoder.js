/**
 * Broadcast frames in sound: protocols 3, 4 and 5 of ggwave, whose payload is always a frame of 25 bytes.
 *
 * docs/sound-decoder.md describes how they are found and read.
 */

import { BAND_RATE_HZ, Baseband, PIECE } from "./baseband.js";
import { GROUP_BLOCKS, KNOWN_GROUPS } from "./frame_code.js";
import { PowerSums } from "./power_sums.js";
import { countCopies, PrefixSearch } from "./prefix_search.js";
import { Reader } from "./reading.js";
import { Reported } from "./reported.js";
import { COLUMN, Columns } from "./spectrum.js";
import { gridOf } from "./tone_grid.js";

const WAITING_MAX = 48;
/** A frame whose clock is slow is longer, in parts of its length. */
const LATENESS = 1.02;
/** Longer than what the search needs after a beginning. */
const TAIL_S = 0.6;
/** Frames that were read, which explain weaker candidates near them. */
const FOUND_KEPT = 8;

/** @import { Candidate } from "./prefix_search.js" */

/** @typedef {{text: string, token: string}} Frame */

/**
 * Listens to a stream of samples and reports each frame once, however often it is repeated, unless told otherwise.
 */
export class Decoder {
  /**
   * @param {number} rateHz of the samples, at least 40,000
   * @param {number} [repeatAfterS] report a frame again that is heard this many seconds after it was reported
   * @param {number} [periodS] from one beginning of a repeated Code to the next: 1 to 60 seconds, by the sender's clock
   * @throws {RangeError} for a lower rate, another period, or what is no time
   */
  constructor(rateHz, repeatAfterS = Infinity, periodS = 0) {
    requireTimes(repeatAfterS, periodS);
    this._rateHz = rateHz;
    this._band = new Baseband(rateHz, 1.01 * periodS * (countCopies(periodS) - 1));
    this._powerSums = new PowerSums();
    this._columns = new Columns(this._band, (powers) => this._addColumn(powers));
    this._searches = [...GROUP_BLOCKS.keys()].map((protocol) => new PrefixSearch(gridOf(protocol), periodS));
    this._reader = new Reader(this._band, this._powerSums);
    /** @type {Candidate[]} */
    this._waiting = [];
    /** @type {Candidate[]} */
    this._found = [];
    /** @type {{candidate: Candidate, steps: Generator<undefined, string | null, undefined>} | null} */
    this._reading = null;
    this._reported = new Reported(repeatAfterS * BAND_RATE_HZ);
    /** @type {Frame[]} */
    this._heard = [];
  }

  /**
   * Take samples of one channel, any number at a time, of which 1 is full scale. NaN, infinity and what exceeds 2^32 are 0.
   *
   * @param {Float32Array} samples
   * @returns {Frame[]} the frames that they complete, except for those reported before
   */
  feed(samples) {
    for (let first = 0; first < samples.length; first += PIECE) {
      this._band.feed(samples.subarray(first, first + PIECE));
      this._columns.advance();
    }
    return this._heard.splice(0);
  }

  /** Return the frames that the end of the stream completes, as if silence followed. */
  finish() {
    return [...this.finishing()].flat();
  }

  /** Yield these frames piece by piece, to let other work in. */
  *finishing() {
    yield this.feed(new Float32Array(Math.ceil(TAIL_S * this._rateHz)));
    while (this._work(Infinity)) yield this._heard.splice(0);
  }

  /** @param {Float32Array} powers */
  _addColumn(powers) {
    this._wait(this._powerSums.add(powers));
    for (const search of this._searches) this._wait(search.advance(this._band));
    // One piece of reading for each column of 5 ms, which keeps a browser's audio thread in time. This bounds the work for
    // sounds that look like a beginning all the time.
    this._work(this._band.end);
  }

  /** @param {Candidate[]} candidates */
  _wait(candidates) {
    if (!candidates.length) return;
    // Beginnings that are clear score alike. Of them the newest comes first, since it stays in the band for longest. Markers
    // score 0, and are so many that the oldest comes first: otherwise a marker without end would push each out unread.
    // They have room of their own, because a clear sound looks like a beginning in more places than there is room for.
    this._waiting = [...this._waiting, ...candidates]
      .sort((a, b) => Math.round(b.score) - Math.round(a.score) || (b.score && b.start - a.start))
      .filter((each, at) => at < (each.score ? 1 : 2) * WAITING_MAX);
  }

  /**
   * Do a piece of reading: of the strongest candidate whose frame has ended.
   *
   * @param {number} end of the band
   * @returns {boolean} false if there was nothing to do
   */
  _work(end) {
    this._reading ??= this._begin(end);
    if (!this._reading) return false;
    const { done, value } = this._reading.steps.next();
    if (!done) return true;
    if (value) {
      // After `XRC1:`.
      this._report({ text: value, token: value.slice(5) });
      this._forgetAround(this._reading.candidate);
    }
    this._reading = null;
    return true;
  }

  /**
   * Begin to read the strongest candidate that is ready. One waits for a stronger one near it, which may explain it.
   *
   * @param {number} end of the band
   */
  _begin(end) {
    /** @type {Candidate[]} */
    const later = [];
    this._waiting = this._waiting.filter((each) => each.start > this._band.end - this._band.kept);
    for (const [at, candidate] of this._waiting.entries()) {
      const { protocol, start } = candidate;
      const isReady = start + LATENESS * gridOf(protocol).frame + COLUMN * 8 < end;
      if (isReady && !later.some((each) => each.score > candidate.score && isNear(candidate, each))) {
        this._waiting.splice(at, 1);
        const isDoubtful = this._found.some((each) => isNear(candidate, each));
        return { candidate, steps: this._reader.read(candidate, gridOf(protocol), isDoubtful) };
      }
      if (!isReady) later.push(candidate);
    }
    return null;
  }

  /**
   * Forget the candidates that begin where a frame was read: its marker, and echoes.
   *
   * @param {Candidate} candidate
   */
  _forgetAround(candidate) {
    const near = gridOf(candidate.protocol).group / 2;
    this._waiting = this._waiting.filter((each) => Math.abs(each.start - candidate.start) > near);
    this._found = [candidate, ...this._found].slice(0, FOUND_KEPT);
  }

  /** @param {Frame} frame */
  _report(frame) {
    if (this._reported.isDue(frame.text, this._band.end)) this._heard.push(frame);
  }
}

/**
 * Refuse times that a decoder cannot take.
 *
 * @param {number} [repeatAfterS]
 * @param {number} [periodS]
 * @throws {RangeError}
 */
export function requireTimes(repeatAfterS = 0, periodS = 0) {
  const arePossible = repeatAfterS >= 0 && (periodS === 0 || (periodS >= 1 && periodS <= 60));
  if (!arePossible) throw new RangeError("A period is 1 to 60 s, and a pause 0 or more.");
}

/**
 * Return whether a candidate begins within what every frame begins with, before or after another one.
 *
 * @param {Candidate} candidate
 * @param {Candidate} other
 */
function isNear(candidate, other) {
  return Math.abs(candidate.start - other.start) < KNOWN_GROUPS * gridOf(other.protocol).group;
}

/**
 * Return the frames in a piece of sound, each once, in the order in which they are read.
 *
 * @param {Float32Array} samples of one channel, in -1..1
 * @param {number} rateHz at least 40,000
 * @throws {RangeError} for a lower rate
 */
export function hear(samples, rateHz) {
  const decoder = new Decoder(rateHz);
  return [...decoder.feed(samples), ...decoder.finish()];
}
