/** Base64url without padding (RFC 4648, section 5), in its one canonical spelling. */

import { refuse } from "../failures.js";

/**
 * @param {Uint8Array | ArrayBuffer} bytes
 * @returns {string}
 */
export function encode(bytes) {
  const binary = Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join("");
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/**
 * Return the bytes of the text that `encode` writes, and of no other one.
 *
 * @param {string} text
 * @throws {ReceiverFailure} unverifiable
 */
export function decode(text) {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) refuse("A base64url text is malformed.");
  const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
  if (encode(bytes) !== text) refuse("A base64url text is not canonical.");
  return bytes;
}
