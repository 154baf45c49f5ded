/** Decodes what an audio graph plays, on its own thread. Loaded by `listening.js`. */

import { ChannelDecoder } from "./channels.js";

class Hearing extends AudioWorkletProcessor {
  /** @param {{processorOptions: {repeatAfterS?: number, periodS?: number}}} options */
  constructor({ processorOptions: { repeatAfterS, periodS } }) {
    super();
    this._decoder = new ChannelDecoder(sampleRate, repeatAfterS, periodS);
  }

  /**
   * Take 128 samples of each channel, or nothing while no source plays.
   *
   * @param {Float32Array[][]} inputs
   */
  process([channels]) {
    if (channels.length > 0) this._decoder.feed(channels).forEach((frame) => this.port.postMessage(frame));
    return true;
  }
}

registerProcessor("soundmark-hearing", Hearing);
