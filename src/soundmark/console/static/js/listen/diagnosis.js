// Why a recording holds no Code, as far as its sound tells.

import { Fourier } from "/static/receiver/hearing/fourier.js";

const RATE_HZ = 48_000;
const [BAND_FROM_HZ, BAND_TO_HZ] = [15_000, 19_500];
const [BELOW_FROM_HZ, BELOW_TO_HZ] = [4_000, 10_000];
// The limits of `examine`: sdk/python/src/soundmark_sdk/findings.py.
const AIRTIME_MIN_S = 1.5;
const SILENT_DB = -90;
const QUIET_DB = -50;
const BAND_EMPTY_DB = -95;
const CUT_DB = 35;
// What exceeds this is no sound for the decoder either, like what is not a number.
const SAMPLE_MAX = 2 ** 32;
const WINDOW = 4096;
// A recording of ten minutes is judged by as much sound as one of 25 seconds.
const WINDOWS_MAX = 300;

/** @typedef {[name: string, values: import("./words.js").Values]} Finding */

/**
 * Return what was found in a file in which no Code was heard, the most important first.
 *
 * @param {File} file that the browser can play
 * @returns {Promise<Finding[]>}
 */
export async function examine(file) {
  const sound = await new OfflineAudioContext(1, 1, RATE_HZ).decodeAudioData(await file.arrayBuffer());
  const channels = Array.from({ length: sound.numberOfChannels }, (_, channel) =>
    sound.getChannelData(channel).map((sample) => (Math.abs(sample) <= SAMPLE_MAX ? sample : 0)),
  );
  return explain({ durationS: sound.duration, peakDb: toDb(findPeak(channels) ** 2), ...measureBands(channels) });
}

/**
 * Return the findings of measurements; no sentence claims more than was measured.
 *
 * @param {object} measured levels in dB of full scale
 * @param {number} measured.durationS
 * @param {number} measured.peakDb
 * @param {number} measured.bandDb of the band from 15 to 19.5 kHz together
 * @param {number} measured.usualBandDb of the median bin in it, which a lone tone or the edge of a filter does not change
 * @param {number} measured.usualBelowDb of the median bin from 4 to 10 kHz
 * @returns {Finding[]}
 */
export function explain({ durationS, peakDb, bandDb, usualBandDb, usualBelowDb }) {
  if (peakDb < SILENT_DB) return [["silent", {}]];
  /** @type {Finding[]} */
  const findings = [];
  if (durationS < AIRTIME_MIN_S) findings.push(["too_short", { duration: Math.round(durationS * 100) / 100 }]);
  if (peakDb < QUIET_DB) findings.push(["quiet", { peak: Math.round(peakDb) }]);
  const fall = usualBelowDb - usualBandDb;
  if (fall > CUT_DB) return [...findings, ["cut_off", { fall: Math.min(Math.round(fall), 120) }]];
  return [...findings, bandDb < BAND_EMPTY_DB ? ["band_empty", {}] : ["no_frame", { level: Math.round(bandDb) }]];
}

/** @param {Float32Array[]} channels */
function findPeak(channels) {
  let peak = 0;
  for (const samples of channels) for (const sample of samples) peak = Math.max(peak, Math.abs(sample));
  return peak;
}

/** @param {Float32Array[]} channels */
function measureBands(channels) {
  const powers = measurePowers(channels);
  const [band, below] = [select(powers, BAND_FROM_HZ, BAND_TO_HZ), select(powers, BELOW_FROM_HZ, BELOW_TO_HZ)];
  const bandDb = toDb(band.reduce((all, one) => all + one, 0));
  return { bandDb, usualBandDb: toDb(median(band)), usualBelowDb: toDb(median(below)) };
}

/**
 * Return the power of each bin, of the loudest channel in it, on average over windows that lie all over the recording.
 *
 * @param {Float32Array[]} channels
 */
function measurePowers(channels) {
  const fourier = new Fourier(WINDOW);
  const hann = Float32Array.from({ length: WINDOW }, (_, at) => 0.5 - 0.5 * Math.cos((2 * Math.PI * at) / WINDOW));
  const powers = new Float64Array(WINDOW / 2);
  for (const samples of channels) {
    const count = Math.min(WINDOWS_MAX, Math.max(1, Math.floor(samples.length / WINDOW)));
    const step = count === 1 ? 0 : Math.floor((samples.length - WINDOW) / (count - 1));
    const found = new Float64Array(WINDOW / 2);
    for (let number = 0; number < count; number += 1) {
      const real = hann.map((weight, at) => weight * (samples[number * step + at] ?? 0));
      const imaginary = new Float32Array(WINDOW);
      fourier.transform(real, imaginary);
      for (let bin = 0; bin < found.length; bin += 1) {
        const place = fourier.placeOf(bin);
        // A sine at full scale has a power of 1 half; the window keeps three eighths of it.
        found[bin] += (2 * (real[place] ** 2 + imaginary[place] ** 2)) / (count * WINDOW ** 2 * 0.375);
      }
    }
    for (let bin = 0; bin < found.length; bin += 1) powers[bin] = Math.max(powers[bin], found[bin]);
  }
  return powers;
}

/**
 * @param {Float64Array} powers
 * @param {number} fromHz
 * @param {number} toHz
 */
function select(powers, fromHz, toHz) {
  const hzPerBin = RATE_HZ / WINDOW;
  return powers.slice(Math.ceil(fromHz / hzPerBin), Math.floor(toHz / hzPerBin));
}

/** @param {Float64Array} powers */
function median(powers) {
  return powers.toSorted()[powers.length >> 1];
}

/** @param {number} power */
function toDb(power) {
  return power > 0 ? 10 * Math.log10(power) : -Infinity;
}
