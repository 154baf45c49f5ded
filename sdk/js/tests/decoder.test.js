import assert from "node:assert/strict";
import { test } from "node:test";

import { Decoder, hear } from "../src/hearing/decoder.js";
import { Spectrum } from "../src/hearing/spectrum.js";
import { join, playMarker, RATE_HZ, scale, silence, synthesize } from "./synthesis.js";

const FRAME = "XRC1:brd_Abc-defGHI_01234";
const OTHER = "XRC1:brd_zyxwvutsrqponmlk";
const sound = synthesize(FRAME);
const textsOf = (frames) => frames.map((frame) => frame.text);

test("a frame is heard at each speed, in pieces of any length", () => {
  for (const framesPerGroup of [9, 6, 3]) {
    assert.deepEqual(textsOf(hear(synthesize(FRAME, framesPerGroup), RATE_HZ)), [FRAME], `${framesPerGroup}`);
  }
  const decoder = new Decoder(RATE_HZ);
  const heard = [];
  for (let at = 0; at < sound.length; at += 997) heard.push(...decoder.feed(sound.subarray(at, at + 997)));
  assert.deepEqual(textsOf([...heard, ...decoder.finish()]), [FRAME]);
});

test("bytes whose tones are missing are erased, so more of them are restored than wrong ones could be", () => {
  const groupAt = (group) => (16 + 3 * group) * 1024;
  const cut = (groupCount) => sound.slice().fill(0, groupAt(4), groupAt(4 + groupCount));
  assert.deepEqual(textsOf(hear(cut(3), RATE_HZ)), [FRAME], "nine bytes");
  assert.deepEqual(textsOf(hear(cut(4), RATE_HZ)), [], "twelve bytes, more than there are check bytes");
});

test("a marker that never ends is decoded at most 70 times a second", () => {
  const decoder = new Decoder(RATE_HZ);
  let decodingCount = 0;
  const decode = decoder._decode.bind(decoder);
  decoder._decode = (...args) => {
    decodingCount += 1;
    decode(...args);
  };
  assert.deepEqual(decoder.feed(playMarker(8 * RATE_HZ)), []);
  assert.ok(decodingCount > 8, `${decodingCount} decodings show that the marker was found`);
  assert.ok(decodingCount <= 8 * 71, `${decodingCount} decodings in 8 s`);
});

test("a sample that is no number or far too large deafens nothing, and rates that carry no frame are refused", () => {
  for (const spoilt of [NaN, Infinity, -Infinity, 1e30, -3.4e38]) {
    assert.deepEqual(textsOf(hear(join([spoilt], silence(0.2), sound), RATE_HZ)), [FRAME], `${spoilt}`);
  }
  const samples = new Float32Array(RATE_HZ).fill(NaN, 0, 1000).fill(Infinity, 1000, 2000);
  assert.deepEqual(hear(samples, RATE_HZ), []);
  for (const rateHz of [32_000, 39_999, 0, NaN]) assert.throws(() => new Decoder(rateHz), RangeError);
});

test("samples beyond full scale are clipped, as those of a file are", () => {
  const measure = (samples) => {
    const columns = [];
    new Spectrum(RATE_HZ, (powers) => columns.push(powers)).feed(samples);
    return columns;
  };
  const loud = scale(sound.subarray(0, 4096), 1e6);
  assert.deepEqual(measure(loud), measure(loud.map((sample) => Math.max(-1, Math.min(1, sample)))));
});

test("a frame is reported once, however often it is repeated", () => {
  const twice = join(sound, silence(0.5), sound);
  assert.deepEqual(textsOf(hear(twice, RATE_HZ)), [FRAME]);
  assert.deepEqual(textsOf(hear(join(sound, synthesize(OTHER), sound), RATE_HZ)), [FRAME, OTHER]);
});

test("a decoder that is told so reports a frame again when it is heard that much later", () => {
  const decoder = new Decoder(RATE_HZ, 3);
  const reportedCounts = [0, 1.7, 3.4, 5.1].map(
    () => decoder.feed(join(sound, silence(1.7 - sound.length / RATE_HZ))).length,
  );
  assert.deepEqual(reportedCounts, [1, 0, 1, 0], "3 s after the first report, and not 3 s after the last hearing");
});

test("of 4,096 reported frames, the one that was heard least recently is forgotten for the next", () => {
  const decoder = new Decoder(RATE_HZ);
  const report = (number) => decoder._report({ text: `XRC1:brd_${String(number).padStart(16, "0")}` });
  for (let number = 0; number < 4096; number += 1) report(number);
  report(0);
  report(4096);
  assert.equal(decoder._reported.size, 4096);
  assert.equal(decoder.feed([]).length, 4097);
  for (const number of [0, 2, 4096]) report(number);
  assert.equal(decoder.feed([]).length, 0, "they are remembered");
  report(1);
  assert.equal(decoder.feed([]).length, 1, "it was forgotten");
});

test("the sums stay small, so a quiet frame is heard after hours of loud sound", () => {
  const decoder = new Decoder(RATE_HZ);
  const sumsMax = () => Math.max(...decoder._sums.map((sums) => Math.max(...sums)));
  decoder.feed(scale(playMarker(6 * RATE_HZ), 1));
  const after6s = sumsMax();
  decoder.feed(playMarker(12 * RATE_HZ));
  assert.ok(sumsMax() < 1.5 * after6s, `${sumsMax()} after 18 s, ${after6s} after 6 s`);
  assert.deepEqual(textsOf(decoder.feed(join(silence(7), scale(sound, 1e-8), silence(0.2)))), [FRAME]);
});
