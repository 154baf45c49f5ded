/**
 * Finds the likeliest frame: ordered-statistics decoding of the Reed–Solomon code over its bytes.
 *
 * Any 16 of the 26 unknown bytes determine the others. The clearest 16 are believed, and then changed in up to four
 * places, the least unlikely changes first. A wrong byte among the clearest hides a frame; other sets find it.
 *
 * docs/sound-decoder.md lists 16,000 patterns and 12 targets. Here patterns are in the order of what they cost, so a
 * loop ends where nothing that follows can suffice; half as many patterns and twice the targets find more in less time.
 */

import { bytesOf, CODE_BASE, findEffects, LETTERS, multiply, TOKEN_BYTES, UNKNOWN_BYTES } from "./frame_code.js";

export const VALUES = 256;
/** As good as impossible. */
export const IMPOSSIBLE_BITS = -60;
const POSSIBLE_BITS_MIN = IMPOSSIBLE_BITS + 10;
/** The bytes that each set believes, by the rank of their clarity: from and to, twice. */
const SETS = [
  [0, 16, 0, 0],
  [0, 12, 16, 20],
  [4, 20, 0, 0],
  [0, 8, 12, 20],
  [0, 4, 8, 20],
  [0, 14, 20, 22],
  [2, 18, 0, 0],
  [0, 10, 16, 22],
];
export const SETS_MAX = SETS.length;
/** Of one byte, with one that changes nothing. */
const CHANGES_MAX = 257;
/** Of up to two bytes. */
const PATTERNS_MAX = 8192;
/** Likely values of the two clearest bytes that are not believed. */
const TARGETS_MAX = 24;
/** Costs are sorted to a 32nd of a bit, which is also what a bound may be off. */
const STEPS_PER_BIT = 32;
const COST_MAX = 99;
const KEYS = 65_536;

/** @typedef {{content: Uint8Array, bits: number}} Decoded the unknown bytes of a frame, and the evidence for them */

/**
 * Return the likeliest frame that was found, or null. It yields every millisecond or so, to let other work in.
 *
 * @param {Float64Array} evidence how many bits speak for each value of each of the 26 unknown bytes
 * @param {number} enoughBits less is no frame, and a frame with as many ends the search
 * @param {number} setsMax
 * @returns {Generator<undefined, Decoded | null, undefined>}
 */
export function* decode(evidence, enoughBits, setsMax) {
  const order = orderByClarity(evidence);
  for (const [first, end, second, secondEnd] of SETS.slice(0, setsMax)) {
    const believed = [...order.slice(first, end), ...order.slice(second, secondEnd)];
    const found = yield* new BelievedSet(evidence, believed, order).search(enoughBits);
    if (found !== null) return found;
  }
  return null;
}

/** A set of believed bytes, and the changes of it. */
class BelievedSet {
  /**
   * @param {Float64Array} evidence
   * @param {number[]} believed
   * @param {number[]} order of all bytes
   */
  constructor(evidence, believed, order) {
    this.evidence = evidence;
    this.believed = believed;
    this.rest = order.filter((place) => !believed.includes(place));
    this.effects = findEffects(believed, this.rest);
    this.values = believed.map((place) => findMost(bitsOf(evidence, place)));
    this.bits = this.values.reduce((sum, value, at) => sum + evidence[believed[at] * VALUES + value], 0);
    this.start = this._findRest(this.values);
    this.table = Float64Array.from(this.rest.flatMap((place) => [...bitsOf(evidence, place)]));
    this.most = this.rest.map((place) => mostOf(bitsOf(evidence, place)));
  }

