// docs/vectors/transparency-log-v1.json, which Python's tests read too, and every byte of a proof.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ReceiverFailure } from "../src/failures.js";
import { checkEntry, commit } from "../src/verifying/commitments.js";
import { LogPolicy } from "../src/verifying/log_policy.js";
import { PROOF_BYTES_MAX, verifyLogProof } from "../src/verifying/log_proof.js";

const vectors = JSON.parse(readFileSync(new URL("../../../docs/vectors/transparency-log-v1.json", import.meta.url)));
const encode = (text) => new TextEncoder().encode(text);
const isUnverifiable = (failure) => failure instanceof ReceiverFailure && failure.reason === "unverifiable";
const [first] = vectors.entries;
const digest = first.digests["code.issued/answer"];
const cosigned = vectors.proofs.find(({ quorum }) => quorum === 1);
const readPolicy = (quorum) => LogPolicy.read(vectors.log.vkey, { witnesses: [vectors.witness.vkey], quorum });
const verify = async ({ proof, quorum }) =>
  verifyLogProof(encode(proof), await readPolicy(quorum), "code.issued/answer", digest);

test("each value has its published digest, and each entry is one of its kind", async () => {
  for (const { name, values, digests, entry } of vectors.entries) {
    for (const [path, value] of Object.entries(values)) {
      assert.equal(await commit(path, encode(JSON.stringify(value))), digests[path], name);
      checkEntry(encode(entry), path, digests[path]);
      assert.throws(() => checkEntry(encode(entry), path, digest.replace(/^./, "_")), isUnverifiable, name);
      assert.throws(() => checkEntry(encode(` ${entry}`), path, digests[path]), isUnverifiable, name);
      for (const version of ["2", "true"]) {
        const other = encode(entry.replace('"v":1', `"v":${version}`));
        assert.throws(() => checkEntry(other, path, digests[path]), isUnverifiable, version);
      }
      assert.throws(() => checkEntry(encode(entry.replace("{", '{"a":1,')), path, digests[path]), isUnverifiable);
    }
  }
  assert.ok(vectors.entries.length > 0);
});

test("each published proof is accepted, and each other one refused", async () => {
  for (const each of vectors.proofs) {
    const { size, cosignatures } = await verify(each);
    assert.ok(size > 0 && cosignatures >= each.quorum, each.name);
  }
  for (const each of vectors.refused) await assert.rejects(verify(each), isUnverifiable, each.name);
  assert.ok(vectors.proofs.length > 0 && vectors.refused.length > 0);
});

test("no altered byte of a proof is accepted", async () => {
  const policy = await readPolicy(1);
  const bytes = encode(cosigned.proof);
  for (let place = 0; place < bytes.length; place += 1) {
    const altered = bytes.slice();
    altered[place] ^= 1;
    await assert.rejects(verifyLogProof(altered, policy, "code.issued/answer", digest), isUnverifiable, `${place}`);
  }
});

test("a proof counts for one key, one kind, one digest and a bounded length alone", async () => {
  const proof = encode(cosigned.proof);
  const policy = await readPolicy(0);
  const other = await LogPolicy.read(await makeVkey("codes.example.org/v1/log"));
  await assert.rejects(verifyLogProof(proof, other, "code.issued/answer", digest), isUnverifiable);
  await assert.rejects(verifyLogProof(proof, policy, "code.revoked/code", digest), isUnverifiable);
  const code = first.digests["code.issued/code"];
  await assert.rejects(verifyLogProof(proof, policy, "code.issued/answer", code), isUnverifiable);
  await verifyLogProof(proof, policy, "code.issued/code", code);
  const long = encode(`${cosigned.proof}${"— a AAAA\n".repeat(PROOF_BYTES_MAX / 10)}`);
  await assert.rejects(verifyLogProof(long, policy, "code.issued/answer", digest), isUnverifiable);
  const spoilt = new Uint8Array([...proof, ...encode("— a"), 0xff, ...encode(" AAAA\n")]);
  await assert.rejects(verifyLogProof(spoilt, policy, "code.issued/answer", digest), isUnverifiable, "no UTF-8");
  const rolled = await LogPolicy.read([await makeVkey("codes.example.org/v1/log"), vectors.log.vkey]);
  assert.ok(await verifyLogProof(proof, rolled, "code.issued/answer", digest), "either key, while it is rolled");
});

/** Return the vkey of a new key. */
async function makeVkey(name, kind = 1) {
  const { publicKey } = await crypto.subtle.generateKey("Ed25519", true, ["sign", "verify"]);
  const raw = Buffer.from([kind, ...new Uint8Array(await crypto.subtle.exportKey("raw", publicKey))]);
  const hashed = await crypto.subtle.digest("SHA-256", Buffer.concat([Buffer.from(`${name}\n`), raw]));
  return `${name}+${Buffer.from(hashed).subarray(0, 4).toString("hex")}+${raw.toString("base64")}`;
}

test("a witness of the same name and another key does not count, and a missing one neither", async () => {
  const proof = encode(cosigned.proof);
  const impostor = await makeVkey("witness.example.net/w1", 4);
  const one = await LogPolicy.read(vectors.log.vkey, { witnesses: [impostor], quorum: 1 });
  await assert.rejects(verifyLogProof(proof, one, "code.issued/answer", digest), isUnverifiable);
  const witnesses = [vectors.witness.vkey, impostor];
  const two = await LogPolicy.read(vectors.log.vkey, { witnesses, quorum: 2 });
  await assert.rejects(verifyLogProof(proof, two, "code.issued/answer", digest), isUnverifiable);
  const either = await LogPolicy.read(vectors.log.vkey, { witnesses, quorum: 1 });
  const found = await verifyLogProof(proof, either, "code.issued/answer", digest);
  assert.equal(found.cosignatures, 1);
  assert.deepEqual(found.witnesses, [{ name: "witness.example.net/w1", timeS: 1_795_000_000 }]);
});

test("an impossible policy is refused", async () => {
  const { vkey } = vectors.log;
  const witness = vectors.witness.vkey;
  for (const [key, options, error] of [
    ["", {}, TypeError],
    [witness, {}, TypeError],
    [vkey, { witnesses: [vkey] }, TypeError],
    [vkey.replace("codes", "c+des"), {}, TypeError],
    [vkey.replace(/\+[0-9a-f]{8}\+/, "+00000000+"), {}, TypeError],
    [`${vkey}AAAA`, {}, TypeError],
    [`${vkey}=`, {}, TypeError],
    [await makeVkey("a\x1cb"), {}, TypeError],
    [await makeVkey("a\x85b"), {}, TypeError],
    [[], {}, RangeError],
    [[vkey, await makeVkey("other.example/log")], {}, RangeError],
    [vkey, { witnesses: [witness, witness], quorum: 1 }, RangeError],
    [vkey, { witnesses: [witness], quorum: 2 }, RangeError],
    [vkey, { quorum: -1 }, RangeError],
    [vkey, { witnesses: [witness], quorum: 0.5 }, RangeError],
  ]) {
    await assert.rejects(LogPolicy.read(key, options), error, `${key}`);
  }
});
