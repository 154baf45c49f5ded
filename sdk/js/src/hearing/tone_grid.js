/** The tones of one protocol over time and clock: windows of one group, and where its tones are in their spectra. */

import { BAND_RATE_HZ, BLOCK, CENTRE_HZ } from "./baseband.js";
import { Fourier } from "./fourier.js";
import { FIRST_TONE_HZ, GROUP_BLOCKS, GROUPS, TONE_COUNT, TONE_STEP_HZ } from "./frame_code.js";

export const HOPS_PER_GROUP = 12;
/** A receiver's clock may be 0.5 % from the sender's. */
const CLOCK_MAX = 0.0052;
/** Of a group, at each end: as it is sent. */
const FADE = 0.15;

/** @import { Baseband } from "./baseband.js" */

/** @typedef {{start: number, clock: number}} Group where it begins, and how much faster the sender's clock is in it */

/** The windows and frequencies of one protocol. */
export class ToneGrid {
  /** @param {number} protocol */
  constructor(protocol) {
    const blocks = /** @type {number} */ (GROUP_BLOCKS.get(protocol));
    this.protocol = protocol;
    /** Samples of the band in a group. */
    this.group = blocks * BLOCK;
    this.hop = this.group / HOPS_PER_GROUP;
    this.frame = GROUPS * this.group;
    this.window = makeWindow(this.group);
    /** Half a cell of the spectrum. */
    this.clockStep = BAND_RATE_HZ / (2 * this.group) / CENTRE_HZ;
    const most = Math.ceil(CLOCK_MAX / this.clockStep);
    this.clocks = Float64Array.from({ length: 2 * most + 1 }, (_, at) => (at - most) * this.clockStep);
    this.coarse = new Fourier(sizeOf(1.75 * this.group));
    this.fine = new Fourier(sizeOf(3.5 * this.group));
    /** For each clock, where `coarse` leaves the tones. */
    this.places = Array.from(this.clocks, (clock) => findPlaces(this.coarse, clock));
    /** The share of a tone's power at a place so many tones from it. */
    this.leakage = findLeakage(this.window);
    this._real = new Float32Array(this.fine.size);
    this._imaginary = new Float32Array(this.fine.size);
  }

  /**
   * Return the power of each tone of each group, 96 for each, and that half-way to the next tone.
   *
   * @param {Baseband} band
   * @param {Group[]} groups
   * @returns {Generator<undefined, [Float64Array, Float64Array], undefined>}
   */
  *measure(band, groups) {
    const powers = new Float64Array(groups.length * TONE_COUNT);
    const between = powers.slice();
    for (const [group, { start, clock }] of groups.entries()) {
      const [places, placesBetween] = [findPlaces(this.fine, clock), findPlaces(this.fine, clock, TONE_STEP_HZ / 2)];
      this.transform(band, start);
      for (let tone = 0; tone < TONE_COUNT; tone += 1) {
        powers[group * TONE_COUNT + tone] = this.powerAt(places[tone]);
        between[group * TONE_COUNT + tone] = this.powerAt(placesBetween[tone]);
      }
      if (group % 4 === 3) yield;
    }
    return [powers, between];
  }

  /**
   * Find the fine spectrum of a window.
   *
   * @param {Baseband} band
   * @param {number} start
   */
  transform(band, start) {
    band.copy(Math.round(start), this.window, this._real, this._imaginary);
    this.fine.transform(this._real, this._imaginary);
  }

  /** @param {number} place in the fine spectrum */
  powerAt(place) {
    return this._real[place] ** 2 + this._imaginary[place] ** 2;
  }

  /**
   * Return the groups of a frame whose clock does not change.
   *
   * @param {number} start
   * @param {number} clock
   * @param {number} count
   * @returns {Group[]}
   */
  groupsOf(start, clock, count = GROUPS) {
    return Array.from({ length: count }, (_, group) => ({ start: start + (group * this.group) / (1 + clock), clock }));
  }
}

/** @type {Map<number, ToneGrid>} */
const grids = new Map();

/**
 * Return the grid of a protocol, which decoders share: nothing in it outlasts a call.
 *
 * @param {number} protocol
 */
export function gridOf(protocol) {
  const grid = grids.get(protocol) ?? new ToneGrid(protocol);
  grids.set(protocol, grid);
  return grid;
}

/**
 * Return where a transform leaves the tones.
 *
 * @param {Fourier} fourier
 * @param {number} clock
 * @param {number} [besideHz]
 */
export function findPlaces(fourier, clock, besideHz = 0) {
  const places = new Uint16Array(TONE_COUNT);
  for (let tone = 0; tone < TONE_COUNT; tone += 1) {
    const hz = (FIRST_TONE_HZ + TONE_STEP_HZ * tone) * (1 + clock) + besideHz - CENTRE_HZ;
    places[tone] = fourier.placeOf(Math.round((hz * fourier.size) / BAND_RATE_HZ));
  }
  return places;
}

/** @type {(least: number) => number} */
const sizeOf = (least) => 2 ** Math.ceil(Math.log2(least));

/** @param {number} size */
function makeWindow(size) {
  const fade = Math.floor(FADE * size);
  const window = Float64Array.from({ length: size }, (_, at) =>
    Math.min(1, (Math.min(at, size - 1 - at) + 0.5) / fade),
  );
  const power = window.reduce((sum, each) => sum + each ** 2, 0);
  return Float32Array.from(window, (each) => each / Math.sqrt(power));
}

/**
 * Return the share of a tone's power that is found at each distance in tones, up to a quarter of a cell off.
 *
 * @param {Float32Array} window
 */
function findLeakage(window) {
  const size = window.length;
  const step = (TONE_STEP_HZ * size) / BAND_RATE_HZ;
  /** @type {(cells: number) => number} */
  const powerAt = (cells) => {
    let [real, imaginary] = [0, 0];
    window.forEach((each, at) => {
      real += each * Math.cos((2 * Math.PI * cells * at) / size);
      imaginary += each * Math.sin((2 * Math.PI * cells * at) / size);
    });
    return real ** 2 + imaginary ** 2;
  };
  const whole = powerAt(0);
  return Float64Array.from({ length: TONE_COUNT }, (_, distance) => {
    if (distance === 0) return 0;
    return Math.max(...[-1 / 4, -1 / 8, 0, 1 / 8, 1 / 4].map((each) => powerAt(distance * step + each) / whole));
  });
}
