import assert from "node:assert/strict";
import { test } from "node:test";

import { Decoder, hear } from "../src/hearing/decoder.js";
import { makeChance, normal } from "./chance.js";
import { join, playMarker, powerOf, RATE_HZ, scale, silence, synthesize } from "./synthesis.js";

const FRAME = "XRC1:brd_Abc-defGHI_01234";
const OTHER = "XRC1:brd_zyxwvutsrqponmlk";
const sound = synthesize(FRAME);
const groups = sound.subarray(16 * 1024);
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

test("bytes whose tones are missing are restored from the others", () => {
  const groupAt = (group) => (16 + 3 * group) * 1024;
  const cut = (groupCount) => sound.slice().fill(0, groupAt(4), groupAt(4 + groupCount));
  assert.deepEqual(textsOf(hear(cut(3), RATE_HZ)), [FRAME], "nine bytes");
  assert.deepEqual(textsOf(hear(cut(5), RATE_HZ)), [], "fifteen bytes, more than the others determine");
});

test("a frame is heard whose beginning or end is missing", () => {
  const missing = (fromS, toS) => join(silence(0.2), sound.slice(fromS * RATE_HZ, toS * RATE_HZ), silence(0.5));
  const lengthS = sound.length / RATE_HZ;
  assert.deepEqual(textsOf(hear(missing(0.3, lengthS), RATE_HZ)), [FRAME], "most of the first marker");
  assert.deepEqual(textsOf(hear(missing(0.42, lengthS), RATE_HZ)), [FRAME], "the marker and a known group");
  assert.deepEqual(textsOf(hear(missing(0, lengthS - 0.15), RATE_HZ)), [FRAME], "some check bytes");
});

test("the rest of a frame is heard by its end, although its beginning was interrupted just before", () => {
  for (const breakS of [0.2, 0.5]) {
    const whole = join(synthesize(FRAME, 9), playMarker(16 * 1024, 1, 1));
    const cut = Math.round(0.3 * whole.length);
    const parts = join(silence(0.3), whole.subarray(0, cut), silence(breakS), whole.subarray(cut), silence(0.6));
    assert.deepEqual(textsOf(hear(parts, RATE_HZ)), [FRAME], `${breakS}`);
  }
});

test("a frame whose check bytes are lost in noise is not read as another one", () => {
  const end = (16 + 3 * 9) * 1024 + 300;
  // With the first seed, one error corrected beside eight erased bytes gave another token.
  for (const seed of [91, 1, 2]) {
    const chance = makeChance(seed);
    const length = sound.length + RATE_HZ / 4;
    const cut = Float32Array.from({ length }, (_, at) => (at < end ? sound[at] : 0.3 * normal(chance)));
    const others = textsOf(hear(cut, RATE_HZ)).filter((text) => text !== FRAME);
    assert.deepEqual(others, [], `${seed}`);
  }
});

test("a frame is heard in noise that hides its strongest tones", () => {
  const chance = makeChance(15);
  const deviation = Math.sqrt(powerOf(groups) / 10 ** -1.53);
  let heardCount = 0;
  for (let round = 0; round < 6; round += 1) {
    const noisy = join(silence(0.3), sound, silence(0.3)).map((sample) => sample + deviation * normal(chance));
    const heard = textsOf(hear(noisy, RATE_HZ));
    assert.deepEqual(
      heard.filter((text) => text !== FRAME),
      [],
    );
    heardCount += heard.length;
  }
  assert.ok(heardCount >= 5, `${heardCount} of 6`);
});

test("a frame is heard from a player whose clock is half a per cent off", () => {
  for (const speed of [0.995, 1.005]) {
    const played = synthesize(FRAME, 3, speed);
    assert.deepEqual(textsOf(hear(join(silence(0.2), played, silence(0.2)), RATE_HZ)), [FRAME], `${speed}`);
  }
});

test("a frame is heard while its listener begins to walk, from 0 to 1.4 m/s within half a second", () => {
  const chance = makeChance(1);
  const deviation = Math.sqrt(powerOf(sound));
  for (const change of [0.0041, -0.0041]) {
    const walking = synthesize(FRAME, 3, 1, (group) => 1 + change * Math.min(1, Math.max(0, (group - 4) / 8)));
    const noisy = join(silence(0.2), walking, silence(0.2)).map((sample) => sample + deviation * normal(chance));
    assert.deepEqual(textsOf(hear(noisy, RATE_HZ)), [FRAME], `${change}`);
  }
});

test("a frame is heard beside a steady tone that is louder", () => {
  for (const hz of [15_625, 15_734, 17_400, 19_000]) {
    const level = 10 ** 0.5 * Math.sqrt(2 * powerOf(sound));
    const whistle = join(silence(0.2), sound, silence(0.2)).map(
      (sample, at) => sample + level * Math.sin((2 * Math.PI * hz * at) / RATE_HZ),
    );
    assert.deepEqual(textsOf(hear(whistle, RATE_HZ)), [FRAME], `${hz} Hz`);
  }
});

