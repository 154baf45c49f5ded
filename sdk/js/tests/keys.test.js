import assert from "node:assert/strict";
import { test } from "node:test";

import { KeyUnknown, ReceiverFailure } from "../src/failures.js";
import { readKeySet } from "../src/verifying/keys.js";
import { encode, KEY_ID, sign, VECTORS } from "./signing.js";

const [key, otherKey] = VECTORS.keys.keys;
const read = (...keys) => readKeySet(encode({ keys }));
const isUnverifiable = (failure) => failure instanceof ReceiverFailure && failure.reason === "unverifiable";
const encodeBytes = (count) => Buffer.alloc(count).toString("base64url");
const message = encode("message");
const signature = await sign("message");

test("every published key verifies, also the next one and those that are retiring", async () => {
  for (const status of ["active", "next", "retiring"])
    await (await read({ ...key, status })).verify(KEY_ID, message, signature);
});

test("a key set with one wrong key is refused", async () => {
  const wrong = [
    { crv: "X25519" },
    { alg: "ES256" },
    { use: "enc" },
    { status: "retired" },
    { status: ["active"] },
    { status: undefined },
    { kid: "" },
    { kid: "k".repeat(161) },
    { kid: 1 },
    { kty: null },
    { kty: undefined },
    { x: encodeBytes(31) },
    { x: encodeBytes(33) },
    { x: `${key.x.slice(0, -1)}h` },
    { x: null },
    { d: encodeBytes(32) },
    { kid: KEY_ID },
  ];
  for (const changes of wrong) {
    await assert.rejects(read(key, { ...otherKey, ...changes }), isUnverifiable, JSON.stringify(changes));
  }
  assert.equal(Buffer.from(`${key.x.slice(0, -1)}h`, "base64url").length, 32, "its spare bits are set");
});

test("keys of another type are skipped, whatever else they hold", async () => {
  const keys = await read({ kty: "AKP", alg: "ML-DSA-65", pub: "AA", kid: KEY_ID }, key);
  await keys.verify(KEY_ID, message, signature);
});

test("a key set of another shape is refused", async () => {
  for (const body of ["[]", '{"keys":{}}', "{}", '{"keys":[],"more":1}', '{"keys":[1]}', "x", ""]) {
    await assert.rejects(readKeySet(encode(body)), isUnverifiable, body);
  }
});

test("a set has at most 1,000 keys", async () => {
  const many = Array.from({ length: 1000 }, (_, number) => ({ ...key, kid: `${number}` }));
  await (await read(...many)).verify("999", message, signature);
  await assert.rejects(read(...many, key), isUnverifiable);
});

test("only the key that is named is tried, and its id is compared exactly", async () => {
  const keys = await read(key, otherKey);
  await assert.rejects(
    keys.verify(otherKey.kid, message, signature),
    (failure) => isUnverifiable(failure) && !(failure instanceof KeyUnknown),
  );
  for (const id of [KEY_ID.toUpperCase(), KEY_ID.slice(0, -1), `${KEY_ID} `, "", "__proto__"]) {
    await assert.rejects(keys.verify(id, message, signature), KeyUnknown, id);
  }
});

test("a key that the browser cannot use makes the set unverifiable", async ({ mock }) => {
  mock.method(crypto.subtle, "importKey", () => Promise.reject(new DOMException("", "NotSupportedError")));
  await assert.rejects(read(key), isUnverifiable);
});
