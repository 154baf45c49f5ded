/**
 * I-JSON (RFC 7493) in, canonical JSON (RFC 8785) out. What two programs could read differently is refused.
 *
 * `JSON.parse` keeps the last of two members of one name and forgets how a number was written, so texts are parsed here.
 */

import { refuse } from "../failures.js";

const DEPTH_MAX = 64;
const EXPONENT_FROM = 1e21;
const MALFORMED = "The JSON is not I-JSON.";
// Matches everywhere: with nothing at the end, or before what begins no token.
const TOKEN =
  /[ \t\n\r]*([{}[\]:,]|true|false|null|"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|)/y;

/** A number that was written with a fraction or an exponent, which is another value than the integer it equals. */
class Written {
  /** @param {number} value */
  constructor(value) {
    this.value = value;
  }
}

/**
 * @typedef {Map<string, Parsed>} Members an object
 * @typedef {null | boolean | number | Written | string | Parsed[] | Members} Parsed
 */

/**
 * Return the value that these bytes encode; a number with a fraction or an exponent stays distinct from an integer.
 *
 * @param {Uint8Array} bytes
 * @returns {Parsed}
 * @throws {ReceiverFailure} unverifiable, for everything that is not I-JSON, for more than 64 levels, and for a string of
 *   megabytes
 */
export function parse(bytes) {
  const parser = new Parser(decodeText(bytes));
  const value = parser.readValue(parser.readToken(), DEPTH_MAX);
  if (parser.readToken() !== "" || parser.at !== parser.text.length) refuse(MALFORMED);
  return value;
}

/**
 * Return the value that these bytes encode, which must be in their canonical form.
 *
 * @param {Uint8Array} bytes
 * @returns {Parsed}
 * @throws {ReceiverFailure} unverifiable
 */
export function parseCanonical(bytes) {
  const value = parse(bytes);
  if (canonicalize(value) !== decodeText(bytes)) refuse("The JSON is not canonical.");
  return value;
}

/**
 * Return the text that these bytes encode in UTF-8, with its byte order mark if it has one.
 *
 * @param {Uint8Array} bytes
 * @throws {ReceiverFailure} unverifiable
 */
export function decodeText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    refuse("The text is not UTF-8.");
  }
}

class Parser {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  /** @returns {string} */
  readToken() {
    TOKEN.lastIndex = this.at;
    try {
      const [, token] = /** @type {RegExpExecArray} */ (TOKEN.exec(this.text));
      this.at = TOKEN.lastIndex;
      return token;
    } catch {
      // An expression needs memory for each letter of a string. Nothing that is signed has one of megabytes.
      refuse("A string in the JSON is too long.");
    }
  }

  /**
   * Return the value that begins with this token, which was read already.
   *
   * @param {string} token
   * @param {number} depth the levels that may follow
   * @returns {Parsed}
   */
  readValue(token, depth) {
    if (token === "{") return this._readObject(depth);
    if (token === "[") return Array.from(this._readItems(depth, "]"), (first) => this.readValue(first, depth - 1));
    if (token[0] === '"') return readString(token);
    if (/[0-9]/.test(token)) return readNumber(token);
    if (token.length < 2) refuse(MALFORMED);
    return JSON.parse(token);
  }

  /** @param {number} depth */
  _readObject(depth) {
    /** @type {Members} */
    const members = new Map();
    for (const token of this._readItems(depth, "}")) {
      const name = token[0] === '"' ? readString(token) : refuse(MALFORMED);
      if (members.has(name)) refuse("The JSON repeats a member name.");
      if (this.readToken() !== ":") refuse(MALFORMED);
      members.set(name, this.readValue(this.readToken(), depth - 1));
    }
    return members;
  }

  /**
   * Yield the first token of each item; the caller reads the rest of it before the next one.
   *
   * @param {number} depth
   * @param {"]" | "}"} end
   */
  *_readItems(depth, end) {
    if (depth < 1) refuse("The JSON is nested too deeply.");
    let token = this.readToken();
    if (token === end) return;
    for (;;) {
      yield token;
      token = this.readToken();
      if (token === end) return;
      if (token !== ",") refuse(MALFORMED);
      // The end of the object or array is no item, so the caller refuses it after a comma.
      token = this.readToken();
    }
  }
}

/** @param {string} literal */
function readString(literal) {
  /** @type {string} */
  const text = JSON.parse(literal);
  if (!text.isWellFormed()) refuse("A string in the JSON holds a lone surrogate.");
  return text;
}

/** @param {string} literal */
function readNumber(literal) {
  const value = Number(literal);
  const isInteger = !/[.eE]/.test(literal);
  const size = Math.abs(value);
  const isExact = size <= Number.MAX_SAFE_INTEGER || (!isInteger && size >= EXPONENT_FROM && size < Infinity);
  if (!isExact) refuse("A number in the JSON is not exact.");
  return isInteger ? value : new Written(value);
}

/**
 * Return the RFC 8785 form of a value that came from `parse`.
 *
 * @param {Parsed | undefined} value undefined for a member that an object lacks
 * @param {number} [depthMax] the levels of objects and arrays that it may have
 * @param {string} [mark] written after each number that had a fraction or an exponent
 * @returns {string}
 * @throws {ReceiverFailure} unverifiable, for more levels
 */
export function canonicalize(value, depthMax = DEPTH_MAX, mark = "") {
  if (value instanceof Written) return `${value.value}${mark}`;
  if (!(value instanceof Object)) return JSON.stringify(value);
  if (depthMax < 1) refuse("The JSON is nested too deeply.");
  /** @type {(each: Parsed | undefined) => string} */
  const write = (each) => canonicalize(each, depthMax - 1, mark);
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  // The default order of strings is that of their UTF-16 code units, as RFC 8785 asks.
  const members = [...value.keys()].sort().map((name) => `${JSON.stringify(name)}:${write(value.get(name))}`);
  return `{${members.join(",")}}`;
}

/**
 * Return whether two values from `parse` are equal with the same types throughout: `1` is neither `1.0` nor `true`.
 *
 * @param {Parsed | undefined} left
 * @param {Parsed | undefined} right
 */
export function areIdentical(left, right) {
  return canonicalize(left, DEPTH_MAX, ".") === canonicalize(right, DEPTH_MAX, ".");
}

/**
 * Return a value from `parse` as plain JavaScript, which no member name can harm.
 *
 * @overload
 * @param {Members} value
 * @returns {Record<string, unknown>}
 *
 * @overload
 * @param {Parsed} value
 * @returns {unknown}
 *
 * @param {Parsed} value
 */
export function toPlain(value) {
  if (value instanceof Written) return value.value;
  if (Array.isArray(value)) return value.map((each) => toPlain(each));
  if (!(value instanceof Map)) return value;
  const plain = Object.create(null);
  for (const [name, each] of value) plain[name] = toPlain(each);
  return plain;
}
