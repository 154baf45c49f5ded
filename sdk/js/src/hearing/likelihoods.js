/** How likely each half byte is, given the powers of the tones. See docs/sound-decoder.md. */

import { GROUPS, KNOWN_GROUPS, KNOWN_NIBBLES, NIBBLES, TONE_COUNT, TONES, UNKNOWN_BYTES } from "./frame_code.js";
import { normalise, VALUES } from "./ordered_statistics.js";

/** The share of half bytes that something unknown decides, such as a gap: without it, one error hides a frame. */
const OUTLIERS = 0.04;
/** How likely it is, against each tone, that a group holds no tone at all, as in a dropout. */
const NOTHING = 0.05;
/**
 * The shares of tones that have the strength of their part of the band, and that fade from it. The others may be as
 * strong as the strongest part.
 */
const STEADY = 0.6;
const FADING = 0.3;
const ROUNDS = 5;
/** Tones in a part of the band, which has a strength of its own: a filter may cut some off. */
const PART_TONES = 8;
const PARTS = TONE_COUNT / PART_TONES;
const SMALLEST = 1e-20;
/** How likely it is that a tone is somebody else's, and how strong that is against the strongest part: all as likely. */
const FOREIGN = 0.01;
const FOREIGN_STRENGTHS = Array.from({ length: 8 }, (_, at) => 2 * 8 ** -at);
/** A priori, the share of bands of which nothing arrives. */
const DEAD_BANDS = 0.1;
/**
 * A tone of somebody else that sounds all the time: the third lowest of 13 groups, of which noise has a quarter of its
 * mean there, is that much stronger than the background. Letters have few upper halves, so a tone of ours may be
 * frequent.
 */
const STEADY_RANK = 2;
const STEADY_SHARE = 0.25;
const STEADY_MIN = 6;
const LOG_MAX = 200;
const KNOWN_COUNT = KNOWN_GROUPS * NIBBLES;
const NIBBLE_COUNT = GROUPS * NIBBLES;
/** How likely it is that each tone of the known groups was sent. */
const KNOWN_CHANCES = new Float64Array(KNOWN_COUNT * TONES);
KNOWN_NIBBLES.forEach((value, nibble) => (KNOWN_CHANCES[nibble * TONES + value] = 1));

/** @import { ToneGrid } from "./tone_grid.js" */

/**
 * Return the likelihood of each half byte over their mean, sixteen for each. It yields to let other work in.
 *
 * @param {Float64Array} powers of the tones, 96 for each of 13 groups
 * @param {Float64Array} between half-way to the next tone
 * @param {ToneGrid} grid
 * @returns {Generator<undefined, Float64Array, undefined>}
 */
export function* findLikelihoods(powers, between, grid) {
  const background = findBackground(powers, between, grid);
  addSteadyTones(powers, background);
  // The known half bytes alone tell the strengths first.
  let likelihoods = weigh(powers, background, KNOWN_CHANCES);
  yield;
  for (let round = 1; round < ROUNDS; round += 1) {
    const chances = likelihoods.map((each) => each / TONES);
    chances.set(KNOWN_CHANCES);
    likelihoods = weigh(powers, background, chances);
    yield;
  }
  doubtBands(likelihoods, powers);
  return likelihoods;
}

/**
 * Return the evidence, in bits, that a frame begins with these groups.
 *
 * @param {Float64Array} powers of the known groups
 * @param {Float64Array} between
 * @param {ToneGrid} grid
 */
export function findKnownBits(powers, between, grid) {
  const background = findBackground(powers, between, grid);
  const likelihoods = weigh(powers, background, KNOWN_CHANCES);
  return KNOWN_NIBBLES.reduce((sum, value, nibble) => sum + Math.log2(likelihoods[nibble * TONES + value]), 0);
}

/**
 * @param {Float64Array} powers
 * @param {Float64Array} background
 * @param {Float64Array} chances that each tone was sent, as far as that is thought to be known
 */
