/** Finds where frames begin, over time and clock: by the 24 tones that every frame begins with. */

import { KNOWN_GROUPS, KNOWN_NIBBLES, NIBBLES, TONES } from "./frame_code.js";
import { HOPS_PER_GROUP } from "./tone_grid.js";

/** A known tone of pure chance scores 1 in the mean, and 24 of them score 24 with a deviation of 5. */
const SCORE_MIN = 46;
const TONE_SCORE_MAX = 12;
/** A beginning is the highest score within half a group. */
const APART = HOPS_PER_GROUP / 2;
const ROWS_KEPT = 64;
const PREFIX_ROWS = HOPS_PER_GROUP * (KNOWN_GROUPS - 1);
const SMALLEST = 1e-30;

/** @import { Baseband } from "./baseband.js" */
/** @import { ToneGrid } from "./tone_grid.js" */

/**
 * A place where the data of a frame may begin.
 *
 * @typedef {object} Candidate
 * @property {number} protocol
 * @property {number} start in samples of the band
 * @property {number} clock
 * @property {number} score
 */

/** A search in the band, for one protocol. */
export class PrefixSearch {
  /** @param {ToneGrid} grid */
  constructor(grid) {
    this._grid = grid;
    this._row = 0;
    this._real = new Float32Array(grid.coarse.size);
    this._imaginary = new Float32Array(grid.coarse.size);
    this._rowLength = KNOWN_GROUPS * grid.clocks.length;
    this._scores = new Float32Array(ROWS_KEPT * this._rowLength);
    this._best = new Float32Array(ROWS_KEPT);
    this._bestClock = new Float64Array(ROWS_KEPT);
    // In white noise, -15 ln of what a tone leaves of its band is the score; its maximum is this rest.
    this._restMin = Math.exp(-TONE_SCORE_MAX / (TONES - 1));
  }

  /**
   * Return the candidates that the band completes.
   *
   * @param {Baseband} band
   */
  advance(band) {
    /** @type {Candidate[]} */
    const found = [];
    for (; this._row * this._grid.hop + this._grid.group <= band.end; this._row += 1) {
      this._scoreWindow(band);
      const candidate = this._findPeak(this._row - PREFIX_ROWS - APART);
      if (candidate !== null) found.push(candidate);
    }
    return found;
  }

  /**
   * Score how the known tones of each group stand out in the newest window, for each clock.
   *
   * @param {Baseband} band
   */
  _scoreWindow(band) {
    const { coarse, window, hop, places } = this._grid;
    const [real, imaginary] = [this._real, this._imaginary];
    band.copy(this._row * hop, window, real, imaginary);
    coarse.transform(real, imaginary);
    for (let at = 0; at < real.length; at += 1) real[at] = real[at] * real[at] + imaginary[at] * imaginary[at];
    const first = (this._row % ROWS_KEPT) * this._rowLength;
    for (let clock = 0; clock < places.length; clock += 1)
      this._scoreClock(first + KNOWN_GROUPS * clock, places[clock]);
    this._addUp(this._row - PREFIX_ROWS);
  }

  /**
   * @param {number} first where the four scores go
   * @param {Uint16Array} places of the tones among the powers
   */
  _scoreClock(first, places) {
    const powers = this._real;
    let [rest0, rest1, rest2, rest3] = [1, 1, 1, 1];
    for (let nibble = 0; nibble < NIBBLES; nibble += 1) {
      const band = nibble * TONES;
      let sum = SMALLEST;
      for (let tone = band; tone < band + TONES; tone += 1) sum += powers[places[tone]];
      const scale = 1 / sum;
      rest0 *= Math.max(this._restMin, 1 - scale * powers[places[band + KNOWN_NIBBLES[nibble]]]);
      rest1 *= Math.max(this._restMin, 1 - scale * powers[places[band + KNOWN_NIBBLES[NIBBLES + nibble]]]);
      rest2 *= Math.max(this._restMin, 1 - scale * powers[places[band + KNOWN_NIBBLES[2 * NIBBLES + nibble]]]);
      rest3 *= Math.max(this._restMin, 1 - scale * powers[places[band + KNOWN_NIBBLES[3 * NIBBLES + nibble]]]);
    }
    this._scores[first] = (1 - TONES) * Math.log(rest0);
    this._scores[first + 1] = (1 - TONES) * Math.log(rest1);
    this._scores[first + 2] = (1 - TONES) * Math.log(rest2);
    this._scores[first + 3] = (1 - TONES) * Math.log(rest3);
  }

  /**
   * Find the best clock of a frame that begins with this row.
   *
   * @param {number} row
   */
  _addUp(row) {
    const scores = this._scores;
    const [first0, first1, first2, first3] = [0, 1, 2, 3].map((group) => this._firstOf(row, group));
    let [best, bestClock] = [0, 0];
    for (let clock = 0; row >= 0 && clock < this._grid.clocks.length; clock += 1) {
      const at = KNOWN_GROUPS * clock;
      const score = scores[first0 + at] + scores[first1 + at] + scores[first2 + at] + scores[first3 + at];
      if (score > best) [best, bestClock] = [score, clock];
    }
    const place = (row + ROWS_KEPT) % ROWS_KEPT;
    this._best[place] = best;
    this._bestClock[place] = this._grid.clocks[bestClock];
  }

  /**
   * @param {number} row
   * @param {number} group
   */
  _firstOf(row, group) {
    return ((row + group * HOPS_PER_GROUP + ROWS_KEPT) % ROWS_KEPT) * this._rowLength + group;
  }

  /**
   * Return the candidate at this row if none around it scores higher.
   *
   * @param {number} row
   * @returns {Candidate | null}
   */
  _findPeak(row) {
    if (row < 0) return null;
    const score = this._best[row % ROWS_KEPT];
    if (score < SCORE_MIN) return null;
    for (let other = row - APART; other <= row + APART; other += 1) {
      const around = this._best[(other + ROWS_KEPT) % ROWS_KEPT];
      if (around > score || (around === score && other < row)) return null;
    }
    const { protocol, hop } = this._grid;
    return { protocol, start: row * hop, clock: this._bestClock[row % ROWS_KEPT], score };
  }
}
