/** Resolve broadcast tokens at one service, and verify every answer here. */

import { KeyUnknown, ReceiverFailure, refuse } from "./failures.js";
import { KeyCache } from "./key_cache.js";
import { get, RetryBudget } from "./network.js";
import { readKeySet } from "./verifying/keys.js";
import { TOKEN } from "./verifying/shapes.js";
import { verifyAnswer } from "./verifying/verification.js";

const LOOPBACK = /^(localhost|127(\.[0-9]{1,3}){3}|\[::1\])$/;

/** A receiver of one service. Keep one for as long as the page listens, because it caches keys. */
export class Receiver {
  /**
   * @param {string} baseUrl https, or http on a loopback address
   * @param {object} [options]
   * @param {number} [options.timeoutS] of each request
   * @param {number} [options.attemptsMax] of one `resolve`, over all of its requests
   * @param {number} [options.retryWaitMaxS] the longest that one `resolve` waits between attempts
   * @param {typeof fetch} [options.fetch]
   * @throws {TypeError} for another address
   */
  constructor(baseUrl, { timeoutS = 5, attemptsMax = 3, retryWaitMaxS = 10, fetch = globalThis.fetch.bind(globalThis) } = {}) {
    const url = new URL(baseUrl);
    if (url.protocol !== "https:" && !(url.protocol === "http:" && LOOPBACK.test(url.hostname))) {
      throw new TypeError("The address must be https, or http on a loopback address.");
    }
    this._baseUrl = url.href.replace(/\/+$/, "");
    this._request = { timeoutS, fetch };
    this._budget = () => new RetryBudget(attemptsMax, retryWaitMaxS);
    this._keyCache = new KeyCache();
  }

  /**
   * Return the verified intent behind a broadcast token. Repeating it is safe: resolving changes nothing.
   *
   * @param {string} token
   * @returns {Promise<import("./verifying/verification.js").Resolution>}
   * @throws {ReceiverFailure} when there is no verified intent
   */
  async resolve(token) {
    if (!TOKEN.test(token)) throw new ReceiverFailure("codeUnavailable", "That is not a broadcast token.");
    const budget = this._budget();
    const body = await budget.retry(() => this._fetchAnswer(token));
    const fetchKeys = () => budget.retry(() => this._fetchKeys());
    const keys = await this._keyCache.getFresh(fetchKeys);
    try {
      return await verifyAnswer(body, token, keys, Date.now());
    } catch (failure) {
      const newer = failure instanceof KeyUnknown ? await this._keyCache.getNewer(keys, fetchKeys) : null;
      if (newer === null) throw failure;
      return verifyAnswer(body, token, newer, Date.now());
    }
  }

  async _fetchAnswer(token) {
    // Asks for the signed envelope, without which no answer is accepted.
    const headers = { Accept: "application/json", "X-Svc-Resolution-Proof": "ed25519-v1" };
    const { status, body } = await get(`${this._baseUrl}/v1/resolve/${token}`, headers, this._request);
    if (status === 404) throw new ReceiverFailure("codeUnavailable", "There is no such Code, or it was revoked.");
    if (status === 410) throw new ReceiverFailure("expired", "The Code has expired.");
    if (status !== 200) refuse("The service answered with a status that the contract does not allow.");
    return body;
  }

  async _fetchKeys() {
    const { status, body, maxAgeS } = await get(`${this._baseUrl}/v1/keys`, { Accept: "application/json" }, this._request);
    if (status !== 200) refuse("The service does not publish its keys.");
    return { keys: await readKeySet(body), maxAgeS };
  }
}
