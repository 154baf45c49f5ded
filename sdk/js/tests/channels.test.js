import assert from "node:assert/strict";
import { test } from "node:test";

import { ChannelDecoder } from "../src/hearing/channels.js";
import { Decoder } from "../src/hearing/decoder.js";
import { join, RATE_HZ, scale, silence, synthesize } from "./synthesis.js";

const FRAME = "XRC1:brd_Abc-defGHI_01234";
const OTHER = "XRC1:brd_zyxwvutsrqponmlk";
const sound = join(silence(0.1), synthesize(FRAME), silence(0.3));
const add = (samples, others, factor = 1) => samples.map((sample, at) => sample + factor * (others[at] ?? 0));

/** Return the texts of the frames that are heard in channels, in pieces of a tenth of a second. */
function hear(channels, { times = 1, repeatAfterS } = {}) {
  const decoder = new ChannelDecoder(RATE_HZ, repeatAfterS);
  const frames = [];
  for (let time = 0; time < times; time += 1) {
    for (let at = 0; at < channels[0].length; at += 4800) {
      frames.push(...decoder.feed(channels.map((samples) => samples.subarray(at, at + 4800))));
    }
  }
  return [...frames, ...[...decoder.finishing()].flat()].map((frame) => frame.text);
}

/** Return noise whose amplitude is many times that of a frame, the same each time. */
function makeNoise() {
  let state = 1;
  return sound.map(() => ((state = (state * 48_271) % 2_147_483_647) / 2_147_483_647 - 0.5) * 0.8);
}

test("a frame is heard once in channels that are alike, inverted, or of which one is silent or loud", () => {
  const [noise, inverted] = [makeNoise(), scale(sound, -1)];
  const cases = {
    one: [sound],
    alike: [sound, sound.slice()],
    inverted: [sound, inverted],
    silent: [silence(sound.length / RATE_HZ), sound],
    "loud noise beside it": [noise, sound],
    "six channels": [noise, noise, sound, noise, noise, noise],
    "only in the mean": [add(sound, noise), add(sound, noise, -1)],
  };
  for (const [name, channels] of Object.entries(cases)) assert.deepEqual(hear(channels), [FRAME], name);
});

test("different frames in different channels are all heard", () => {
  const other = join(silence(0.1), synthesize(OTHER), silence(0.3));
  assert.deepEqual(hear([sound, other]).toSorted(), [FRAME, OTHER].toSorted());
});

test("channels that begin to differ are decoded from before that, with no piece that takes long", (context) => {
  const pieces = [];
  const { feed } = Decoder.prototype;
  context.mock.method(Decoder.prototype, "feed", function (samples) {
    pieces.push(samples.length);
    return feed.call(this, samples);
  });
  const decoder = new ChannelDecoder(RATE_HZ);
  const other = add(
    sound,
    sound.map((_, at) => (at < 0.6 * RATE_HZ ? 0 : -2 * sound[at])),
  );
  const spoilt = new Float32Array(128).fill(NaN);
  decoder.feed([spoilt, spoilt.slice()]);
  const [frames, piecesMost, alike] = [[], [], pieces.splice(0)];
  for (let at = 0; at < sound.length; at += 128) {
    frames.push(...decoder.feed([sound, other].map((samples) => samples.subarray(at, at + 128))));
    piecesMost.push(pieces.splice(0).length);
  }
  assert.deepEqual([alike, Math.max(...piecesMost), piecesMost.at(-1)], [[128], 9, 3]);
  assert.deepEqual(
    [...frames, ...[...decoder.finishing()].flat()].map(({ text }) => text),
    [FRAME],
  );
  // What has yet to be decoded at the end of the stream is decoded then.
  const short = new ChannelDecoder(RATE_HZ);
  for (let at = 0; at < 20; at += 1) short.feed([new Float32Array(128), new Float32Array(128).fill(at < 19 ? 0 : 1)]);
  pieces.splice(0);
  assert.deepEqual([...short.finishing()].flat(), []);
  const tail = 0.6 * RATE_HZ;
  assert.deepEqual(pieces, [tail, ...Array(16).fill(128), tail, ...Array(16).fill(128), tail]);
});

test("a repeated frame is reported once, or again after the stated time, though several channels hear it", () => {
  const channels = [sound, scale(sound, -0.5)];
  assert.deepEqual(hear(channels, { times: 3 }), [FRAME]);
  assert.deepEqual(hear(channels, { times: 3, repeatAfterS: 1 }), [FRAME, FRAME, FRAME]);
  const noise = makeNoise();
  const inMean = [add(sound, noise, 10), add(sound, noise, -10)];
  const inEach = [sound, scale(sound, -1)];
  const inTurns = [0, 1].map((at) => join(inMean[at], inEach[at], inEach[at]));
  assert.deepEqual(hear(inTurns, { repeatAfterS: 2.5 }), [FRAME, FRAME], "the mean heard it first");
});

test("floats beyond full scale are not clipped, even those that are whole numbers of 32 bits", () => {
  const hum = sound.map((_, at) => 30 * Math.sin((2 * Math.PI * 300 * at) / RATE_HZ));
  assert.deepEqual(hear([add(hum, sound, 100)]), [FRAME]);
  assert.deepEqual(hear([scale(add(hum, sound, 100), 2 ** 31 / 100)]), [FRAME]);
});

test("samples that are no numbers or far too large deafen nothing, however many there are", () => {
  for (const spoilt of [NaN, Infinity, -Infinity, 1e30, 2e5]) {
    assert.deepEqual(hear([join([spoilt], sound), join([0], sound)]), [FRAME], `${spoilt}`);
  }
  for (const spoilt of [Infinity, 3e38]) {
    const sprinkled = sound.map((sample, at) => (at % 400 === 0 ? spoilt : sample));
    assert.deepEqual(hear([sprinkled]), [FRAME], `many of ${spoilt}`);
  }
});
