// Makes the sound of a frame, as ggwave does: a marker, and then groups of six tones for three bytes each.
import { findNibbles } from "../src/hearing/frame_code.js";

export const RATE_HZ = 48_000;
const FRAME_SAMPLES = 1024;
const MARKER_FRAMES = 16;
const LEVEL = 1 / 20;

/**
 * Return the sound of a text of 25 characters, with `framesPerGroup` of 9, 6 or 3 in protocols 3, 4 and 5, from a player
 * that is `speed` times as fast, and `speedUp(group)` times that in each group.
 */
export function synthesize(text, framesPerGroup = 3, speed = 1, speedUp = () => 1) {
  const nibbles = findNibbles(text);
  const pieces = [playMarker(MARKER_FRAMES * FRAME_SAMPLES, speed)];
  for (let at = 0; at < nibbles.length; at += 6) {
    const tones = [...nibbles.subarray(at, at + 6)].map((nibble, place) => 16 * place + nibble);
    pieces.push(play(tones, framesPerGroup * FRAME_SAMPLES, speed * speedUp(at / 6)));
  }
  return join(...pieces);
}

/** Return the marker that begins a frame, or with `isEnd` of 1 the one that ends it, as long as it is or longer. */
export function playMarker(samples = MARKER_FRAMES * FRAME_SAMPLES, speed = 1, isEnd = 0) {
  return play(
    Array.from({ length: 16 }, (_, pair) => 2 * pair + ((pair + isEnd) % 2)),
    samples,
    speed,
  );
}

export function silence(seconds) {
  return new Float32Array(seconds * RATE_HZ);
}

export function join(...pieces) {
  return Float32Array.from(pieces.flatMap((piece) => [...piece]));
}

export function powerOf(samples) {
  return samples.reduce((sum, sample) => sum + sample ** 2, 0) / samples.length;
}

export function scale(samples, factor) {
  return samples.map((sample) => factor * sample);
}

function play(tones, length, speed) {
  const turns = tones.map((tone) => (2 * Math.PI * speed * (15_000 + 46.875 * tone)) / RATE_HZ);
  return Float32Array.from(
    { length: Math.round(length / speed) },
    (_, at) => LEVEL * turns.reduce((sum, turn) => sum + Math.sin(turn * at), 0),
  );
}
