/**
 * I-JSON (RFC 7493) in, canonical JSON (RFC 8785) out. What two programs could read differently is refused.
 *
 * `JSON.parse` keeps the last of two members of one name and forgets how a number was written, so texts are parsed here.
 */

import { refuse } from "../failures.js";

const DEPTH_MAX = 64;
const EXPONENT_FROM = 1e21;
const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const LITERALS = new Map([
  ["true", true],
  ["false", false],
  ["null", null],
]);

/** A number that was written with a fraction or an exponent, which is another value than the integer it equals. */
class Written {
  constructor(value) {
    this.value = value;
  }
}

/**
 * Return the value that these bytes encode; a number with a fraction or an exponent stays distinct from an integer.
 *
 * @param {Uint8Array} bytes
 * @throws {ReceiverFailure} unverifiable, for everything that is not I-JSON, and for more than 64 levels
 */
export function parse(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    refuse("The JSON is not UTF-8.");
  }
  const parser = new Parser(text);
  const value = parser.readValue(DEPTH_MAX);
  parser.skipSpace();
  if (parser.at !== text.length) refuse("The JSON is not I-JSON.");
  return value;
}

class Parser {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  skipSpace() {
    this._match(SPACE);
  }

  readValue(depth) {
    this.skipSpace();
    const first = this.text[this.at];
    if (first === "{") return this._readObject(depth);
    if (first === "[") return this._readArray(depth);
    if (first === '"') return this._readString();
    for (const [name, value] of LITERALS) {
      if (!this.text.startsWith(name, this.at)) continue;
      this.at += name.length;
      return value;
    }
    return this._readNumber();
  }

  _readObject(depth) {
    const members = new Map();
    this._readItems(depth, "{", "}", () => {
      this.skipSpace();
      const name = this._readString();
      if (members.has(name)) refuse("The JSON repeats a member name.");
      this.skipSpace();
      this._expect(":");
      members.set(name, this.readValue(depth - 1));
    });
    return members;
  }

  _readArray(depth) {
    const items = [];
    this._readItems(depth, "[", "]", () => items.push(this.readValue(depth - 1)));
    return items;
  }

  _readItems(depth, opening, closing, readItem) {
    if (depth < 1) refuse("The JSON is nested too deeply.");
    this._expect(opening);
    this.skipSpace();
    if (this._take(closing)) return;
    do {
      readItem();
      this.skipSpace();
    } while (this._take(","));
    this._expect(closing);
  }

  _readString() {
    const [literal] = this._match(STRING) ?? refuse("The JSON is not I-JSON.");
    const text = JSON.parse(literal);
    if (!text.isWellFormed()) refuse("A string in the JSON holds a lone surrogate.");
    return text;
  }

  _readNumber() {
    const [literal, fraction, exponent] = this._match(NUMBER) ?? refuse("The JSON is not I-JSON.");
    const value = Number(literal);
    const isInteger = fraction === undefined && exponent === undefined;
    checkNumber(value, isInteger);
    return isInteger ? value + 0 : new Written(value);
  }

  _take(character) {
    if (this.text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  _expect(character) {
    if (!this._take(character)) refuse("The JSON is not I-JSON.");
  }

  _match(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text);
    if (found !== null) this.at = pattern.lastIndex;
    return found;
  }
}

function checkNumber(value, isInteger) {
  const isExact = Number.isFinite(value) && (Math.abs(value) <= Number.MAX_SAFE_INTEGER || Math.abs(value) >= EXPONENT_FROM);
  if (!isExact || (isInteger && !Number.isSafeInteger(value))) {
    refuse("A double cannot hold a number in the JSON exactly.");
  }
}

/**
 * Return the RFC 8785 form of a value that came from `parse`.
 *
 * @returns {string}
 */
export function canonicalize(value) {
  if (value instanceof Written) return String(value.value + 0);
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(",")}]`;
  if (value instanceof Map) {
    // The default order of strings is that of their UTF-16 code units, as RFC 8785 asks.
    const members = [...value.keys()].sort().map((name) => `${JSON.stringify(name)}:${canonicalize(value.get(name))}`);
    return `{${members.join(",")}}`;
  }
  return JSON.stringify(value);
}

/** Return whether two values from `parse` are equal with the same types throughout: `1` is neither `1.0` nor `true`. */
export function areIdentical(left, right) {
  if (left instanceof Written && right instanceof Written) return left.value === right.value;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((each, index) => areIdentical(each, right[index]));
  }
  if (left instanceof Map && right instanceof Map) {
    return left.size === right.size && [...left].every(([name, each]) => right.has(name) && areIdentical(each, right.get(name)));
  }
  return left === right;
}

/** Return how many levels of objects and arrays a value from `parse` has. */
export function depthOf(value) {
  const children = value instanceof Map ? [...value.values()] : Array.isArray(value) ? value : null;
  return children === null ? 0 : 1 + Math.max(0, ...children.map(depthOf));
}

/** Return a value from `parse` as plain JavaScript, which no member name can harm. */
export function toPlain(value) {
  if (value instanceof Written) return value.value;
  if (Array.isArray(value)) return value.map(toPlain);
  if (!(value instanceof Map)) return value;
  const plain = Object.create(null);
  for (const [name, each] of value) plain[name] = toPlain(each);
  return plain;
}
