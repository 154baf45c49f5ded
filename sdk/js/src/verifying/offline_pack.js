/** Offline packs: what the service signed for receivers that cannot reach it. */

import { ReceiverFailure, refuse } from "../failures.js";
import { commitTo, readDigest } from "./commitments.js";
import { verifyLogProof } from "./log_proof.js";
import {
  readCampaignId,
  readIntent,
  readMembers,
  readShortText,
  readText,
  readTime,
  readVersion,
  XR_ID,
} from "./shapes.js";
import { parse } from "./strict_json.js";
import { CLOCK_SKEW_MAX_MS } from "./verification.js";

export const PACK_BYTES_MAX = 32 * 1024 * 1024;
export const PACK_LIFE_MAX_MS = 24 * 3600 * 1000;
const CODES_MAX = 10_000;
const PACK_ID = /^opk_[A-Za-z0-9_-]{22}$/;
const PROJECT_ID = /^prj_[A-Za-z0-9_-]+$/;
const PACK = "version format pack_id project_id campaign_id issued_at valid_until codes key_id signature".split(" ");
const CODE = "xr_id token_digest intent expires_at".split(" ");

/**
 * @import { KeySet } from "./keys.js"
 * @import { LogPolicy } from "./log_policy.js"
 * @import { Members, Parsed } from "./strict_json.js"
 * @typedef {{xrId: string, intent: Parsed | undefined, expiresAt: number}} PackedCode
 */

/**
 * What a Code meant at `asOf`, from a pack. It may have been revoked since, and after `validUntil` it means nothing. It
 * is no `Resolution`, which is a fresh answer of the service.
 */
export class OfflineResolution {
  /** @param {OfflinePack} pack @param {PackedCode} code */
  constructor(pack, code) {
    this.xrId = code.xrId;
    // A new copy, so that a caller who changes an answer does not change the pack.
    this.intent = readIntent(code.intent);
    this.asOf = new Date(pack.issuedAt);
    this.validUntil = new Date(Math.min(pack.validUntil, code.expiresAt));
    this.packId = pack.packId;
    this.keyId = pack.keyId;
  }
}

/** A verified pack of the Codes of a campaign, or of the whole project if `campaignId` is null. */
export class OfflinePack {
  /**
   * @param {Members} members of the right shape
   * @param {Map<string, PackedCode>} codes by the digest of their tokens
   * @param {string} digest by which the transparency log knows the pack
   * @param {Uint8Array | null} proof the log's proof of it, unverified
   */
  constructor(members, codes, digest, proof) {
    this.packId = readText(members.get("pack_id"), PACK_ID);
    this.projectId = readText(members.get("project_id"), PROJECT_ID);
    this.campaignId = readCampaignId(members.get("campaign_id"));
    this.keyId = readShortText(members.get("key_id"));
    /** In milliseconds since 1970. */
    this.issuedAt = readTime(members.get("issued_at"));
    this.validUntil = readTime(members.get("valid_until"));
    this.codesCount = codes.size;
    this.digest = digest;
    this.proof = proof;
    this._codes = codes;
  }

  /**
   * Return what the pack says of a token at a time, or null. See `findInPacks`, which knows other packs.
   *
   * @param {string} tokenDigest
   * @param {number} nowMs
   */
  find(tokenDigest, nowMs) {
    if (this.issuedAt - nowMs > CLOCK_SKEW_MAX_MS || nowMs >= this.validUntil) return null;
    const code = this._codes.get(tokenDigest);
    return code === undefined || nowMs >= code.expiresAt ? null : new OfflineResolution(this, code);
  }

  /**
   * Return whether this pack is newer than `other`, should name what it names, and does not name the token.
   *
   * @param {string} tokenDigest
   * @param {OfflinePack} other
   */
  leavesOut(tokenDigest, other) {
    return this._isNewer(other) && !this._codes.has(tokenDigest);
  }

