/** Offline packs: what the service signed for receivers that cannot reach it. */

import { ReceiverFailure, refuse } from "../failures.js";
import { commitTo, readDigest } from "./commitments.js";
import { verifyLogProof } from "./log_proof.js";
import { CAMPAIGN_ID, readMembers, readShortText, readText, readTime, readVersion } from "./shapes.js";
import { SIGNATURE, XR_ID } from "./shapes.js";
import { canonicalize, parse, toPlain } from "./strict_json.js";
import { CLOCK_SKEW_MAX_MS } from "./verification.js";

export const PACK_BYTES_MAX = 32 * 1024 * 1024;
export const PACK_LIFE_MAX_MS = 24 * 3600 * 1000;
const CODES_MAX = 10_000;
const FORMAT = "svc-offline-pack-v1";
const PACK_ID = /^opk_[A-Za-z0-9_-]{22}$/;
const PROJECT_ID = /^prj_[A-Za-z0-9_-]+$/;
const TIMES = ["issued_at", "valid_until"];
const PACK = ["version", "format", "pack_id", "project_id", "campaign_id", ...TIMES, "codes", "key_id", "signature"];
const CODE = ["xr_id", "token_digest", "intent", "expires_at"];

/**
 * @import { KeySet } from "./keys.js"
 * @import { LogPolicy } from "./log_policy.js"
 * @import { Intent } from "./shapes.js"
 * @import { Members, Parsed } from "./strict_json.js"
 * @typedef {{xrId: string, intent: Members, expiresAt: number}} PackedCode
 */

/**
 * What a Code meant at `asOf`, from a pack. It may have been revoked since, and after `validUntil` it means nothing. It
 * is no `Resolution`, which is a fresh answer of the service.
 */
export class OfflineResolution {
  /** @param {OfflinePack} pack @param {PackedCode} code */
  constructor(pack, code) {
    this.xrId = code.xrId;
    this.intent = /** @type {Intent} */ (toPlain(code.intent));
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
    this.campaignId = /** @type {string | null} */ (members.get("campaign_id"));
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
    const isOfAll = this.campaignId === null || this.campaignId === other.campaignId;
    const covers = this.projectId === other.projectId && isOfAll;
    return covers && this.issuedAt > other.issuedAt && !this._codes.has(tokenDigest);
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
  if (known.some((pack) => pack.issuedAt - nowMs > CLOCK_SKEW_MAX_MS)) return null;
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
  if (members.get("format") !== FORMAT) refuse("That is no offline pack.");
  if (members.get("campaign_id") !== null) readText(members.get("campaign_id"), CAMPAIGN_ID);
  const codes = readCodes(members.get("codes"));
  const signature = readText(members.get("signature"), SIGNATURE);
  const pack = new OfflinePack(members, codes, await commitTo("document.sealed/document", members), proof);
  const unsigned = new Map(members);
  unsigned.delete("signature");
  await keys.verify(pack.keyId, new TextEncoder().encode(canonicalize(unsigned)), signature);
  const lifeMs = pack.validUntil - pack.issuedAt;
  if (lifeMs <= 0 || lifeMs > PACK_LIFE_MAX_MS) refuse("The pack ends before it begins, or too late.");
  return pack;
}

/** @param {Parsed | undefined} value */
function readCodes(value) {
  if (!Array.isArray(value) || value.length > CODES_MAX)
    refuse("The Codes of the pack are not a list of at most 10,000.");
  /** @type {Map<string, PackedCode>} */
  const codes = new Map();
  let former = "";
  for (const each of value) {
    const members = readMembers(each, CODE);
    const xrId = readText(members.get("xr_id"), XR_ID);
    if (xrId <= former) refuse("The Codes of the pack are not in order.");
    former = xrId;
    const intent = readMembers(members.get("intent"), ["type", "action", "resource"]);
    for (const name of ["type", "action"]) readShortText(intent.get(name));
    if (!(intent.get("resource") instanceof Map)) refuse("An intent's resource is not an object.");
    codes.set(readDigest(members.get("token_digest")), {
      xrId,
      intent,
      expiresAt: readTime(members.get("expires_at")),
    });
  }
  return codes;
}
