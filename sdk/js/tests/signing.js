// Makes answers that the keys of the published vectors sign, with whatever a test puts into them.
import { readFileSync } from "node:fs";

import { readKeySet } from "../src/verifying/keys.js";
import { canonicalize, parse } from "../src/verifying/strict_json.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../../docs/vectors/${name}.json`, import.meta.url)));
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");

export const VECTORS = read("resolution-proof-v1");
export const GENUINE = VECTORS.cases[0];
export const MEASURED = VECTORS.cases.find((each) => "measurement_proof" in each.answer);
export const KEY_ID = VECTORS.keys.keys[0].kid;

export const encode = (value) => new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));

/** Return the published keys, with others after them. */
export const readKeys = (...others) => readKeySet(encode({ keys: [...VECTORS.keys.keys, ...others] }));

/** Return the signature of a text by the first published key, in base64url. */
export async function sign(text) {
  const pkcs8 = Buffer.concat([PKCS8, Buffer.from(VECTORS.seeds[KEY_ID], "base64url")]);
  const key = await crypto.subtle.importKey("pkcs8", pkcs8, "Ed25519", false, ["sign"]);
  return Buffer.from(await crypto.subtle.sign("Ed25519", key, encode(text))).toString("base64url");
}

const writeCanonical = (value) => canonicalize(parse(encode(value)));

/** Return the published measurement proof with `changes`, signed anew. */
export async function signProof(changes = {}) {
  const { signature, ...unsigned } = { ...MEASURED.answer.measurement_proof, ...changes };
  return { ...unsigned, signature: await sign(writeCanonical(unsigned)) };
}

/**
 * Return an answer whose payload has `changes`, signed anew; undefined removes a member. Its outer members are those of
 * the payload, except for what `outer` and `envelope` say.
 */
export async function signAnswer({ changes = {}, outer = {}, envelope = {}, spell = (text) => text } = {}) {
  const payload = { ...JSON.parse(GENUINE.canonical), ...changes };
  const text = spell(writeCanonical(payload));
  const { version, key_id, issued_at, expires_at } = payload;
  const { xr_id, intent, policy, measurement_proof } = payload;
  return {
    ...{ xr_id, intent, policy, measurement_proof, signature_status: "verified" },
    resolution_proof: {
      ...{ version, key_id, issued_at, expires_at },
      payload: Buffer.from(text).toString("base64url"),
      signature: await sign(text),
      ...envelope,
    },
    ...outer,
  };
}
