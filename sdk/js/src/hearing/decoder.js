/**
 * Broadcast frames in sound: protocols 3, 4 and 5 of ggwave, whose payload is always a frame of 25 bytes.
 */

import { correct } from "./reed_solomon.js";
import { COLUMNS_PER_S, Spectrum, TONE_COUNT } from "./spectrum.js";

/** ggwave sends in frames of 1,024 samples at 48 kHz; a column of the spectrum is a quarter of one. */
const COLUMNS_PER_FRAME = 4;
const MARKER_COLUMNS = 16 * COLUMNS_PER_FRAME;
const MARKER_PAIRS = 16;
/** The frames of one group of six tones, in protocols 3, 4 and 5. */
const FRAMES_PER_GROUP = [9, 6, 3];
const TONES_PER_NIBBLE = 16;
const LENGTH_BYTES = 3;
const PAYLOAD_BYTES = 25;
const CHECK_BYTES = 10;
const GROUPS = Math.ceil((LENGTH_BYTES + PAYLOAD_BYTES + CHECK_BYTES) / 3);
/** Windows that lie in a marker as a whole. */
const MARKER_WINDOWS = MARKER_COLUMNS - COLUMNS_PER_FRAME + 1;
/** Over noise, the contrast of a marker has a standard deviation of 0.03 (measured). */
const CONTRAST_MIN = 0.12;
const SEARCH_COLUMNS = 8;
const READINGS_MAX = 5;
const COLUMNS_KEPT = MARKER_COLUMNS + GROUPS * 9 * COLUMNS_PER_FRAME + 4 * SEARCH_COLUMNS;
const TAIL_S = 0.2;
const FRAME = /^XRC1:(brd_[A-Za-z0-9_-]{16})$/;
const REPORTED_MAX = 4096;

/**
 * @typedef {{text: string, token: string}} Frame
 * @typedef {{value: number, clarity: number}} Nibble
 */

/**
 * Listens to a stream of samples and reports each frame once, however often it is repeated, unless told otherwise.
 */
export class Decoder {
  /**
   * @param {number} rateHz of the samples, at least 40,000
   * @param {number} [repeatAfterS] report a frame again that is heard this many seconds after it was reported
   * @throws {RangeError} for a lower rate
   */
  constructor(rateHz, repeatAfterS = Infinity) {
    this._rateHz = rateHz;
    this._repeatAfter = repeatAfterS * COLUMNS_PER_S;
    this._spectrum = new Spectrum(rateHz, (powers) => this._addColumn(powers));
    // After each column, the sums so far of the power of each tone and of the contrast: a sum over any columns is one
    // difference.
    this._sums = Array.from({ length: COLUMNS_KEPT }, () => new Float64Array(TONE_COUNT + 1));
    this._columnCount = 0;
    this._markerAt = 0;
    /** @type {{start: number, framesPerGroup: number, readyAt: number}[]} */
    this._pending = [];
    /** @type {Map<string, number>} the column at which each frame was reported */
    this._reported = new Map();
    /** @type {Frame[]} */
    this._heard = [];
  }

  /**
   * Take samples of one channel, any number at a time. Beyond -1..1 they are clipped; NaN is 0.
   *
   * @param {Float32Array} samples
   * @returns {Frame[]} the frames that they complete, except for those reported before
   */
  feed(samples) {
    this._spectrum.feed(samples);
    return this._heard.splice(0);
  }

  /** Return the frames that the end of the stream completes. */
  finish() {
    return this.feed(new Float32Array(Math.ceil(TAIL_S * this._rateHz)));
  }

  /** @param {Float32Array} powers */
  _addColumn(powers) {
    const column = this._columnCount;
    this._columnCount += 1;
    const sums = this._sumsAt(column);
    if (column % COLUMNS_KEPT === 0) {
      // Make the sums small again, because a quiet sound would be lost to rounding beside a large sum.
      const base = sums.slice();
      for (const each of this._sums) base.forEach((value, index) => (each[index] -= value));
    }
    const last = this._sumsAt(column - 1);
    [...powers, markerContrast(powers)].forEach((each, index) => (sums[index] = last[index] + each));
    this._look(column - SEARCH_COLUMNS);
    this._pending = this._pending.filter((each) => {
      if (each.readyAt > column) return true;
      this._decode(each.start, each.framesPerGroup);
      return false;
    });
  }

