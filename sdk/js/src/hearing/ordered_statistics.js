/**
 * Finds the likeliest frame: ordered-statistics decoding of the Reed–Solomon code over its bytes.
 *
 * Any 16 of the 26 unknown bytes determine the others. The clearest 16 are believed, and then changed in up to four
 * places, the least unlikely changes first. Sets that leave out some of the clearest find what one wrong byte hides.
 *
 * Changes are kept in the order of what they cost, so a loop ends where nothing that follows can suffice.
 */

import { CHECK_BYTES, CODE_BASE, findEffects, LETTERS, multiply, TOKEN_BYTES, UNKNOWN_BYTES } from "./frame_code.js";

export const VALUES = 256;
/** As good as impossible. */
export const IMPOSSIBLE_BITS = -60;
const POSSIBLE_BITS_MIN = IMPOSSIBLE_BITS + 10;

/** @type {(...ranges: [number, number][]) => number[]} */
const listRanks = (...ranges) =>
  ranges.flatMap(([first, end]) => Array.from({ length: end - first }, (_, at) => first + at));
/** The bytes that each set believes, by the rank of their clarity. */
const SETS = [
  listRanks([0, 16]),
  listRanks([0, 12], [16, 20]),
  listRanks([4, 20]),
  listRanks([0, 8], [12, 20]),
  listRanks([0, 4], [8, 20]),
  listRanks([0, 14], [20, 22]),
  listRanks([2, 18]),
  listRanks([0, 10], [16, 22]),
];
export const SETS_MAX = SETS.length;
/** Of one byte. */
const CHANGES_MAX = 256;
/** Of none, one or two bytes. */
const PATTERNS_MAX = 8192;
/** Likely values of the two clearest bytes that are not believed. */
const TARGETS_MAX = 24;
/** Costs are sorted to a 32nd of a bit. */
const STEPS_PER_BIT = 32;
const STEPS = 100 * STEPS_PER_BIT;
const KEYS = 65_536;

/** @typedef {{content: Uint8Array, bits: number}} Decoded the unknown bytes of a frame, and the evidence for them */

/** A decoder, with the memory that it needs. It decodes one frame at a time. */
export class OrderedStatistics {
  constructor() {
    this._places = new Uint8Array(CHANGES_MAX);
    this._deltas = new Uint8Array(CHANGES_MAX);
    this._costs = new Float64Array(CHANGES_MAX);
    // What a change adds to the ten bytes that are not believed: two in a key, and twice four.
    this._changeKeys = new Uint16Array(CHANGES_MAX);
    this._changeHeads = new Int32Array(CHANGES_MAX);
    this._changeTails = new Int32Array(CHANGES_MAX);
    this._firsts = new Int16Array(PATTERNS_MAX);
    this._seconds = new Int16Array(PATTERNS_MAX);
    this._losses = new Float64Array(PATTERNS_MAX);
    this._keys = new Uint16Array(PATTERNS_MAX);
    this._heads = new Int32Array(PATTERNS_MAX);
    this._tails = new Int32Array(PATTERNS_MAX);
    this._byKey = new Uint16Array(PATTERNS_MAX);
    this._ends = new Uint16Array(KEYS + 1);
    this._steps = new Uint32Array(STEPS + 1);
    this._restBits = new Float64Array(CHECK_BYTES * VALUES);
    // The most that the bytes that are not believed can add, all ten and the last eight.
    this._restMost = 0;
    this._lastMost = 0;
    this._start = new Uint8Array(CHECK_BYTES);
    this._hard = new Uint8Array(TOKEN_BYTES);
    this._patternCount = 0;
    this._changeCount = 0;
    this._hardBits = 0;
    this._bar = 0;
    /** @type {Decoded | null} */
    this._found = null;
    /** @type {number[]} */
    this._believed = [];
    /** @type {number[]} */
    this._rest = [];
  }

