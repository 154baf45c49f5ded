import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ReceiverFailure } from "../src/failures.js";
import { readKeySet } from "../src/verifying/keys.js";
import { readIntent } from "../src/verifying/shapes.js";
import { areIdentical, canonicalize, parse } from "../src/verifying/strict_json.js";
import { verifyAnswer } from "../src/verifying/verification.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../../docs/vectors/${name}.json`, import.meta.url)));
const encode = (text) => new TextEncoder().encode(text);
const isUnverifiable = (failure) => failure instanceof ReceiverFailure && failure.reason === "unverifiable";
const answers = read("resolution-proof-v1");
const json = read("canonical-json");
const keys = await readKeySet(encode(JSON.stringify(answers.keys)));
const verify = (each, token = each.token) =>
  verifyAnswer(encode(JSON.stringify(each.answer)), token, keys, Date.parse(each.now));

test("every published answer verifies, and yields what was signed", async () => {
  for (const each of answers.cases) {
    const resolution = await verify(each);
    assert.equal(resolution.xrId, each.answer.xr_id, each.name);
    assert.equal(resolution.intent.action, each.answer.intent.action, each.name);
    assert.equal(resolution.measurementProof !== null, "measurement_proof" in each.answer, each.name);
  }
  assert.ok(answers.cases.length > 0);
});

test("no published answer verifies for another token", async () => {
  for (const each of answers.cases) await assert.rejects(verify(each, "brd_0000000000000000"), isUnverifiable, each.name);
});

test("every spoilt answer is refused", async () => {
  for (const each of answers.refused) await assert.rejects(verify(each), isUnverifiable, each.name);
  assert.ok(answers.refused.length > 0);
});

test("no answer verifies once a byte of its payload or signature is altered", async () => {
  const [each] = answers.cases;
  for (const name of ["payload", "signature"]) {
    const proof = each.answer.resolution_proof;
    const altered = (proof[name][10] === "A" ? "B" : "A") + proof[name].slice(11);
    const answer = { ...each.answer, resolution_proof: { ...proof, [name]: proof[name].slice(0, 10) + altered } };
    await assert.rejects(verify({ ...each, answer }), isUnverifiable, name);
  }
});

test("accepted JSON has exactly the published canonical form", () => {
  for (const each of json.accepted) assert.equal(canonicalize(parse(encode(each.input))), each.canonical, each.name);
  assert.ok(json.accepted.length > 0);
});

test("JSON that two programs could read differently is refused", () => {
  // As an intent's resource, which also limits depth and size.
  const asIntent = (each) => readIntent(parse(encode(each)));
  for (const each of json.refused) assert.throws(() => asIntent(each.input), isUnverifiable, each.name);
  for (const each of json.refused_bytes) {
    assert.throws(() => parse(Uint8Array.from(Buffer.from(each.input_hex, "hex"))), isUnverifiable, each.name);
  }
  assert.ok(json.refused.length > 0 && json.refused_bytes.length > 0);
});

test("a number with a fraction is another value than the integer that it equals", () => {
  const [integer, fraction] = [parse(encode('{"a":1}')), parse(encode('{"a":1.0}'))];
  assert.equal(areIdentical(integer, integer), true);
  assert.equal(areIdentical(fraction, fraction), true);
  assert.equal(areIdentical(integer, fraction), false);
});

test("a member named __proto__ is a member like any other", async () => {
  const intent = readIntent(parse(encode('{"type":"t","action":"a","resource":{"__proto__":{"polluted":true}}}')));
  assert.deepEqual(Object.keys(intent.resource), ["__proto__"]);
  assert.equal({}.polluted, undefined);
});
