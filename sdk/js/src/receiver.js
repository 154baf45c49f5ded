/** Resolve broadcast tokens at one service, and verify every answer here. */

import { KeyUnknown, ReceiverFailure, refuse } from "./failures.js";
import { KeyCache } from "./key_cache.js";
import { LogCheck } from "./log_check.js";
import { Service } from "./network.js";
import { PackShelf } from "./pack_shelf.js";
import { readKeySet } from "./verifying/keys.js";
import { TOKEN } from "./verifying/shapes.js";
import { commitAnswer, verifyAnswer } from "./verifying/verification.js";

// No answer, or that of a proxy in front of a service that cannot be reached, or of one that cannot work.
const UNREACHABLE = [0, 502, 503, 504];

/**
 * @import { Reason } from "./failures.js"
 * @import { LogPolicy } from "./verifying/log_policy.js"
 * @import { OfflinePack, OfflineResolution } from "./verifying/offline_pack.js"
 * @import { Resolution } from "./verifying/verification.js"
 */

/** @typedef {"spam" | "malware" | "impersonation" | "illegal" | "other"} AbuseCategory */

/** A receiver of one service. Keep one for as long as the page listens, because it caches keys. */
export class Receiver {
  /**
   * @param {string} baseUrl https, or http on a loopback address
   * @param {import("./network.js").Limits & {requireLogged?: LogPolicy | null, packs?: Iterable<OfflinePack>}} [options]
   *   with `requireLogged`, an answer is returned only once that transparency log proves that the Code was issued in
   *   public; `packs` answer while the service cannot be reached
   * @throws {TypeError} for another address
   */
  constructor(baseUrl, { requireLogged = null, packs = [], ...limits } = {}) {
    this._service = new Service(baseUrl, limits);
    this._keyCache = new KeyCache();
    this._logCheck = requireLogged === null ? null : new LogCheck(requireLogged);
    this._shelf = new PackShelf(requireLogged);
    for (const pack of packs) this._shelf.add(pack);
  }

  /**
   * Keep one more pack, usually a newer one: a Code that it leaves out is no longer answered from older ones.
   *
   * @param {OfflinePack} pack
   */
  addPack(pack) {
    this._shelf.add(pack);
  }

  /** The packs that can still answer, or silence another. */
  get packs() {
    return this._shelf.packs;
  }

  /** Forget all packs. Without a newer one, an older one would answer again, so there is no way to forget one alone. */
  forgetPacks() {
    this._shelf.packs = [];
  }

  /**
   * Return the text of the service's key history: keep it beside packs, which `readKeyHistory` of it verifies.
   *
   * @returns {Promise<Uint8Array<ArrayBuffer>>}
   * @throws {ReceiverFailure}
   */
  async fetchKeyHistory() {
    return (await this._get("/v1/keys/history", {}, {})).body;
  }

  /**
   * Return the verified intent behind a broadcast token. Repeating it is safe: resolving changes nothing.
   *
   * It is an `OfflineResolution`, and nobody knows whether the Code was revoked since its `asOf`, if the service cannot be
   * reached (no answer in time, 502, 503 or 504) and a pack answers. Without packs it never is.
   *
   * @param {string} token
   * @returns {Promise<Resolution | OfflineResolution>}
   * @throws {ReceiverFailure} when there is no verified intent
   */
  async resolve(token) {
    requireToken(token);
    try {
      const resolution = await this._resolveOnline(token);
      this._shelf.noteTime(resolution.issuedAt.getTime());
      return resolution;
    } catch (failure) {
      const isUnreachable = failure instanceof ReceiverFailure && failure.isUnreachable;
      const found = isUnreachable ? await this._shelf.find(token) : null;
      if (found === null) throw failure;
      return found;
    }
  }

