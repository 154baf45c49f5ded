/** Finds the start and the clock of a frame more exactly than the search. */

import { KNOWN_GROUPS, KNOWN_NIBBLES, NIBBLES, TONES } from "./frame_code.js";
import { findPlaces } from "./tone_grid.js";

/** In parts of a group. */
const OFFSETS = [-2 / 48, -1 / 48, 0, 1 / 48, 2 / 48];
/** In steps of the search's clock. */
const CLOCK_STEPS = Array.from({ length: 11 }, (_, at) => (at - 5) / 5);
const SMALLEST = 1e-30;

/** @import { Baseband } from "./baseband.js" */
/** @import { ToneGrid } from "./tone_grid.js" */
/** @import { Candidate } from "./prefix_search.js" */

/**
 * Return where the known tones of a frame stand out most. It yields where other work may be done.
 *
 * @param {Baseband} band
 * @param {ToneGrid} grid
 * @param {Candidate} candidate
 * @returns {Generator<undefined, {start: number, clock: number}, undefined>}
 */
export function* align(band, grid, candidate) {
  const clocks = CLOCK_STEPS.map((step) => candidate.clock + step * grid.clockStep);
  const places = clocks.map((clock) => findPlaces(grid.fine, clock));
  let best = { clarity: -1, start: candidate.start, clock: candidate.clock };
  for (const offset of OFFSETS) {
    const start = candidate.start + offset * grid.group;
    const clarities = new Float64Array(clocks.length);
    for (const earlier of candidate.earlier ?? [0]) {
      grid.startsOf(start - earlier, candidate.clock, KNOWN_GROUPS).forEach((groupStart, group) => {
        grid.transform(band, groupStart);
        places.forEach((each, at) => (clarities[at] += addShares(grid, each, group)));
      });
      yield;
    }
    clarities.forEach((clarity, at) => {
      if (clarity > best.clarity) best = { clarity, start, clock: clocks[at] };
    });
  }
  return best;
}

/**
 * Return the sum of the shares that the known tones of a group have in the power of their bands.
 *
 * @param {ToneGrid} grid
 * @param {Uint16Array} places
 * @param {number} group
 */
function addShares(grid, places, group) {
  let shares = 0;
  for (let nibble = 0; nibble < NIBBLES; nibble += 1) {
    let sum = SMALLEST;
    for (let tone = 0; tone < TONES; tone += 1) sum += grid.powerAt(places[nibble * TONES + tone]);
    shares += grid.powerAt(places[nibble * TONES + KNOWN_NIBBLES[group * NIBBLES + nibble]]) / sum;
  }
  return shares;
}
