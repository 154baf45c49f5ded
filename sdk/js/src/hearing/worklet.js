/** Decodes what an audio graph plays, on its own thread. Loaded by `listening.js`. */

import { Decoder } from "./decoder.js";

class Hearing extends AudioWorkletProcessor {
  /** @param {{processorOptions: {repeatAfterS?: number}}} options */
  constructor({ processorOptions }) {
    super();
    this._decoder = new Decoder(sampleRate, processorOptions.repeatAfterS);
  }

  /**
   * Take 128 samples, or nothing while no source plays.
   *
   * @param {Float32Array[][]} inputs
   */
  process([[samples]]) {
    if (samples) this._decoder.feed(samples).forEach((frame) => this.port.postMessage(frame));
    return true;
  }
}

registerProcessor("soundmark-hearing", Hearing);
