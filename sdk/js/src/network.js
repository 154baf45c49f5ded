/** Requests to one service, within limits: no redirect, no cookie, no cache, no endless body or wait. */

import { ReceiverFailure, refuse } from "./failures.js";

const BODY_BYTES_MAX = 256 * 1024;
const BACKOFF_BASE_S = 0.25;
const RETRY_AFTER_S = /^[0-9]{1,9}$/;
const MAX_AGE_S = /(?:^|[,\s])max-age=([0-9]{1,9})(?=$|[,\s])/i;

/**
 * Return the status of a response, the body of a 200, and how long it may be kept.
 *
 * @param {string} url
 * @param {Record<string, string>} headers
 * @param {{timeoutS: number, fetch: typeof fetch}} options
 * @returns {Promise<{status: number, body: Uint8Array, maxAgeS: number | null}>}
 * @throws {ReceiverFailure}
 */
export async function get(url, headers, { timeoutS, fetch }) {
  let response;
  let body = new Uint8Array();
  try {
    response = await fetch(url, {
      headers,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(timeoutS * 1000),
    });
    if (response.status === 200) body = await readBody(response);
    else await response.body?.cancel();
  } catch (error) {
    if (error instanceof ReceiverFailure) throw error;
    throw new ReceiverFailure("network", "No complete response arrived in time.");
  }
  const retryAfter = response.headers.get("retry-after") ?? "";
  const retryAfterS = RETRY_AFTER_S.test(retryAfter) ? Number(retryAfter) : null;
  if (response.status === 429) throw new ReceiverFailure("rateLimited", "The service asked for a pause.", retryAfterS);
  if (response.status >= 500) {
    throw new ReceiverFailure("temporarilyUnavailable", "The service cannot answer at the moment.", retryAfterS);
  }
  const maxAge = MAX_AGE_S.exec(response.headers.get("cache-control") ?? "");
  return { status: response.status, body, maxAgeS: maxAge && Number(maxAge[1]) };
}

async function readBody(response) {
  const chunks = [];
  let length = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > BODY_BYTES_MAX) {
      await reader.cancel();
      refuse("The body is too large.");
    }
    chunks.push(value);
  }
  const body = new Uint8Array(length);
  chunks.reduce((at, chunk) => (body.set(chunk, at), at + chunk.length), 0);
  return body;
}

/** The retries and the waiting time that one call has left, over all of its requests. */
export class RetryBudget {
  constructor(attemptsMax, waitMaxS) {
    this._retriesLeft = attemptsMax - 1;
    this._waitLeftS = waitMaxS;
    this._backoffS = BACKOFF_BASE_S;
  }

  /**
   * Call `act` until it succeeds, fails for a reason that repetition cannot help, or the budget is spent.
   *
   * Pauses double each time, are shortened by up to half at random, and are never shorter than the server asked for.
   */
  async retry(act) {
    for (;;) {
      try {
        return await act();
      } catch (failure) {
        if (!(failure instanceof ReceiverFailure) || !failure.retryable || this._retriesLeft < 1) throw failure;
        const waitS = Math.max(this._backoffS * (1 - Math.random() / 2), failure.retryAfterS ?? 0);
        if (waitS > this._waitLeftS) throw failure;
        this._retriesLeft -= 1;
        this._waitLeftS -= waitS;
        this._backoffS *= 2;
        await new Promise((resolve) => setTimeout(resolve, waitS * 1000));
      }
    }
  }
}
