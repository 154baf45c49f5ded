import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ReceiverFailure } from "../src/failures.js";
import { readKeySet } from "../src/verifying/keys.js";
import { canonicalizeIntent, readIntent } from "../src/verifying/shapes.js";
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
  for (const each of answers.cases)
    await assert.rejects(verify(each, "brd_0000000000000000"), isUnverifiable, each.name);
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
  for (const each of json.accepted)
    assert.equal(canonicalizeIntent(parse(encode(each.input))), each.canonical, each.name);
  assert.ok(json.accepted.length > 0);
});

test("a string that is longer than a browser can match is refused", () => {
  for (const text of ["a".repeat(3e7), "\\n".repeat(1e7)])
    assert.throws(() => parse(encode(`{"version":"${text}"}`)), isUnverifiable);
  assert.equal(parse(encode(`"${"a".repeat(1e6)}"`)).length, 1e6);
});

test("JSON that two programs could read differently is refused, and so is more depth and size than an intent may have", () => {
  const tooLarge = new Set([
    "33 levels of objects",
    "33 levels of arrays",
    "16385 bytes",
    "more bytes than characters",
  ]);
  for (const each of json.refused) {
    // The parser alone refuses everything but what only an intent may not be.
    const judge = tooLarge.delete(each.name) ? (text) => canonicalizeIntent(parse(text)) : parse;
    assert.throws(() => judge(encode(each.input)), isUnverifiable, each.name);
  }
  assert.equal(tooLarge.size, 0);
  for (const each of json.refused_bytes) {
    assert.throws(() => parse(Uint8Array.from(Buffer.from(each.input_hex, "hex"))), isUnverifiable, each.name);
  }
  assert.ok(json.refused.length > 0 && json.refused_bytes.length > 0);
});

test("a text that only resembles JSON is refused", () => {
  for (const text of [
    "[1 2]",
    "[1:2]",
    '{"a",1}',
    '{"a":1:"b":2}',
    "[1}",
    '{"a":1]',
    "[1]x",
    "[1]\u00a0",
    ",",
    "[,1]",
  ]) {
    assert.throws(() => parse(encode(text)), isUnverifiable, text);
  }
});

test("JSON is parsed to 64 levels, whatever they consist of", () => {
  for (const [begin, end] of [
    ["[", "]"],
    ['{"a":', "}"],
  ]) {
    const nest = (levels) => encode(`${begin.repeat(levels)}0${end.repeat(levels)}`);
    assert.equal(canonicalize(parse(nest(64))), new TextDecoder().decode(nest(64)));
    assert.throws(() => parse(nest(65)), isUnverifiable);
  }
});

test("an intent of 33 levels or more than 16 KiB is refused, and one of 32 levels is read", () => {
  const nested = (levels) => `{"type":"t","action":"a","resource":${'{"a":'.repeat(levels - 1)}1${"}".repeat(levels)}`;
  const long = (bytes) => `{"type":"t","action":"a","resource":{"a":"${"x".repeat(bytes - 45)}"}}`;
  const read = (text) => readIntent(parse(encode(text)));
  for (const [accepted, refused] of [
    [nested(32), nested(33)],
    [long(16_384), long(16_385)],
  ]) {
    assert.equal(read(accepted).action, "a");
    assert.throws(() => read(refused), isUnverifiable);
  }
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
