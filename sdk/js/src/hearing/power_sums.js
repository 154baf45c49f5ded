/**
 * The second reading: the power of short windows, added up over each group, and the strongest tone of each sixteen.
 *
 * It hears less in noise than likelihoods of whole groups do, and more through long dropouts and beside another Code.
 */

import {
  CHECK_BYTES,
  GROUP_BLOCKS,
  GROUPS,
  MARKER_BLOCKS,
  MARKER_PAIRS,
  PAYLOAD_BYTES,
  TONE_COUNT,
  TONES,
} from "./frame_code.js";
import { correct } from "./reed_solomon.js";
import { COLUMN, COLUMNS_PER_BLOCK } from "./spectrum.js";

const LENGTH_BYTES = 3;
const MARKER_COLUMNS = MARKER_BLOCKS * COLUMNS_PER_BLOCK;
/** Windows that lie in a marker as a whole. */
const MARKER_WINDOWS = MARKER_COLUMNS - COLUMNS_PER_BLOCK + 1;
/** Over noise, the contrast of a marker has a standard deviation of 0.03 (measured). */
const CONTRAST_MIN = 0.12;
const SEARCH_COLUMNS = 8;
const READINGS_MAX = 5;
/** A ring of 11 seconds, as of the band. */
const COLUMNS_KEPT = 2048;
const FRAME = /^XRC1:brd_[A-Za-z0-9_-]{16}$/;

/** @import { Candidate } from "./prefix_search.js" */

/** @typedef {{value: number, clarity: number}} Nibble */

export class PowerSums {
  constructor() {
    // After each column, the sums so far of the power of each tone and of the contrast: a sum over any columns is one
    // difference.
    this._sums = Array.from({ length: COLUMNS_KEPT }, () => new Float64Array(TONE_COUNT + 1));
    this._columnCount = 0;
    this._markerAt = 0;
  }

  /**
   * Add a column, and return the candidates whose marker it completes, those of every protocol.
   *
   * @param {Float32Array} powers
   */
  add(powers) {
    const column = this._columnCount;
    this._columnCount += 1;
    const sums = this._sumsAt(column);
    if (column % COLUMNS_KEPT === 0) {
      // Make the sums small again, because a quiet sound would be lost to rounding beside a large sum.
      const base = sums.slice();
      for (const each of this._sums) base.forEach((value, index) => (each[index] -= value));
    }
    const last = this._sumsAt(column - 1);
    for (let tone = 0; tone < TONE_COUNT; tone += 1) sums[tone] = last[tone] + powers[tone];
    sums[TONE_COUNT] = last[TONE_COUNT] + markerContrast(powers);
    return this._findMarker(column - SEARCH_COLUMNS);
  }

  /**
   * Return the likeliest frame around a start, or null. It yields where other work may be done.
   *
   * @param {Candidate} candidate
   * @returns {Generator<undefined, string | null, undefined>}
   */
  *read({ protocol, start }) {
    const columns = /** @type {number} */ (GROUP_BLOCKS.get(protocol)) * COLUMNS_PER_BLOCK;
    const first = Math.round(start / COLUMN);
    const readings = [];
    for (let offset = -SEARCH_COLUMNS; offset <= SEARCH_COLUMNS; offset += 1) {
      const nibbles = this._readNibbles(first + offset, columns);
      readings.push({ nibbles, clarity: nibbles.reduce((sum, each) => sum + each.clarity, 0) });
      if (offset % 4 === 0) yield;
    }
    readings.sort((a, b) => b.clarity - a.clarity);
    for (const { nibbles } of readings.slice(0, READINGS_MAX)) {
      const text = readFrame(nibbles);
      if (text !== null) return text;
      yield;
    }
    return null;
  }

  /** @param {number} column */
  _sumsAt(column) {
    return this._sums[(column + COLUMNS_KEPT) % COLUMNS_KEPT];
  }

