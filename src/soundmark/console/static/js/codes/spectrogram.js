// A picture of a Code's sound: the power of the 96 tones of the broadcast band over time.

import { Baseband, PIECE } from "/static/receiver/hearing/baseband.js";
import { TONE_COUNT } from "/static/receiver/hearing/frame_code.js";
import { Columns } from "/static/receiver/hearing/spectrum.js";

import { getData, getElement } from "../elements.js";

const FULL_SCALE = 32768;
const FLOOR_DB = -60;
const HEADER_BYTES_MIN = 44;
const TICK_S = 0.5;

/** @typedef {{rateHz: number, samples: Float32Array}} Sound */

/**
 * Return the samples and the rate of a WAV with one channel of 16 bits, as Core renders it.
 *
 * @param {ArrayBuffer} buffer
 * @returns {Sound}
 */
function readWav(buffer) {
  const view = new DataView(buffer);
  /** @type {(at: number) => string} */
  const tag = (at) => String.fromCharCode(...new Uint8Array(buffer, at, 4));
  if (buffer.byteLength < HEADER_BYTES_MIN || tag(0) !== "RIFF" || tag(8) !== "WAVE") throw new TypeError("no WAV");
  let rateHz = 0;
  for (let at = 12; at + 8 <= buffer.byteLength; ) {
    const length = view.getUint32(at + 4, true);
    if (tag(at) === "fmt ") {
      if (view.getUint16(at + 8, true) !== 1 || view.getUint16(at + 10, true) !== 1) throw new TypeError("another WAV");
      rateHz = view.getUint32(at + 12, true);
    }
    if (tag(at) === "data") {
      const count = Math.min(length, buffer.byteLength - at - 8) >> 1;
      return {
        rateHz,
        samples: Float32Array.from(
          { length: count },
          (_, index) => view.getInt16(at + 8 + 2 * index, true) / FULL_SCALE,
        ),
      };
    }
    at += 8 + length + (length % 2);
  }
  throw new TypeError("no samples");
}

/**
 * Return the columns of powers of a sound.
 *
 * @param {Sound} sound
 */
function analyse({ rateHz, samples }) {
  /** @type {Float32Array[]} */
  const columns = [];
  // The band keeps more than the sound of a Code.
  const band = new Baseband(rateHz);
  for (let at = 0; at < samples.length; at += PIECE) band.feed(samples.subarray(at, at + PIECE));
  new Columns(band, (powers) => columns.push(powers)).advance();
  return columns;
}

/**
 * Return a colour of a style sheet as red, green and blue.
 *
 * @param {string} colour as computed, such as `rgb(8, 71, 78)`
 */
function readColour(colour) {
  return (colour.match(/[\d.]+/g) ?? []).slice(0, 3).map(Number);
}

/**
 * Draw columns from the lowest tone at the bottom to the highest at the top. The louder one is, the nearer it is to the
 * canvas's text colour, and silence has the colour of its ground.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {Float32Array[]} columns
 */
function draw(canvas, columns) {
  const { color, backgroundColor } = getComputedStyle(canvas);
  const [ground, loud] = [readColour(backgroundColor), readColour(color)];
  const loudest = Math.max(...columns.map((powers) => Math.max(...powers)));
  const picture = new ImageData(columns.length, TONE_COUNT);
  columns.forEach((powers, x) => {
    powers.forEach((power, tone) => {
      const level = 1 - Math.max(FLOOR_DB, 10 * Math.log10(power / loudest + Number.MIN_VALUE)) / FLOOR_DB;
      const at = 4 * ((TONE_COUNT - 1 - tone) * columns.length + x);
      picture.data.set([...ground.map((value, part) => value + (loud[part] - value) * level), 255], at);
    });
  });
  canvas.width = columns.length;
  canvas.height = TONE_COUNT;
  /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")).putImageData(picture, 0, 0);
}

/**
 * Write the seconds below the picture.
 *
 * @param {HTMLElement} axis
 * @param {number} durationS
 * @param {(seconds: number) => string} write
 */
function drawTimes(axis, durationS, write) {
  for (let atS = 0; atS <= durationS; atS += TICK_S) {
    const tick = document.createElement("li");
    tick.textContent = `${write(atS)} s`;
    tick.style.insetInlineStart = `${(100 * atS) / durationS}%`;
    axis.append(tick);
  }
}

/** @param {HTMLElement} figure */
async function show(figure) {
  const caption = getElement(HTMLElement, "figcaption", figure);
  const canvas = getElement(HTMLCanvasElement, "canvas", figure);
  /** @type {(seconds: number) => string} */
  const write = (seconds) => seconds.toLocaleString(document.documentElement.lang, { maximumFractionDigits: 2 });
  try {
    const response = await fetch(getData(figure, "sound"));
    if (!response.ok) throw new TypeError(`${response.status}`);
    const wav = await response.arrayBuffer();
    const sound = readWav(wav);
    // Safari plays no address that does not answer in ranges, as this one does not.
    getElement(HTMLAudioElement, "audio").src = URL.createObjectURL(new Blob([wav], { type: "audio/wav" }));
    const columns = analyse(sound);
    draw(canvas, columns);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(canvas, columns));
    const durationS = sound.samples.length / sound.rateHz;
    drawTimes(getElement(HTMLElement, ".times", figure), durationS, write);
    caption.textContent = getData(figure, "caption").replace("{seconds}", write(durationS));
    canvas.setAttribute("aria-label", caption.textContent);
  } catch {
    getElement(HTMLElement, ".plot", figure).hidden = true;
    caption.textContent = getData(figure, "failed");
  }
}

show(getElement(HTMLElement, "#spectrogram"));
