// docs/vectors/offline-pack-v1.json, which Python's tests read too, and every byte of a pack.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { KeyUnknown, ReceiverFailure } from "../src/failures.js";
import { hash } from "../src/verifying/commitments.js";
import { readKeyHistory } from "../src/verifying/keys.js";
import { LogPolicy } from "../src/verifying/log_policy.js";
import { findInPacks, PACK_BYTES_MAX, verifyOfflinePack } from "../src/verifying/offline_pack.js";

const vectors = JSON.parse(readFileSync(new URL("../../../docs/vectors/offline-pack-v1.json", import.meta.url)));
const encode = (value) => new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));
const isUnverifiable = (failure) => failure instanceof ReceiverFailure && failure.reason === "unverifiable";
const keys = await readKeyHistory(encode(vectors.keys));
const packs = {};
for (const [name, pack] of Object.entries(vectors.packs)) packs[name] = await verifyOfflinePack(encode(pack), keys);

test("the log knows each pack by its digest", () => {
  for (const [name, pack] of Object.entries(packs)) assert.equal(pack.digest, vectors.digests[name], name);
});

test("every spoilt pack is refused", async () => {
  for (const { name, text } of vectors.refused) {
    await assert.rejects(verifyOfflinePack(encode(text), keys), isUnverifiable, name);
  }
  assert.ok(vectors.refused.length > 0);
});

test("no altered byte of a pack is accepted", async () => {
  const bytes = encode(vectors.packs.campaign);
  for (let place = 0; place < bytes.length; place += 1) {
    const altered = bytes.slice();
    altered[place] ^= 1;
    await assert.rejects(verifyOfflinePack(altered, keys), isUnverifiable, `${place}`);
  }
});

test("a pack of an unknown key or of more than 32 MiB is refused", async () => {
  const none = await readKeyHistory(encode({ keys: [] }));
  await assert.rejects(verifyOfflinePack(encode(vectors.packs.campaign), none), KeyUnknown);
  await assert.rejects(verifyOfflinePack(new Uint8Array(PACK_BYTES_MAX + 1).fill(0x20), keys), /too long/);
});

test("a retired key of the history verifies a pack, and what only resembles one is refused", async () => {
  const read = (changes) => readKeyHistory(encode({ keys: [{ ...vectors.keys.keys[0], ...changes }] }));
  const at = "2026-11-20T10:00:00.000Z";
  const retired = await read({ status: "retired", activated_at: at, superseded_at: null });
  await verifyOfflinePack(encode(vectors.packs.campaign), retired);
  for (const changes of [
    { status: "new" },
    { activated_at: "today" },
    { activated_at: null },
    { more: 1 },
    { x: "AAAA" },
  ]) {
    await assert.rejects(read(changes), isUnverifiable, JSON.stringify(changes));
  }
});

test("each lookup finds what is published", async () => {
  for (const { name, packs: known, token, now, found } of vectors.lookups) {
    const answer = await findInPacks(
      known.map((each) => packs[each]),
      await hash(token),
      Date.parse(now),
    );
    const described = answer && {
      pack_id: answer.packId,
      xr_id: answer.xrId,
      intent: JSON.parse(JSON.stringify(answer.intent)),
      as_of: answer.asOf.toISOString(),
      valid_until: answer.validUntil.toISOString(),
    };
    assert.deepEqual(described, found, name);
  }
  assert.ok(vectors.lookups.length > 0);
});

test("only a genuine proof makes a pack a logged one", async () => {
  const { log, witness, accepted, refused } = vectors.proofs;
  const isLogged = async ({ proof, quorum }) => {
    const policy = await LogPolicy.read(log, { witnesses: [witness], quorum });
    return (await verifyOfflinePack(encode(vectors.packs.campaign), keys, encode(proof))).isLogged(policy);
  };
  for (const each of accepted) assert.equal(await isLogged(each), true, `quorum ${each.quorum}`);
  for (const each of refused) assert.equal(await isLogged(each), false, each.name);
  assert.equal(await packs.campaign.isLogged(await LogPolicy.read(log)), false, "without a proof");
});
