// The verification of a signed Code, done here, step by step, from what the page shows and the keys that Core publishes.

import { decode, encode } from "/static/receiver/verifying/base64url.js";
import {
  readIntent,
  readMembers,
  readPolicy,
  readShortText,
  readText,
  readTime,
  readVersion,
  SIGNATURE,
  TOKEN,
  XR_ID,
} from "/static/receiver/verifying/shapes.js";
import { canonicalize, parse } from "/static/receiver/verifying/strict_json.js";

import { getData, getElement } from "../elements.js";
import { findLocale } from "../local_times.js";

const MEMBERS = [
  "version",
  "xr_id",
  "organization_id",
  "project_id",
  "campaign_id",
  "issuer",
  "issued_at",
  "expires_at",
  "intent",
  "policy",
  "token_digest",
  "key_id",
  "signature",
];
const TENANT = /\/organizations\/([^/]+)\/projects\/([^/]+)\/codes\/([^/]+)$/;

/** A check that came out against the Code, unlike one that could not be made. */
class Refused extends Error {}

/**
 * @param {boolean} isTrue
 * @param {string} explanation
 */
function require(isTrue, explanation) {
  if (!isTrue) throw new Refused(explanation);
}

/**
 * @import { Members } from "/static/receiver/verifying/strict_json.js"
 * @typedef {object} Found what a step may use: the first three members from the page, the others from earlier steps
 * @property {string} text
 * @property {string} token
 * @property {string} keysUrl
 * @property {Members} code
 * @property {string} signature
 * @property {string} keyId
 * @property {Map<string, string>[]} published
 * @property {CryptoKey} key
 * @property {Uint8Array<ArrayBuffer>} signed
 */

/**
 * The steps in their order. Each takes what the earlier ones found, and returns a value to show beside it.
 *
 * @type {Record<string, (found: Found) => string | Promise<string>>}
 */
const STEPS = {
  shape(found) {
    found.code = readMembers(parse(new TextEncoder().encode(found.text)), MEMBERS);
    const { code } = found;
    readVersion(code.get("version"));
    readShortText(code.get("issuer"));
    readIntent(code.get("intent"));
    readPolicy(code.get("policy"));
    readText(code.get("xr_id"), XR_ID);
    found.signature = readText(code.get("signature"), SIGNATURE);
    found.keyId = readShortText(code.get("key_id"));
    require(readTime(code.get("issued_at")) < readTime(code.get("expires_at")), "expires_at");
    return `xr-code-v1, ${code.size}`;
  },
  async keys(found) {
    const response = await fetch(found.keysUrl, {
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
    if (!response.ok) throw new Error(`${response.status}`);
    // Any other shape makes this step or the next one fail with a `TypeError`.
    const keySet = /** @type {Members} */ (parse(new Uint8Array(await response.arrayBuffer())));
    found.published = /** @type {Map<string, string>[]} */ (keySet.get("keys"));
    return `${found.published.length}: ${found.keysUrl}`;
  },
  async key(found) {
    const matching = found.published.filter((each) => each.get("kid") === found.keyId);
    require(matching.length === 1, found.keyId);
    const [key] = matching;
    require(key.get("kty") === "OKP" && key.get("crv") === "Ed25519", found.keyId);
    const point = /** @type {string} */ (key.get("x"));
    found.key = await crypto.subtle.importKey("raw", decode(point), "Ed25519", true, ["verify"]);
    return `${found.keyId} (${key.get("status")})`;
  },
  canonical(found) {
    const signed = new Map([...found.code].filter(([name]) => name !== "signature"));
    found.signed = new TextEncoder().encode(canonicalize(signed));
    return new Intl.NumberFormat(findLocale(), { style: "unit", unit: "byte", unitDisplay: "long" }).format(
      found.signed.length,
    );
  },
  async signature(found) {
    require(await crypto.subtle.verify("Ed25519", found.key, decode(found.signature), found.signed), "Ed25519");
    return "Ed25519";
  },
  async digest(found) {
    const token = new TextEncoder().encode(readText(found.token, TOKEN));
    const digest = encode(new Uint8Array(await crypto.subtle.digest("SHA-256", token)));
    require(digest === found.code.get("token_digest"), digest);
    return digest;
  },
  record(found) {
    const [, organizationId, projectId, xrId] = /** @type {RegExpExecArray} */ (TENANT.exec(location.pathname));
    const stated = ["organization_id", "project_id", "xr_id"].map((name) => found.code.get(name));
    require(stated.join() === [organizationId, projectId, xrId].join(), stated.join(" "));
    return xrId;
  },
};

/**
 * Take every step and show its result; the first that fails ends the verification, and opens its section.
 *
 * @param {HTMLDetailsElement} section
 */
async function verify(section) {
  const found = /** @type {Found} */ ({
    text: getElement(HTMLElement, "#signed-code").textContent,
    token: getData(section, "token"),
    keysUrl: getData(section, "keys"),
  });
  const conclusion = getElement(HTMLElement, ".conclusion", section);
  for (const [name, act] of Object.entries(STEPS)) {
    const item = getElement(HTMLElement, `[data-step="${name}"]`, section);
    const outcome = getElement(HTMLElement, ".outcome", item);
    try {
      outcome.textContent = await act(found);
      item.className = "done";
    } catch (error) {
      const failure = /** @type {Error & {reason?: string}} */ (error);
      const isRefused = failure instanceof Refused || failure.reason === "unverifiable";
      item.className = "failed";
      outcome.textContent = failure.message;
      section.open = true;
      section.dataset.result = isRefused ? "refused" : "unknown";
      conclusion.textContent = getData(section, isRefused ? "failed" : "unchecked");
      return;
    }
  }
  section.dataset.result = "verified";
  conclusion.textContent = getData(section, "verified");
}

const section = getElement(HTMLDetailsElement, "#verification");
getElement(HTMLElement, "#steps", section).hidden = false;
verify(section);
