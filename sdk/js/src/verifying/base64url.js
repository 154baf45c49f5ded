/** Base64, and base64url without padding (RFC 4648, sections 4 and 5), each in its one canonical spelling. */

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
  const padding = "=".repeat(-text.length & 3);
  const bytes = /[+/=]/.test(text) ? null : decodeBase64(text.replace(/-/g, "+").replace(/_/g, "/") + padding);
  return bytes ?? refuse("A base64url text is malformed.");
}

/**
 * Return the bytes of padded base64; null for any other text.
 *
 * @param {string} text
 */
export function decodeBase64(text) {
  if (text.length % 4 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return null;
  const binary = atob(text);
  return btoa(binary) === text ? Uint8Array.from(binary, (each) => each.charCodeAt(0)) : null;
}
