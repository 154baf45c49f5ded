import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { hearFile, listen } from "../src/hearing/listening.js";
import { join, silence, synthesize } from "./synthesis.js";

/** What a browser offers for listening, as far as `listen` uses it; `audio` remembers what was made of it. */
let audio;

class AudioContext extends EventTarget {
  constructor({ sampleRate }) {
    super();
    Object.assign(this, { sampleRate: sampleRate ?? 48_000, state: "suspended", closedCount: 0 });
    this.audioWorklet = { addModule: async (url) => audio.addModule(url) };
    audio.context = this;
  }

  createMediaStreamSource() {
    audio.contexts.push(this);
    if (audio.refusedHz.includes(this.sampleRate)) throw new DOMException("", "NotSupportedError");
    return { connect: (next) => next };
  }

  async resume() {
    audio.resumedCount += 1;
    if (audio.startResuming) await audio.startResuming();
    if (audio.isResumable) this.change("running");
  }

  change(state) {
    this.state = state;
    this.dispatchEvent(new Event("statechange"));
  }

  async close() {
    this.closedCount += 1;
    // As in a browser, it is closed a little later, and only once.
    if (this.closedCount > 1) throw new DOMException("", "InvalidStateError");
    await null;
    this.state = "closed";
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
    Object.assign(audio, { name, options, port: this.port, node: this });
  }
}

function makeStream(settings = {}) {
  const track = Object.assign(new EventTarget(), {
    readyState: "live",
    muted: false,
    getSettings: () => settings,
    stop: () => (track.readyState = "ended"),
  });
  return { track, getAudioTracks: () => [track], getTracks: () => [track] };
}

beforeEach(() => {
  audio = { addModule: async () => {}, asked: [], stream: makeStream(), contexts: [], refusedHz: [] };
  Object.assign(audio, { resumedCount: 0, isResumable: true });
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
  assert.deepEqual(audio.options.processorOptions, { repeatAfterS: 5, periodS: undefined });
  assert.deepEqual([audio.options.channelCount, audio.options.channelCountMode], [2, "clamped-max"]);
  audio.port.onmessage({ data: { token: "brd_Abc-defGHI_01234" } });
  assert.deepEqual(heard, [{ token: "brd_Abc-defGHI_01234" }]);
});

test("times that a decoder refuses are refused before the microphone is asked for", async () => {
  for (const times of [{ periodS: 0.5 }, { periodS: NaN }, { repeatAfterS: NaN }, { repeatAfterS: -1 }]) {
    await assert.rejects(
      listen(() => {}, times),
      RangeError,
      JSON.stringify(times),
    );
  }
  assert.deepEqual(audio.asked, []);
});

test("a decoder that fails switches the microphone off, and the page is told", async () => {
  const states = [];
  await listen(() => {}, { onState: (state) => states.push(state) });
  audio.node.onprocessorerror();
  await new Promise(setImmediate);
  assert.deepEqual([states, audio.stream.track.readyState, audio.context.state], [["interrupted"], "ended", "closed"]);
});

test("another stream takes the place of the microphone, which is then not asked for", async () => {
  const stream = makeStream({ sampleRate: 44_100 });
  const { track } = await listen(() => {}, { stream });
  assert.equal(track, stream.track);
  assert.deepEqual([audio.asked, audio.context.sampleRate], [[], 44_100]);
});

test("stopping switches every track of a stream off, and so does a stream without sound, which is refused", async () => {
  for (const hasSound of [true, false]) {
    const [stream, camera] = [makeStream(), makeStream().track];
    Object.assign(stream, { getTracks: () => [stream.track, camera] });
    if (!hasSound) Object.assign(stream, { getAudioTracks: () => [] });
    const begun = listen(() => {}, { stream });
    if (hasSound) await (await begun).stop();
    else await assert.rejects(begun, TypeError);
    assert.equal(camera.readyState, "ended");
  }
});

