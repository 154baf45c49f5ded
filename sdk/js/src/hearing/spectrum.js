/**
 * The power of the tones of the broadcast band over time.
 */

export const TONE_COUNT = 96;
const TONE_STEP_HZ = 46.875;
const FIRST_TONE_HZ = 320 * TONE_STEP_HZ;
/** Columns of the spectrum in a second: four in each of ggwave's frames of 1,024 samples at 48 kHz. */
export const COLUMNS_PER_S = 187.5;
const BLOCKS_IN_WINDOW = 4;
const RATE_MIN_HZ = 40_000;

/**
 * Turns samples of any rate from 40 kHz into columns of powers.
 *
 * Each block of samples is correlated with every tone at its absolute phase, so the sum of four neighbouring blocks is
 * the Fourier transform of a whole window. That needs no resampling.
 */
export class Spectrum {
  /**
   * @param {number} rateHz of the samples, at least 40,000
   * @param {(powers: Float32Array) => void} onColumn called with the powers of the tones in each window, 187.5 times a
   *   second; the array is the receiver's to keep
   * @throws {RangeError} for a lower rate
   */
  constructor(rateHz, onColumn) {
    if (!(rateHz >= RATE_MIN_HZ)) throw new RangeError(`Samples must come at ${RATE_MIN_HZ} Hz or more.`);
    this._rateHz = rateHz;
    this._onColumn = onColumn;
    this._block = new Float32Array(Math.ceil(rateHz / COLUMNS_PER_S) + 1);
    this._filled = 0;
    this._blockIndex = 0;
    this._parts = Array.from({ length: BLOCKS_IN_WINDOW }, () => new Float32Array(2 * TONE_COUNT));
    /** @type {Float32Array[]} */
    this._cos = [];
    /** @type {Float32Array[]} */
    this._sin = [];
    for (let tone = 0; tone < TONE_COUNT; tone += 1) {
      const turn = (2 * Math.PI * this._hzOf(tone)) / rateHz;
      this._cos.push(Float32Array.from(this._block, (_, sample) => Math.cos(turn * sample)));
      this._sin.push(Float32Array.from(this._block, (_, sample) => Math.sin(turn * sample)));
    }
  }

  /**
   * Take samples, any number at a time.
   *
   * @param {Float32Array} samples
   */
  feed(samples) {
    for (const sample of samples) {
      // One NaN would spoil every tone, and one huge sample every sum from then on.
      this._block[this._filled] = Math.max(-1, Math.min(1, sample)) || 0;
      this._filled += 1;
      if (this._startOf(this._blockIndex) + this._filled === this._startOf(this._blockIndex + 1)) this._endBlock();
    }
  }

  /** @param {number} tone */
  _hzOf(tone) {
    return FIRST_TONE_HZ + tone * TONE_STEP_HZ;
  }

  /** @param {number} blockIndex */
  _startOf(blockIndex) {
    return Math.floor((blockIndex * this._rateHz) / COLUMNS_PER_S);
  }

  _endBlock() {
    const part = this._parts[this._blockIndex % BLOCKS_IN_WINDOW];
    const start = this._startOf(this._blockIndex);
    for (let tone = 0; tone < TONE_COUNT; tone += 1) {
      const [cos, sin] = [this._cos[tone], this._sin[tone]];
      let real = 0;
      let imaginary = 0;
      for (let sample = 0; sample < this._filled; sample += 1) {
        real += this._block[sample] * cos[sample];
        imaginary += this._block[sample] * sin[sample];
      }
      // Turn the correlation to the phase that the tone has at the block's first sample.
      const phase = 2 * Math.PI * (((start * this._hzOf(tone)) / this._rateHz) % 1);
      part[2 * tone] = real * Math.cos(phase) - imaginary * Math.sin(phase);
      part[2 * tone + 1] = real * Math.sin(phase) + imaginary * Math.cos(phase);
    }
    this._filled = 0;
    this._blockIndex += 1;
    if (this._blockIndex >= BLOCKS_IN_WINDOW) this._onColumn(this._windowPowers());
  }

  _windowPowers() {
    /** @type {(index: number) => number} */
    const sumAt = (index) => this._parts.reduce((sum, part) => sum + part[index], 0);
    return Float32Array.from({ length: TONE_COUNT }, (_, tone) => sumAt(2 * tone) ** 2 + sumAt(2 * tone + 1) ** 2);
  }
}
