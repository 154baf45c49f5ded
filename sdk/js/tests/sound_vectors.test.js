// docs/vectors/sound-*.json, which sdk/python made: how docs/vectors/README.md says that they are used.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { hear } from "../src/hearing/decoder.js";
import { findNibbles } from "../src/hearing/frame_code.js";
import { findEvidence, findLikelihoods } from "../src/hearing/likelihoods.js";
import { decode as findFrame, SETS_MAX } from "../src/hearing/ordered_statistics.js";
import { readFrame } from "../src/hearing/power_sums.js";
import { gridOf } from "../src/hearing/tone_grid.js";

const fileOf = (name) => new URL(`../../../docs/vectors/sound-${name}-v1.json`, import.meta.url);
const casesOf = (name) => JSON.parse(readFileSync(fileOf(name))).cases;

const RATE_HZ = 48_000;
const BLOCK = 1024;
const GROUP_BLOCKS = { 3: 9, 4: 6, 5: 3 };
const MARKER_BLOCKS = 16;
const FADE = 0.15;

function finish(steps) {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

const isNear = (actual, expected, tolerance) => Math.abs(actual - expected) <= tolerance;
const mostOf = (evidence, place) => Math.max(...evidence.subarray(256 * place, 256 * (place + 1)));

test("the powers of the vectors give their likelihoods and evidence", () => {
  for (const each of casesOf("likelihoods")) {
    const [tones, between] = [each.tones, each.between].map((rows) => Float64Array.from(rows.flat()));
    const likelihoods = finish(findLikelihoods(tones, between, gridOf(each.protocol)));
    each.likelihoods.flat(2).forEach((expected, at) => {
      assert.ok(
        isNear(likelihoods[at], expected, 0.01 * expected),
        `${each.name}, ${at}: ${likelihoods[at]}, ${expected}`,
      );
    });
    const { evidence, knownBits } = findEvidence(likelihoods);
    assert.ok(isNear(knownBits, each.known_bits, 0.1), `${each.name}: ${knownBits}`);
    each.largest_bits.forEach((expected, place) => {
      assert.ok(
        isNear(mostOf(evidence, place), expected, 0.1),
        `${each.name}: ${mostOf(evidence, place)}, ${expected}`,
      );
    });
  }
});

test("a group of which no sample exists says nothing", () => {
  const [each] = casesOf("likelihoods");
  const [tones, between] = [each.tones, each.between].map((rows) =>
    Float64Array.from(rows.flat()).fill(0, 96 * 9, 96 * 10),
  );
  const likelihoods = finish(findLikelihoods(tones, between, gridOf(each.protocol)));
  assert.deepEqual(new Set(likelihoods.subarray(96 * 9, 96 * 10)), new Set([1]));
  assert.ok(new Set(likelihoods.subarray(96 * 10)).size > 1);
});

test("the likelihoods of the vectors give their tokens and evidence", () => {
  for (const each of casesOf("decoding")) {
    const { evidence, knownBits } = findEvidence(Float64Array.from(each.likelihoods.flat(2)));
    assert.ok(isNear(knownBits, each.known_bits, 0.1), `${each.name}: ${knownBits}`);
    const decoded = finish(findFrame(evidence, each.enough_bits, SETS_MAX));
    const token = decoded && `brd_${String.fromCharCode(...decoded.content.subarray(0, 16))}`;
    assert.equal(token, each.token, each.name);
    if (decoded) assert.ok(isNear(decoded.bits, each.evidence_bits, 0.1), `${each.name}: ${decoded.bits}`);
  }
});

test("the half bytes of the vectors are corrected to their tokens", () => {
  for (const { name, values, clarities, token } of casesOf("correction")) {
    const text = readFrame(values.map((value, at) => ({ value, clarity: clarities[at] })));
    assert.equal(text && text.slice("XRC1:".length), token, name);
  }
});

test("the sounds of the vectors are heard, and nothing else", () => {
  for (const each of casesOf("hearing")) {
    const heard = hear(makeSound(each), RATE_HZ).map(({ token }) => token);
    assert.deepEqual(heard, each.tokens, each.name);
  }
});

function makeSound({ duration_s, frames, tones, gaps_s, noise, seed }) {
  const sound = new Float64Array(Math.round(duration_s * RATE_HZ));
  for (const frame of frames) addFrame(sound, frame);
  for (const { hz, level } of tones) {
    sound.forEach((_, at) => (sound[at] += level * Math.sin((2 * Math.PI * hz * at) / RATE_HZ)));
  }
  for (const [startS, endS] of gaps_s) sound.fill(0, Math.round(startS * RATE_HZ), Math.round(endS * RATE_HZ));
  const next = makeNoise(seed);
  return Float32Array.from(sound, (sample) => (noise ? sample + noise * next() : sample));
}

/** Return a function that returns noise of deviation 1: sums of four numbers of a linear congruential generator. */
function makeNoise(seed) {
  let value = seed;
  return () => {
    let sum = -2;
    for (let count = 0; count < 4; count += 1) {
      value = (Math.imul(value, 1664525) + 1013904223) >>> 0;
      sum += value / 2 ** 32;
    }
    return sum * Math.sqrt(3);
  };
}

function addFrame(sound, { token, protocol, start_s, clock, level }) {
  const [group, marker] = [GROUP_BLOCKS[protocol] * BLOCK, MARKER_BLOCKS * BLOCK];
  const nibbles = findNibbles(`XRC1:${token}`);
  const markTones = (isEnd) => Array.from({ length: 16 }, (_, at) => 2 * at + ((at + isEnd) % 2));
  const segments = [{ begin: 0, length: marker, tones: markTones(0), share: 6 / 16 }];
  for (let index = 0; index < 13; index += 1) {
    const tones = [...nibbles.subarray(6 * index, 6 * index + 6)].map((nibble, band) => 16 * band + nibble);
    segments.push({ begin: marker + index * group, length: group, tones, share: 1 });
  }
  segments.push({ begin: marker + 13 * group, length: marker, tones: markTones(1), share: 6 / 16 });
  const [start, speed] = [start_s * RATE_HZ, 1 + clock];
  for (const { begin, length, tones, share } of segments) {
    const turns = tones.map((tone) => (2 * Math.PI * (15_000 + 46.875 * tone)) / RATE_HZ);
    const last = Math.min(Math.ceil(start + (begin + length) / speed), sound.length);
    for (let at = Math.max(Math.ceil(start + begin / speed), 0); at < last; at += 1) {
      const time = (at - start) * speed;
      const within = (time - begin) / length;
      const fade = Math.min(1, Math.min(within, 1 - within) / FADE);
      sound[at] += level * share * fade * turns.reduce((sum, turn) => sum + Math.sin(turn * time), 0);
    }
  }
}
