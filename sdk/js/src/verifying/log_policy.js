/** The keys that a receiver trusts for a log, and how many witnesses must have seen the same log. */

import { decodeBase64 } from "./base64url.js";

const LOG_KEY = 1; // Ed25519 (C2SP, signed-note).
const WITNESS_KEY = 4; // Ed25519 with a time (C2SP, tlog-cosignature).
const ID_BYTES = 4;
// Python and JavaScript disagree about spaces: a name has nothing that either takes for one, and no control character.
export const NAME = "[^\\s+\\x00-\\x1f\\x7f\\x85]+";
const VKEY = new RegExp(`^(${NAME})\\+([0-9a-f]{8})\\+([A-Za-z0-9+/]{44})$`);

/** @typedef {{name: string, id: string, key: CryptoKey, point: string}} NoteKey */

/** The log that must hold an entry, and the witnesses of which `quorum` must have cosigned its checkpoint. */
export class LogPolicy {
  /**
   * Return a policy. Pin `vkey`, the log's key, from a source that you trust; do not ask the service for it each time.
   * Without a quorum, the log alone is believed not to show others another tree.
   *
   * @param {string | string[]} vkey one key, or several while it is rotated
   * @param {{witnesses?: string[], quorum?: number}} [options]
   * @throws {TypeError} for a text that is no Ed25519 `vkey`
   * @throws {RangeError} for keys of several logs, a witness named twice, or a quorum out of reach
   */
  static async read(vkey, { witnesses = [], quorum = 0 } = {}) {
    const logKeys = await Promise.all([vkey].flat().map((each) => readKey(each, LOG_KEY)));
    const witnessKeys = await Promise.all(witnesses.map((each) => readKey(each, WITNESS_KEY)));
    if (new Set(logKeys.map(({ name }) => name)).size !== 1) throw new RangeError("A policy has the keys of one log.");
    if (new Set(witnessKeys.map(({ point }) => point)).size !== witnesses.length) {
      throw new RangeError("A witness is named twice.");
    }
    if (!Number.isInteger(quorum) || quorum < 0 || quorum > witnesses.length) {
      throw new RangeError("There are not as many witnesses as the quorum.");
    }
    return new LogPolicy(logKeys, witnessKeys, quorum);
  }

  /**
   * @param {NoteKey[]} logKeys
   * @param {NoteKey[]} witnessKeys
   * @param {number} quorum
   */
  constructor(logKeys, witnessKeys, quorum) {
    this.logKeys = logKeys;
    this.witnessKeys = witnessKeys;
    this.quorum = quorum;
    /** The name of the log. */
    this.origin = logKeys[0].name;
  }
}

/**
 * @param {string} vkey
 * @param {number} kind
 * @returns {Promise<NoteKey>}
 */
async function readKey(vkey, kind) {
  const [, name = "", id = "", point = ""] = VKEY.exec(vkey) ?? [];
  const raw = decodeBase64(point);
  // 44 letters are 33 bytes: the kind and the point.
  if (raw?.[0] !== kind) throw new TypeError("That is no vkey of Ed25519.");
  const named = new Uint8Array([...new TextEncoder().encode(`${name}\n`), ...raw]);
  const hashed = new Uint8Array(await crypto.subtle.digest("SHA-256", named));
  if (toHex(hashed.subarray(0, ID_BYTES)) !== id)
    throw new TypeError("The id of a vkey does not fit its name and key.");
  return { name, id, point, key: await crypto.subtle.importKey("raw", raw.slice(1), "Ed25519", true, ["verify"]) };
}

/** @param {Uint8Array} bytes */
export function toHex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
