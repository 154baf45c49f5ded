import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { listen } from "../src/hearing/listening.js";

/** What a browser offers for listening, as far as `listen` uses it; `audio` remembers what was made of it. */
let audio;

class AudioContext {
  constructor({ sampleRate }) {
    Object.assign(this, { sampleRate: sampleRate ?? 48_000, state: "suspended", closedCount: 0 });
    this.audioWorklet = { addModule: async (url) => audio.addModule(url) };
    audio.context = this;
  }

  createMediaStreamSource() {
    return { connect: (next) => next };
  }

  async resume() {
    this.state = "running";
  }

  async close() {
    this.state = "closed";
    this.closedCount += 1;
  }
}

class AnalyserNode {
  connect(next) {
    audio.analysed = next;
  }
}

class AudioWorkletNode {
  constructor(_, name, options) {
    this.port = {};
    Object.assign(audio, { name, options, port: this.port });
  }
}

function makeStream(settings = {}) {
  const track = { readyState: "live", getSettings: () => settings, stop: () => (track.readyState = "ended") };
  return { track, getAudioTracks: () => [track] };
}

beforeEach(() => {
  audio = { addModule: async () => {}, asked: [], stream: makeStream() };
  Object.assign(globalThis, { AudioContext, AnalyserNode, AudioWorkletNode });
  navigator.mediaDevices = {
    getUserMedia: async (asked) => {
      audio.asked.push(asked);
      return audio.stream;
    },
  };
});

afterEach(() => {
  for (const name of ["AudioContext", "AnalyserNode", "AudioWorkletNode"]) delete globalThis[name];
  delete navigator.mediaDevices;
});

test("the microphone is asked for sound as it is, and a frame of the worklet is reported", async () => {
  const heard = [];
  const { track } = await listen((frame) => heard.push(frame), { repeatAfterS: 5 });
  assert.equal(track, audio.stream.track);
  assert.deepEqual(audio.asked, [
    { audio: { echoCancellation: false, autoGainControl: false, noiseSuppression: false } },
  ]);
  assert.equal(audio.name, "soundmark-hearing");
  assert.deepEqual(audio.options.processorOptions, { repeatAfterS: 5 });
  assert.deepEqual([audio.options.channelCount, audio.options.channelCountMode], [1, "explicit"]);
  audio.port.onmessage({ data: { token: "brd_Abc-defGHI_01234" } });
  assert.deepEqual(heard, [{ token: "brd_Abc-defGHI_01234" }]);
});

test("another stream takes the place of the microphone, which is then not asked for", async () => {
  const stream = makeStream({ sampleRate: 44_100 });
  const { track } = await listen(() => {}, { stream });
  assert.equal(track, stream.track);
  assert.deepEqual([audio.asked, audio.context.sampleRate], [[], 44_100]);
});

test("stopping switches the microphone off and closes the audio context, once", async () => {
  const { stop } = await listen(() => {});
  assert.equal(audio.context.state, "running");
  await stop();
  await stop();
  assert.equal(audio.stream.track.readyState, "ended");
  assert.deepEqual([audio.context.state, audio.context.closedCount], ["closed", 1]);
});

test("whatever keeps a page from hearing switches the microphone off and closes the audio context", async () => {
  const isAbort = (error) => error.name === "AbortError";
  audio.addModule = () => Promise.reject(new DOMException("", "AbortError"));
  await assert.rejects(
    listen(() => {}),
    isAbort,
  );
  assert.deepEqual([audio.stream.track.readyState, audio.context.state], ["ended", "closed"]);
  audio = { ...audio, addModule: assert.fail, stream: makeStream({ sampleRate: 44_099 }) };
  await assert.rejects(
    listen(() => {}),
    RangeError,
  );
  assert.deepEqual([audio.stream.track.readyState, audio.context.state], ["ended", "closed"]);
});

test("a browser that makes no audio context still switches the microphone off", async () => {
  globalThis.AudioContext = class {
    constructor() {
      throw new DOMException("", "NotSupportedError");
    }
  };
  await assert.rejects(
    listen(() => {}),
    (error) => error.name === "NotSupportedError",
  );
  assert.equal(audio.stream.track.readyState, "ended");
});

test("the worklet reports each frame that it hears, and listens on while no source plays", async () => {
  const posted = [];
  let Hearing;
  Object.assign(globalThis, {
    sampleRate: 48_000,
    AudioWorkletProcessor: class {
      port = { postMessage: (frame) => posted.push(frame.text) };
    },
    registerProcessor: (name, processor) => ([audio.name, Hearing] = [name, processor]),
  });
  await import("../src/hearing/worklet.js");
  const { join, silence, synthesize } = await import("./synthesis.js");
  const text = "XRC1:brd_Abc-defGHI_01234";
  const sound = join(synthesize(text), silence(0.2));
  const hearTwice = (repeatAfterS) => {
    const processor = new Hearing({ processorOptions: { repeatAfterS } });
    assert.equal(processor.process([[]]), true);
    for (const samples of [sound, sound]) {
      for (let at = 0; at < samples.length; at += 128)
        assert.equal(processor.process([[samples.subarray(at, at + 128)]]), true);
    }
    return posted.splice(0);
  };
  assert.equal(audio.name, "soundmark-hearing");
  assert.deepEqual(hearTwice(undefined), [text]);
  assert.deepEqual(hearTwice(1), [text, text]);
});
