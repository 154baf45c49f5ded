// Measuring: off until the person agrees, and without their consent no event is made.

import { createDeviceSecret, measure, Reporter } from '/static/receiver/index.js';

import { deleteRecord, readRecord, writeRecord } from './consent_store.js';
import { say } from './words.js';

const TOKEN_TIMEOUT_MS = 5000;

export class Consent {
  /** @param {HTMLInputElement | null} box null where the console has no publisher @param {string} [publisherUrl] */
  constructor(box, publisherUrl) {
    this._box = box;
    this._publisherUrl = publisherUrl;
  }

  /** Show whether the person agreed on an earlier visit, and follow the box from now on. */
  async open() {
    if (this._box === null) return;
    try {
      this._box.checked = (await readRecord()) !== null;
    } catch {
      // A browser that keeps nothing cannot keep a consent: the box stays disabled, and the page hears all the same.
      return;
    }
    this._box.disabled = false;
    this._box.addEventListener('change', () => this._change());
  }

  /** Measure a resolution if its Code is measured and the person agreed, and say what came of it. */
  async report(resolution, element) {
    if (this._box === null || !resolution.policy.audienceMeasurement) return;
    const integrationId = resolution.policy.audienceIntegrationId;
    try {
      // The box counts before the record: it is what the person sees, also while a withdrawal is being stored.
      const record = this._box.checked ? await readRecord() : null;
      if (record === null) return say(element, 'measured', 'without_consent');
      say(element, 'measured', 'sending');
      const measurement = await measure(resolution, {
        consent: { integrationId, givenAt: record.givenAt },
        deviceSecret: record.deviceSecret,
        receiverClass: guessReceiverClass(navigator.userAgent),
      });
      const reporter = new Reporter(this._publisherUrl, () => this._fetchToken(integrationId));
      say(element, 'measured', await reporter.report(measurement));
    } catch {
      // The intent is valid all the same.
      say(element, 'measured', this._box.checked ? 'failed' : 'without_consent');
    }
  }

  async _change() {
    const deviceSecret = await createDeviceSecret();
    // Judged only now: the person may have changed their mind meanwhile, and the last word counts.
    if (this._box.checked) await writeRecord({ deviceSecret, givenAt: new Date() });
    else await deleteRecord();
  }

  async _fetchToken(integrationId) {
    const response = await fetch(`${this._publisherUrl.replace(/\/+$/, '')}/v1/reporting-tokens`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ integration_id: integrationId, consent: true }),
      credentials: 'omit',
      redirect: 'error',
      signal: AbortSignal.timeout(TOKEN_TIMEOUT_MS),
      referrerPolicy: 'no-referrer',
    });
    if (response.status !== 201) throw new Error('The publisher issued no reporting token.');
    const { token } = await response.json();
    if (!this._box.checked) throw new Error('The person withdrew their consent.');
    return token;
  }
}

function guessReceiverClass(userAgent) {
  if (/iPad|Tablet/i.test(userAgent)) return 'tablet';
  return /Mobi/i.test(userAgent) ? 'phone' : 'computer';
}
