// Measuring: off until the person agrees, and without their consent no event is made.

import { createDeviceSecret, measure, Reporter } from "/static/receiver/index.js";

import { deleteRecord, readRecord, writeRecord } from "./consent_store.js";
import { say } from "./words.js";

const TOKEN_TIMEOUT_MS = 5000;

/** @import { Resolution } from "/static/receiver/verifying/verification.js" */

/** @typedef {object} Publisher @property {string} url @property {string} integrationId whose Codes it counts */

export class Consent {
  /**
   * @param {HTMLInputElement | null} box null where the console has no publisher
   * @param {HTMLElement | null} state where the page says what the browser did not store
   * @param {Publisher} publisher
   */
  constructor(box, state, publisher) {
    this._box = box;
    // It is there where the box is, and used only then.
    this._state = /** @type {HTMLElement} */ (state);
    this._publisher = publisher;
    /** @type {Promise<void>} */
    this._storing = Promise.resolve();
    this._withdrawalCount = 0;
    /**
     * The days and Codes that were counted, because an answer is shown anew every few minutes.
     *
     * @type {Set<string>}
     */
    this._counted = new Set();
  }

  /** Show whether the person agreed on an earlier visit, and follow the box from now on. */
  async open() {
    const box = this._box;
    if (box === null) return;
    try {
      box.checked = (await this._readConsent()) !== null;
    } catch {
      // A browser that keeps nothing cannot keep a consent: the box stays disabled, and the page hears all the same.
      return;
    }
    box.disabled = false;
    box.addEventListener("change", () => this._change(box));
  }

  /**
   * Measure a resolution if the publisher counts its Code and the person agreed, and say what came of it.
   *
   * @param {Resolution} resolution
   * @param {HTMLElement} element
   */
  async report(resolution, element) {
    const { xrId, policy } = resolution;
    if (this._box === null || !policy.audienceMeasurement) return;
    if (policy.audienceIntegrationId !== this._publisher.integrationId)
      return say(element, "measured", "other_publisher");
    // The box counts before the record: it is what the person sees, also while a withdrawal is being stored.
    if (!this._box.checked) return say(element, "measured", "without_consent");
    const counted = `${new Date().toISOString().slice(0, 10)} ${xrId}`;
    if (this._counted.has(counted)) return say(element, "measured", "duplicate");
    const withdrawalCount = this._withdrawalCount;
    const isWithdrawn = () => this._withdrawalCount !== withdrawalCount;
    say(element, "measured", "sending");
    try {
      const outcome = await this._measure(resolution, isWithdrawn);
      if (outcome !== "without_consent" && !isWithdrawn()) this._counted.add(counted);
      say(element, "measured", outcome);
    } catch {
      // The intent is valid all the same.
      say(element, "measured", isWithdrawn() ? "withdrawn" : "failed");
    }
  }

  /**
   * @param {Resolution} resolution
   * @param {() => boolean} isWithdrawn
   */
  async _measure(resolution, isWithdrawn) {
    await this._storing;
    const consent = await this._readConsent();
    if (consent === null) return "without_consent";
    const { integrationId } = this._publisher;
    const measurement = await measure(resolution, {
      consent: { integrationId, givenAt: consent.givenAt },
      deviceSecret: consent.deviceSecret,
      receiverClass: guessReceiverClass(navigator.userAgent),
    });
    // Called before each attempt, so nothing is sent once the person withdrew, whatever they choose afterwards.
    const getToken = async () => {
      requireConsent(isWithdrawn);
      const token = await this._fetchToken();
      requireConsent(isWithdrawn);
      return token;
    };
    return new Reporter(this._publisher.url, getToken).report(measurement);
  }

  /** @param {HTMLInputElement} box */
  _change(box) {
    if (!box.checked) {
      this._withdrawalCount += 1;
      this._counted.clear();
    }
    // One after the other, so that what the browser keeps in the end is what the person chose last.
    this._storing = this._storing.then(() => this._store(box));
  }

  /** @param {HTMLInputElement} box */
  async _store(box) {
    let isGiven = box.checked;
    try {
      const deviceSecret = isGiven ? await createDeviceSecret() : null;
      // The person may have changed their mind meanwhile.
      isGiven &&= box.checked;
      if (isGiven && deviceSecret !== null)
        await writeRecord({ deviceSecret, givenAt: new Date(), publisherUrl: this._publisher.url });
      else await deleteRecord();
      this._state.replaceChildren();
    } catch {
      if (isGiven) box.checked = false;
      say(this._state, "consent", isGiven ? "not_stored" : "not_deleted");
    }
  }

  /** Return the person's consent to this publisher, or null. A consent to another one is none. */
  async _readConsent() {
    const record = await readRecord();
    return record?.publisherUrl === this._publisher.url ? record : null;
  }

  async _fetchToken() {
    const response = await fetch(`${this._publisher.url.replace(/\/+$/, "")}/v1/reporting-tokens`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ integration_id: this._publisher.integrationId, consent: true }),
      credentials: "omit",
      redirect: "error",
      signal: AbortSignal.timeout(TOKEN_TIMEOUT_MS),
      referrerPolicy: "no-referrer",
    });
    if (response.status !== 201) throw new Error("The publisher issued no reporting token.");
    /** @type {{token: string}} */
    const { token } = await response.json();
    return token;
  }
}

/** @param {() => boolean} isWithdrawn */
function requireConsent(isWithdrawn) {
  if (isWithdrawn()) throw new Error("The person withdrew their consent.");
}

/** @param {string} userAgent */
function guessReceiverClass(userAgent) {
  if (/iPad|Tablet/i.test(userAgent)) return "tablet";
  return /Mobi/i.test(userAgent) ? "phone" : "computer";
}
