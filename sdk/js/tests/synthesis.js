// Makes the sound of a frame, as ggwave does: a marker, and then groups of six tones for three bytes each.
import { correct } from "../src/hearing/reed_solomon.js";

export const RATE_HZ = 48_000;
const FRAME_SAMPLES = 1024;
const MARKER_FRAMES = 16;
// The length, with check bytes of its own, goes before the payload; a receiver of frames of one length ignores it.
const LENGTH = [25, 0, 0];
const CHECK_COUNT = 10;
const LEVEL = 1 / 20;

/** Return the sound of a text of 25 characters, with `framesPerGroup` of 9, 6 or 3 in protocols 3, 4 and 5. */
export function synthesize(text, framesPerGroup = 3) {
  const bytes = [...LENGTH, ...addCheckBytes(Uint8Array.from(Buffer.from(text)))];
  const pieces = [playMarker()];
  for (let at = 0; at < bytes.length; at += 3) {
    const nibbles = [0, 1, 2].flatMap((index) => [(bytes[at + index] ?? 0) & 15, (bytes[at + index] ?? 0) >> 4]);
    pieces.push(
      play(
        nibbles.map((nibble, place) => 16 * place + nibble),
        framesPerGroup * FRAME_SAMPLES,
      ),
    );
  }
  return join(...pieces);
}

/** Return the marker that begins a frame, as long as it is or longer. */
export function playMarker(samples = MARKER_FRAMES * FRAME_SAMPLES) {
  return play(
    Array.from({ length: 16 }, (_, pair) => 2 * pair + (pair % 2)),
    samples,
  );
}

export function silence(seconds) {
  return new Float32Array(seconds * RATE_HZ);
}

export function join(...pieces) {
  return Float32Array.from(pieces.flatMap((piece) => [...piece]));
}

export function scale(samples, factor) {
  return samples.map((sample) => factor * sample);
}

function play(tones, length) {
  const turns = tones.map((tone) => (2 * Math.PI * (15_000 + 46.875 * tone)) / RATE_HZ);
  return Float32Array.from({ length }, (_, at) => LEVEL * turns.reduce((sum, turn) => sum + Math.sin(turn * at), 0));
}

/** As many erased bytes as there are check bytes are restored exactly, so a decoder is an encoder. */
function addCheckBytes(payload) {
  const codeword = new Uint8Array(payload.length + CHECK_COUNT);
  codeword.set(payload);
  return correct(
    codeword,
    CHECK_COUNT,
    Array.from({ length: CHECK_COUNT }, (_, index) => payload.length + index),
  );
}
