/**
 * Reed–Solomon decoding over GF(256) with the polynomial 0x11d and the roots 2^0, 2^1, …, as ggwave encodes.
 */

import { divide, EXP, multiply } from "./frame_code.js";

/**
 * Evaluate a polynomial, given from the lowest coefficient.
 *
 * @type {(polynomial: number[], x: number) => number}
 */
const evaluate = (polynomial, x) => polynomial.reduceRight((sum, coefficient) => multiply(sum, x) ^ coefficient, 0);

/**
 * Multiply two polynomials, given from the lowest coefficient.
 *
 * @param {number[]} a
 * @param {number[]} b
 * @returns {number[]}
 */
function multiplyPolynomials(a, b) {
  const product = new Array(a.length + b.length - 1).fill(0);
  a.forEach((left, i) => b.forEach((right, j) => (product[i + j] ^= multiply(left, right))));
  return product;
}

/**
 * Correct a codeword, the data first and then `checkCount` check bytes.
 *
 * @param {Uint8Array} received
 * @param {number} checkCount
 * @param {number[]} [erased] positions whose bytes are not to be believed
 * @returns {Uint8Array | null} the corrected codeword; null if there are too many errors
 */
export function correct(received, checkCount, erased = []) {
  const syndromes = Array.from({ length: checkCount }, (_, root) =>
    received.reduce((sum, byte) => multiply(sum, EXP[root]) ^ byte, 0),
  );
  if (syndromes.every((each) => each === 0)) return received.slice();
  /** @type {(position: number) => number} */
  const locationOf = (position) => EXP[received.length - 1 - position];
  const erasures = erased.reduce((product, each) => multiplyPolynomials(product, [1, locationOf(each)]), [1]);
  const locator = locateErrors(syndromes, erasures, erased.length);
  if (locator === null) return null;
  const positions = [...received.keys()].filter((each) => evaluate(locator, divide(1, locationOf(each))) === 0);
  if (positions.length !== locator.length - 1) return null;
  const evaluator = multiplyPolynomials(syndromes, locator).slice(0, checkCount);
  // The derivative of a polynomial over GF(2^n) has only its odd terms.
  const derivative = locator.map((coefficient, power) => (power % 2 ? coefficient : 0)).slice(1);
  const corrected = received.slice();
  for (const position of positions) {
    const inverse = divide(1, locationOf(position));
    const magnitude = divide(evaluate(evaluator, inverse), evaluate(derivative, inverse));
    corrected[position] ^= multiply(locationOf(position), magnitude);
  }
  return corrected;
}

/**
 * Find the polynomial whose roots are the inverse locations of the errors, by Berlekamp and Massey, beginning with that
 * of the erasures.
 *
 * @param {number[]} syndromes
 * @param {number[]} erasures
 * @param {number} erasureCount
 */
function locateErrors(syndromes, erasures, erasureCount) {
  let locator = erasures;
  let previous = erasures;
  let errorCount = 0;
  for (let step = erasureCount; step < syndromes.length; step += 1) {
    previous = [0, ...previous];
    const discrepancy = locator.reduce(
      (sum, coefficient, power) => sum ^ (power > step ? 0 : multiply(coefficient, syndromes[step - power])),
      0,
    );
    if (discrepancy === 0) continue;
    const next = Array.from(
      { length: Math.max(locator.length, previous.length) },
      (_, power) => (locator[power] ?? 0) ^ multiply(discrepancy, previous[power] ?? 0),
    );
    if (2 * errorCount <= step - erasureCount) {
      previous = locator.map((coefficient) => divide(coefficient, discrepancy));
      errorCount = step + 1 - erasureCount - errorCount;
    }
    locator = next;
  }
  while (locator.length > 1 && locator.at(-1) === 0) locator = locator.slice(0, -1);
  return 2 * errorCount + erasureCount > syndromes.length ? null : locator;
}