  /** @param {string} token */
  async _resolveOnline(token) {
    const retry = this._service.makeRetry();
    // Asks for the signed envelope, without which no answer is accepted.
    const headers = { "X-Svc-Resolution-Proof": "ed25519-v1" };
    /** @type {Record<number, Reason>} */
    const reasons = { 404: "codeUnavailable", 410: "expired" };
    const { body } = await retry(() => this._get(`/v1/resolve/${token}`, headers, reasons));
    const fetchKeys = () => retry(() => this._fetchKeys());
    const resolution = await this._verify(body, token, fetchKeys);
    const fetchProof = (/** @type {string} */ digest) => retry(() => this._fetchProof(digest));
    await this._logCheck?.require(await commitAnswer(body, token), fetchProof);
    return resolution;
  }

  /**
   * @param {Uint8Array} body
   * @param {string} token
   * @param {import("./key_cache.js").FetchKeys} fetchKeys
   */
  async _verify(body, token, fetchKeys) {
    const keys = await this._keyCache.getFresh(fetchKeys);
    try {
      return await verifyAnswer(body, token, keys, Date.now());
    } catch (failure) {
      const newer = failure instanceof KeyUnknown ? await this._keyCache.getNewer(keys, fetchKeys) : null;
      if (newer === null) throw failure;
      return verifyAnswer(body, token, newer, Date.now());
    }
  }

  /**
   * Report a Code that harms people to the operator of the service. It is sent once: a failure leaves open whether it
   * arrived.
   *
   * @param {string} token
   * @param {AbuseCategory} category
   * @param {{text?: string, contact?: string | null}} [words] what happened, and how to reach the person, if they wish
   * @returns {Promise<void>}
   * @throws {ReceiverFailure} if the service did not say that it received the report
   */
  async reportAbuse(token, category, { text = "", contact = null } = {}) {
    requireToken(token);
    const request = {
      method: "POST",
      headers: { Accept: "application/json", "Content-Type": "application/json" },
      body: JSON.stringify({ token, category, text, contact }),
    };
    const answer = await this._service.send("/v1/abuse-reports", request);
    if (answer.status === 202) return;
    requireNoFailure(answer, {});
    refuse("The service did not accept the report.");
  }

  async _fetchKeys() {
    const { body, maxAgeS } = await this._get("/v1/keys", {}, {});
    return { keys: await readKeySet(body), maxAgeS };
  }

  /**
   * Return the log's proof of a digest; null if the log does not have it.
   *
   * @param {string} digest
   */
  async _fetchProof(digest) {
    try {
      return (await this._get(`/v1/log/proofs/${digest}`, { Accept: "text/plain" }, { 404: "codeUnavailable" })).body;
    } catch (failure) {
      if (failure instanceof ReceiverFailure && failure.reason === "codeUnavailable") return null;
      throw failure;
    }
  }

  /**
   * @param {string} path
   * @param {Record<string, string>} headers
   * @param {Record<number, Reason>} ofStatus the reasons that only this path has
   */
  async _get(path, headers, ofStatus) {
    const request = { headers: { Accept: "application/json", ...headers } };
    // Of another status the body does not matter: a Code that was revoked must not be answered from a pack.
    const answer = await this._service.send(path, request, 200);
    requireNoFailure(answer, ofStatus);
    const { status, body, maxAgeS } = answer;
    if (status !== 200) refuse("The contract does not allow this status.");
    if (body === null) refuse("The body is too large.");
    return { body, maxAgeS };
  }
}

/** @param {string} token */
function requireToken(token) {
  if (!TOKEN.test(token)) throw new ReceiverFailure("codeUnavailable", "That is not a broadcast token.");
}

/**
 * Refuse an answer whose status is a failure, if it is one of those that the contract allows.
 *
 * @param {import("./network.js").Answer} answer
 * @param {Record<number, Reason | undefined>} ofStatus the reasons that only one path has
 */
function requireNoFailure({ status, retryAfterS }, ofStatus) {
  /** @type {Record<number, Reason | undefined>} */
  const reasons = { 0: "network", 429: "rateLimited", ...ofStatus };
  const reason = status >= 500 ? "temporarilyUnavailable" : reasons[status];
  if (reason) throw new ReceiverFailure(reason, undefined, retryAfterS, UNREACHABLE.includes(status));
}
