/** The commitments in the entries of the transparency log: hashes that tell nothing to people who lack the facts. */

import { refuse } from "../failures.js";
import { decode, encode } from "./base64url.js";
import { readMembers, readText } from "./shapes.js";
import { canonicalize, parse, parseCanonical } from "./strict_json.js";

const TAG = "soundmark/log/v1/";
const DIGEST = /^[A-Za-z0-9_-]{43}$/;
const DIGEST_BYTES = 32;

/**
 * @import { Members, Parsed } from "./strict_json.js"
 * @typedef {"code.issued/code" | "code.issued/answer" | "code.revoked/code" | "key.published/key" |
 *   "key.activated/key" | "key.superseded/key" | "key.retired/key" | "audit.head/head" |
 *   "document.sealed/document"} Commitment the kind of an entry, and its member that is the commitment
 */

/**
 * Return the digest of a JSON text, as an entry of the log has it: 43 characters of base64url.
 *
 * @param {Commitment} commitment
 * @param {Uint8Array} text
 * @returns {Promise<string>}
 * @throws {ReceiverFailure} unverifiable, if the text is not I-JSON
 */
export async function commit(commitment, text) {
  return commitTo(commitment, parse(text));
}

/**
 * @param {Commitment} commitment
 * @param {Parsed} value
 */
export async function commitTo(commitment, value) {
  return hash(`${TAG}${commitment}\0${canonicalize(value)}`);
}

/**
 * Return the SHA-256 of a text's UTF-8, in base64url.
 *
 * @param {string} text
 */
export async function hash(text) {
  return encode(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

/**
 * Accept only the bytes of a closed entry of this kind, whose member is this digest.
 *
 * @param {Uint8Array} bytes
 * @param {Commitment} commitment
 * @param {string} digest
 */
export function checkEntry(bytes, commitment, digest) {
  const [kind, member] = commitment.split("/");
  const digests = kind === "code.issued" ? ["code", "answer"] : [member];
  const named = kind.startsWith("key.") ? ["kid", "x"] : [];
  const entry = readMembers(parseCanonical(bytes), ["v", "kind", ...digests, ...named]);
  if (entry.get("kind") !== kind || entry.get("v") !== 1) refuse("The log has an entry of another kind.");
  for (const name of digests) readDigest(entry.get(name));
  if (entry.get(member) !== digest) refuse("The entry in the log is about something else.");
}

/**
 * Return a SHA-256 in base64url.
 *
 * @param {Parsed | undefined} value
 */
export function readDigest(value) {
  const digest = readText(value, DIGEST);
  if (decode(digest).length !== DIGEST_BYTES) refuse("A digest has another length.");
  return digest;
}
