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
const NIBBLES_PER_GROUP = 6;
const TONES_PER_NIBBLE = 16;
const LENGTH_BYTES = 3;
const PAYLOAD_BYTES = 25;
const CHECK_BYTES = 10;
const GROUPS = Math.ceil((LENGTH_BYTES + PAYLOAD_BYTES + CHECK_BYTES) / 3);
/** Windows that lie in a marker as a whole. */
const MARKER_WINDOWS = MARKER_COLUMNS - COLUMNS_PER_FRAME + 1;
/** Noise has a marker's contrast of 0.03, as a standard deviation (measured). */
const CONTRAST_MIN = 0.12;
const SEARCH_COLUMNS = 8;
const COLUMNS_KEPT = MARKER_COLUMNS + GROUPS * 9 * COLUMNS_PER_FRAME + 4 * SEARCH_COLUMNS;
const TAIL_S = 0.2;
const FRAME = /^XRC1:(brd_[A-Za-z0-9_-]{16})$/;
const REPORTED_MAX = 4096;

/**
 * Listens to a stream of samples and reports each frame once, however often it is repeated.
 */
export class Decoder {
  /**
   * @param {number} rateHz of the samples, at least 40,000
   * @throws {RangeError} for a lower rate
   */
  constructor(rateHz) {
    this._rateHz = rateHz;
    this._spectrum = new Spectrum(rateHz, (powers) => this._addColumn(powers));
    this._powers = Array.from({ length: COLUMNS_KEPT }, () => new Float32Array(TONE_COUNT));
    this._contrasts = new Float32Array(COLUMNS_KEPT);
    this._markers = new Float32Array(COLUMNS_KEPT);
    this._markerSum = 0;
    this._columnCount = 0;
    /** @type {{start: number, framesPerGroup: number, readyAt: number}[]} */
    this._pending = [];
    this._reported = new Set();
    /** @type {{text: string, token: string}[]} */
    this._heard = [];
  }

  /**
   * Take samples of one channel, in -1..1, any number at a time.
   *
   * @param {Float32Array} samples
   * @returns {{text: string, token: string}[]} the frames that they complete, except for those reported before
   */
  feed(samples) {
    this._spectrum.feed(samples);
    return this._heard.splice(0);
  }

  /** Return the frames that the end of the stream completes. */
  finish() {
    return this.feed(new Float32Array(Math.ceil(TAIL_S * this._rateHz)));
  }

  _addColumn(powers) {
    const column = this._columnCount;
    this._columnCount += 1;
    this._powers[column % COLUMNS_KEPT] = powers;
    this._contrasts[column % COLUMNS_KEPT] = markerContrast(powers);
    // The sum over the windows of a marker that ends with this column.
    this._markerSum += this._contrasts[column % COLUMNS_KEPT];
    if (column >= MARKER_WINDOWS) this._markerSum -= this._contrasts[(column - MARKER_WINDOWS) % COLUMNS_KEPT];
    this._markers[column % COLUMNS_KEPT] = this._markerSum / MARKER_WINDOWS;
    this._look(column - SEARCH_COLUMNS);
    this._pending = this._pending.filter((each) => {
      if (each.readyAt > column) return true;
      this._decode(each.start, each.framesPerGroup);
      return false;
    });
  }

  /** Begin to decode if a marker ends with this column: if its contrast is the highest around. */
  _look(column) {
    if (column < MARKER_WINDOWS - 1) return;
    const contrast = this._markers[column % COLUMNS_KEPT];
    if (contrast < CONTRAST_MIN) return;
    for (let other = column - SEARCH_COLUMNS; other <= column + SEARCH_COLUMNS; other += 1) {
      if (other >= 0 && this._markers[other % COLUMNS_KEPT] > contrast) return;
    }
    const start = column - MARKER_WINDOWS + 1 + MARKER_COLUMNS;
    for (const framesPerGroup of FRAMES_PER_GROUP) {
      const readyAt = start + GROUPS * framesPerGroup * COLUMNS_PER_FRAME + SEARCH_COLUMNS;
      this._pending.push({ start, framesPerGroup, readyAt });
    }
  }

  _decode(start, framesPerGroup) {
    for (const offset of this._likelyOffsets(start, framesPerGroup)) {
      const frame = this._read(start + offset, framesPerGroup);
      if (frame === null) continue;
      if (!this._reported.has(frame.text)) this._heard.push(frame);
      this._reported.delete(frame.text);
      this._reported.add(frame.text);
      if (this._reported.size > REPORTED_MAX) this._reported.delete(this._reported.values().next().value);
      return;
    }
  }

  /** Return the offsets from the start at which the tones stand out most, the likeliest first. */
  _likelyOffsets(start, framesPerGroup) {
    const offsets = [];
    for (let offset = -SEARCH_COLUMNS; offset <= SEARCH_COLUMNS; offset += 1) {
      const nibbles = this._nibbles(start + offset, framesPerGroup);
      offsets.push({ offset, clarity: nibbles.reduce((sum, each) => sum + each.clarity, 0) });
    }
    return offsets.sort((a, b) => b.clarity - a.clarity).slice(0, 5).map((each) => each.offset);
  }

  _read(start, framesPerGroup) {
    const nibbles = this._nibbles(start, framesPerGroup);
    const bytes = new Uint8Array(PAYLOAD_BYTES + CHECK_BYTES);
    const clarities = [];
    bytes.forEach((_, index) => {
      const low = nibbles[2 * (LENGTH_BYTES + index)];
      const high = nibbles[2 * (LENGTH_BYTES + index) + 1];
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

  /** Return the likeliest value of each nibble, and how much its tone stands out, from 0 to 1. */
  _nibbles(start, framesPerGroup) {
    const nibbles = [];
    const sums = new Float32Array(TONE_COUNT);
    const columns = framesPerGroup * COLUMNS_PER_FRAME;
    for (let group = 0; group < GROUPS; group += 1) {
      sums.fill(0);
      const first = start + group * columns;
      for (let column = first; column <= first + columns - COLUMNS_PER_FRAME; column += 1) {
        const powers = this._powers[column % COLUMNS_KEPT];
        for (let tone = 0; tone < TONE_COUNT; tone += 1) sums[tone] += powers[tone];
      }
      for (let nibble = 0; nibble < NIBBLES_PER_GROUP; nibble += 1) {
        nibbles.push(clearest(sums.subarray(nibble * TONES_PER_NIBBLE, (nibble + 1) * TONES_PER_NIBBLE)));
      }
    }
    return nibbles;
  }
}

/** Return how well a column fits a marker, from -1 (its end) to 1: of each two tones, a marker has one. */
function markerContrast(powers) {
  let sum = 0;
  for (let pair = 0; pair < MARKER_PAIRS; pair += 1) {
    const [first, second] = [powers[2 * pair], powers[2 * pair + 1]];
    const contrast = (first - second) / (first + second || 1);
    sum += pair % 2 === 0 ? contrast : -contrast;
  }
  return sum / MARKER_PAIRS;
}

function clearest(powers) {
  let value = 0;
  let second = 0;
  for (let tone = 1; tone < TONES_PER_NIBBLE; tone += 1) {
    if (powers[tone] > powers[value]) {
      second = powers[value];
      value = tone;
    } else if (powers[tone] > second) {
      second = powers[tone];
    }
  }
  return { value, clarity: (powers[value] - second) / (powers[value] + second || 1) };
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
