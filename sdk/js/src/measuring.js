/** Measure a verified resolution with a person's consent: make the event for the publisher's backend. */

import { encode } from "./verifying/base64url.js";
import { OfflineResolution } from "./verifying/offline_pack.js";
import { CLOCK_SKEW_MAX_MS, getMeasurementProof } from "./verifying/verification.js";

const RECEIVER_CLASSES = "phone tablet computer television speaker wearable vehicle kiosk other".split(" ");
const EVENT_ID_BYTES = 16;

/** Nothing was measured: `obstacle` is `consentMissing`, `notMeasured` or `unverifiable`. */
export class MeasurementRefused extends Error {
  /** @param {"consentMissing" | "notMeasured" | "unverifiable"} obstacle */
  constructor(obstacle) {
    super(`Nothing was measured: ${obstacle}`);
    this.obstacle = obstacle;
  }
}

/**
 * Return a new secret, which no script can read. Keep it in IndexedDB while the person agrees, and delete it when they
 * withdraw: later tokens are then unrelated to the earlier ones.
 *
 * @returns {Promise<CryptoKey>}
 */
export function createDeviceSecret() {
  return crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256", length: 256 }, false, ["sign"]);
}

/**
 * Return a measurement at the current time. Nothing is sent until a `Reporter` reports it. To retry, report the same
 * measurement again: its body holds the id of the event, by which it is counted once.
 *
 * @param {import("./verifying/verification.js").Resolution | OfflineResolution} resolution as `resolve` returned it; no
 *   pack has measured Codes
 * @param {object} options
 * @param {{integrationId: string, givenAt: Date} | null} options.consent null if the person did not agree
 * @param {CryptoKey} options.deviceSecret
 * @param {string} options.receiverClass one of the API's
 * @param {string | null} [options.country] ISO 3166-1 alpha-2, if it is known
 * @returns {Promise<{integrationId: string, xrId: string, eventId: string, body: string}>}
 * @throws {MeasurementRefused}
 * @throws {TypeError} for an unknown receiver class or a malformed country
 */
export async function measure(resolution, { consent, deviceSecret, receiverClass, country = null }) {
  if (!RECEIVER_CLASSES.includes(receiverClass)) throw new TypeError("The contract has no such receiver class.");
  if (country !== null && !/^[A-Z]{2}$/.test(country)) throw new TypeError("A country is two letters of ISO 3166-1.");
  const now = new Date();
  // First: without consent, nothing about the resolution matters.
  const isGiven = consent?.givenAt instanceof Date && consent.givenAt.getTime() - now.getTime() <= CLOCK_SKEW_MAX_MS;
  if (!isGiven) throw new MeasurementRefused("consentMissing");
  if (resolution instanceof OfflineResolution || !resolution.policy.audienceMeasurement)
    throw new MeasurementRefused("notMeasured");
  const proof = getMeasurementProof(resolution, now.getTime());
  if (proof === null) throw new MeasurementRefused("unverifiable");
  const { xrId, integrationId } = proof;
  if (consent.integrationId !== integrationId) throw new MeasurementRefused("consentMissing");
  const eventId = `evt_${encode(crypto.getRandomValues(new Uint8Array(EVENT_ID_BYTES)))}`;
  const event = {
    event_id: eventId,
    integration_id: integrationId,
    xr_id: xrId,
    occurred_at: now.toISOString(),
    receiver_class: receiverClass,
    measurement_token: await deriveToken(deviceSecret, integrationId, now),
    country,
    proof: proof.document,
  };
  return { integrationId, xrId, eventId, body: JSON.stringify(event) };
}

/**
 * Return this receiver's token for one integration on one UTC day.
 *
 * @param {CryptoKey} deviceSecret
 * @param {string} integrationId
 * @param {Date} now
 */
async function deriveToken(deviceSecret, integrationId, now) {
  const message = ["soundmark-measurement-token-v1", integrationId, now.toISOString().slice(0, 10)].join("\0");
  return `mt_${encode(await crypto.subtle.sign("HMAC", deviceSecret, new TextEncoder().encode(message)))}`;
}
