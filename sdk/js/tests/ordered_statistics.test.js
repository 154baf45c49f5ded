import assert from "node:assert/strict";
import { test } from "node:test";

import { findNibbles, LETTERS, UNKNOWN_BYTES } from "../src/hearing/frame_code.js";
import {
  boundBits,
  IMPOSSIBLE_BITS,
  normalise,
  decode as findFrame,
  SETS_MAX,
} from "../src/hearing/ordered_statistics.js";
import { makeChance, normal } from "./chance.js";

const ENOUGH_BITS = 106;

function makeToken(chance) {
  return Array.from({ length: 16 }, () => LETTERS[Math.floor(64 * chance())]).join("");
}

/** Return the unknown bytes of a frame. */
function findContent(token) {
  const nibbles = findNibbles(`XRC1:brd_${token}`);
  return Uint8Array.from(
    { length: UNKNOWN_BYTES },
    (_, place) => nibbles[24 + 2 * place] | (nibbles[25 + 2 * place] << 4),
  );
}

/** Return evidence for half bytes, each in one of 16 tones beside noise, by the formula for a tone of known strength. */
function makeEvidence(content, strength, chance) {
  const hear = (sent) => {
    const ratios = Array.from({ length: 16 }, (_, tone) => {
      const [real, imaginary] = [normal(chance), normal(chance)].map((each) => each / Math.SQRT2);
      return (real + (tone === sent ? Math.sqrt(strength) : 0)) ** 2 + imaginary ** 2;
    });
    // A fading tone's likelihood, which needs no Bessel function.
    const likelihoods = ratios.map((ratio) => Math.exp((ratio * strength) / (1 + strength)));
    const mean = likelihoods.reduce((sum, each) => sum + each, 0) / 16;
    return likelihoods.map((each) => Math.log2((0.96 * each) / mean + 0.04));
  };
  const evidence = new Float64Array(UNKNOWN_BYTES * 256);
  content.forEach((byte, place) => {
    const [low, high] = [hear(byte & 15), hear(byte >> 4)];
    for (let value = 0; value < 256; value += 1) evidence[256 * place + value] = low[value & 15] + high[value >> 4];
  });
  return normalise(evidence);
}

function decode(evidence, enoughBits = ENOUGH_BITS, sets = SETS_MAX) {
  const steps = findFrame(evidence, enoughBits, sets);
  let stepCount = 0;
  for (;;) {
    const { done, value } = steps.next();
    if (done) return { decoded: value, stepCount };
    stepCount += 1;
  }
}

const sumOf = (content, evidence) => content.reduce((sum, value, place) => sum + evidence[256 * place + value], 0);

test("clear tones are one frame, with the evidence for it", () => {
  const content = findContent("Abc-defGHI_01234");
  const evidence = makeEvidence(content, 100, makeChance(1));
  const { decoded, stepCount } = decode(evidence);
  assert.deepEqual(decoded.content, content);
  assert.ok(Math.abs(decoded.bits - sumOf(content, evidence)) < 1e-9);
  assert.ok(decoded.bits > 160 && stepCount <= 3, `${decoded.bits} bits in ${stepCount} steps`);
});

test("of the frames for which the evidence suffices in noise, three in four are found, and no other", () => {
  const chance = makeChance(2);
  const count = { found: 0, decodable: 0, wrong: 0 };
  for (let round = 0; round < 40; round += 1) {
    const content = findContent(makeToken(chance));
    const evidence = makeEvidence(content, 10 ** 0.6, chance);
    const { decoded } = decode(evidence);
    count.decodable += sumOf(content, evidence) >= ENOUGH_BITS;
    count.found += decoded?.content.every((value, place) => value === content[place]) ?? 0;
    count.wrong += decoded !== null && decoded.content.some((value, place) => value !== content[place]);
  }
  assert.equal(count.wrong, 0);
  assert.ok(count.decodable >= 12, `${count.decodable} of 40`);
  assert.ok(count.found >= 0.75 * count.decodable, `${count.found} of ${count.decodable}`);
});

test("ten bytes may be missing if the evidence for the others suffices", () => {
  const content = findContent("Abc-defGHI_01234");
  const evidence = makeEvidence(content, 100, makeChance(3));
  const eraseFrom = (first) => normalise(evidence.slice().fill(0, 256 * first, 256 * (first + 10)));
  assert.deepEqual(decode(eraseFrom(3)).decoded.content, content, "letters have 6 bits");
  assert.equal(decode(eraseFrom(16)).decoded, null, "check bytes have 8");
  assert.deepEqual(decode(eraseFrom(16), 90).decoded.content, content);
});

test("random evidence is no frame, and costs a bounded number of steps", () => {
  const chance = makeChance(5);
  for (let round = 0; round < 20; round += 1) {
    const evidence = normalise(Float64Array.from({ length: UNKNOWN_BYTES * 256 }, () => 12 * chance()));
    const { decoded, stepCount } = decode(evidence);
    assert.equal(decoded, null);
    assert.ok(stepCount <= SETS_MAX * 27, `${stepCount}`);
  }
});

test("values that no token has are impossible, and the likelihoods of the others have a mean of 1", () => {
  const evidence = normalise(Float64Array.from({ length: UNKNOWN_BYTES * 256 }, (_, at) => (at % 13) - 6));
  const letters = new Set(Buffer.from(LETTERS));
  for (let value = 0; value < 256; value += 1) {
    assert.equal(evidence[value] === IMPOSSIBLE_BITS, !letters.has(value));
  }
  for (const [place, count] of [
    [15, 64],
    [16, 256],
  ]) {
    const likelihoods = evidence.slice(256 * place, 256 * (place + 1)).map((bits) => 2 ** bits);
    assert.ok(Math.abs(likelihoods.reduce((sum, each) => sum + each) / count - 1) < 1e-9);
  }
  assert.ok(boundBits(evidence) > 0);
});