test("stopping switches the microphone off and closes the audio context, once", async () => {
  const { stop } = await listen(() => {});
  assert.equal(audio.context.state, "running");
  await Promise.all([stop(), stop()]);
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

test("a stream that is joined to no other rate is joined to its own, which the browser does not tell", async () => {
  audio.refusedHz = [48_000, 96_000];
  await listen(() => {});
  assert.deepEqual([audio.context.sampleRate, audio.contexts[0].state], [44_100, "closed"]);
  audio.refusedHz = [48_000, 44_100, 96_000];
  const isUnsupported = (error) => error.name === "NotSupportedError";
  await assert.rejects(
    listen(() => {}),
    isUnsupported,
  );
  assert.ok(audio.contexts.slice(3).every((each) => each.state === "closed"));
  assert.equal(audio.stream.track.readyState, "ended");
});

test("sound that the browser stops is told of, and asked to go on when it is suspended", async () => {
  const states = [];
  const { stop } = await listen(() => {}, { onState: (state) => states.push(state) });
  audio.isResumable = false;
  audio.context.change("interrupted");
  assert.deepEqual([states, audio.resumedCount], [["interrupted"], 1], "an interruption ends by itself");
  audio.context.change("suspended");
  assert.deepEqual([states, audio.resumedCount], [["interrupted"], 2]);
  audio.isResumable = true;
  audio.context.change("suspended");
  assert.deepEqual([states, audio.context.state], [["interrupted", "listening"], "running"]);
  audio.stream.track.muted = true;
  audio.stream.track.dispatchEvent(new Event("mute"));
  audio.stream.track.muted = false;
  audio.stream.track.dispatchEvent(new Event("unmute"));
  assert.deepEqual(states.slice(2), ["interrupted", "listening"]);
  // As when a microphone is unplugged.
  audio.stream.track.readyState = "ended";
  audio.stream.track.dispatchEvent(new Event("ended"));
  assert.deepEqual(states.slice(4), ["interrupted"]);
  await stop();
  audio.context.change("suspended");
  assert.equal(states.length, 5, "what was stopped is not interrupted");
});

test("sound that the browser does not start yet, such as during a call, is interrupted and not an error", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const refuse = () => Promise.reject(new DOMException("", "InvalidStateError"));
  for (const startResuming of [() => new Promise(() => {}), refuse]) {
    const states = [];
    Object.assign(audio, { startResuming, stream: makeStream() });
    const begun = listen(() => {}, { onState: (state) => states.push(state) });
    // Everything before it has been awaited.
    await new Promise(setImmediate);
    context.mock.timers.tick(1000);
    const { stop } = await begun;
    assert.deepEqual([states, audio.stream.track.readyState], [["interrupted"], "live"]);
    audio.context.change("running");
    assert.deepEqual(states, ["interrupted", "listening"]);
    await stop();
  }
});

test("a file is heard in pieces, and what is left at its end too, so a page does other work meanwhile", async (context) => {
  const text = "XRC1:brd_Abc-defGHI_01234";
  const channels = [synthesize(text), silence(synthesize(text).length / 48_000)];
  const decodeAudioData = async () => ({
    length: channels[0].length,
    numberOfChannels: 2,
    getChannelData: (channel) => channels[channel],
  });
  globalThis.OfflineAudioContext = class {
    decodeAudioData = decodeAudioData;
  };
  const { mock } = context.mock.method(MessagePort.prototype, "postMessage");
  const frames = await hearFile(new Blob([]));
  delete globalThis.OfflineAudioContext;
  assert.deepEqual(
    frames.map((frame) => frame.text),
    [text],
  );
  const pieceCount = Math.ceil(channels[0].length / 4800);
  assert.ok(mock.callCount() > pieceCount + 20, `${mock.callCount()} pauses, ${pieceCount} pieces of the file`);
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
  const text = "XRC1:brd_Abc-defGHI_01234";
  const sound = join(synthesize(text), silence(0.2));
  const hearTwice = (repeatAfterS) => {
    const processor = new Hearing({ processorOptions: { repeatAfterS } });
    assert.equal(processor.process([[]]), true);
    for (const samples of [sound, sound]) {
      for (let at = 0; at < samples.length; at += 128) {
        const block = samples.subarray(at, at + 128);
        assert.equal(processor.process([[block, block.map((sample) => -sample)]]), true);
      }
    }
    return posted.splice(0);
  };
  assert.equal(audio.name, "soundmark-hearing");
  assert.deepEqual(hearTwice(undefined), [text]);
  assert.deepEqual(hearTwice(1), [text, text]);
});
