/** What an answer of `GET /v1/resolve/{token}` proves: from received bytes to a resolution, without network or clock. */

import { refuse } from "../failures.js";
import { decode } from "./base64url.js";
import { commitTo, hash } from "./commitments.js";
import {
  readIntent,
  readMeasurementProof,
  readMembers,
  readPolicy,
  readShortText,
  readText,
  readTime,
  readVersion,
  SIGNATURE,
  TOKEN,
  XR_ID,
} from "./shapes.js";
import { areIdentical, parse, parseCanonical } from "./strict_json.js";

export const CLOCK_SKEW_MAX_MS = 120_000;
const RESOLUTION_LIFETIME_MAX_MS = 120_000;
const MEASUREMENT_LIFETIME_MAX_MS = 300_000;
const ENCODED_PAYLOAD = /^[A-Za-z0-9_-]{64,65536}$/;
/**
 * @import { KeySet } from "./keys.js"
 * @import { Intent, Policy } from "./shapes.js"
 * @import { Members, Parsed } from "./strict_json.js"
 * @typedef {ReturnType<typeof readMeasurementProof>} MeasurementProof
 */

/**
 * What was verified with a resolution; a caller may have altered its members, or made another.
 *
 * @type {WeakMap<Resolution, MeasurementProof | null>}
 */
const proofs = new WeakMap();
const MIRRORED = ["xr_id", "intent", "policy"];
const ENVELOPE = "version key_id issued_at expires_at payload signature".split(" ");
const PAYLOAD = "version xr_id intent policy token_digest issued_at expires_at key_id".split(" ");
const ANSWER = "xr_id signature_status intent policy resolution_proof".split(" ");

/**
 * @typedef {object} Resolution everything in it comes from the signed payload
 * @property {string} xrId
 * @property {Intent} intent
 * @property {Policy} policy
 * @property {Record<string, unknown> | null} measurementProof as it is sent with a measurement
 * @property {Date} issuedAt
 * @property {Date} expiresAt
 * @property {string} keyId
 */

/**
 * Return what an answer proves about a token.
 *
 * @param {Uint8Array} body
 * @param {string} token
 * @param {KeySet} keys
 * @param {number} nowMs
 * @returns {Promise<Resolution>}
 * @throws {KeyUnknown} when a newer key set could help
 * @throws {ReceiverFailure} unverifiable, for everything else
 */
export async function verifyAnswer(body, token, keys, nowMs) {
  const answer = readMembers(parse(body), ANSWER, ["measurement_proof"]);
  if (answer.get("signature_status") !== "verified") refuse("The answer is not marked as verified.");
  const envelope = readMembers(answer.get("resolution_proof"), ENVELOPE);
  const payload = await openEnvelope(envelope, keys);
  requireEqual(answer, payload, [...MIRRORED, "measurement_proof"]);
  requireEqual(envelope, payload, ["version", "issued_at", "expires_at", "key_id"]);
  if (payload.get("token_digest") !== (await digestToken(token))) refuse("The answer is about another token.");
  const [issuedAt, expiresAt] = [readTime(payload.get("issued_at")), readTime(payload.get("expires_at"))];
  checkTimes(issuedAt, expiresAt, nowMs, RESOLUTION_LIFETIME_MAX_MS);
  const policy = readPolicy(payload.get("policy"));
  const proof = await verifyMeasurement(payload, policy, keys, nowMs);
  const resolution = {
    xrId: readText(payload.get("xr_id"), XR_ID),
    intent: readIntent(payload.get("intent")),
    policy,
    measurementProof: proof && proof.document,
    issuedAt: new Date(issuedAt),
    expiresAt: new Date(expiresAt),
    keyId: readShortText(payload.get("key_id")),
  };
  proofs.set(resolution, proof);
  return resolution;
}

/**
 * Return the digest by which the transparency log knows a verified answer.
 *
 * @param {Uint8Array} body
 * @param {string} token
 */
export async function commitAnswer(body, token) {
  const answer = readMembers(parse(body), ANSWER, ["measurement_proof"]);
  /** @type {Members} */
  const committed = new Map([["token_digest", await digestToken(token)]]);
  for (const name of MIRRORED) committed.set(name, /** @type {Parsed} */ (answer.get(name)));
  return commitTo("code.issued/answer", committed);
}

/**
 * Return the measurement proof that was verified with a resolution, or null if there is none or it does not hold now.
 *
 * @param {Resolution} resolution
 * @param {number} nowMs
 */
export function getMeasurementProof(resolution, nowMs) {
  const proof = proofs.get(resolution);
  const isCurrent = proof && nowMs - proof.expiresAt < CLOCK_SKEW_MAX_MS && proof.issuedAt - nowMs <= CLOCK_SKEW_MAX_MS;
  return isCurrent ? proof : null;
}

/**
 * Return the payload, after verifying that exactly the named key signed its bytes.
 *
 * @param {Members} envelope
 * @param {KeySet} keys
 */
async function openEnvelope(envelope, keys) {
  readVersion(envelope.get("version"));
  const keyId = readShortText(envelope.get("key_id"));
  const signature = readText(envelope.get("signature"), SIGNATURE);
  const signed = decode(readText(envelope.get("payload"), ENCODED_PAYLOAD));
  await keys.verify(keyId, signed, signature);
  // Only Core could have signed another spelling, but other implementations might read that differently.
  return readMembers(parseCanonical(signed), PAYLOAD, ["measurement_proof"]);
}

/**
 * Accept only members that are the same in both, or in neither.
 *
 * @param {Members} outer
 * @param {Members} inner
 * @param {string[]} names
 */
function requireEqual(outer, inner, names) {
  if (!names.every((name) => areIdentical(outer.get(name), inner.get(name))))
    refuse("The answer differs from the signed payload.");
}

/**
 * Return the verified proof for this Code and integration, or null when the policy does not measure.
 *
 * @param {Members} payload
 * @param {Policy} policy
 * @param {KeySet} keys
 * @param {number} nowMs
 */
async function verifyMeasurement(payload, policy, keys, nowMs) {
  if (policy.audienceMeasurement !== payload.has("measurement_proof")) {
    refuse("The policy and the proof disagree.");
  }
  if (!policy.audienceMeasurement) return null;
  const members = payload.get("measurement_proof");
  const proof = readMeasurementProof(members);
  await keys.verifyObject(/** @type {Members} */ (members));
  checkTimes(proof.issuedAt, proof.expiresAt, nowMs, MEASUREMENT_LIFETIME_MAX_MS);
  if (proof.xrId !== payload.get("xr_id") || proof.integrationId !== policy.audienceIntegrationId) {
    refuse("The measurement proof is about something else.");
  }
  return proof;
}

/**
 * @param {number} issuedAt
 * @param {number} expiresAt
 * @param {number} nowMs
 * @param {number} lifetimeMaxMs
 */
function checkTimes(issuedAt, expiresAt, nowMs, lifetimeMaxMs) {
  const lifetime = expiresAt - issuedAt;
  if (lifetime <= 0 || lifetime > lifetimeMaxMs) refuse("The times do not span a permitted lifetime.");
  if (issuedAt - nowMs > CLOCK_SKEW_MAX_MS) refuse("It is issued in the future.");
  if (nowMs - expiresAt >= CLOCK_SKEW_MAX_MS) refuse("It has expired.");
}

/** @param {string} token */
async function digestToken(token) {
  return hash(readText(token, TOKEN));
}
