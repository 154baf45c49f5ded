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

function require(isTrue, explanation) {
  if (!isTrue) throw new Refused(explanation);
}

/** The steps in their order. Each takes what the earlier ones found, and returns a value to show beside it. */
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
    found.published = parse(new Uint8Array(await response.arrayBuffer())).get("keys");
    return `${found.published.length}: ${found.keysUrl}`;
  },
  async key(found) {
    const matching = found.published.filter((each) => each.get("kid") === found.keyId);
    require(matching.length === 1, found.keyId);
    const [key] = matching;
    require(key.get("kty") === "OKP" && key.get("crv") === "Ed25519", found.keyId);
    found.key = await crypto.subtle.importKey("raw", decode(key.get("x")), "Ed25519", true, ["verify"]);
    return `${found.keyId} (${key.get("status")})`;
  },
  canonical(found) {
    const signed = new Map([...found.code].filter(([name]) => name !== "signature"));
    found.signed = new TextEncoder().encode(canonicalize(signed));
    return `${found.signed.length} bytes`;
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
    const [, organizationId, projectId, xrId] = TENANT.exec(location.pathname);
    const stated = ["organization_id", "project_id", "xr_id"].map((name) => found.code.get(name));
    require(stated.join() === [organizationId, projectId, xrId].join(), stated.join(" "));
    return xrId;
  },
};

/** Take every step and show its result; the first that fails ends the verification. */
async function verify(section) {
  const found = {
    text: document.getElementById("signed-code").textContent,
    token: document.getElementById("broadcast-token").textContent,
    keysUrl: section.dataset.keys,
  };
  const conclusion = section.querySelector(".conclusion");
  for (const [name, act] of Object.entries(STEPS)) {
    const item = section.querySelector(`[data-step="${name}"]`);
    try {
      item.querySelector(".outcome").textContent = await act(found);
      item.className = "done";
    } catch (error) {
      const isRefused = error instanceof Refused || error.reason === "unverifiable";
      item.className = "failed";
      item.querySelector(".outcome").textContent = error.message;
      section.dataset.result = isRefused ? "refused" : "unknown";
      conclusion.textContent = isRefused ? section.dataset.failed : section.dataset.unchecked;
      return;
    }
  }
  section.dataset.result = "verified";
  conclusion.textContent = section.dataset.verified;
}

const section = document.getElementById("verification");
section.hidden = false;
verify(section);
