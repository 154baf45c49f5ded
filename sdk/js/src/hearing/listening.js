/** Hear frames through a microphone, or in a file of any format that the browser plays. */

import { Decoder } from "./decoder.js";

const FILE_RATE_HZ = 48_000;
const RATE_MIN_HZ = 44_100;
// The processing that makes voices clear removes frames.
const UNTREATED = { echoCancellation: false, autoGainControl: false, noiseSuppression: false };

/** @import { Frame } from "./decoder.js" */

/**
 * @typedef {object} Listening
 * @property {AnalyserNode} analyser of the live spectrum
 * @property {MediaStreamTrack} track of the microphone
 * @property {() => Promise<void>} stop ends it, and switches the microphone off
 */

/**
 * Listen to a microphone, after asking the person, and report each frame once, however often it is repeated.
 *
 * @param {(frame: Frame) => void} onFrame
 * @param {object} [options]
 * @param {MediaStream} [options.stream] of another source; it ends with the listening
 * @param {number} [options.repeatAfterS] report a frame again that is heard this many seconds after it was reported
 * @returns {Promise<Listening>}
 * @throws {DOMException} without permission or a microphone
 * @throws {RangeError} for a microphone whose sample rate cannot carry a frame
 */
export async function listen(onFrame, { stream, repeatAfterS } = {}) {
  stream ??= await navigator.mediaDevices.getUserMedia({ audio: UNTREATED });
  const [track] = stream.getAudioTracks();
  /** @type {AudioContext | undefined} */
  let context;
  const stop = async () => {
    track.stop();
    if (context?.state !== "closed") await context?.close();
  };
  try {
    // At the microphone's own rate, so nothing is resampled.
    context = new AudioContext({ sampleRate: track.getSettings().sampleRate });
    if (context.sampleRate < RATE_MIN_HZ) throw new RangeError(`The microphone records at ${context.sampleRate} Hz.`);
    await context.audioWorklet.addModule(new URL("./worklet.js", import.meta.url));
    const analyser = new AnalyserNode(context, { fftSize: 4096, smoothingTimeConstant: 0.5 });
    /** @type {AudioWorkletNodeOptions} */
    const mono = { numberOfOutputs: 0, channelCount: 1, channelCountMode: "explicit" };
    const hearing = new AudioWorkletNode(context, "soundmark-hearing", { ...mono, processorOptions: { repeatAfterS } });
    hearing.port.onmessage = ({ data }) => onFrame(data);
    context.createMediaStreamSource(stream).connect(analyser).connect(hearing);
    await context.resume();
    return { analyser, track, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Return the frames in a file, each once.
 *
 * @param {Blob} file
 * @returns {Promise<Frame[]>}
 * @throws {DOMException} EncodingError, if the browser cannot play it
 */
export async function hearFile(file) {
  const sound = await new OfflineAudioContext(1, 1, FILE_RATE_HZ).decodeAudioData(await file.arrayBuffer());
  /** @type {Map<string, Frame>} */
  const frames = new Map();
  const { port1, port2 } = new MessageChannel();
  for (let channel = 0; channel < sound.numberOfChannels; channel += 1) {
    const decoder = new Decoder(FILE_RATE_HZ);
    const samples = sound.getChannelData(channel);
    for (let at = 0; at < samples.length; at += FILE_RATE_HZ) {
      for (const frame of decoder.feed(samples.subarray(at, at + FILE_RATE_HZ))) frames.set(frame.text, frame);
      // The page stays responsive. A timer would do that too, but in a hidden page it waits for seconds.
      port2.postMessage(null);
      await new Promise((resolve) => (port1.onmessage = resolve));
    }
    for (const frame of decoder.finish()) frames.set(frame.text, frame);
  }
  port1.close();
  return [...frames.values()];
}