  /**
   * Return the likeliest frame that was found, or null. It yields about every half millisecond, to let other work in.
   *
   * @param {Float64Array} evidence how many bits speak for each value of each of the 26 unknown bytes
   * @param {number} enoughBits less is no frame, and a frame with as many ends the search
   * @param {number} setsMax
   * @returns {Generator<undefined, Decoded | null, undefined>}
   */
  *decode(evidence, enoughBits, setsMax) {
    const order = orderByClarity(evidence);
    this._found = null;
    this._bar = enoughBits;
    for (const ranks of SETS.slice(0, setsMax)) {
      this._believed = ranks.map((rank) => order[rank]);
      this._rest = order.filter((place) => !this._believed.includes(place));
      if (!this._begin(evidence)) continue;
      yield;
      this._listPatterns();
      this._judgePatterns(evidence);
      yield;
      if (this._found === null) yield* this._meet(evidence);
      if (this._found !== null) break;
    }
    return this._found;
  }

  /**
   * Believe the clearest values, and list what changes of one byte cost and do.
   *
   * @param {Float64Array} evidence
   * @returns {boolean} false if no frame of this set can suffice
   */
  _begin(evidence) {
    const effects = findEffects(this._believed, this._rest);
    this._hardBits = 0;
    this._rest.forEach((place, at) => {
      this._start[at] = CODE_BASE[place];
      this._restBits.set(evidence.subarray(place * VALUES, (place + 1) * VALUES), at * VALUES);
    });
    this._believed.forEach((place, at) => {
      const bits = evidence.subarray(place * VALUES, (place + 1) * VALUES);
      const value = findMost(bits);
      this._hard[at] = value;
      this._hardBits += bits[value];
      effects[at].forEach((effect, other) => (this._start[other] ^= multiply(value ^ CODE_BASE[place], effect)));
    });
    const most = this._rest.map((_, at) => {
      const bits = this._restBits.subarray(at * VALUES, (at + 1) * VALUES);
      return bits[findMost(bits)];
    });
    this._restMost = sumOf(most);
    this._lastMost = sumOf(most.slice(2));
    const slack = this._hardBits + this._restMost - this._bar;
    if (slack >= 0) this._listChanges(evidence, effects, slack);
    return slack >= 0;
  }

  /**
   * @param {Float64Array} evidence
   * @param {Uint8Array[]} effects
   * @param {number} slack
   */
  _listChanges(evidence, effects, slack) {
    /** @type {{at: number, delta: number, cost: number}[]} */
    const changes = [];
    this._believed.forEach((place, at) => {
      const most = evidence[place * VALUES + this._hard[at]];
      for (let value = 0; value < VALUES; value += 1) {
        const bits = evidence[place * VALUES + value];
        if (bits < POSSIBLE_BITS_MIN || most - bits > slack || value === this._hard[at]) continue;
        changes.push({ at, delta: value ^ this._hard[at], cost: most - bits });
      }
    });
    changes.sort((a, b) => a.cost - b.cost);
    this._changeCount = Math.min(changes.length, CHANGES_MAX);
    for (let index = 0; index < this._changeCount; index += 1) {
      const { at, delta, cost } = changes[index];
      const [a, b, c, d, e, f, g, h, i, j] = effects[at].map((effect) => multiply(delta, effect));
      this._places[index] = at;
      this._deltas[index] = delta;
      this._costs[index] = cost;
      this._changeKeys[index] = (a << 8) | b;
      this._changeHeads[index] = (c << 24) | (d << 16) | (e << 8) | f;
      this._changeTails[index] = (g << 24) | (h << 16) | (i << 8) | j;
    }
  }

  /** List no change, changes of one byte, and pairs of them, the cheapest first. */
  _listPatterns() {
    const [steps, costs, places, count] = [this._steps, this._costs, this._places, this._changeCount];
    const costMax = Math.min(this._hardBits + this._restMost - this._bar, STEPS / STEPS_PER_BIT - 1);
    steps.fill(0);
    for (let first = -1; first < count; first += 1) {
      const cost = first < 0 ? 0 : costs[first];
      if (first >= 0) steps[Math.floor(cost * STEPS_PER_BIT)] += 1;
      for (let second = first + 1; first >= 0 && second < count && cost + costs[second] <= costMax; second += 1) {
        if (places[first] !== places[second]) steps[Math.floor((cost + costs[second]) * STEPS_PER_BIT)] += 1;
      }
    }
    // The first pattern changes nothing; where those of a step begin follows from the counts of the steps before.
    let total = 1;
    for (let step = 0; step <= STEPS; step += 1) {
      const inStep = steps[step];
      steps[step] = total;
      total += inStep;
    }
    this._putPattern(0, -1, -1);
    for (let first = 0; first < count; first += 1) {
      const cost = costs[first];
      const at = steps[Math.floor(cost * STEPS_PER_BIT)]++;
      if (at < PATTERNS_MAX) this._putPattern(at, first, -1);
      for (let second = first + 1; second < count && cost + costs[second] <= costMax; second += 1) {
        if (places[first] === places[second]) continue;
        const place = steps[Math.floor((cost + costs[second]) * STEPS_PER_BIT)]++;
        if (place < PATTERNS_MAX) this._putPattern(place, first, second);
      }
    }
    this._patternCount = Math.min(total, PATTERNS_MAX);
  }

