/** Frames in several channels at once: in each, and in their mean, in which a frame may appear or cancel out. */

import { Decoder } from "./decoder.js";
import { Reported } from "./reported.js";

/** Longer than any frame. */
const KEPT_S = 4;

/** @import { Frame } from "./decoder.js" */

/** Listens to all channels of a stream and reports each frame once, however often it is repeated, unless told otherwise. */
export class ChannelDecoder {
  /**
   * @param {number} rateHz of the samples, at least 40,000
   * @param {number} [repeatAfterS] report a frame again that is heard this many seconds after it was reported
   * @param {number} [periodS] as of `Decoder`
   * @throws {RangeError} for a lower rate, or another period
   */
  constructor(rateHz, repeatAfterS = Infinity, periodS = 0) {
    this._makeDecoder = () => new Decoder(rateHz, repeatAfterS, periodS);
    this._mean = this._makeDecoder();
    /** @type {Decoder[]} one for each channel, once the channels differ */
    this._decoders = [];
    /** @type {{end: number, samples: Float32Array}[]} what all channels had in common of late */
    this._common = [];
    this._commonMax = KEPT_S * rateHz;
    this._sampleCount = 0;
    this._reported = new Reported(repeatAfterS * rateHz);
  }

  /**
   * Take as many samples of each channel, as `Decoder` does.
   *
   * @param {Float32Array[]} channels one or more
   * @returns {Frame[]} the frames that they complete, except for those reported before
   */
  feed(channels) {
    this._sampleCount += channels[0].length;
    const frames = this._mean.feed(channels.length === 1 ? channels[0] : computeMean(channels));
    if (this._decoders.length > 0 || channels.some((samples) => differs(samples, channels[0])))
      frames.push(...this._feedEach(channels));
    else this._keep(channels[0]);
    return this._report(frames);
  }

  /** Return the frames that the end of the stream completes. */
  finish() {
    return this._report([this._mean, ...this._decoders].flatMap((each) => each.finish()));
  }

  /**
   * Decode each channel. Frames that differ begin alike, so what they have in common is heard first.
   *
   * @param {Float32Array[]} channels
   */
  _feedEach(channels) {
    return channels.flatMap((samples, channel) => {
      const pieces = [samples];
      if (this._decoders[channel] === undefined) {
        this._decoders[channel] = this._makeDecoder();
        pieces.unshift(...this._common.map((each) => each.samples));
      }
      return pieces.flatMap((each) => this._decoders[channel].feed(each));
    });
  }

  /** @param {Float32Array} samples */
  _keep(samples) {
    this._common.push({ end: this._sampleCount, samples: samples.slice() });
    while (this._common[0].end <= this._sampleCount - this._commonMax) this._common.shift();
  }

  /** @param {Frame[]} frames */
  _report(frames) {
    return frames.filter(({ text }) => this._reported.isDue(text, this._sampleCount));
  }
}

/** @param {Float32Array[]} channels */
function computeMean(channels) {
  return channels[0].map((_, at) => channels.reduce((sum, samples) => sum + samples[at], 0) / channels.length);
}

/**
 * @param {Float32Array} samples
 * @param {Float32Array} others
 */
function differs(samples, others) {
  return samples !== others && samples.some((sample, at) => sample !== others[at]);
}
