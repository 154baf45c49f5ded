import assert from "node:assert/strict";
import { test } from "node:test";

import { KeyUnknown, ReceiverFailure } from "../src/failures.js";
import { decode } from "../src/verifying/base64url.js";
import { readMembers, readPolicy, readTime } from "../src/verifying/shapes.js";
import { verifyAnswer } from "../src/verifying/verification.js";
import { encode, GENUINE, KEY_ID, MEASURED, readKeys, sign, signAnswer, signProof } from "./signing.js";

const keys = await readKeys();
const intent = GENUINE.answer.intent;
const unmeasured = GENUINE.answer.policy;
const measured = MEASURED.answer.policy;
const INTEGRATION_ID = measured.audience_integration_id;
const isUnverifiable = (failure) =>
  failure instanceof ReceiverFailure && !(failure instanceof KeyUnknown) && failure.reason === "unverifiable";

const verify = (answer, now = GENUINE.now, keySet = keys) =>
  verifyAnswer(encode(answer), GENUINE.token, keySet, Date.parse(now));
const refuses = async (signed, note, now) =>
  assert.rejects(verify(await signAnswer(signed), now), isUnverifiable, note);

/** Refuse an answer for each of these changes to its signed payload. */
async function refusesEach(changesList) {
  await verify(await signAnswer());
  for (const changes of changesList) await refuses({ changes }, JSON.stringify(changes).slice(0, 100));
}

test("a signed payload of another shape is refused", async () => {
  await refusesEach([
    { version: 2 },
    { version: true },
    { xr_id: "xr_0123456789abcde" },
    { xr_id: `xr_0123456789abcdef\n` },
    { xr_id: `XR_0123456789abcdef` },
    { key_id: "" },
    { intent: { ...intent, type: "" } },
    { intent: { ...intent, action: 1 } },
    { intent: { ...intent, resource: [] } },
    { intent: { ...intent, resource: null } },
    { intent: { ...intent, resource: undefined } },
    { intent: { ...intent, more: 1 } },
    { intent: { ...intent, resource: { a: "x".repeat(16_384) } } },
    { token_digest: null },
    { token_digest: undefined },
    { more: 1 },
  ]);
  assert.equal(
    (await verify(await signAnswer({ changes: { xr_id: "xr_0123456789abcdef" } }))).xrId,
    "xr_0123456789abcdef",
  );
});

test("the version is the integer 1, however it could also be written", async () => {
  for (const version of ["1.0", "1e0", "true", '"1"']) {
    const spell = (text) => text.replace('"version":1', `"version":${version}`);
    await refuses({ spell, envelope: { version: JSON.parse(version) } }, version);
  }
});

test("a short text has 1 to 160 characters, as code points", async () => {
  for (const character of ["t", "é", "😀", "\n"]) {
    const longest = { ...intent, type: character.repeat(160) };
    assert.equal((await verify(await signAnswer({ changes: { intent: longest } }))).intent.type, longest.type);
    await refuses({ changes: { intent: { ...intent, type: character.repeat(161) } } }, character);
  }
});

test("a policy names an integration exactly when it measures, and a proof is there exactly then", async () => {
  const proof = await signProof();
  await refusesEach([
    { policy: { ...unmeasured, audience_integration_id: INTEGRATION_ID } },
    { policy: { ...measured, audience_integration_id: null } },
    { policy: { ...measured, audience_integration_id: null }, measurement_proof: proof },
    { policy: { ...measured, audience_integration_id: "int_short" }, measurement_proof: proof },
    { policy: { ...measured, audience_measurement: 1 }, measurement_proof: proof },
    { policy: { ...unmeasured, audience_measurement: 0 } },
    { policy: { ...unmeasured, more: 1 } },
    { policy: { audience_measurement: false } },
    { policy: measured },
    { policy: measured, measurement_proof: null },
    { policy: unmeasured, measurement_proof: proof },
  ]);
  const resolution = await verify(await signAnswer({ changes: { policy: measured, measurement_proof: proof } }));
  assert.deepEqual({ ...resolution.measurementProof }, proof);
  for (const audience_measurement of [0, null, "false"]) {
    const policy = new Map(Object.entries({ ...unmeasured, audience_measurement }));
    assert.throws(() => readPolicy(policy), isUnverifiable, `${audience_measurement}`);
  }
});

