// The live spectrum: what the microphone hears, with the band of Codes marked.

import { getElement } from "../elements.js";

const [BAND_FROM_HZ, BAND_TO_HZ] = [15_000, 19_500];
const SHOWN_TO_HZ = 22_050;
const BAR_COUNT = 160;
const [FLOOR_DB, CEILING_DB] = [-120, -20];
const LEVEL_EVERY_MS = 1000;
const PAUSE_MS = 100;
const CALM_PAUSE_MS = 500;

export class SpectrumView {
  /** @param {HTMLElement} figure with a canvas and a place for the level */
  constructor(figure) {
    this._figure = figure;
    this._canvas = getElement(HTMLCanvasElement, "canvas", figure);
    this._shownLevel = getElement(HTMLElement, "#level", figure);
    /** @type {AnalyserNode | null} */
    this._analyser = null;
    this._levels = new Float32Array();
    this._calm = matchMedia("(prefers-reduced-motion: reduce)");
    this._saidAtMs = 0;
  }

  /**
   * Follow an analyser until `hide`.
   *
   * @param {AnalyserNode} analyser
   */
  show(analyser) {
    this._analyser = analyser;
    this._levels = new Float32Array(analyser.frequencyBinCount);
    this._figure.hidden = false;
    this._draw(analyser);
  }

  hide() {
    this._analyser = null;
    this._figure.hidden = true;
  }

  /** @param {AnalyserNode} analyser */
  _draw(analyser) {
    // Stop after `hide`, even if `show` was called again since.
    if (this._analyser !== analyser) return;
    this._analyser.getFloatFrequencyData(this._levels);
    this._paint(analyser);
    this._sayLevel(analyser);
    // Not with each frame of the screen: that would cost several times as much as hearing does.
    const pauseMs = this._calm.matches ? CALM_PAUSE_MS : PAUSE_MS;
    setTimeout(() => requestAnimationFrame(() => this._draw(analyser)), pauseMs);
  }

  /** @param {AnalyserNode} analyser */
  _sayLevel(analyser) {
    if (performance.now() - this._saidAtMs < LEVEL_EVERY_MS) return;
    this._saidAtMs = performance.now();
    const level = this._highest(analyser, BAND_FROM_HZ, BAND_TO_HZ);
    this._shownLevel.textContent = Number.isFinite(level) ? `${Math.round(level)} dB` : "–";
  }

  /** @param {AnalyserNode} analyser */
  _paint(analyser) {
    const context = /** @type {CanvasRenderingContext2D} */ (this._canvas.getContext("2d"));
    const style = getComputedStyle(this._canvas);
    const { width, height } = this._canvas;
    context.clearRect(0, 0, width, height);
    for (const isInBand of [false, true]) {
      context.fillStyle = style.getPropertyValue(isInBand ? "--accent" : "--line");
      context.beginPath();
      for (let bar = 0; bar < BAR_COUNT; bar += 1) {
        const [fromHz, toHz] = [(bar * SHOWN_TO_HZ) / BAR_COUNT, ((bar + 1) * SHOWN_TO_HZ) / BAR_COUNT];
        if ((toHz > BAND_FROM_HZ && fromHz < BAND_TO_HZ) !== isInBand) continue;
        const share = (this._highest(analyser, fromHz, toHz) - FLOOR_DB) / (CEILING_DB - FLOOR_DB);
        const barHeight = Math.max(1, Math.min(1, share || 0) * height);
        context.rect((bar * width) / BAR_COUNT, height - barHeight, width / BAR_COUNT - 1, barHeight);
      }
      context.fill();
    }
  }

  /**
   * @param {AnalyserNode} analyser
   * @param {number} fromHz
   * @param {number} toHz
   */
  _highest(analyser, fromHz, toHz) {
    const hzPerBin = analyser.context.sampleRate / analyser.fftSize;
    const bins = this._levels.subarray(Math.floor(fromHz / hzPerBin), Math.ceil(toHz / hzPerBin));
    return bins.reduce((highest, each) => Math.max(highest, each), -Infinity);
  }
}