  /**
   * Return whether this pack makes `other` unnecessary, if it is `nowMs` or later.
   *
   * This one is newer, should name what `other` names, and lasts at least as long, unless `other` has ended. So it
   * answers what `other` still could, and leaves out what `other` left out. It needs a proof if `other` has one.
   *
   * @param {OfflinePack} other
   * @param {number} nowMs
   */
  replaces(other, nowMs) {
    const lasts = other.validUntil <= Math.max(nowMs, this.validUntil);
    return lasts && this._isNewer(other) && (this.proof !== null || other.proof === null);
  }

  /** @param {OfflinePack} other */
  _isNewer(other) {
    const covers = [null, other.campaignId].includes(this.campaignId) && this.projectId === other.projectId;
    return covers && this.issuedAt > other.issuedAt;
  }

  /**
   * Return whether its proof proves that it is in a log.
   *
   * @param {LogPolicy} policy
   */
  async isLogged(policy) {
    if (this.proof === null) return false;
    try {
      await verifyLogProof(this.proof, policy, "document.sealed/document", this.digest);
      return true;
    } catch (failure) {
      if (!(failure instanceof ReceiverFailure)) throw failure;
      return false;
    }
  }
}

/**
 * Return what the newest of all known packs that answers says of a token; null if no pack may answer.
 *
 * A pack may not answer if a newer one of its project, of its campaign or of all, leaves the Code out. Give it ended
 * packs too. If any pack was made more than two minutes after `nowMs`, the clock was set back, and none answers.
 *
 * @param {Iterable<OfflinePack>} packs
 * @param {string} tokenDigest
 * @param {number} nowMs
 * @param {LogPolicy | null} [requireLogged] with it, only packs with a proof answer
 * @returns {Promise<OfflineResolution | null>}
 */
export async function findInPacks(packs, tokenDigest, nowMs, requireLogged = null) {
  const known = [...packs].sort((left, right) => right.issuedAt - left.issuedAt);
  if (known.length && known[0].issuedAt - nowMs > CLOCK_SKEW_MAX_MS) return null;
  for (const pack of known) {
    const found = pack.find(tokenDigest, nowMs);
    if (found === null || known.some((newer) => newer.leavesOut(tokenDigest, pack))) continue;
    if (requireLogged === null || (await pack.isLogged(requireLogged))) return found;
  }
  return null;
}

/**
 * Verify an `svc-offline-pack-v1` document; return the pack, which may have ended.
 *
 * @param {Uint8Array} document
 * @param {KeySet} keys those of `readKeyHistory`, kept from when there was a network
 * @param {Uint8Array | null} [proof] of the log, for receivers with `requireLogged`
 * @returns {Promise<OfflinePack>}
 * @throws {KeyUnknown} for a key that is not among them
 * @throws {ReceiverFailure} unverifiable, for everything else
 */
export async function verifyOfflinePack(document, keys, proof = null) {
  if (document.length > PACK_BYTES_MAX) refuse("The pack is too long.");
  const members = readMembers(parse(document), PACK);
  readVersion(members.get("version"));
  if (members.get("format") !== "svc-offline-pack-v1") refuse("That is no offline pack.");
  const codes = readCodes(members.get("codes"));
  const pack = new OfflinePack(members, codes, await commitTo("document.sealed/document", members), proof);
  await keys.verifyObject(members);
  const lifeMs = pack.validUntil - pack.issuedAt;
  if (lifeMs <= 0 || lifeMs > PACK_LIFE_MAX_MS) refuse("The pack ends before it begins, or too late.");
  return pack;
}

/** @param {Parsed | undefined} value */
function readCodes(value) {
  if (!Array.isArray(value) || value.length > CODES_MAX) refuse("The pack has no list of at most 10,000 Codes.");
  /** @type {Map<string, PackedCode>} */
  const codes = new Map();
  let former = "";
  for (const each of value) {
    const members = readMembers(each, CODE);
    const xrId = readText(members.get("xr_id"), XR_ID);
    const digest = readDigest(members.get("token_digest"));
    if (xrId <= former || codes.has(digest)) refuse("The pack's Codes are not in order.");
    former = xrId;
    const intent = members.get("intent");
    readIntent(intent);
    const expiresAt = readTime(members.get("expires_at"));
    codes.set(digest, { xrId, intent, expiresAt });
  }
  return codes;
}
