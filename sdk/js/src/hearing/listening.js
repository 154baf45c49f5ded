/** Hear frames through a microphone, or in a file of any format that the browser plays. */

import { ChannelDecoder } from "./channels.js";
import { requireTimes } from "./decoder.js";

const FILE_RATE_HZ = 48_000;
/** Samples that are decoded at a time: a tenth of a second. */
const FILE_PIECE = 4800;
const RATE_MIN_HZ = 44_100;
const STARTING_MS = 1000;
const COMMON_RATES_HZ = [48_000, 44_100, 96_000];
// The processing that makes voices clear removes frames.
const UNTREATED = { echoCancellation: false, autoGainControl: false, noiseSuppression: false };

/** @import { Frame } from "./decoder.js" */

/**
 * @typedef {object} Listening
 * @property {AnalyserNode} analyser of the live spectrum
 * @property {MediaStreamTrack} track of the microphone
 * @property {() => Promise<void>} stop ends it, and every track of the stream: it switches the microphone off
 */

/**
 * Listen to a microphone, after asking the person, and report each frame once, however often it is repeated.
 *
 * It listens to each of two channels and to their mean. If the browser stops the sound, such as for a call, it goes on
 * as soon as the browser allows that.
 *
 * @param {(frame: Frame) => void} onFrame
 * @param {object} [options]
 * @param {MediaStream} [options.stream] of another source; it ends with the listening
 * @param {number} [options.repeatAfterS] report a frame again that is heard this many seconds after it was reported
 * @param {number} [options.periodS] as of `Decoder`: repetitions of which each is too weak are heard together
 * @param {(state: "listening" | "interrupted") => void} [options.onState] called when the browser stops the sound, and
 *   when it goes on; if the decoder fails, with "interrupted", and the listening ends
 * @returns {Promise<Listening>}
 * @throws {DOMException} without permission or a microphone; NotSupportedError if the browser joins the microphone's
 *   rate to no rate that carries a frame
 * @throws {TypeError} for a stream without an audio track
 * @throws {RangeError} for a microphone whose sample rate cannot carry a frame; before it is asked for, for times that
 *   `Decoder` refuses
 */
export async function listen(onFrame, { stream, repeatAfterS, periodS, onState = () => {} } = {}) {
  requireTimes(repeatAfterS, periodS);
  stream ??= await navigator.mediaDevices.getUserMedia({ audio: UNTREATED });
  const [track] = stream.getAudioTracks();
  /** @type {AudioContext | undefined} */
  let context;
  /** @type {Promise<void> | undefined} */
  let closed;
  const following = new AbortController();
  const stop = async () => {
    following.abort();
    stream.getTracks().forEach((each) => each.stop());
    await (closed ??= context?.close());
  };
  try {
    const source = joinContext(stream, track.getSettings().sampleRate);
    context = source.context;
    if (context.sampleRate < RATE_MIN_HZ) throw new RangeError(`The microphone records at ${context.sampleRate} Hz.`);
    await context.audioWorklet.addModule(new URL("./worklet.js", import.meta.url));
    const analyser = new AnalyserNode(context, { fftSize: 4096, smoothingTimeConstant: 0.5 });
    const hearing = new AudioWorkletNode(context, "soundmark-hearing", {
      numberOfOutputs: 0,
      channelCount: 2,
      channelCountMode: "clamped-max",
      processorOptions: { repeatAfterS, periodS },
    });
    hearing.port.onmessage = ({ data }) => onFrame(data);
    hearing.onprocessorerror = () => {
      stop();
      onState("interrupted");
    };
    source.node.connect(analyser).connect(hearing);
    // During a call, or without a gesture of the person, a browser starts it later: `followState` reports when.
    const started = context.resume().catch(() => {});
    await Promise.race([started, new Promise((resolve) => setTimeout(resolve, STARTING_MS))]);
    followState(context, track, onState, following);
    return { analyser, track, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Return the sound of a stream in a context of its own rate, so nothing is resampled.
 *
 * Firefox does not report the rate, and joins no stream to a context of another one: so the common ones are tried.
 *
 * @param {MediaStream} stream
 * @param {number | undefined} ownHz
 * @returns {{context: AudioContext, node: MediaStreamAudioSourceNode}}
 */
function joinContext(stream, ownHz) {
  let refusal;
  for (const sampleRate of new Set([ownHz, ...COMMON_RATES_HZ])) {
    /** @type {AudioContext | undefined} */
    let context;
    try {
      context = new AudioContext({ sampleRate });
      return { context, node: context.createMediaStreamSource(stream) };
    } catch (error) {
      context?.close();
      if (!(error instanceof DOMException) || error.name !== "NotSupportedError") throw error;
      refusal = error;
    }
  }
  throw refusal;
}

/**
 * Report when the browser stops the sound and when it goes on, and ask it to go on.
 *
 * iOS interrupts a context for a call or a locked screen, and leaves it suspended afterwards.
 *
 * @param {AudioContext} context
 * @param {MediaStreamTrack} track
 * @param {(state: "listening" | "interrupted") => void} onState
 * @param {AbortController} following ends that
 */
function followState(context, track, onState, following) {
  let wasHearing = true;
  const follow = () => {
    const isHearing = context.state === "running" && !track.muted && track.readyState === "live";
    if (isHearing !== wasHearing) onState(isHearing ? "listening" : "interrupted");
    wasHearing = isHearing;
    // Without a gesture of the person a browser may refuse; the next change, or click, asks again.
    if (context.state === "suspended") context.resume().catch(() => {});
  };
  /** @type {[EventTarget | undefined, string[]][]} */
  const followed = [
    [context, ["statechange"]],
    [track, ["mute", "unmute", "ended"]],
    [globalThis.document, ["visibilitychange", "click"]],
  ];
  for (const [target, types] of followed) for (const type of types) target?.addEventListener(type, follow, following);
  follow();
}

/**
 * Return the frames in a file, each once. It listens to each channel and to their mean.
 *
 * @param {Blob} file
 * @returns {Promise<Frame[]>}
 * @throws {DOMException} EncodingError, if the browser cannot play it
 */
export async function hearFile(file) {
  const sound = await new OfflineAudioContext(1, 1, FILE_RATE_HZ).decodeAudioData(await file.arrayBuffer());
  const channels = Array.from({ length: sound.numberOfChannels }, (_, channel) => sound.getChannelData(channel));
  const decoder = new ChannelDecoder(FILE_RATE_HZ);
  const frames = [];
  const { port1, port2 } = new MessageChannel();
  // The page stays responsive. A timer would do that too, but in a hidden page it waits for seconds.
  const pause = () => {
    port2.postMessage(null);
    return new Promise((resolve) => (port1.onmessage = resolve));
  };
  for (let at = 0; at < sound.length; at += FILE_PIECE) {
    frames.push(...decoder.feed(channels.map((samples) => samples.subarray(at, at + FILE_PIECE))));
    await pause();
  }
  for (const heard of decoder.finishing()) {
    frames.push(...heard);
    await pause();
  }
  port1.close();
  return frames;
}