  /**
   * Return a candidate for each protocol if a marker ends with this column: if its contrast is the highest around.
   *
   * @param {number} column
   * @returns {Candidate[]}
   */
  _findMarker(column) {
    // Equal contrasts in a row, which only a hostile sound has, must not cost a decoding each.
    if (column < this._markerAt + SEARCH_COLUMNS) return [];
    const contrast = this._contrastAt(column);
    if (Math.abs(contrast) < CONTRAST_MIN) return [];
    for (let other = column - SEARCH_COLUMNS; other <= column + SEARCH_COLUMNS; other += 1) {
      if (this._contrastAt(other) * Math.sign(contrast) > Math.abs(contrast)) return [];
    }
    this._markerAt = column;
    const begin = column - MARKER_WINDOWS + 1;
    return [...GROUP_BLOCKS].map(([protocol, blocks]) => {
      // The contrast of a marker that ends a frame is negative.
      const after = contrast > 0 ? MARKER_COLUMNS : -GROUPS * blocks * COLUMNS_PER_BLOCK;
      return { protocol, start: (begin + after) * COLUMN, clock: 0, score: 0 };
    });
  }

  /**
   * Return the mean contrast of the windows of a marker that ends with this column.
   *
   * @param {number} column
   */
  _contrastAt(column) {
    return (this._sumsAt(column)[TONE_COUNT] - this._sumsAt(column - MARKER_WINDOWS)[TONE_COUNT]) / MARKER_WINDOWS;
  }

  /**
   * Return the likeliest value of each half byte, and how much its tone stands out, from 0 to 1.
   *
   * @param {number} start
   * @param {number} columns of a group
   */
  _readNibbles(start, columns) {
    /** @type {Nibble[]} */
    const nibbles = [];
    for (let group = 0; group < GROUPS; group += 1) {
      const first = start + group * columns;
      const before = this._sumsAt(first - 1);
      const powers = this._sumsAt(first + columns - COLUMNS_PER_BLOCK).map((sum, tone) => sum - before[tone]);
      for (let tone = 0; tone < TONE_COUNT; tone += TONES) {
        nibbles.push(findClearest(powers.subarray(tone, tone + TONES)));
      }
    }
    return nibbles;
  }
}

/**
 * Return the frame that the half bytes encode, or null.
 *
 * @param {Nibble[]} nibbles
 */
export function readFrame(nibbles) {
  const bytes = new Uint8Array(PAYLOAD_BYTES + CHECK_BYTES);
  /** @type {number[]} */
  const clarities = [];
  bytes.forEach((_, index) => {
    const [low, high] = nibbles.slice(2 * (LENGTH_BYTES + index));
    bytes[index] = low.value | (high.value << 4);
    clarities.push(Math.min(low.clarity, high.clarity));
  });
  const leastClear = [...clarities.keys()].sort((a, b) => clarities[a] - clarities[b]);
  for (let erasureCount = 0; erasureCount < CHECK_BYTES; erasureCount += 2) {
    const corrected = correct(bytes, CHECK_BYTES, leastClear.slice(0, erasureCount));
    const match = corrected && FRAME.exec(String.fromCharCode(...corrected.subarray(0, PAYLOAD_BYTES)));
    // With eight erased one error more fits one word in ten, so only the least clear bytes may change.
    const isKept = (/** @type {number} */ place) => corrected?.[place] === bytes[place];
    if (match && (erasureCount < 6 || leastClear.slice(CHECK_BYTES).every(isKept))) return match[0];
  }
  return null;
}

/**
 * Return how well a column fits a marker, from -1 (its end) to 1: of each two tones, a marker has one.
 *
 * @param {Float32Array} powers
 */
function markerContrast(powers) {
  let sum = 0;
  for (let pair = 0; pair < MARKER_PAIRS; pair += 1) {
    const first = powers[2 * pair];
    const second = powers[2 * pair + 1];
    const contrast = (first - second) / (first + second || 1);
    sum += pair % 2 === 0 ? contrast : -contrast;
  }
  return sum / MARKER_PAIRS;
}

/**
 * @param {Float64Array} powers
 * @returns {Nibble}
 */
function findClearest(powers) {
  let [value, best, second] = [0, 0, 0];
  for (let tone = 0; tone < powers.length; tone += 1) {
    const power = powers[tone];
    if (power > best) [value, best, second] = [tone, power, best];
    else if (power > second) second = power;
  }
  return { value, clarity: (best - second) / (best + second || 1) };
}
