/** The closed shapes of the wire, read member by member from what `strict_json.parse` returns. */

import { refuse } from "../failures.js";
import { canonicalize, toPlain } from "./strict_json.js";

export const TOKEN = /^brd_[A-Za-z0-9_-]{16}$/;
export const XR_ID = /^xr_[A-Za-z0-9_-]{16,}$/;
const INTEGRATION_ID = /^int_[A-Za-z0-9_-]{8,}$/;
const CAMPAIGN_ID = /^cmp_[A-Za-z0-9_-]{16,}$/;
const PROOF_ID = /^prf_[A-Za-z0-9_-]{16,}$/;
export const SIGNATURE = /^[A-Za-z0-9_-]{86}$/;
// No year 0, which Python's calendar lacks: all verifiers refuse the same.
const TIMESTAMP = /^(?!0000)[0-9]{4}(?:-[0-9]{2}){2}T[0-9]{2}(?::[0-9]{2}){2}\.[0-9]{3}Z$/;
const SHORT_TEXT = /^.{1,160}$/su;
const INTENT_DEPTH_MAX = 32;
const INTENT_BYTES_MAX = 16 * 1024;

/**
 * @import { Members, Parsed } from "./strict_json.js"
 * @typedef {{type: string, action: string, resource: Record<string, unknown>}} Intent
 * @typedef {{audienceMeasurement: true, audienceIntegrationId: string} |
 *   {audienceMeasurement: false, audienceIntegrationId: null}} Policy
 */

/**
 * Return the members of a closed object: all that are required, any that are optional, and no others.
 *
 * @param {Parsed | undefined} value
 * @param {string[]} required
 * @param {string[]} [optional]
 * @returns {Members}
 */
export function readMembers(value, required, optional = []) {
  const isClosed =
    value instanceof Map &&
    required.every((name) => value.has(name)) &&
    [...value.keys()].every((name) => required.includes(name) || optional.includes(name));
  if (!isClosed) refuse("An object does not have the members of its shape.");
  return value;
}

/**
 * Return a string that matches its pattern.
 *
 * @param {unknown} value
 * @param {RegExp} pattern
 */
export function readText(value, pattern) {
  if (typeof value !== "string" || !pattern.test(value)) refuse("A string does not have its shape.");
  return value;
}

/**
 * Return a text of 1 to 160 characters of any kind.
 *
 * @param {unknown} value
 */
export function readShortText(value) {
  return readText(value, SHORT_TEXT);
}

/**
 * Return the id of a campaign, or null for none.
 *
 * @param {unknown} value
 */
export function readCampaignId(value) {
  return value === null ? null : readText(value, CAMPAIGN_ID);
}

/**
 * Accept only the integer 1; `true` and `1.0` are other versions.
 *
 * @param {unknown} value
 */
export function readVersion(value) {
  if (value !== 1) refuse("The version is not 1.");
}

/**
 * Return the time, in milliseconds since 1970, that a wire timestamp names.
 *
 * @param {unknown} value
 */
export function readTime(value) {
  const time = Date.parse(readText(value, TIMESTAMP));
  // `Date` takes 31 February for 3 March, and `toJSON` is null for what it cannot read.
  if (new Date(time).toJSON() !== value) refuse("A timestamp is malformed.");
  return time;
}

/**
 * Return the canonical form of an intent of at most 32 levels and 16 KiB.
 *
 * @param {Parsed | undefined} value
 */
export function canonicalizeIntent(value) {
  const text = canonicalize(value, INTENT_DEPTH_MAX);
  if (new TextEncoder().encode(text).length > INTENT_BYTES_MAX) refuse("The intent is too large.");
  return text;
}

/**
 * @param {Parsed | undefined} value
 * @returns {Intent}
 */
export function readIntent(value) {
  canonicalizeIntent(value);
  const members = readMembers(value, ["type", "action", "resource"]);
  const resource = members.get("resource");
  if (!(resource instanceof Map)) refuse("The intent's resource is not an object.");
  return {
    type: readShortText(members.get("type")),
    action: readShortText(members.get("action")),
    resource: toPlain(resource),
  };
}

/**
 * Return a policy, in which an integration is named exactly when measuring is on.
 *
 * @param {Parsed | undefined} value
 * @returns {Policy}
 */
export function readPolicy(value) {
  const members = readMembers(value, ["audience_measurement", "audience_integration_id"]);
  const audienceMeasurement = members.get("audience_measurement");
  const audienceIntegrationId = members.get("audience_integration_id");
  if (audienceMeasurement === true) readText(audienceIntegrationId, INTEGRATION_ID);
  else if (audienceMeasurement !== false || audienceIntegrationId !== null) refuse("The policy contradicts itself.");
  return /** @type {Policy} */ ({ audienceMeasurement, audienceIntegrationId });
}

/**
 * Return the members of a measurement proof, without verifying anything about it.
 *
 * @param {Parsed | undefined} value
 */
export function readMeasurementProof(value) {
  const required = "xr_id integration_id campaign_id issued_at expires_at key_id signature".split(" ");
  const members = readMembers(value, required, ["proof_id"]);
  if (members.has("proof_id")) readText(members.get("proof_id"), PROOF_ID);
  readCampaignId(members.get("campaign_id"));
  return {
    xrId: readText(members.get("xr_id"), XR_ID),
    integrationId: readText(members.get("integration_id"), INTEGRATION_ID),
    issuedAt: readTime(members.get("issued_at")),
    expiresAt: readTime(members.get("expires_at")),
    // Sent with each measurement, so no caller may alter it.
    document: Object.freeze(toPlain(members)),
  };
}