  /**
   * @param {number} at
   * @param {number} first a change, or -1
   * @param {number} second
   */
  _putPattern(at, first, second) {
    this._firsts[at] = first;
    this._seconds[at] = second;
    this._losses[at] = (first < 0 ? 0 : this._costs[first]) + (second < 0 ? 0 : this._costs[second]);
    this._keys[at] = (first < 0 ? 0 : this._changeKeys[first]) ^ (second < 0 ? 0 : this._changeKeys[second]);
    this._heads[at] = (first < 0 ? 0 : this._changeHeads[first]) ^ (second < 0 ? 0 : this._changeHeads[second]);
    this._tails[at] = (first < 0 ? 0 : this._changeTails[first]) ^ (second < 0 ? 0 : this._changeTails[second]);
  }

  /** @param {Float64Array} evidence */
  _judgePatterns(evidence) {
    const start = (this._start[0] << 8) | this._start[1];
    for (let pattern = 0; pattern < this._patternCount; pattern += 1) {
      const bits = this._hardBits - this._losses[pattern];
      if (bits + this._restMost < this._bar - 1 / STEPS_PER_BIT) break;
      const key = this._keys[pattern] ^ start;
      this._judge(evidence, pattern, -1, bits + this._restBits[key >> 8] + this._restBits[VALUES + (key & 255)]);
    }
  }

  /**
   * Look for frames with up to four changes: two patterns that meet in two likely bytes.
   *
   * @param {Float64Array} evidence
   * @returns {Generator<undefined, void, undefined>}
   */
  *_meet(evidence) {
    this._sortByKey();
    const [ends, keys, losses, byKey] = [this._ends, this._keys, this._losses, this._byKey];
    const start = (this._start[0] << 8) | this._start[1];
    for (const target of this._listTargets()) {
      const bits = this._hardBits + this._restBits[target >> 8] + this._restBits[VALUES + (target & 255)];
      const slack = bits + this._lastMost - this._bar + 1 / STEPS_PER_BIT;
      for (let left = 0; left < this._patternCount && 2 * losses[left] <= slack; left += 1) {
        const key = keys[left] ^ target ^ start;
        // Those of a key are sorted from its end, the cheapest last.
        for (let at = ends[key + 1] - 1; at >= ends[key]; at -= 1) {
          const right = byKey[at];
          const loss = losses[left] + losses[right];
          if (loss > slack) break;
          if (right > left) this._judge(evidence, left, right, bits - loss);
        }
      }
      yield;
      if (this._found !== null) return;
    }
  }

  _sortByKey() {
    const ends = this._ends;
    ends.fill(0);
    for (let pattern = 0; pattern < this._patternCount; pattern += 1) ends[this._keys[pattern]] += 1;
    for (let key = 0, total = 0; key <= KEYS; key += 1) {
      total += ends[key];
      ends[key] = total;
    }
    // Each key's end moves to its beginning, which is the end of the key before.
    for (let pattern = 0; pattern < this._patternCount; pattern += 1) {
      this._byKey[--ends[this._keys[pattern]]] = pattern;
    }
  }

  /** Return the likeliest values of the two clearest bytes that are not believed, as keys. */
  _listTargets() {
    const likely = [0, VALUES].map((first) =>
      [...this._restBits.subarray(first, first + VALUES)]
        .map((bits, value) => ({ bits, value }))
        .sort((a, b) => b.bits - a.bits)
        .slice(0, TARGETS_MAX),
    );
    return likely[0]
      .flatMap((a) => likely[1].map((b) => ({ bits: a.bits + b.bits, key: (a.value << 8) | b.value })))
      .sort((a, b) => b.bits - a.bits)
      .slice(0, TARGETS_MAX)
      .map(({ key }) => key);
  }

