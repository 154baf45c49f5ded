/** The band of the frames at a low rate: 14.6 to 19.9 kHz of a sound, as 6,000 complex samples a second. */

export const BAND_RATE_HZ = 6_000;
/** What 0 Hz of the band is: the middle of the tones. */
export const CENTRE_HZ = 17_250;
/** Samples of the band in a block of the sender, which has 1,024 at 48 kHz. */
export const BLOCK = 128;
/** Several times a frame. */
const KEPT_S = 10.9;
const HALF_WIDTH_HZ = 2_650;
const FILTER_S = 160 / 48_000;
/** Kaiser's beta: what folds into the band is 70 dB down. */
const SIDELOBES = 7;
const RATE_MIN_HZ = 40_000;
/** At rates that share no simple ratio with the band's, a filter is up to a 256th of a sample off. */
const PHASES_MAX = 128;
/** A file may exceed full scale, as one whose floats are whole numbers does. A sample beyond this is no sound. */
const SAMPLE_MAX = 2 ** 32;
/** Samples that are taken at a time, at most. */
export const PIECE = 1024;

/** The last seconds of the band, and a filter that continues it from samples of any rate from 40 kHz. */
export class Baseband {
  /**
   * @param {number} rateHz of the samples, at least 40,000
   * @param {number} [earlierS] how much more is kept
   * @throws {RangeError} for a lower rate
   */
  constructor(rateHz, earlierS = 0) {
    if (!(rateHz >= RATE_MIN_HZ)) throw new RangeError(`Samples must come at ${RATE_MIN_HZ} Hz or more.`);
    this._rateHz = Math.round(rateHz);
    /** How many samples of the band are kept. */
    this.kept = 2 ** Math.ceil(Math.log2((KEPT_S + earlierS) * BAND_RATE_HZ));
    this._real = new Float32Array(this.kept);
    this._imaginary = new Float32Array(this.kept);
    /** How many samples of the band there were. */
    this.end = 0;
    const divisor = gcd(this._rateHz, BAND_RATE_HZ);
    this._filters = makeFilters(this._rateHz, Math.min(BAND_RATE_HZ / divisor, PHASES_MAX));
    const turn = (2 * Math.PI * CENTRE_HZ) / this._rateHz;
    const period = this._rateHz / gcd(this._rateHz, CENTRE_HZ);
    this._cos = Float32Array.from({ length: period }, (_, at) => Math.cos(turn * at));
    this._sin = Float32Array.from({ length: period }, (_, at) => -Math.sin(turn * at));
    const taps = this._filters[0].length;
    // Turned samples that filters still need, and how many there were before them.
    this._turned = [new Float32Array(taps + PIECE + 1), new Float32Array(taps + PIECE + 1)];
    this._filled = 0;
    this._before = 0;
  }

  /**
   * Take at most `PIECE` samples, of which 1 is full scale. One that is no sound is 0.
   *
   * @param {Float32Array} samples
   */
  feed(samples) {
    const [real, imaginary] = this._turned;
    const period = this._cos.length;
    let phase = (this._before + this._filled) % period;
    for (let at = 0; at < samples.length; at += 1) {
      // One that is no number would spoil every sum that it is in.
      const sample = Math.abs(samples[at]) <= SAMPLE_MAX ? samples[at] : 0;
      real[this._filled] = sample * this._cos[phase];
      imaginary[this._filled] = sample * this._sin[phase];
      this._filled += 1;
      phase = phase + 1 === period ? 0 : phase + 1;
    }
    this._filter();
  }

  /**
   * Copy a part of the band times a window, and add zeros. What is not kept is 0.
   *
   * @param {number} start
   * @param {Float32Array} window
   * @param {Float32Array} real
   * @param {Float32Array} imaginary
   */
  copy(start, window, real, imaginary) {
    const [first, last] = [Math.max(0, this.end - this.kept - start), Math.min(window.length, this.end - start)];
    real.fill(0);
    imaginary.fill(0);
    for (let at = Math.max(first, -start); at < last; at += 1) {
      const place = (start + at) & (this.kept - 1);
      real[at] = window[at] * this._real[place];
      imaginary[at] = window[at] * this._imaginary[place];
    }
  }

  /** Continue the band as far as the turned samples reach, and forget those that are not needed any more. */
  _filter() {
    const [real, imaginary] = this._turned;
    const taps = this._filters[0].length;
    let start = 0;
    for (;;) {
      const position = (this.end * this._rateHz) / BAND_RATE_HZ - this._before;
      const phase = Math.round((position - Math.floor(position)) * this._filters.length);
      start = Math.floor(position) + (phase === this._filters.length ? 1 : 0);
      if (start + taps > this._filled) break;
      const filter = this._filters[phase % this._filters.length];
      let a = 0;
      let b = 0;
      for (let tap = 0; tap < taps; tap += 1) {
        a += real[start + tap] * filter[tap];
        b += imaginary[start + tap] * filter[tap];
      }
      this._real[this.end & (this.kept - 1)] = a;
      this._imaginary[this.end & (this.kept - 1)] = b;
      this.end += 1;
    }
    const gone = Math.min(start, this._filled);
    for (const turned of this._turned) turned.copyWithin(0, gone, this._filled);
    this._filled -= gone;
    this._before += gone;
  }
}

/**
 * Return a low-pass filter for each fraction of a sample at which a sample of the band may lie.
 *
 * @param {number} rateHz
 * @param {number} phases
 */
function makeFilters(rateHz, phases) {
  const taps = Math.round(FILTER_S * rateHz);
  const turn = (2 * HALF_WIDTH_HZ) / rateHz;
  return Array.from({ length: phases }, (_, phase) =>
    Float32Array.from({ length: taps }, (_, tap) => {
      const time = tap - (taps - 1) / 2 - phase / phases;
      const angle = Math.PI * turn * time;
      const inside = 1 - ((2 * time) / (taps + 1)) ** 2;
      return (
        (turn * (angle === 0 ? 1 : Math.sin(angle) / angle) * bessel(SIDELOBES * Math.sqrt(inside))) / bessel(SIDELOBES)
      );
    }),
  );
}

/**
 * The modified Bessel function of the first kind, I0, by its series.
 *
 * @param {number} x
 */
function bessel(x) {
  let [sum, term] = [1, 1];
  for (let at = 1; at < 40; at += 1) sum += term *= (x / 2 / at) ** 2;
  return sum;
}

/** @type {(a: number, b: number) => number} */
const gcd = (a, b) => (b === 0 ? a : gcd(b, a % b));