test("a closed object has all members that are required, and no other but the optional ones", () => {
  const read = (members) => readMembers(new Map(Object.entries(members)), ["a", "b"], ["c"]).size;
  assert.deepEqual([read({ a: 1, b: 2 }), read({ c: 3, b: 2, a: 1 })], [2, 3]);
  for (const members of [{}, { a: 1 }, { a: 1, c: 3 }, { a: 1, b: 2, d: 4 }]) {
    assert.throws(() => read(members), isUnverifiable, JSON.stringify(members));
  }
  for (const value of [null, [], "a b", 1, { a: 1, b: 2 }]) {
    assert.throws(() => readMembers(value, ["a", "b"]), isUnverifiable, JSON.stringify(value));
  }
});

test("an outer answer that differs from what was signed is refused", async () => {
  const proof = await signProof();
  const others = [
    { xr_id: `${GENUINE.answer.xr_id}x` },
    { xr_id: undefined },
    { intent: { ...intent, action: "buy" } },
    { policy: measured },
    { policy: { ...unmeasured, audience_measurement: 0 } },
    { measurement_proof: proof },
    { measurement_proof: null },
    { signature_status: "unverified" },
    { signature_status: true },
    { signature_status: undefined },
    { resolution_proof: undefined },
    { resolution_proof: null },
    { more: 1 },
  ];
  for (const outer of others) await refuses({ outer }, JSON.stringify(outer));
  const changes = { policy: measured, measurement_proof: proof };
  for (const other of [undefined, null, { ...proof, campaign_id: "cmp_0123456789abcdef" }]) {
    await refuses({ changes, outer: { measurement_proof: other } }, `${other}`);
  }
});

test("an envelope that differs from its payload, or has another shape, is refused", async () => {
  const others = [
    { version: 2 },
    { version: true },
    { issued_at: "2026-11-20T11:00:00.001Z" },
    { expires_at: "2026-11-20T11:01:59.999Z" },
    { payload: "" },
    { payload: null },
    { signature: "A".repeat(86) },
    { signature: "A".repeat(85) },
    { signature: null },
    { key_id: "" },
    { key_id: "k".repeat(161) },
    { more: 1 },
  ];
  for (const envelope of others) await refuses({ envelope }, JSON.stringify(envelope));
  // The key that the envelope names signed a payload that says something else.
  for (const changes of [{ version: 2 }, { key_id: "sig_other" }]) {
    await refuses({ changes, envelope: { version: 1, key_id: KEY_ID } }, JSON.stringify(changes));
  }
});

test("a payload has 64 to 65,536 characters, which is judged before who signed it", async () => {
  const xrIdOf = (bytes) => `xr_${"x".repeat(bytes - GENUINE.canonical.length + GENUINE.answer.xr_id.length - 3)}`;
  const longest = await signAnswer({ changes: { xr_id: xrIdOf(49_152) } });
  assert.equal(longest.resolution_proof.payload.length, 65_536);
  assert.equal((await verify(longest)).xrId, xrIdOf(49_152));
  await refuses({ changes: { xr_id: xrIdOf(49_153) } });
  const nobodys = { key_id: "sig_nobodys" };
  await refuses({ envelope: { ...nobodys, payload: "A".repeat(63) } });
  await assert.rejects(verify(await signAnswer({ envelope: { ...nobodys, payload: "A".repeat(64) } })), KeyUnknown);
});

test("a payload in any but its canonical spelling is refused", async () => {
  for (const spell of [
    (text) => ` ${text}`,
    (text) => `${text}\n`,
    (text) => text.replace("Tonight", "\\u0054onight"),
  ]) {
    await refuses({ spell }, String(spell));
  }
});

test("base64url has one spelling, without spare bits, padding or strangers", async () => {
  for (const text of ["A", "AB==", "AB", "AAB", "+A", "/A", "A A", "AA\n", "é", "AA=", "_-A*"]) {
    assert.throws(() => decode(text), isUnverifiable, text);
  }
  for (const [text, bytes] of [
    ["", []],
    ["AA", [0]],
    ["_-8", [255, 239]],
    ["AAAA", [0, 0, 0]],
  ]) {
    assert.deepEqual([...decode(text)], bytes);
  }
  const { resolution_proof: proof } = await signAnswer();
  const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  // The last of the 86 characters of a signature holds two bits of it, so fifteen others decode to the same bytes.
  const signature = proof.signature.slice(0, -1) + digits[digits.indexOf(proof.signature.at(-1)) + 1];
  assert.equal(Buffer.from(signature, "base64url").compare(Buffer.from(proof.signature, "base64url")), 0);
  await refuses({ envelope: { signature } });
});

