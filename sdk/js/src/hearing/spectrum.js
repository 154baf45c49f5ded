/** The power of the 96 tones over time, in windows as short as a block of the sender. */

import { BLOCK } from "./baseband.js";
import { Fourier } from "./fourier.js";
import { TONE_COUNT } from "./frame_code.js";
import { findPlaces } from "./tone_grid.js";

/** Windows begin four times in a block. */
export const COLUMNS_PER_BLOCK = 4;
export const COLUMN = BLOCK / COLUMNS_PER_BLOCK;

/** @import { Baseband } from "./baseband.js" */

/** Turns the band into columns of powers, of which a window of one block has each tone in a bin of its own. */
export class Columns {
  /**
   * @param {Baseband} band
   * @param {(powers: Float32Array) => void} onColumn called with the powers of the tones in each window, 187.5 times a
   *   second; the array is the receiver's to keep
   */
  constructor(band, onColumn) {
    this._band = band;
    this._onColumn = onColumn;
    this._fourier = new Fourier(BLOCK);
    this._places = findPlaces(this._fourier, 0);
    this._window = new Float32Array(BLOCK).fill(1);
    this._real = new Float32Array(BLOCK);
    this._imaginary = new Float32Array(BLOCK);
    this._start = 0;
  }

  /** Make the columns that the band completes. */
  advance() {
    for (; this._start + BLOCK <= this._band.end; this._start += COLUMN) {
      this._band.copy(this._start, this._window, this._real, this._imaginary);
      this._fourier.transform(this._real, this._imaginary);
      const powers = new Float32Array(TONE_COUNT);
      for (let tone = 0; tone < TONE_COUNT; tone += 1) {
        const place = this._places[tone];
        powers[tone] = this._real[place] ** 2 + this._imaginary[place] ** 2;
      }
      this._onColumn(powers);
    }
  }
}
