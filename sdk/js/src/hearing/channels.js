/** Frames in several channels at once: in each, and in their mean, in which a frame may appear or cancel out. */

import { Decoder } from "./decoder.js";
import { Reported } from "./reported.js";

/** Longer than any frame. */
const KEPT_S = 4;
/** Pieces that are decoded as one arrives, until none is left. All at once they would keep an audio thread too long. */
const PIECES_AT_ONCE = 4;

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
    // What a channel has yet to decode begins with these pieces.
    this._makeChannel = (/** @type {Float32Array[]} */ pieces) => ({
      decoder: new Decoder(rateHz, 0, periodS),
      pieces,
    });
    this._mean = this._makeChannel([]);
    /** @type {{decoder: Decoder, pieces: Float32Array[]}[]} each channel, once they differ */
    this._channels = [];
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
    const frames = this._mean.decoder.feed(channels.length === 1 ? channels[0] : computeMean(channels));
    if (
      this._channels.length > 0 ||
      channels.slice(1).some((each) => each.some((sample, at) => !Object.is(sample, channels[0][at])))
    )
      frames.push(...this._feedEach(channels));
    else this._keep(channels[0]);
    return this._report(frames);
  }

  /** Yield the frames that the end of the stream completes, piece by piece, to let other work in. */
  *finishing() {
    for (const { decoder, pieces } of [this._mean, ...this._channels]) {
      for (const each of pieces.splice(0)) yield this._report(decoder.feed(each));
      for (const frames of decoder.finishing()) yield this._report(frames);
    }
  }

  /**
   * Decode each channel. Frames that differ begin alike, so what they have in common is heard first.
   *
   * @param {Float32Array[]} channels
   */
  _feedEach(channels) {
    const frames = channels.flatMap((samples, at) => {
      const { decoder, pieces } = (this._channels[at] ??= this._makeChannel(this._common.map((each) => each.samples)));
      pieces.push(samples.slice());
      return pieces.splice(0, PIECES_AT_ONCE).flatMap((each) => decoder.feed(each));
    });
    this._common = [];
    return frames;
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