test("of two frames at once, the stronger is heard", () => {
  const other = scale(synthesize(OTHER), 0.7);
  for (const lateS of [0.1, 0.5, 0.9]) {
    const both = join(sound, silence(1)).map((sample, at) => sample + (other[at - lateS * RATE_HZ] ?? 0));
    assert.ok(textsOf(hear(both, RATE_HZ)).includes(FRAME), `${lateS} s`);
  }
});

test("every Code in a long row of mixed speeds is heard", () => {
  const texts = Array.from({ length: 30 }, (_, number) => `XRC1:brd_${String(number).padStart(16, "0")}`);
  const decoder = new Decoder(RATE_HZ);
  const heard = texts.flatMap((text, at) => [
    ...decoder.feed(synthesize(text, [3, 6, 9, 3, 6, 3][at % 6])),
    ...decoder.feed(silence([0, 0.05, 0.5, 0][at % 4])),
  ]);
  assert.deepEqual(textsOf([...heard, ...decoder.finish()]).sort(), texts);
});

test("two repetitions are heard together where neither is alone", () => {
  const chance = makeChance(8);
  const deviation = Math.sqrt(powerOf(groups) / 10 ** -1.86);
  const add = (samples) => samples.map((sample) => sample + deviation * normal(chance));
  const once = join(silence(0.2), sound, silence(0.4));
  let [aloneCount, togetherCount] = [0, 0];
  for (let round = 0; round < 2; round += 1) {
    const [first, second, third] = [add(once), add(once), add(once)];
    for (const each of [first, second, third]) aloneCount += hear(each, RATE_HZ).length;
    togetherCount += hear(join(first, second, third), RATE_HZ).length;
  }
  assert.ok(togetherCount === 2 && aloneCount < 4, `${togetherCount} of 2, alone ${aloneCount} of 6`);
});

test("repetitions with a stated period are heard together where none begins clearly", () => {
  const chance = makeChance(5);
  const deviation = Math.sqrt(powerOf(groups) / 10 ** -2.04);
  const once = join(sound, silence(2.5)).subarray(0, 2.5 * RATE_HZ);
  const noisy = join(once, once, once, once, silence(0.3)).map((sample) => sample + deviation * normal(chance));
  const hearWith = (periodS) => {
    const decoder = new Decoder(RATE_HZ, Infinity, periodS);
    return textsOf([...decoder.feed(noisy), ...decoder.finish()]);
  };
  assert.deepEqual(hearWith(0), []);
  assert.deepEqual(hearWith(2.5), [FRAME]);
  for (const repeatAfterS of [-1, NaN]) assert.throws(() => new Decoder(RATE_HZ, repeatAfterS), RangeError);
  for (const periodS of [0.9, 61, -1, NaN]) assert.throws(() => new Decoder(RATE_HZ, Infinity, periodS), RangeError);
});

test("a sound that looks like a beginning all the time is read a bounded number of times", () => {
  const prefix = synthesize(FRAME).subarray(16 * 1024, 28 * 1024);
  for (const piece of [playMarker(), prefix]) {
    const decoder = new Decoder(RATE_HZ);
    let [pieceCount, waitingMax] = [0, 0];
    const work = decoder._work.bind(decoder);
    decoder._work = (end) => {
      const worked = work(end);
      pieceCount += worked ? 1 : 0;
      waitingMax = Math.max(waitingMax, decoder._waiting.length);
      return worked;
    };
    for (let at = 0; at < 16; at += 1) assert.deepEqual(decoder.feed(piece), []);
    const seconds = (16 * piece.length) / RATE_HZ;
    assert.ok(pieceCount > 10, `${pieceCount} pieces show that it was read`);
    assert.ok(pieceCount <= 188 * seconds, `${pieceCount} pieces in ${seconds} s`);
    assert.ok(waitingMax <= 96, `${waitingMax} waiting`);
    const heard = [...decoder.feed(join(silence(1), sound, silence(2))), ...decoder.finish()];
    assert.deepEqual(textsOf(heard), [FRAME], "what follows it is heard");
  }
});

test("a clear frame after others that cannot be read is read before them, and what left the band is forgotten", () => {
  // What begins like a frame and ends like none: its other groups are those of different frames.
  const mixed = sound.slice();
  for (let group = 4; group < 13; group += 1) {
    const [from, to] = [group, group + 1].map((each) => (16 + 3 * each) * 1024);
    mixed.set(synthesize(`XRC1:brd_${"AbCdEfGhI"[group - 4].repeat(16)}`).subarray(from, to), from);
  }
  const decoder = new Decoder(RATE_HZ);
  assert.deepEqual(decoder.feed(join(mixed, mixed, mixed, mixed)), []);
  assert.deepEqual(textsOf(decoder.feed(join(sound, silence(4)))), [FRAME]);
  assert.ok(decoder._waiting.length > 0, "the others wait still");
  // A reading that takes as long as the band is kept.
  decoder._reading = { steps: { next: () => ({ done: false }) } };
  decoder.feed(silence(11));
  decoder._reading = null;
  decoder.feed(silence(0.02));
  assert.deepEqual([decoder._waiting, decoder._reading], [[], null]);
});

