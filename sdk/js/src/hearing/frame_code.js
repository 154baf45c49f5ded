/** How a frame is sent: its bytes, their check bytes, and the tones of each group. See docs/sound-decoder.md. */

export const PREFIX = "XRC1:brd_";
export const TOKEN_BYTES = 16;
export const CHECK_BYTES = 10;
export const UNKNOWN_BYTES = TOKEN_BYTES + CHECK_BYTES;
export const PAYLOAD_BYTES = PREFIX.length + TOKEN_BYTES;
export const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/** A group of six tones carries three bytes, the low half of each first: 38 bytes, and one that is 0. */
export const GROUPS = 13;
/** Half bytes of a group; each has a band of its own. */
export const NIBBLES = 6;
/** Tones of a band. */
export const TONES = 16;
export const TONE_COUNT = NIBBLES * TONES;
export const KNOWN_GROUPS = 4;
export const FIRST_TONE_HZ = 15_000;
export const TONE_STEP_HZ = 46.875;
/** The blocks of 1,024 samples, at 48 kHz, of one group, by protocol, and of a marker. */
export const GROUP_BLOCKS = new Map([
  [3, 9],
  [4, 6],
  [5, 3],
]);
export const MARKER_BLOCKS = 16;
export const MARKER_PAIRS = 16;

/** The powers of 2 in GF(256) with the polynomial 0x11d, twice, and their logarithms. */
export const EXP = new Uint8Array(512);
export const LOG = new Uint8Array(256);
for (let power = 0, value = 1; power < 255; power += 1) {
  EXP[power] = value;
  EXP[power + 255] = value;
  LOG[value] = power;
  value <<= 1;
  if (value > 255) value ^= 0x11d;
}

/** @type {(a: number, b: number) => number} */
export const multiply = (a, b) => (a === 0 || b === 0 ? 0 : EXP[LOG[a] + LOG[b]]);
/** @type {(a: number, b: number) => number} */
export const divide = (a, b) => (a === 0 ? 0 : EXP[LOG[a] + 255 - LOG[b]]);

/**
 * Return the check bytes of some bytes: the rest of their polynomial modulo one with the roots 2^0, 2^1, …
 *
 * @param {ArrayLike<number>} data
 * @param {number} count
 */
export function findCheckBytes(data, count) {
  let generator = [1];
  for (let root = 0; root < count; root += 1) {
    generator = [...generator, 0].map((value, at) => value ^ (at > 0 ? multiply(EXP[root], generator[at - 1]) : 0));
  }
  const rest = new Uint8Array(count);
  for (let at = 0; at < data.length; at += 1) {
    const factor = data[at] ^ rest[0];
    for (let place = 0; place < count; place += 1) {
      rest[place] = (place + 1 < count ? rest[place + 1] : 0) ^ multiply(factor, generator[place + 1]);
    }
  }
  return rest;
}

/** @param {string} text */
export const bytesOf = (text) => Uint8Array.from(text, (letter) => letter.charCodeAt(0));

/**
 * Return the half byte that each tone of a frame carries, group by group.
 *
 * @param {string} text of 25 characters
 */
export function findNibbles(text) {
  const [length, payload] = [[text.length], bytesOf(text)];
  const coded = [...length, ...findCheckBytes(length, 2), ...payload, ...findCheckBytes(payload, CHECK_BYTES), 0];
  return Uint8Array.from(coded.flatMap((byte) => [byte & 15, byte >> 4]));
}

/**
 * Return the unknown bytes of a frame: those of its token, and the check bytes.
 *
 * @param {Uint8Array} token its 16 letters
 */
function findUnknownBytes(token) {
  return Uint8Array.from([...token, ...findCheckBytes([...bytesOf(PREFIX), ...token], CHECK_BYTES)]);
}

/** The unknown bytes of a frame whose token is zeros. */
export const CODE_BASE = findUnknownBytes(new Uint8Array(TOKEN_BYTES));
/** What a 1 in each place of the token adds to the unknown bytes. */
export const CODE_ROWS = Array.from({ length: TOKEN_BYTES }, (_, place) =>
  findUnknownBytes(new Uint8Array(TOKEN_BYTES).fill(1, place, place + 1)).map((byte, at) => byte ^ CODE_BASE[at]),
);
/** What every frame begins with. */
export const KNOWN_NIBBLES = findNibbles(PREFIX + "A".repeat(TOKEN_BYTES)).slice(0, KNOWN_GROUPS * NIBBLES);

/**
 * Return what each of some bytes of a frame adds to the others, of which it determines each.
 *
 * @param {ArrayLike<number>} believed the places of 16 of the 26 unknown bytes, any
 * @param {ArrayLike<number>} rest the other places
 * @returns {Uint8Array[]} for a 1 in each believed place, what it adds in each of the rest
 */
export function findEffects(believed, rest) {
  // Gauss and Jordan: believed places become those of the token.
  const rows = CODE_ROWS.map((row) =>
    Uint8Array.from([...Array.from(believed, (place) => row[place]), ...Array.from(rest, (place) => row[place])]),
  );
  for (let column = 0; column < TOKEN_BYTES; column += 1) {
    const pivot = rows.findIndex((row, at) => at >= column && row[column] !== 0);
    [rows[column], rows[pivot]] = [rows[pivot], rows[column]];
    const leader = rows[column];
    const scale = leader[column];
    for (let at = column; at < leader.length; at += 1) leader[at] = divide(leader[at], scale);
    for (const row of rows) {
      const factor = row[column];
      if (row === leader || factor === 0) continue;
      for (let at = column; at < row.length; at += 1) row[at] ^= multiply(factor, leader[at]);
    }
  }
  return rows.map((row) => row.subarray(TOKEN_BYTES));
}
