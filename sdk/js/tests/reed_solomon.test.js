import assert from "node:assert/strict";
import { test } from "node:test";

import { correct } from "../src/hearing/reed_solomon.js";

// A payload as ggwave sends it (ggwave 0.4.3), with its ten check bytes.
const CHECK_COUNT = 10;
const CODEWORD = Uint8Array.from([
  ...Buffer.from("XRC1:brd_ABCDEFGHabcdefgh"),
  ...[0xb4, 0x94, 0x03, 0x14, 0x32, 0xdd, 0x1b, 0xd5, 0xb6, 0xc9],
]);

/** A generator of the same numbers below `limit` in each run. */
function* chance(seed) {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

function spoil(numbers, count) {
  const received = CODEWORD.slice();
  const positions = new Set();
  while (positions.size < count) positions.add(Math.floor(numbers.next().value * received.length));
  for (const position of positions) received[position] ^= 1 + Math.floor(numbers.next().value * 255);
  return { received, positions: [...positions] };
}

test("a codeword without errors stays as it is", () => {
  assert.deepEqual(correct(CODEWORD, CHECK_COUNT), CODEWORD);
});

test("up to half as many errors as check bytes are corrected, wherever they are", () => {
  const numbers = chance(1);
  for (let round = 0; round < 500; round += 1) {
    const { received } = spoil(numbers, 1 + (round % 5));
    assert.deepEqual(correct(received, CHECK_COUNT), CODEWORD);
  }
});

test("an erased byte costs one check byte, and an error two", () => {
  const numbers = chance(2);
  for (let round = 0; round < 500; round += 1) {
    const erasedCount = round % 11;
    const errorCount = Math.floor((CHECK_COUNT - erasedCount) / 2);
    const { received, positions } = spoil(numbers, erasedCount + errorCount);
    assert.deepEqual(
      correct(received, CHECK_COUNT, positions.slice(0, erasedCount)),
      CODEWORD,
      `${erasedCount} erased`,
    );
  }
});

test("bytes that are far from every codeword are refused or become another codeword, never a wrong text as it was", () => {
  const numbers = chance(3);
  let refusedCount = 0;
  for (let round = 0; round < 500; round += 1) {
    const { received } = spoil(numbers, 12);
    const corrected = correct(received, CHECK_COUNT);
    if (corrected === null) refusedCount += 1;
    else assert.deepEqual(correct(corrected, CHECK_COUNT), corrected);
  }
  assert.ok(refusedCount > 480, `${refusedCount} of 500`);
});
