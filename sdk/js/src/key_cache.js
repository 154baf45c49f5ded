/** The published keys, kept for as long as the server allows, and fetched again when an unknown key id appears. */

// Core publishes with `max-age=60` and rotates keys on that basis. No answer can make us keep a key for longer.
const AGE_MAX_S = 60;
// Unknown key ids cost the server at most one request in this time, however many answers name them.
const UNKNOWN_KEY_INTERVAL_S = 10;

/**
 * @import { KeySet } from "./verifying/keys.js"
 * @typedef {() => Promise<{keys: KeySet, maxAgeS: number | null}>} FetchKeys
 */

export class KeyCache {
  constructor() {
    /** @type {KeySet | null} */
    this._keys = null;
    this._freshUntilMs = 0;
    this._unknownAllowedFromMs = -Infinity;
    /** @type {Promise<KeySet> | null} */
    this._fetching = null;
  }

  /**
   * Return fresh keys, which are fetched now if necessary; concurrent callers share one fetch.
   *
   * @param {FetchKeys} fetchKeys
   */
  async getFresh(fetchKeys) {
    if (this._keys !== null && performance.now() < this._freshUntilMs) return this._keys;
    return this._refresh(fetchKeys);
  }

  /**
   * Return keys that are newer than `known`, or null when it is too early to fetch again.
   *
   * @param {KeySet} known
   * @param {FetchKeys} fetchKeys
   */
  async getNewer(known, fetchKeys) {
    if (this._keys !== known) return this._keys;
    if (this._fetching === null) {
      if (performance.now() < this._unknownAllowedFromMs) return null;
      // Set before the fetch, so that a fetch that fails counts as well.
      this._unknownAllowedFromMs = performance.now() + UNKNOWN_KEY_INTERVAL_S * 1000;
    }
    return this._refresh(fetchKeys);
  }

  /** @param {FetchKeys} fetchKeys */
  _refresh(fetchKeys) {
    this._fetching ??= this._fetch(fetchKeys).finally(() => (this._fetching = null));
    return this._fetching;
  }

  /** @param {FetchKeys} fetchKeys */
  async _fetch(fetchKeys) {
    // The age counts from the request, because the answer may have been on its way for a while.
    const startedAtMs = performance.now();
    // When a fetch fails, the old keys are not used instead: a key that was withdrawn must stop verifying.
    this._freshUntilMs = 0;
    const { keys, maxAgeS } = await fetchKeys();
    this._keys = keys;
    this._freshUntilMs = startedAtMs + Math.min(AGE_MAX_S, maxAgeS ?? AGE_MAX_S) * 1000;
    return keys;
  }
}