test("a lifetime is more than nothing and at most two minutes", async () => {
  const issued_at = "2026-11-20T11:00:00.000Z";
  const lasts = (expires_at) => ({ issued_at, expires_at });
  await refusesEach([issued_at, "2026-11-20T10:59:59.999Z", "2026-11-20T11:02:00.001Z"].map(lasts));
  await verify(await signAnswer({ changes: lasts("2026-11-20T11:00:00.001Z") }));
});

test("a measurement proof lasts more than nothing and at most five minutes", async () => {
  const issued_at = "2026-11-20T11:00:00.000Z";
  const judge = async (expires_at) =>
    verify(
      await signAnswer({
        changes: { policy: measured, measurement_proof: await signProof({ issued_at, expires_at }) },
      }),
    );
  for (const expires_at of [issued_at, "2026-11-20T10:59:59.999Z", "2026-11-20T11:05:00.001Z"]) {
    await assert.rejects(judge(expires_at), isUnverifiable, expires_at);
  }
  await judge("2026-11-20T11:05:00.000Z");
});

test("a measurement proof of another answer, shape or signer is refused", async () => {
  const proofs = [
    { xr_id: "xr_AAAAAAAAAAAAAAAAAAAAAA" },
    { integration_id: "int_AAAAAAAAAAAAAAAAAAAAAA" },
    { proof_id: null },
    { proof_id: "prf_short" },
    { campaign_id: "cmp_short" },
    { campaign_id: undefined },
    { issued_at: "2026-11-20T11:02:00.001Z", expires_at: "2026-11-20T11:05:00.000Z" },
    { issued_at: "2026-11-20T10:55:00.000Z", expires_at: "2026-11-20T10:58:00.000Z" },
    { more: 1 },
  ].map(signProof);
  proofs.push({ ...(await signProof()), signature: await sign("something else") });
  for (const signing of proofs) {
    const measurement_proof = await signing;
    await refuses({ changes: { policy: measured, measurement_proof } }, JSON.stringify(measurement_proof));
  }
  // The older shape of the proof.
  await verify(
    await signAnswer({ changes: { policy: measured, measurement_proof: await signProof({ proof_id: undefined }) } }),
  );
});

test("a time is written in one way and names a date that exists", async () => {
  const malformed = [
    "2026-11-20T10:00:00Z",
    "2026-11-20T10:00:00.0000Z",
    "2026-11-20T10:00:00.000+00:00",
    "2026-11-20t10:00:00.000z",
    "2026-11-20 10:00:00.000Z",
    "2026-02-30T10:00:00.000Z",
    "0000-01-01T00:00:00.000Z",
    "2026-13-01T10:00:00.000Z",
    "2026-11-20T24:00:00.000Z",
    "2026-11-20T10:60:00.000Z",
    "2026-12-31T23:59:60.000Z",
    "٢026-11-20T10:00:00.000Z",
    "2026-11-20T10:00:00.000Z\n",
    "",
    null,
    1763632800,
  ];
  for (const text of malformed) assert.throws(() => readTime(text), isUnverifiable, `${text}`);
  assert.equal(readTime("2028-02-29T23:59:59.999Z"), Date.UTC(2028, 1, 29, 23, 59, 59, 999));
  const impossible = { issued_at: "2026-02-30T10:00:00.000Z", expires_at: "2026-02-30T10:02:00.000Z" };
  await refuses({ changes: impossible }, "which `Date` takes for 2 March", "2026-03-02T10:00:00.000Z");
});

test("a key id that nobody published has a failure of its own, so that newer keys can be fetched", async () => {
  await assert.rejects(verify(await signAnswer({ changes: { key_id: "sig_nobodys" } })), KeyUnknown);
  const measurement_proof = await signProof({ key_id: "sig_nobodys" });
  await assert.rejects(verify(await signAnswer({ changes: { policy: measured, measurement_proof } })), KeyUnknown);
});

test("a signature that the browser cannot judge is unverifiable", async ({ mock }) => {
  const answer = await signAnswer();
  mock.method(crypto.subtle, "verify", () => Promise.reject(new DOMException("", "OperationError")));
  await assert.rejects(verify(answer), isUnverifiable);
});
