/** Requests to one service, within limits: no redirect, no cookie, no cache, no endless body or wait. */

const BODY_BYTES_MAX = 256 * 1024;
const BACKOFF_BASE_S = 0.25;
// A day. Timers of more than 24 days (2^31 ms) end at once.
const TIMEOUT_MAX_S = 86_400;
// A `URL` has every address in full, so what is digits and dots has four parts.
const LOOPBACK = /^(localhost|127\.[0-9.]+|\[::1\])$/;
const MAX_AGE_S = /(?:^|[,\s])max-age=([0-9]{1,9})(?=$|[,\s])/i;

/** @import { DeliveryFailure, ReceiverFailure } from "./failures.js" */

/**
 * @typedef {object} Limits
 * @property {number} [timeoutS] of each request
 * @property {number} [attemptsMax] of one call, over all of its requests
 * @property {number} [retryWaitMaxS] the longest that one call waits between attempts, in all
 * @property {typeof fetch} [fetch]
 */

/**
 * @typedef {object} Answer what a caller may know of a response
 * @property {number} status 0 if no complete response arrived in time
 * @property {Uint8Array<ArrayBuffer> | null} body null if it is too large
 * @property {number | null} retryAfterS the pause that the server asked for
 * @property {number | null} maxAgeS how long it may be kept
 */

/** A service at one address. */
export class Service {
  /**
   * @param {string} baseUrl https, or http on a loopback address
   * @param {Limits} limits
   * @throws {TypeError} for another address
   * @throws {RangeError} for limits under which no request can be made
   */
  constructor(
    baseUrl,
    { timeoutS = 5, attemptsMax = 3, retryWaitMaxS = 10, fetch = globalThis.fetch.bind(globalThis) },
  ) {
    const url = new URL(baseUrl);
    const isSafe = url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
    // Credentials, a query or a fragment are more than that.
    if (!isSafe || url.href !== url.origin + url.pathname) {
      throw new TypeError("The address must be https, or http on loopback, and nothing more.");
    }
    const isPossible = timeoutS > 0 && timeoutS <= TIMEOUT_MAX_S && attemptsMax >= 1 && retryWaitMaxS >= 0;
    if (!isPossible) throw new RangeError("The limits allow no request.");
    this._baseUrl = url.href.replace(/\/+$/, "");
    this._timeoutS = timeoutS;
    this._fetch = fetch;
    /** Returns the retries of one call. */
    this.makeRetry = () => makeRetry(attemptsMax, retryWaitMaxS);
  }

  /**
   * Send a request.
   *
   * @param {string} path
   * @param {RequestInit} request
   * @param {number} [ok] the one status that needs its whole body; any other then counts although its body breaks off
   * @returns {Promise<Answer>}
   */
  async send(path, request, ok) {
    let response;
    let body = null;
    try {
      response = await this._fetch(this._baseUrl + path, {
        ...request,
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(Math.ceil(this._timeoutS * 1000)),
      });
      body = await readBody(response);
    } catch {
      if (!response || !ok || response.status === ok) return { status: 0, body, retryAfterS: null, maxAgeS: null };
    }
    const maxAge = MAX_AGE_S.exec(response.headers.get("cache-control") ?? "");
    return {
      status: response.status,
      body,
      retryAfterS: readPause(response.headers.get("retry-after") ?? ""),
      maxAgeS: maxAge && Number(maxAge[1]),
    };
  }
}

/**
 * Return the seconds from now in a `Retry-After` header: 0 for the past, null for a header without meaning.
 *
 * @param {string} text
 */
function readPause(text) {
  if (/^[0-9]{1,9}$/.test(text)) return Number(text);
  const pauseMs = Date.parse(text) - Date.now();
  return Number.isNaN(pauseMs) ? null : Math.max(0, pauseMs) / 1000;
}

/** @param {Response} response */
async function readBody(response) {
  const chunks = [];
  let length = 0;
  for (const reader = response.body?.getReader(); reader; ) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > BODY_BYTES_MAX) {
      await reader.cancel();
      return null;
    }
    chunks.push(value);
  }
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

/**
 * Return a function that calls another until it succeeds, fails for a reason that repetition cannot help, or there are
 * no retries or waiting time left, over all calls of the function.
 *
 * Pauses double each time, are shortened by up to half at random, and are never shorter than the server asked for.
 *
 * @param {number} attemptsMax
 * @param {number} waitMaxS
 * @returns {<T>(act: () => Promise<T>) => Promise<T>}
 */
function makeRetry(attemptsMax, waitMaxS) {
  let [retriesLeft, waitLeftS, backoffS] = [attemptsMax - 1, waitMaxS, BACKOFF_BASE_S];
  return async (act) => {
    for (;;) {
      try {
        return await act();
      } catch (failure) {
        const { retryable, retryAfterS } = /** @type {Partial<ReceiverFailure | DeliveryFailure>} */ (failure);
        const waitS = Math.max(backoffS * (1 - Math.random() / 2), retryAfterS ?? 0);
        if (!retryable || retriesLeft < 1 || waitS > waitLeftS) throw failure;
        retriesLeft -= 1;
        waitLeftS -= waitS;
        backoffS *= 2;
        await new Promise((resolve) => setTimeout(resolve, waitS * 1000));
      }
    }
  };
}
