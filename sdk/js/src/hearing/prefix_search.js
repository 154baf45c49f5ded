/** Finds where frames begin, over time and clock: by the 24 tones that every frame begins with. */

import { BAND_RATE_HZ } from "./baseband.js";
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
/** 2, 4 and 8 repetitions are added up, the latter if they fit into this. */
const COPIES_KEPT_S = 60;
/** Of pure chance, in each repetition; the deviation of their sum grows with the root of their number. */
const SCORE_MEAN = 24;

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
 * @property {number[]} [earlier] how much earlier each repetition begins: 0, and more if they were found together
 */

/**
 * Return how many repetitions are added up at most for a period, which is 0 for none.
 *
 * @type {(periodS: number) => number}
 */
export const countCopies = (periodS) =>
  periodS ? ([8, 4].find((count) => (count - 1) * periodS <= COPIES_KEPT_S) ?? 2) : 1;

/** A search in the band, for one protocol. */
export class PrefixSearch {
  /**
   * @param {ToneGrid} grid
   * @param {number} periodS of repetitions, by the sender's clock; 0 for none
   */
  constructor(grid, periodS) {
    this._grid = grid;
    this._period = periodS * BAND_RATE_HZ;
    this._copiesMax = countCopies(periodS);
    // The score of each row and clock, as far back as the first repetition.
    const length = 1 + Math.ceil((1.01 * this._period * (this._copiesMax - 1)) / grid.hop);
    this._past = Array.from({ length }, () => new Float32Array(grid.clocks.length));
    this._row = 0;
    this._real = new Float32Array(grid.coarse.size);
    this._imaginary = new Float32Array(grid.coarse.size);
    this._rowLength = KNOWN_GROUPS * grid.clocks.length;
    this._scores = new Float32Array(ROWS_KEPT * this._rowLength);
    this._rests = new Float64Array(KNOWN_GROUPS);
    // The score of each row, the clock that has it, and the number of repetitions.
    this._best = Array.from({ length: ROWS_KEPT }, () => [0, 0, 1]);
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
    const rests = this._rests.fill(1);
    for (let nibble = 0; nibble < NIBBLES; nibble += 1) {
      const band = nibble * TONES;
      let sum = SMALLEST;
      for (let tone = band; tone < band + TONES; tone += 1) sum += powers[places[tone]];
      for (let group = 0; group < KNOWN_GROUPS; group += 1) {
        const power = powers[places[band + KNOWN_NIBBLES[group * NIBBLES + nibble]]];
        rests[group] *= Math.max(this._restMin, 1 - power / sum);
      }
    }
    rests.forEach((rest, group) => (this._scores[first + group] = (1 - TONES) * Math.log(rest)));
  }

  /**
   * Find the best clock of a frame that begins with this row.
   *
   * @param {number} row
   */
  _addUp(row) {
    const scores = this._scores;
    const firsts = [0, 1, 2, 3].map(
      (group) => ((row + group * HOPS_PER_GROUP + ROWS_KEPT) % ROWS_KEPT) * this._rowLength + group,
    );
    let best = [0, 0, 1];
    const past = this._past[row % this._past.length];
    for (let clock = 0; row >= 0 && clock < this._grid.clocks.length; clock += 1) {
      const at = KNOWN_GROUPS * clock;
      const score = firsts.reduce((sum, first) => sum + scores[first + at], 0);
      past[clock] = score;
      if (score > best[0]) best = [score, clock, 1];
    }
    this._best[(row + ROWS_KEPT) % ROWS_KEPT] = best[0] < SCORE_MIN ? this._addCopies(row) : best;
  }

  /**
   * Return the score, clock and number of the repetitions of which the last begins with this row, or a score of 0.
   *
   * @param {number} row
   */
  _addCopies(row) {
    let best = [0, 0, 1];
    this._grid.clocks.forEach((clock, at) => {
      let sum = 0;
      for (let copies = 1; copies <= this._copiesMax; copies += 1) {
        const earlier = row - Math.round(((copies - 1) * this._period) / (1 + clock) / this._grid.hop);
        if (earlier < 0) break;
        sum += this._past[earlier % this._past.length][at];
        // How clear the sum is, by the measure of one frame; as a score, below any that is clear by itself.
        const over = (sum - SCORE_MEAN * copies) / Math.sqrt(copies) + SCORE_MEAN - SCORE_MIN;
        const score = SCORE_MIN - 1 / (1 + over);
        if (over >= 0 && score > best[0] && !(copies & (copies - 1))) best = [score, at, copies];
      }
    });
    return best;
  }

  /**
   * Return the candidate at this row if none around it scores higher.
   *
   * @param {number} row
   * @returns {Candidate | null}
   */
  _findPeak(row) {
    if (row < 0) return null;
    const [score, clockAt, length] = this._best[row % ROWS_KEPT];
    if (score === 0) return null;
    for (let other = row - APART; other <= row + APART; other += 1) {
      const [around] = this._best[(other + ROWS_KEPT) % ROWS_KEPT];
      if (around > score || (around === score && other < row)) return null;
    }
    const { protocol, hop, clocks } = this._grid;
    const clock = clocks[clockAt];
    const earlier = Array.from({ length }, (_, copy) => (copy * this._period) / (1 + clock));
    return { protocol, start: row * hop, clock, score, earlier };
  }
}