function weigh(powers, background, chances) {
  const strengths = findStrengths(powers, background, chances);
  const likelihoods = new Float64Array(powers.length);
  const strongest = Math.max(...strengths);
  for (let first = 0; first < powers.length; first += TONES) {
    let sum = 0;
    for (let at = first; at < first + TONES; at += 1) {
      const strength = strengths[Math.floor((at % TONE_COUNT) / PART_TONES)] / background[at];
      likelihoods[at] = compare(powers[at] / background[at], strength, strongest / background[at]) + NOTHING;
      sum += likelihoods[at];
    }
    const scale = ((1 - OUTLIERS) * TONES) / sum;
    for (let at = first; at < first + TONES; at += 1) likelihoods[at] = scale * likelihoods[at] + OUTLIERS;
  }
  return likelihoods;
}

/**
 * Return the evidence for each value of each unknown byte in bits, and that for what is known.
 *
 * @param {Float64Array} likelihoods
 */
export function findEvidence(likelihoods) {
  const bits = likelihoods.map(Math.log2);
  let knownBits = bits[(NIBBLE_COUNT - 2) * TONES] + bits[(NIBBLE_COUNT - 1) * TONES];
  KNOWN_NIBBLES.forEach((value, nibble) => (knownBits += bits[nibble * TONES + value]));
  const evidence = new Float64Array(UNKNOWN_BYTES * VALUES);
  for (let place = 0; place < UNKNOWN_BYTES; place += 1) {
    const low = (KNOWN_COUNT + 2 * place) * TONES;
    for (let value = 0; value < VALUES; value += 1) {
      evidence[place * VALUES + value] = bits[low + (value & 15)] + bits[low + TONES + (value >> 4)];
    }
  }
  return { evidence: normalise(evidence), knownBits };
}

/**
 * Return the power that each tone is expected to have without being sent.
 *
 * @param {Float64Array} powers
 * @param {Float64Array} between
 * @param {ToneGrid} grid
 */
function findBackground(powers, between, grid) {
  const noise = new Float64Array(powers.length);
  // Noise has an exponential distribution: its median is ln 2 of its mean. The tone that was sent reaches at most two
  // of the sixteen places between, which the median leaves out.
  for (let first = 0; first < noise.length; first += TONES) {
    noise.fill(findMedian(between.subarray(first, first + TONES)) / Math.LN2 + SMALLEST, first, first + TONES);
  }
  const share = findEchoes(powers, noise);
  const background = noise.slice();
  for (let at = 0; at < background.length; at += 1) {
    const first = at - (at % TONE_COUNT);
    for (let tone = 0; tone < TONE_COUNT; tone += 1) {
      background[at] += powers[first + tone] * grid.leakage[Math.abs(at - first - tone)];
    }
    if (first > 0) background[at] += share * Math.max(powers[at - TONE_COUNT] - noise[at - TONE_COUNT], 0);
  }
  return background;
}

/**
 * Return the share of a tone's power that remains in the next group, as the known groups show it.
 *
 * @param {Float64Array} powers
 * @param {Float64Array} noise
 */
function findEchoes(powers, noise) {
  let [before, after] = [0, 0];
  for (let nibble = 0; nibble < KNOWN_COUNT - NIBBLES; nibble += 1) {
    if (KNOWN_NIBBLES[nibble] === KNOWN_NIBBLES[nibble + NIBBLES]) continue;
    const at = nibble * TONES + KNOWN_NIBBLES[nibble];
    before += Math.max(powers[at] - noise[at], 0);
    after += Math.max(powers[at + TONE_COUNT] - noise[at + TONE_COUNT], 0);
  }
  return Math.min(1, after / Math.max(before, SMALLEST));
}

/**
 * Return the mean power of a sent tone in each part of the band.
 *
 * @param {Float64Array} powers
 * @param {Float64Array} background
 * @param {Float64Array} chances that each tone was sent
 */
function findStrengths(powers, background, chances) {
  const [excess, weights] = [new Float64Array(PARTS), new Float64Array(PARTS)];
  for (let at = 0; at < chances.length; at += 1) {
    const part = Math.floor((at % TONE_COUNT) / PART_TONES);
    weights[part] += chances[at];
    excess[part] += chances[at] * (powers[at] - background[at]);
  }
  return excess.map((each, part) => Math.max(each / Math.max(weights[part], SMALLEST), 0));
}

/**
 * Add what sounds in nearly every group at the same place to the background: no frame does that.
 *
 * @param {Float64Array} powers
 * @param {Float64Array} background
 */
