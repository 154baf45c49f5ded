// The live spectrum: what the microphone hears, with the band of Codes marked.

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
    this._canvas = figure.querySelector("canvas");
    this._shownLevel = figure.querySelector("#level");
    this._analyser = null;
    this._calm = matchMedia("(prefers-reduced-motion: reduce)");
    this._saidAtMs = 0;
  }

  /** Follow an analyser until `hide`. */
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

  _draw(analyser) {
    // Stop after `hide`, even if `show` was called again since.
    if (this._analyser !== analyser) return;
    this._analyser.getFloatFrequencyData(this._levels);
    this._paint();
    this._sayLevel();
    // Not with each frame of the screen: that would cost several times as much as hearing does.
    const pauseMs = this._calm.matches ? CALM_PAUSE_MS : PAUSE_MS;
    setTimeout(() => requestAnimationFrame(() => this._draw(analyser)), pauseMs);
  }

  _sayLevel() {
    if (performance.now() - this._saidAtMs < LEVEL_EVERY_MS) return;
    this._saidAtMs = performance.now();
    const level = this._highest(BAND_FROM_HZ, BAND_TO_HZ);
    this._shownLevel.textContent = Number.isFinite(level) ? `${Math.round(level)} dB` : "–";
  }

  _paint() {
    const [context, style] = [this._canvas.getContext("2d"), getComputedStyle(this._canvas)];
    const { width, height } = this._canvas;
    context.clearRect(0, 0, width, height);
    for (const [color, isInBand] of [
      ["--line", false],
      ["--accent", true],
    ]) {
      context.fillStyle = style.getPropertyValue(color);
      context.beginPath();
      for (let bar = 0; bar < BAR_COUNT; bar += 1) {
        const [fromHz, toHz] = [(bar * SHOWN_TO_HZ) / BAR_COUNT, ((bar + 1) * SHOWN_TO_HZ) / BAR_COUNT];
        if ((toHz > BAND_FROM_HZ && fromHz < BAND_TO_HZ) !== isInBand) continue;
        const share = (this._highest(fromHz, toHz) - FLOOR_DB) / (CEILING_DB - FLOOR_DB);
        const barHeight = Math.max(1, Math.min(1, share || 0) * height);
        context.rect((bar * width) / BAR_COUNT, height - barHeight, width / BAR_COUNT - 1, barHeight);
      }
      context.fill();
    }
  }

  _highest(fromHz, toHz) {
    const hzPerBin = this._analyser.context.sampleRate / this._analyser.fftSize;
    const bins = this._levels.subarray(Math.floor(fromHz / hzPerBin), Math.ceil(toHz / hzPerBin));
    return bins.reduce((highest, each) => Math.max(highest, each), -Infinity);
  }
}