  /**
   * Keep the frame with the changes of one or two patterns if there is none that is likelier.
   *
   * @param {Float64Array} evidence
   * @param {number} left
   * @param {number} right or -1
   * @param {number} bits for all but the last eight bytes
   */
  _judge(evidence, left, right, bits) {
    const [table, start] = [this._restBits, this._start];
    const head = this._heads[left] ^ (right < 0 ? 0 : this._heads[right]);
    const tail = this._tails[left] ^ (right < 0 ? 0 : this._tails[right]);
    const total =
      bits +
      table[512 + (start[2] ^ (head >>> 24))] +
      table[768 + (start[3] ^ ((head >> 16) & 255))] +
      table[1024 + (start[4] ^ ((head >> 8) & 255))] +
      table[1280 + (start[5] ^ (head & 255))] +
      table[1536 + (start[6] ^ (tail >>> 24))] +
      table[1792 + (start[7] ^ ((tail >> 16) & 255))] +
      table[2048 + (start[8] ^ ((tail >> 8) & 255))] +
      table[2304 + (start[9] ^ (tail & 255))];
    if (total < this._bar) return;
    const content = this._fill(left, right);
    if (content === null) return;
    if (content.some((value, place) => evidence[place * VALUES + value] < POSSIBLE_BITS_MIN)) return;
    this._found = { content, bits: total };
    this._bar = total;
  }

  /**
   * Return the unknown bytes with the changes of two patterns; null if both change the same byte.
   *
   * @param {number} left
   * @param {number} right or -1
   */
  _fill(left, right) {
    const patterns = right < 0 ? [left] : [left, right];
    const changes = patterns.flatMap((each) => [this._firsts[each], this._seconds[each]]).filter((each) => each >= 0);
    if (new Set(changes.map((change) => this._places[change])).size < changes.length) return null;
    const content = new Uint8Array(UNKNOWN_BYTES);
    this._believed.forEach((place, at) => (content[place] = this._hard[at]));
    for (const change of changes) content[this._believed[this._places[change]]] ^= this._deltas[change];
    const key = patterns.reduce((sum, each) => sum ^ this._keys[each], 0);
    const head = patterns.reduce((sum, each) => sum ^ this._heads[each], 0);
    const tail = patterns.reduce((sum, each) => sum ^ this._tails[each], 0);
    const effects = [key >> 8, key, head >> 24, head >> 16, head >> 8, head, tail >> 24, tail >> 16, tail >> 8, tail];
    this._rest.forEach((place, at) => (content[place] = this._start[at] ^ (effects[at] & 255)));
    return content;
  }
}

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
  let total = 0;
  for (let first = 0; first < evidence.length; first += VALUES) {
    const bits = evidence.subarray(first, first + VALUES);
    total += bits[findMost(bits)];
  }
  return total;
}

/** @type {(values: number[]) => number} */
const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);

/**
 * Return the places of the unknown bytes, those of which one value is clearest first.
 *
 * @param {Float64Array} evidence
 */
function orderByClarity(evidence) {
  const clarities = Array.from({ length: UNKNOWN_BYTES }, (_, place) => {
    const bits = evidence.subarray(place * VALUES, (place + 1) * VALUES);
    const most = bits[findMost(bits)];
    return -Math.log2(bits.reduce((sum, each) => sum + 2 ** (each - most), 0));
  });
  return [...clarities.keys()].sort((a, b) => clarities[b] - clarities[a]);
}

const LETTER_VALUES = Uint8Array.from(LETTERS, (letter) => letter.charCodeAt(0));
const ALL_VALUES = Uint8Array.from({ length: VALUES }, (_, value) => value);

/**
 * Scale evidence so that its likelihoods have a mean of 1 over the values that may be; those that no token has are as
 * good as impossible.
 *
 * @param {Float64Array} evidence of the 26 unknown bytes, changed in place
 */
export function normalise(evidence) {
  for (let place = 0; place < UNKNOWN_BYTES; place += 1) {
    const bits = evidence.subarray(place * VALUES, (place + 1) * VALUES);
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
