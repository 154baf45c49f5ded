/** Core's published verification keys, as `GET /v1/keys` lists them. */

import { KeyUnknown, refuse } from "../failures.js";
import { decode } from "./base64url.js";
import { readMembers, readShortText, readText, readTime, SIGNATURE } from "./shapes.js";
import { canonicalize, parse } from "./strict_json.js";

/** @import { Members } from "./strict_json.js" */

const KEY_COUNT_MAX = 1000;
const FIXED = { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig" };
// A `next` key verifies too: it may have become `active` since this set was fetched.
/** @type {unknown[]} */
const STATUSES = ["active", "next", "retiring"];
const PERIOD = ["activated_at", "superseded_at"];

/** The keys that were published at one moment. */
export class KeySet {
  /** @param {Map<string, CryptoKey>} keys by key id */
  constructor(keys) {
    this._keys = keys;
  }

  /**
   * Accept only a signature over exactly these bytes by exactly the key `keyId`.
   *
   * @param {string} keyId
   * @param {Uint8Array<ArrayBuffer>} message
   * @param {string} signature in base64url
   * @throws {KeyUnknown} when the set lacks that key
   * @throws {ReceiverFailure} unverifiable, when the signature is wrong or cannot be judged
   */
  async verify(keyId, message, signature) {
    const key = this._keys.get(keyId);
    if (key === undefined) throw new KeyUnknown();
    const isGenuine = await crypto.subtle.verify("Ed25519", key, decode(signature), message).catch(() => false);
    if (!isGenuine) refuse("A signature does not verify.");
  }

  /**
   * Accept only an object that the key it names signed: the canonical form of its members but `signature`.
   *
   * @param {Members} members
   * @throws {KeyUnknown} when the set lacks that key
   * @throws {ReceiverFailure} unverifiable, when the signature is wrong or cannot be judged
   */
  async verifyObject(members) {
    const unsigned = new Map(members);
    unsigned.delete("signature");
    const message = new TextEncoder().encode(canonicalize(unsigned));
    await this.verify(readShortText(members.get("key_id")), message, readText(members.get("signature"), SIGNATURE));
  }
}

/**
 * Return the keys of a JWK Set as Core publishes it. Keys of another type are skipped, as RFC 7517 asks.
 *
 * @param {Uint8Array} body
 * @returns {Promise<KeySet>}
 * @throws {ReceiverFailure} unverifiable
 */
export async function readKeySet(body) {
  return collectKeys(body, STATUSES, []);
}

/**
 * Return the keys of a JWK Set that may hold retired keys, as `GET /v1/keys/history` lists them: packs are verified with
 * these.
 *
 * @param {Uint8Array} body
 * @returns {Promise<KeySet>}
 * @throws {ReceiverFailure} unverifiable
 */
export async function readKeyHistory(body) {
  return collectKeys(body, [...STATUSES, "retired"], PERIOD);
}

/**
 * @param {Uint8Array} body
 * @param {unknown[]} statuses
 * @param {string[]} period the members that a key may have, which say when it was used
 */
async function collectKeys(body, statuses, period) {
  const entries = readMembers(parse(body), ["keys"]).get("keys");
  if (!Array.isArray(entries) || entries.length > KEY_COUNT_MAX) refuse("The published keys are not a list.");
  /** @type {Map<string, CryptoKey>} */
  const keys = new Map();
  for (const entry of entries) {
    if (!(entry instanceof Map) || typeof entry.get("kty") !== "string") refuse("A published key has no type.");
    if (entry.get("kty") !== FIXED.kty) continue;
    const members = readMembers(entry, [...Object.keys(FIXED), "kid", "x", "status"], period);
    if (members.has("activated_at")) readTime(members.get("activated_at"));
    if (members.get("superseded_at") != null) readTime(members.get("superseded_at"));
    const isEd25519 = Object.entries(FIXED).every(([name, value]) => members.get(name) === value);
    if (!isEd25519 || !statuses.includes(members.get("status"))) refuse("A published key is not an Ed25519 key.");
    const keyId = readShortText(members.get("kid"));
    if (keys.has(keyId)) refuse("Two published keys have the same id.");
    keys.set(keyId, await importKey(members.get("x")));
  }
  return new KeySet(keys);
}

/** @param {unknown} point */
async function importKey(point) {
  const raw = typeof point === "string" ? decode(point) : new Uint8Array();
  try {
    // Refuses everything but 32 bytes.
    return await crypto.subtle.importKey("raw", raw, "Ed25519", true, ["verify"]);
  } catch {
    return refuse("A published key is not one that this browser can use.");
  }
}