  /**
   * @param {number} enoughBits
   * @returns {Generator<undefined, Decoded | null, undefined>}
   */
  *search(enoughBits) {
    const slack = this.bits + sumOf(this.most) - enoughBits;
    if (slack < 0) return null;
    const changes = this._listChanges(slack);
    yield;
    const patterns = listPatterns(changes, Math.min(slack, COST_MAX));
    yield;
    /** @type {Decoded | null} */
    let found = null;
    const { table, start } = this;
    const { heads, tails } = changes;
    const { count, firsts, seconds, losses, keys } = patterns;
    let bar = enoughBits;
    /** @type {(left: number, right: number, key: number, bits: number) => void} */
    const judge = (left, right, key, bits) => {
      const head = heads[firsts[left]] ^ heads[seconds[left]] ^ heads[firsts[right]] ^ heads[seconds[right]];
      const tail = tails[firsts[left]] ^ tails[seconds[left]] ^ tails[firsts[right]] ^ tails[seconds[right]];
      let total = bits + table[key >> 8] + table[256 + (key & 255)];
      for (let at = 0; at < 4; at += 1) {
        const shift = 24 - 8 * at;
        total += table[512 + 256 * at + (start[2 + at] ^ ((head >>> shift) & 255))];
        total += table[1536 + 256 * at + (start[6 + at] ^ ((tail >>> shift) & 255))];
      }
      if (total < bar) return;
      const content = this._fill([firsts[left], seconds[left], firsts[right], seconds[right]], changes);
      if (content !== null) [found, bar] = [{ content, bits: total }, total];
    };
    const startKey = (start[0] << 8) | start[1];
    for (let pattern = 0; pattern < count && losses[pattern] <= slack; pattern += 1) {
      judge(pattern, 0, keys[pattern] ^ startKey, this.bits - losses[pattern]);
    }
    if (found !== null) return found;
    yield;
    // Two patterns that meet in likely values of the first two bytes: up to four changes.
    const { ends, byKey } = sortByKey(patterns);
    for (const target of this._listTargets()) {
      const most = this.bits + table[target >> 8] + table[256 + (target & 255)] + sumOf(this.most.slice(2));
      const lossMax = most - bar + 1 / STEPS_PER_BIT;
      for (let left = 0; left < count && 2 * losses[left] <= lossMax; left += 1) {
        const key = keys[left] ^ target ^ startKey;
        for (let at = ends[key + 1] - 1; at >= ends[key]; at -= 1) {
          const loss = losses[left] + losses[byKey[at]];
          if (loss > lossMax) break;
          if (byKey[at] > left) judge(left, byKey[at], target, this.bits - loss);
        }
      }
      yield;
      if (found !== null) break;
    }
    return found;
  }

  /**
   * List what changes of one byte cost and do, the cheapest first; the first changes nothing.
   *
   * @param {number} costMax
   */
  _listChanges(costMax) {
    const list = [{ at: TOKEN_BYTES, delta: 0, cost: 0 }];
    this.believed.forEach((place, at) => {
      const bits = bitsOf(this.evidence, place);
      const most = bits[this.values[at]];
      bits.forEach((each, value) => {
        if (each < POSSIBLE_BITS_MIN || most - each > costMax || value === this.values[at]) return;
        list.push({ at, delta: value ^ this.values[at], cost: most - each });
      });
    });
    const changes = list.sort((a, b) => a.cost - b.cost).slice(0, CHANGES_MAX);
    // What a change adds to the ten bytes that are not believed: two in a key, and twice four.
    const rows = changes.map(({ at, delta }) => Array.from(this.effects[at] ?? [], (each) => multiply(delta, each)));
    return {
      places: changes.map(({ at }) => at),
      deltas: changes.map(({ delta }) => delta),
      costs: Float64Array.from(changes, ({ cost }) => cost),
      keys: Uint16Array.from(rows, (row) => (row[0] << 8) | row[1]),
      heads: Int32Array.from(rows, (row) => pack(row, 2)),
      tails: Int32Array.from(rows, (row) => pack(row, 6)),
    };
  }

  /** Return the likeliest values of the two clearest bytes that are not believed, as keys. */
  _listTargets() {
    const [first, second] = [0, VALUES].map((from) =>
      [...this.table.subarray(from, from + VALUES).entries()].sort((a, b) => b[1] - a[1]).slice(0, TARGETS_MAX),
    );
    return first
      .flatMap(([a, bits]) => second.map(([b, more]) => ({ bits: bits + more, key: (a << 8) | b })))
      .sort((a, b) => b.bits - a.bits)
      .slice(0, TARGETS_MAX)
      .map(({ key }) => key);
  }

  /**
   * Return the unknown bytes with some changes; null if two change the same byte, or if no frame has such bytes.
   *
   * @param {number[]} applied
   * @param {{places: number[], deltas: number[]}} changes
   */
  _fill(applied, { places, deltas }) {
    const real = applied.filter((change) => deltas[change] !== 0);
    if (new Set(real.map((change) => places[change])).size < real.length) return null;
    const values = [...this.values];
    for (const change of real) values[places[change]] ^= deltas[change];
    const content = new Uint8Array(UNKNOWN_BYTES);
    this.believed.forEach((place, at) => (content[place] = values[at]));
    const others = this._findRest(values);
    this.rest.forEach((place, at) => (content[place] = others[at]));
    const isPossible = content.every((value, place) => this.evidence[place * VALUES + value] >= POSSIBLE_BITS_MIN);
    return isPossible ? content : null;
  }

  /**
   * Return the other bytes that the believed ones determine.
   *
   * @param {number[]} values
   */
  _findRest(values) {
    return this.rest.map((place, other) =>
      values.reduce(
        (sum, value, at) => sum ^ multiply(value ^ CODE_BASE[this.believed[at]], this.effects[at][other]),
        CODE_BASE[place],
      ),
    );
  }
}

/**
 * List pairs of changes, the cheapest first. The first pattern changes nothing.
 *
 * @param {{places: number[], costs: Float64Array, keys: Uint16Array}} changes
 * @param {number} costMax
 */