function addSteadyTones(powers, background) {
  const heard = new Float64Array(GROUPS);
  for (let tone = 0; tone < TONE_COUNT; tone += 1) {
    for (let group = 0; group < GROUPS; group += 1) heard[group] = powers[group * TONE_COUNT + tone];
    const usual = heard.sort()[STEADY_RANK] / STEADY_SHARE;
    for (let at = tone; at < background.length; at += TONE_COUNT) {
      if (usual > STEADY_MIN * background[at]) background[at] += usual;
    }
  }
}

/**
 * Believe a band as far as its known half bytes were heard: a filter may cut off everything that was sent there.
 *
 * A tone without any power is in a group of which no sample exists, and says nothing.
 *
 * @param {Float64Array} likelihoods changed in place
 * @param {Float64Array} powers
 */
function doubtBands(likelihoods, powers) {
  for (let nibble = 0; nibble < NIBBLES; nibble += 1) {
    let known = 1;
    for (let at = nibble; at < KNOWN_COUNT; at += NIBBLES) known *= likelihoods[at * TONES + KNOWN_NIBBLES[at]];
    const doubt = DEAD_BANDS / (DEAD_BANDS + (1 - DEAD_BANDS) * known);
    for (let at = nibble; at < NIBBLE_COUNT; at += NIBBLES) {
      for (let tone = at * TONES; tone < (at + 1) * TONES; tone += 1) {
        likelihoods[tone] += (powers[tone] ? doubt : 1) * (1 - likelihoods[tone]);
      }
    }
  }
}

/**
 * Return how much likelier a power is with a tone of this strength than without; all are over the background.
 *
 * @param {number} ratio
 * @param {number} strength of the part of the band
 * @param {number} strongest of all parts
 */
function compare(ratio, strength, strongest) {
  if (strongest === 0) return 1;
  // Logarithms, because these numbers are beyond what a float holds; each is relative to the largest.
  const root = 2 * Math.sqrt(strength * ratio);
  const steady = root - strength;
  const fading = (ratio * strength) / (1 + strength);
  // A part of the band in which few tones were sent may be stronger than it seems.
  const unlike = (ratio * strongest) / (1 + strongest);
  const most = Math.max(steady, unlike);
  const ours =
    STEADY * Math.exp(steady - most) * scaledBessel(root) +
    (FADING * Math.exp(fading - most)) / (1 + strength) +
    ((1 - STEADY - FADING) * Math.exp(unlike - most)) / (1 + strongest);
  // Somebody else's tone, or the trace of one of ours at another place, limits what one tone can say.
  const mostForeign = (ratio * FOREIGN_STRENGTHS[0] * strongest) / (1 + FOREIGN_STRENGTHS[0] * strongest);
  let foreign = 0;
  for (const share of FOREIGN_STRENGTHS) {
    const other = share * strongest;
    foreign += Math.exp((ratio * other) / (1 + other) - mostForeign) / (1 + other);
  }
  const others = (FOREIGN / FOREIGN_STRENGTHS.length) * foreign + (1 - FOREIGN) * Math.exp(-mostForeign);
  return Math.exp(Math.max(-LOG_MAX, Math.min(LOG_MAX, most - mostForeign + Math.log(ours / others))));
}

/**
 * Return exp(-x) I0(x) within 2e-7: Abramowitz and Stegun, 9.8.1 and 9.8.2.
 *
 * @param {number} x
 */
function scaledBessel(x) {
  if (x < 3.75) {
    const t = (x / 3.75) ** 2;
    const sum =
      1 + t * (3.5156229 + t * (3.0899424 + t * (1.2067492 + t * (0.2659732 + t * (0.0360768 + t * 0.0045813)))));
    return sum * Math.exp(-x);
  }
  const t = 3.75 / x;
  const tail = 0.00916281 + t * (-0.02057706 + t * (0.02635537 + t * (-0.01647633 + t * 0.00392377)));
  return (0.39894228 + t * (0.01328592 + t * (0.00225319 + t * (-0.00157565 + t * tail)))) / Math.sqrt(x);
}

/** @param {Float64Array} values */
function findMedian(values) {
  const sorted = values.slice().sort();
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
}
