/** Proofs that an entry is in the log: a path of hashes from the entry to a signed checkpoint. */

import { NotYetProven, refuse } from "../failures.js";
import { decodeBase64 } from "./base64url.js";
import { checkEntry } from "./commitments.js";
import { NAME, toHex } from "./log_policy.js";
import { decodeText } from "./strict_json.js";

export const PROOF_BYTES_MAX = 64 * 1024;
const NUMBER = "0|[1-9][0-9]{0,18}";
const BASE64 = "[A-Za-z0-9+/]+={0,2}";
const SIGNATURE = `— ${NAME} ${BASE64}\\n`;
const PROOF = new RegExp(
  `^c2sp\\.org/tlog-proof@v1\\nextra (?<entry>${BASE64})\\nindex (?<index>${NUMBER})\\n` +
    `(?<path>(?:${BASE64}\\n){0,63})\\n(?<text>(?:[^\\n]+\\n)+)\\n(?<signatures>(?:${SIGNATURE})+)$`,
);
const CHECKPOINT = new RegExp(`^([^\\n]+)\\n(${NUMBER})\\n(${BASE64})\\n$`);
const ID_BYTES = 4;
const TIME_BYTES = 8;
const HASH_BYTES = 32;
const MALFORMED = "The proof from the log is malformed.";

/**
 * @import { Commitment } from "./commitments.js"
 * @import { LogPolicy, NoteKey } from "./log_policy.js"
 * @typedef {{name: string, id: string, raw: Uint8Array<ArrayBuffer>}} NoteSignature `raw` follows the id
 * @typedef {{name: string, timeS: number}} Cosignature a witness, and when it signed, in seconds since 1970
 * @typedef {{index: number, size: number, cosignatures: number, witnesses: Cosignature[]}} VerifiedProof
 */

/**
 * Verify that the log holds the entry with this digest, which `commit` computes; return where.
 *
 * Source: C2SP, tlog-proof and tlog-checkpoint; RFC 9162, section 2.1.3.2; wire contract, section 11.
 *
 * @param {Uint8Array} proof the answer of `GET /v1/log/proofs/{digest}`
 * @param {LogPolicy} policy
 * @param {Commitment} commitment
 * @param {string} digest
 * @returns {Promise<VerifiedProof>}
 * @throws {ReceiverFailure} unverifiable, also if fewer than the quorum of the witnesses cosigned the checkpoint
 */
export async function verifyLogProof(proof, policy, commitment, digest) {
  const { entry, index, path, text, signatures } = readProof(proof);
  checkEntry(entry, commitment, digest);
  const signed = await Promise.all(policy.logKeys.map((key) => verifyAny(signatures, key, ({ raw }) => [raw, text])));
  if (signed.every((each) => each === null)) refuse("The log's key did not sign the checkpoint.");
  const cosigned = await Promise.all(policy.witnessKeys.map((key) => findCosignature(text, signatures, key)));
  const witnesses = cosigned.filter((each) => each !== null);
  if (witnesses.length < policy.quorum) throw new NotYetProven("Too few witnesses cosigned the checkpoint.");
  const [, origin, size, root] = CHECKPOINT.exec(text) ?? refuse("The checkpoint of the log is malformed.");
  if (origin !== policy.origin) refuse("The checkpoint is that of another log.");
  const computed = await climb(await hashBytes(0, entry, new Uint8Array()), index, Number(size), path);
  if (computed === null || toHex(computed) !== toHex(decodeBytes(root))) {
    refuse("The proof does not lead to the root of its checkpoint.");
  }
  return { index, size: Number(size), cosignatures: witnesses.length, witnesses };
}

/** @param {Uint8Array} proof */
function readProof(proof) {
  if (proof.length > PROOF_BYTES_MAX) refuse(MALFORMED);
  const groups = PROOF.exec(decodeText(proof))?.groups;
  const { entry, index, path, text, signatures } = groups ?? refuse(MALFORMED);
  return {
    entry: decodeBytes(entry),
    index: Number(index),
    path: path.split("\n").slice(0, -1).map(decodeBytes),
    text,
    signatures: signatures.split("\n").slice(0, -1).map(readSignature),
  };
}

/**
 * @param {string} line
 * @returns {NoteSignature}
 */
function readSignature(line) {
  const [, name, encoded] = line.split(" ");
  const bytes = decodeBytes(encoded);
  return { name, id: toHex(bytes.subarray(0, ID_BYTES)), raw: bytes.slice(ID_BYTES) };
}

/** @param {string} text */
function decodeBytes(text) {
  return decodeBase64(text) ?? refuse(MALFORMED);
}

/**
 * Return when a witness cosigned the checkpoint; null if it did not. What that time is does not matter here.
 *
 * @param {string} text
 * @param {NoteSignature[]} signatures
 * @param {NoteKey} witness
 * @returns {Promise<Cosignature | null>}
 */
async function findCosignature(text, signatures, witness) {
  const found = await verifyAny(signatures, witness, ({ raw }) => {
    if (raw.length < TIME_BYTES) return [raw, text];
    return [raw.slice(TIME_BYTES), `cosignature/v1\ntime ${readTime(raw)}\n${text}`];
  });
  return found === null ? null : { name: witness.name, timeS: Number(readTime(found.raw)) };
}

/** @param {Uint8Array<ArrayBuffer>} raw */
function readTime(raw) {
  return new DataView(raw.buffer).getBigUint64(0);
}

/**
 * Return the signature that the key made, of those that name it; null without one.
 *
 * @param {NoteSignature[]} signatures
 * @param {NoteKey} key
 * @param {(signature: NoteSignature) => [Uint8Array<ArrayBuffer>, string]} read returns the signature and its message
 */
async function verifyAny(signatures, { name, id, key }, read) {
  for (const each of signatures) {
    if (each.name !== name || each.id !== id) continue;
    const [signature, message] = read(each);
    const bytes = new TextEncoder().encode(message);
    if (await crypto.subtle.verify("Ed25519", key, signature, bytes).catch(() => false)) return each;
  }
  return null;
}

/**
 * Return the root to which the path leads from a leaf; null if the path has another length than its tree.
 *
 * @param {Uint8Array} leaf
 * @param {number} index
 * @param {number} size
 * @param {Uint8Array[]} path
 */
async function climb(leaf, index, size, path) {
  // An index that is not exact is greater than every size that is.
  if (index >= size || !Number.isSafeInteger(size)) return null;
  // Not with `>>`, which takes 32 bits of a number.
  const halve = (/** @type {number} */ number) => Math.floor(number / 2);
  let [node, last, found] = [index, size - 1, leaf];
  for (const sibling of path) {
    if (last === 0 || sibling.length !== HASH_BYTES) return null;
    if (node % 2 === 1 || node === last) {
      found = await hashBytes(1, sibling, found);
      while (node % 2 === 0 && node !== 0) [node, last] = [halve(node), halve(last)];
    } else {
      found = await hashBytes(1, found, sibling);
    }
    [node, last] = [halve(node), halve(last)];
  }
  return last === 0 ? found : null;
}

/**
 * @param {number} prefix
 * @param {Uint8Array} left
 * @param {Uint8Array} right
 */
async function hashBytes(prefix, left, right) {
  const bytes = new Uint8Array([prefix, ...left, ...right]);
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}