  /** @param {number} column */
  _sumsAt(column) {
    return this._sums[(column + COLUMNS_KEPT) % COLUMNS_KEPT];
  }

  /**
   * Begin to decode if a marker ends with this column: if its contrast is the highest around.
   *
   * @param {number} column
   */
  _look(column) {
    // Equal contrasts in a row, which only a hostile sound has, must not cost a decoding each.
    if (column < this._markerAt + SEARCH_COLUMNS) return;
    const contrast = this._contrastAt(column);
    if (contrast < CONTRAST_MIN) return;
    for (let other = column - SEARCH_COLUMNS; other <= column + SEARCH_COLUMNS; other += 1) {
      if (this._contrastAt(other) > contrast) return;
    }
    this._markerAt = column;
    const start = column - MARKER_WINDOWS + 1 + MARKER_COLUMNS;
    for (const framesPerGroup of FRAMES_PER_GROUP) {
      const readyAt = start + GROUPS * framesPerGroup * COLUMNS_PER_FRAME + SEARCH_COLUMNS;
      this._pending.push({ start, framesPerGroup, readyAt });
    }
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
   * Read at the offsets from the start at which the tones stand out most, the likeliest first.
   *
   * @param {number} start
   * @param {number} framesPerGroup
   */
  _decode(start, framesPerGroup) {
    const readings = [];
    for (let offset = -SEARCH_COLUMNS; offset <= SEARCH_COLUMNS; offset += 1) {
      const nibbles = this._nibbles(start + offset, framesPerGroup);
      readings.push({ nibbles, clarity: nibbles.reduce((sum, each) => sum + each.clarity, 0) });
    }
    readings.sort((a, b) => b.clarity - a.clarity);
    for (const { nibbles } of readings.slice(0, READINGS_MAX)) {
      const frame = readFrame(nibbles);
      if (frame !== null) return this._report(frame);
    }
  }

  /** @param {Frame} frame */
  _report(frame) {
    const reportedAt = this._reported.get(frame.text) ?? -Infinity;
    const isDue = this._columnCount - reportedAt >= this._repeatAfter;
    if (isDue) this._heard.push(frame);
    // Added anew, because the frame that was heard least recently is forgotten first.
    this._reported.delete(frame.text);
    this._reported.set(frame.text, isDue ? this._columnCount : reportedAt);
    if (this._reported.size > REPORTED_MAX) {
      this._reported.delete(/** @type {string} */ (this._reported.keys().next().value));
    }
  }

  /**
   * Return the likeliest value of each nibble, and how much its tone stands out, from 0 to 1.
   *
   * @param {number} start
   * @param {number} framesPerGroup
   */
  _nibbles(start, framesPerGroup) {
    /** @type {Nibble[]} */
    const nibbles = [];
    const columns = framesPerGroup * COLUMNS_PER_FRAME;
    for (let group = 0; group < GROUPS; group += 1) {
      const first = start + group * columns;
      const before = this._sumsAt(first - 1);
      const powers = this._sumsAt(first + columns - COLUMNS_PER_FRAME).map((sum, tone) => sum - before[tone]);
      for (let tone = 0; tone < TONE_COUNT; tone += TONES_PER_NIBBLE) {
        nibbles.push(findClearest(powers.subarray(tone, tone + TONES_PER_NIBBLE)));
      }
    }
    return nibbles;
  }
}

/**
 * Return the frame that the nibbles encode, or null.
 *
 * @param {Nibble[]} nibbles
 */
function readFrame(nibbles) {
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
    if (match) return { text: match[0], token: match[1] };
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
    const [first, second] = [powers[2 * pair], powers[2 * pair + 1]];
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
  powers.forEach((power, tone) => {
    if (power > best) [value, best, second] = [tone, power, best];
    else if (power > second) second = power;
  });
  return { value, clarity: (best - second) / (best + second || 1) };
}

/**
 * Return the frames in a piece of sound, each once, in the order in which they end.
 *
 * @param {Float32Array} samples of one channel, in -1..1
 * @param {number} rateHz at least 40,000
 * @throws {RangeError} for a lower rate
 */
export function hear(samples, rateHz) {
  const decoder = new Decoder(rateHz);
  return [...decoder.feed(samples), ...decoder.finish()];
}