test("half a minute of sound takes no more memory than its first seconds", () => {
  const decoder = new Decoder(RATE_HZ);
  const piece = join(sound, silence(0.3));
  const measure = () => {
    for (let at = 0; at < 8; at += 1) decoder.feed(piece);
    return JSON.stringify(decoder, (_, value) => (ArrayBuffer.isView(value) ? value.length : value)).length;
  };
  const first = measure();
  assert.ok(Math.abs(measure() - first) < 0.2 * first + 2000, "nothing grows with the stream");
});

test("a frame is heard in its place after six hours, and six years, of sound", () => {
  // That is too long for a test, so the positions begin there: a multiple of every hop, and of a column.
  const [fresh, ...late] = [0, 10 ** 9, 10 ** 13].map((gone) => {
    const decoder = new Decoder(RATE_HZ);
    const first = Math.floor(gone / 8 / 192) * 192;
    Object.assign(decoder._band, { end: first, _before: 8 * first });
    decoder._columns._start = first;
    decoder._powerSums._columnCount = first / 32;
    for (const search of decoder._searches) search._row = first / search._grid.hop;
    const heard = textsOf([...decoder.feed(join(silence(0.2), sound)), ...decoder.finish()]);
    return [heard, decoder._found[0].start - first];
  });
  assert.deepEqual(fresh[0], [FRAME]);
  for (const each of late) assert.deepEqual(each, fresh);
});

test("a sample that is no number or far too large deafens nothing, and rates that carry no frame are refused", () => {
  for (const spoilt of [NaN, Infinity, -Infinity, 1e30, -3.4e38]) {
    assert.deepEqual(textsOf(hear(join([spoilt], silence(0.2), sound), RATE_HZ)), [FRAME], `${spoilt}`);
  }
  const samples = new Float32Array(RATE_HZ).fill(NaN, 0, 1000).fill(Infinity, 1000, 2000);
  assert.deepEqual(hear(samples, RATE_HZ), []);
  for (const rateHz of [32_000, 39_999, 0, NaN]) assert.throws(() => new Decoder(rateHz), RangeError);
});

test("no hostile sound is heard as a Code, and none deafens for what follows", () => {
  const count = 3 * RATE_HZ;
  const make = (sample) => Float32Array.from({ length: count }, (_, at) => sample(at));
  const sounds = {
    silence: make(() => 0),
    "direct current": make(() => 0.9),
    clicks: make((at) => (at % 4800 === 0 ? 1 : 0)),
    "level jumps": make((at) => (Math.floor(at / 4800) % 2 ? 1 : 1e-4) * Math.sin(at * at)),
    "square wave": make((at) => Math.sign(Math.sin((2 * Math.PI * 16_000 * at) / RATE_HZ))),
    "the quietest numbers": make(() => 1e-38),
  };
  for (const [name, hostile] of Object.entries(sounds)) {
    assert.deepEqual(hear(hostile, RATE_HZ), [], name);
    assert.deepEqual(textsOf(hear(join(hostile, silence(0.2), sound), RATE_HZ)), [FRAME], `after ${name}`);
  }
});

test("a sound beyond full scale is heard as it is, as a file of floats may be", () => {
  assert.deepEqual(textsOf(hear(join(silence(0.2), scale(sound, 40), silence(0.2)), RATE_HZ)), [FRAME]);
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
  assert.equal(decoder._reported._times.size, 4096);
  assert.equal(decoder.feed([]).length, 4097);
  for (const number of [0, 2, 4096]) report(number);
  assert.equal(decoder.feed([]).length, 0, "they are remembered");
  report(1);
  assert.equal(decoder.feed([]).length, 1, "it was forgotten");
});

test("the sums stay small, so a quiet frame is heard after hours of loud sound", () => {
  const decoder = new Decoder(RATE_HZ);
  const sumsMax = () => Math.max(...decoder._powerSums._sums.map((sums) => Math.max(...sums)));
  const loud = playMarker(11 * RATE_HZ);
  decoder.feed(loud);
  const after11s = sumsMax();
  decoder.feed(loud);
  decoder.feed(loud);
  assert.ok(sumsMax() < 1.5 * after11s, `${sumsMax()} after 33 s, ${after11s} after 11 s`);
  assert.deepEqual(textsOf(decoder.feed(join(silence(12), scale(sound, 1e-8), silence(0.2)))), [FRAME]);
});
