import assert from "node:assert/strict";
import { test } from "node:test";

import { Decoder, hear } from "../src/hearing/decoder.js";

const RATE_HZ = 48_000;

test("a marker that never ends is decoded at most 70 times a second", () => {
  const decoder = new Decoder(RATE_HZ);
  let decodingCount = 0;
  const decode = decoder._decode.bind(decoder);
  decoder._decode = (...args) => {
    decodingCount += 1;
    decode(...args);
  };
  const tones = Array.from({ length: 16 }, (_, pair) => 15_000 + 46.875 * (2 * pair + (pair % 2)));
  const turns = tones.map((hz) => (2 * Math.PI * hz) / RATE_HZ);
  const marker = Float32Array.from({ length: 8 * RATE_HZ }, (_, at) =>
    turns.reduce((sum, turn) => sum + Math.sin(turn * at), 0) / 20,
  );
  assert.deepEqual(decoder.feed(marker), []);
  assert.ok(decodingCount > 8, `${decodingCount} decodings show that the marker was found`);
  assert.ok(decodingCount <= 8 * 71, `${decodingCount} decodings in 8 s`);
});

test("samples that are not finite, and rates that carry no frame, do no harm", () => {
  const samples = new Float32Array(RATE_HZ).fill(NaN, 0, 1000).fill(Infinity, 1000, 2000);
  assert.deepEqual(hear(samples, RATE_HZ), []);
  for (const rateHz of [32_000, 0, NaN]) assert.throws(() => new Decoder(rateHz), RangeError);
});
