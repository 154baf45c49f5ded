/** Finds the start and the clock of a frame more exactly than the search. */

import { GROUPS, KNOWN_GROUPS, KNOWN_NIBBLES, NIBBLES, TONES } from "./frame_code.js";
import { findPlaces } from "./tone_grid.js";

/** In parts of a group. */
const OFFSETS = [-2 / 48, -1 / 48, 0, 1 / 48, 2 / 48];
/** In steps of the search's clock. */
const CLOCK_STEPS = Array.from({ length: 11 }, (_, at) => (at - 5) / 5);
/** How much a clock may change from one group to the next, in the same steps: somebody begins to walk. */
const CHANGES = Array.from({ length: 9 }, (_, at) => (at - 4) / 2);
const SMALLEST = 1e-30;

/** @import { Baseband } from "./baseband.js" */
/** @import { Group, ToneGrid } from "./tone_grid.js" */
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
      grid.groupsOf(start - earlier, candidate.clock, KNOWN_GROUPS).forEach((each, group) => {
        grid.transform(band, each.start);
        places.forEach((tones, at) => (clarities[at] += addShares(grid, tones, group)));
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
 * Return the groups of a frame whose clock changes: in each, the tones stand out most at its clock.
 *
 * @param {Baseband} band
 * @param {ToneGrid} grid
 * @param {Group} first
 * @returns {Generator<undefined, Group[], undefined>}
 */
export function* follow(band, grid, { start, clock }) {
  /** @type {Group[]} */
  const groups = [];
  for (let group = 0; group < GROUPS; group += 1) {
    grid.transform(band, start);
    const clocks = CHANGES.map((change) => clock + change * grid.clockStep);
    const shares = clocks.map((each) => addShares(grid, findPlaces(grid.fine, each), group));
    clock = clocks[shares.indexOf(Math.max(...shares))];
    groups.push({ start, clock });
    start += grid.group / (1 + clock);
    if (group % 4 === 3) yield;
  }
  return groups;
}

/**
 * Return the sum of the shares that the tones of a group have in the power of their bands: the known ones, or else the
 * strongest.
 *
 * @param {ToneGrid} grid
 * @param {Uint16Array} places
 * @param {number} group
 */
function addShares(grid, places, group) {
  let shares = 0;
  for (let nibble = 0; nibble < NIBBLES; nibble += 1) {
    const powers = Array.from(places.subarray(nibble * TONES, (nibble + 1) * TONES), (place) => grid.powerAt(place));
    const most = powers[KNOWN_NIBBLES[group * NIBBLES + nibble]] ?? Math.max(...powers);
    shares += most / powers.reduce((sum, power) => sum + power, SMALLEST);
  }
  return shares;
}