function listPatterns({ places, costs, keys }, costMax) {
  const steps = new Uint32Array((COST_MAX + 1) * STEPS_PER_BIT);
  /** @param {(first: number, second: number, step: number) => void} visit */
  const visitPairs = (visit) => {
    for (let first = 0; first < places.length; first += 1) {
      for (let second = first + 1; second < places.length; second += 1) {
        const cost = costs[first] + costs[second];
        if (cost > costMax) break;
        if (places[first] !== places[second]) visit(first, second, Math.floor(cost * STEPS_PER_BIT));
      }
    }
  };
  visitPairs((_, __, step) => (steps[step] += 1));
  // Where the patterns of a step begin follows from the counts of the steps before.
  let total = 1;
  steps.forEach((inStep, step) => {
    steps[step] = total;
    total += inStep;
  });
  const patterns = {
    count: Math.min(total, PATTERNS_MAX),
    firsts: new Uint16Array(PATTERNS_MAX),
    seconds: new Uint16Array(PATTERNS_MAX),
    losses: new Float64Array(PATTERNS_MAX),
    keys: new Uint16Array(PATTERNS_MAX),
  };
  visitPairs((first, second, step) => {
    const at = steps[step]++;
    if (at >= PATTERNS_MAX) return;
    patterns.firsts[at] = first;
    patterns.seconds[at] = second;
    patterns.losses[at] = costs[first] + costs[second];
    patterns.keys[at] = keys[first] ^ keys[second];
  });
  return patterns;
}

/**
 * Return the patterns sorted by key, those of a key from the dearest to the cheapest, and where each key ends.
 *
 * @param {{count: number, keys: Uint16Array}} patterns
 */
function sortByKey({ count, keys }) {
  const [ends, byKey] = [new Uint16Array(KEYS + 1), new Uint16Array(count)];
  for (let pattern = 0; pattern < count; pattern += 1) ends[keys[pattern]] += 1;
  for (let key = 1; key <= KEYS; key += 1) ends[key] += ends[key - 1];
  // Each key's end moves to its beginning, which is the end of the key before.
  for (let pattern = 0; pattern < count; pattern += 1) byKey[--ends[keys[pattern]]] = pattern;
  return { ends, byKey };
}

/** @type {(row: number[], from: number) => number} */
const pack = (row, from) => (row[from] << 24) | (row[from + 1] << 16) | (row[from + 2] << 8) | row[from + 3];
/** @type {(values: number[]) => number} */
const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);
/** @type {(evidence: Float64Array, place: number) => Float64Array} */
const bitsOf = (evidence, place) => evidence.subarray(place * VALUES, (place + 1) * VALUES);
/** @type {(bits: Float64Array) => number} */
const mostOf = (bits) => bits[findMost(bits)];

/**
 * Return where the largest of some values is.
 *
 * @param {Float64Array} values
 */
function findMost(values) {
  let most = 0;
  for (let at = 1; at < values.length; at += 1) if (values[at] > values[most]) most = at;
  return most;
}

/**
 * Return how many bits the likeliest value of each byte has together, which no frame can exceed.
 *
 * @param {Float64Array} evidence
 */
export function boundBits(evidence) {
  return sumOf(Array.from(CODE_BASE, (_, place) => mostOf(bitsOf(evidence, place))));
}

/**
 * Return the places of the unknown bytes, those of which one value is clearest first.
 *
 * @param {Float64Array} evidence
 */
function orderByClarity(evidence) {
  const clarities = Array.from(CODE_BASE, (_, place) => {
    const bits = bitsOf(evidence, place);
    const most = mostOf(bits);
    return -Math.log2(bits.reduce((sum, each) => sum + 2 ** (each - most), 0));
  });
  return [...clarities.keys()].sort((a, b) => clarities[b] - clarities[a]);
}

const LETTER_VALUES = bytesOf(LETTERS);
const ALL_VALUES = Uint8Array.from({ length: VALUES }, (_, value) => value);

/**
 * Scale evidence so that its likelihoods have a mean of 1 over the values that may be; those that no token has are as
 * good as impossible.
 *
 * @param {Float64Array} evidence of the 26 unknown bytes, changed in place
 */
export function normalise(evidence) {
  for (let place = 0; place < UNKNOWN_BYTES; place += 1) {
    const bits = bitsOf(evidence, place);
    const values = place < TOKEN_BYTES ? LETTER_VALUES : ALL_VALUES;
    let sum = 0;
    for (const value of values) sum += 2 ** bits[value];
    const mean = Math.log2(sum / values.length);
    const scaled = Float64Array.from(values, (value) => Math.max(bits[value] - mean, IMPOSSIBLE_BITS));
    bits.fill(IMPOSSIBLE_BITS);
    values.forEach((value, at) => (bits[value] = scaled[at]));
  }
  return evidence;
}
