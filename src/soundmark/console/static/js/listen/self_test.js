// Whether this device can hear Codes: what its microphone says of itself, and a tone that it plays to itself.

const TONES_HZ = [15_200, 17_200, 19_300];
// People hear this one. If the microphone does not, the loudspeaker is off, and the others prove nothing.
const REFERENCE_HZ = 2_500;
const TONE_S = 0.5;
const TONE_LEVEL = 0.25;
const RATE_MIN_HZ = 44_100;
const RISE_MIN_DB = 12;
const CUT_DB = 35;
const SILENT_DB = -160;
const TREATMENTS = /** @type {const} */ (["echoCancellation", "autoGainControl", "noiseSuppression"]);

/**
 * @typedef {[name: string, values?: import("./words.js").Values]} Finding
 * @typedef {{verdict: string, findings: Finding[]}} Judgement
 */

/**
 * Test the device that is listening, in some three seconds.
 *
 * @param {import("/static/receiver/hearing/listening.js").Listening} listening
 * @param {AbortSignal} signal ends the test without a verdict, by throwing its reason
 * @returns {Promise<Judgement>}
 */
export async function testDevice({ analyser, track }, signal) {
  const probe = new AnalyserNode(analyser.context, { fftSize: 8192, smoothingTimeConstant: 0 });
  analyser.connect(probe);
  try {
    await wait(TONE_S, signal);
    const quiet = measureLevels(probe);
    const rises = new Map();
    for (const hz of [REFERENCE_HZ, ...TONES_HZ]) rises.set(hz, await measureRise(probe, hz, signal));
    return judge({
      rateHz: analyser.context.sampleRate,
      treatments: TREATMENTS.filter((name) => track.getSettings()[name]),
      ...quiet,
      rises,
    });
  } finally {
    analyser.disconnect(probe);
  }
}

/**
 * Return what the measurements prove, and no more: `hears`, `cannot`, `doubtful` or `undetermined`.
 *
 * @param {object} measured
 * @param {number} measured.rateHz
 * @param {string[]} measured.treatments
 * @param {number} measured.bandDb
 * @param {number} measured.belowDb
 * @param {Map<number, number>} measured.rises by how many dB each tone rose above what was there before it was played
 * @returns {Judgement}
 */
export function judge({ rateHz, treatments, bandDb, belowDb, rises }) {
  /** @type {Finding[]} */
  const findings = [["rate", { rate: rateHz, highest: rateHz / 2 }]];
  if (rateHz < RATE_MIN_HZ) return { verdict: "cannot", findings: [...findings, ["rate_too_low"]] };
  findings.push(treatments.length > 0 ? ["treated", { treatments: treatments.join(", ") }] : ["untreated"]);
  if (!(belowDb > SILENT_DB)) return { verdict: "undetermined", findings: [...findings, ["silent"]] };
  const isCutOff = belowDb - bandDb > CUT_DB;
  findings.push([isCutOff ? "cut_off" : "band", { level: Math.round(bandDb), below: Math.round(belowDb) }]);
  const heardCount = TONES_HZ.filter((hz) => (rises.get(hz) ?? 0) >= RISE_MIN_DB).length;
  findings.push(heardCount > 0 ? ["tone_heard", { count: heardCount, of: TONES_HZ.length }] : ["tone_missed"]);
  if (heardCount === TONES_HZ.length) return { verdict: "hears", findings };
  const isReferenceHeard = (rises.get(REFERENCE_HZ) ?? 0) >= RISE_MIN_DB;
  if (!isReferenceHeard) findings.push(["reference_missed"]);
  return { verdict: isCutOff || isReferenceHeard ? "doubtful" : "undetermined", findings };
}

/** @param {AnalyserNode} probe */
function measureLevels(probe) {
  const levels = read(probe);
  return { bandDb: median(levels, probe, 15_000, 19_500), belowDb: median(levels, probe, 4_000, 10_000) };
}

/**
 * @param {AnalyserNode} probe
 * @param {number} hz
 * @param {AbortSignal} signal
 */
async function measureRise(probe, hz, signal) {
  const before = highestAround(probe, hz);
  const { context } = probe;
  const oscillator = new OscillatorNode(context, { frequency: hz });
  const gain = new GainNode(context, { gain: 0 });
  // Fades in and out, because a sudden start is a click at every frequency.
  gain.gain.setTargetAtTime(TONE_LEVEL, context.currentTime, 0.03);
  oscillator.connect(gain).connect(context.destination);
  oscillator.start();
  await wait(TONE_S, signal);
  const during = highestAround(probe, hz);
  gain.gain.setTargetAtTime(0, context.currentTime, 0.02);
  oscillator.stop(context.currentTime + 0.15);
  await wait(0.3, signal);
  return Math.max(during, SILENT_DB) - Math.max(before, SILENT_DB);
}

/** @param {AnalyserNode} probe */
function read(probe) {
  const levels = new Float32Array(probe.frequencyBinCount);
  probe.getFloatFrequencyData(levels);
  return levels;
}

/**
 * @param {Float32Array} levels
 * @param {AnalyserNode} probe
 * @param {number} fromHz
 * @param {number} toHz
 */
function select(levels, probe, fromHz, toHz) {
  const hzPerBin = probe.context.sampleRate / probe.fftSize;
  return levels.subarray(Math.floor(fromHz / hzPerBin), Math.ceil(toHz / hzPerBin));
}

/**
 * @param {Float32Array} levels
 * @param {AnalyserNode} probe
 * @param {number} fromHz
 * @param {number} toHz
 */
function median(levels, probe, fromHz, toHz) {
  const sorted = select(levels, probe, fromHz, toHz).toSorted();
  return sorted[Math.floor(sorted.length / 2)] ?? -Infinity;
}

/**
 * @param {AnalyserNode} probe
 * @param {number} hz
 */
function highestAround(probe, hz) {
  return Math.max(...select(read(probe), probe, hz - 60, hz + 60));
}

/**
 * @param {number} seconds
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
function wait(seconds, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}
