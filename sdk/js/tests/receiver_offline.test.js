// A receiver with packs and a log: what it answers without the service, and what it does not answer without a proof.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";

import { ReceiverFailure } from "../src/failures.js";
import { createDeviceSecret, measure, MeasurementRefused } from "../src/measuring.js";
import { Receiver } from "../src/receiver.js";
import { readKeyHistory } from "../src/verifying/keys.js";
import { LogPolicy } from "../src/verifying/log_policy.js";
import { OfflineResolution, verifyOfflinePack } from "../src/verifying/offline_pack.js";
import { encode, GENUINE, VECTORS } from "./signing.js";

const read = (name) => JSON.parse(readFileSync(new URL(`../../../docs/vectors/${name}.json`, import.meta.url)));
const vectors = read("offline-pack-v1");
const log = read("transparency-log-v1");
const keys = await readKeyHistory(encode(vectors.keys));
const packs = {};
for (const [name, pack] of Object.entries(vectors.packs)) packs[name] = await verifyOfflinePack(encode(pack), keys);
const [{ token, found: answered }] = vectors.lookups;
const pack = packs.campaign;
const failsAs = (reason) => (failure) => failure instanceof ReceiverFailure && failure.reason === reason;
const unreachable = () => Promise.reject(new TypeError("fetch failed"));
const HOUR_MS = 3_600_000;

/** Run `act` at a time, with functions that set the clock and let time pass. */
async function at(timeMs, act) {
  let elapsedMs = 0;
  mock.timers.enable({ apis: ["Date"], now: timeMs });
  const monotonic = mock.method(performance, "now", () => elapsedMs);
  const set = (ms) => mock.timers.setTime(ms);
  const pass = (ms) => {
    elapsedMs += ms;
    mock.timers.setTime(Date.now() + ms);
  };
  try {
    await act({ set, pass });
  } finally {
    monotonic.mock.restore();
    mock.timers.reset();
  }
}

/** Return what a receiver answers, or null if the service cannot be reached and no pack answers. */
async function ask(receiver) {
  try {
    return await receiver.resolve(token);
  } catch (failure) {
    if (!failsAs("network")(failure)) throw failure;
    return null;
  }
}

const offline = (known, options = {}) =>
  new Receiver("https://example.org/", { fetch: unreachable, packs: known, ...options });

test("a pack answers as of its own time while nothing answers, and as no resolution", () =>
  at(pack.issuedAt + HOUR_MS, async () => {
    const found = await ask(offline([pack]));
    assert.ok(found instanceof OfflineResolution);
    assert.equal(found.asOf.toISOString(), answered.as_of);
    assert.equal(found.validUntil.toISOString(), answered.valid_until);
    assert.equal(found.expiresAt, undefined);
    assert.equal(await ask(offline([])), null);
    const consent = { integrationId: "int_0000000000000000", givenAt: new Date(0) };
    const options = { consent, deviceSecret: await createDeviceSecret(), receiverClass: "kiosk" };
    await assert.rejects(
      measure(found, options),
      (refused) => refused instanceof MeasurementRefused && refused.obstacle === "notMeasured",
    );
  }));

test("only a service that cannot be reached is replaced: every other answer stands", () =>
  at(pack.issuedAt, async () => {
    const reasons = {
      502: null,
      503: null,
      504: null,
      404: "codeUnavailable",
      410: "expired",
      429: "rateLimited",
      500: "temporarilyUnavailable",
      501: "temporarilyUnavailable",
      200: "unverifiable",
      400: "unverifiable",
    };
    for (const [status, reason] of Object.entries(reasons)) {
      const fetch = async () => new Response("{}", { status: Number(status) });
      const resolving = offline([pack], { fetch, attemptsMax: 1 }).resolve(token);
      if (reason === null) assert.ok((await resolving) instanceof OfflineResolution, status);
      else await assert.rejects(resolving, failsAs(reason), status);
    }
  }));

test("a status stands although its body breaks off, and a body that breaks off is no answer", () =>
  at(pack.issuedAt, async () => {
    const breaksOff = (status) => async () =>
      new Response(new ReadableStream({ pull: (controller) => controller.error(new TypeError("cut")) }), { status });
    const resolve = (status) => offline([pack], { fetch: breaksOff(status), attemptsMax: 1 }).resolve(token);
    await assert.rejects(resolve(404), failsAs("codeUnavailable"));
    await assert.rejects(resolve(410), failsAs("expired"));
    assert.ok((await resolve(200)) instanceof OfflineResolution);
  }));

test("a fresh answer is preferred, and its time counts", async () => {
  let isReachable = true;
  const fetch = async (url) => {
    if (!isReachable) throw new TypeError("fetch failed");
    const isOfKeys = new URL(url).pathname === "/v1/keys";
    return new Response(JSON.stringify(isOfKeys ? VECTORS.keys : GENUINE.answer));
  };
  const nowMs = Date.parse(GENUINE.now);
  await at(nowMs, async ({ set }) => {
    const receiver = new Receiver("https://example.org/", { fetch });
    assert.equal((await receiver.resolve(GENUINE.token)).xrId, GENUINE.answer.xr_id);
    isReachable = false;
    set(pack.issuedAt);
    receiver.addPack(pack);
    assert.ok((await ask(receiver)) instanceof OfflineResolution);
    set(nowMs - HOUR_MS);
    assert.equal(await ask(receiver), null, "before the answer of the service");
  });
});

test("a pack is silent after its end, however the clock is set", () =>
  at(pack.issuedAt, async ({ set, pass }) => {
    const receiver = offline([pack]);
    pass(6 * HOUR_MS - 1);
    assert.ok(await ask(receiver));
    pass(1);
    assert.equal(await ask(receiver), null);
    set(pack.validUntil - 60_000);
    assert.equal(await ask(receiver), null, "ended, although the clock is within its tolerance");
    set(pack.issuedAt);
    assert.equal(await ask(receiver), null, "the clock was set back");
  }));

test("a clock that is two minutes behind is tolerated, and no more", () =>
  at(pack.issuedAt, async ({ set, pass }) => {
    const receiver = offline([pack]);
    pass(HOUR_MS);
    set(pack.issuedAt + HOUR_MS - 120_000);
    assert.ok(await ask(receiver));
    set(pack.issuedAt + HOUR_MS - 120_001);
    assert.equal(await ask(receiver), null);
    set(pack.issuedAt);
    const future = packs["newer, of another project, empty"];
    assert.equal(await ask(offline([pack, future])), null, "a pack of whatever project from the future");
  }));

test("a newer pack that leaves the Code out silences the older, also once it is added", () =>
  at(pack.issuedAt + 2 * HOUR_MS, async () => {
    const receiver = offline([pack]);
    assert.ok(await ask(receiver));
    receiver.addPack(packs["newer, of another campaign, empty"]);
    assert.ok(await ask(receiver));
    receiver.addPack(packs["newer, empty, of five minutes"]);
    assert.equal(await ask(receiver), null);
  }));

test("with requireLogged, only a pack with its proof answers, and another still silences", () =>
  at(pack.issuedAt + 2 * HOUR_MS, async () => {
    const { accepted, refused, witness } = vectors.proofs;
    const answers = async ({ proof, quorum }, ...others) => {
      const requireLogged = await LogPolicy.read(vectors.proofs.log, { witnesses: [witness], quorum });
      const proven = await verifyOfflinePack(encode(vectors.packs.campaign), keys, encode(proof));
      return (await ask(offline([proven, ...others], { requireLogged }))) !== null;
    };
    for (const each of accepted) assert.equal(await answers(each), true);
    for (const each of refused) assert.equal(await answers(each), false, each.name);
    assert.equal(await answers(accepted[0], packs["newer, with the first Code"]), true);
    assert.equal(await answers(accepted[0], packs["newer, without the first Code"]), false);
    const requireLogged = await LogPolicy.read(vectors.proofs.log);
    assert.equal(await ask(offline([pack], { requireLogged })), null, "without a proof");
  }));

const [entry] = log.entries;
const proofPath = `/v1/log/proofs/${entry.digests["code.issued/answer"]}`;

/** Return a receiver that requires the log, of a service that answers for its proofs as told, and the paths asked for. */
async function requireLog(prove, options = {}) {
  const paths = [];
  const requireLogged = await LogPolicy.read(log.log.vkey, options);
  const fetch = async (url) => {
    const { pathname } = new URL(url);
    paths.push(pathname);
    if (pathname === "/v1/keys") return new Response(JSON.stringify(VECTORS.keys));
    return pathname === proofPath ? prove() : new Response(JSON.stringify(GENUINE.answer));
  };
  return { paths, receiver: new Receiver("https://example.org/", { fetch, requireLogged, attemptsMax: 1 }) };
}

const [{ proof }] = log.proofs;

test("a logged answer is returned, and its proof is asked for once", () =>
  at(Date.parse(GENUINE.now), async () => {
    const { paths, receiver } = await requireLog(() => new Response(proof));
    for (let count = 0; count < 3; count += 1) {
      assert.equal((await receiver.resolve(GENUINE.token)).xrId, GENUINE.answer.xr_id);
    }
    assert.equal(paths.filter((path) => path === proofPath).length, 1);
  }));

/** Return what a receiver answers, or throw its failure, while time passes as fast as it is waited for. */
async function resolveInTime(receiver) {
  mock.timers.enable({ apis: ["Date", "setTimeout"], now: Date.parse(GENUINE.now) });
  try {
    let isDone = false;
    const resolving = receiver.resolve(GENUINE.token).finally(() => (isDone = true));
    resolving.catch(() => null);
    while (!isDone) {
      await new Promise((resolve) => setImmediate(resolve));
      mock.timers.tick(100);
    }
    return await resolving;
  } finally {
    mock.timers.reset();
  }
}

test("without a genuine proof there is no answer", async () => {
  for (const each of log.refused) {
    const options = { witnesses: [log.witness.vkey], quorum: each.quorum };
    const { receiver } = await requireLog(() => new Response(each.proof), options);
    await assert.rejects(resolveInTime(receiver), failsAs("unverifiable"), each.name);
  }
  for (const [status, reason] of [
    [503, "temporarilyUnavailable"],
    [403, "unverifiable"],
  ]) {
    const { receiver } = await requireLog(() => new Response(null, { status }));
    await assert.rejects(resolveInTime(receiver), failsAs(reason), `${status}`);
  }
});

test("an answer that the log does not prove yet is awaited for ten seconds", async () => {
  const options = { witnesses: [log.witness.vkey], quorum: 1 };
  const notCosigned = log.refused.find(({ name }) => name === "not cosigned");
  const attempt = async (tooEarlyCount, tooEarly) => {
    const { paths, receiver } = await requireLog(() => {
      const count = paths.filter((path) => path === proofPath).length;
      return count > tooEarlyCount ? new Response(log.proofs[1].proof) : tooEarly();
    }, options);
    return await resolveInTime(receiver);
  };
  for (const [tooEarly, explanation] of [
    [() => new Response(null, { status: 404 }), /does not have the answer/],
    [() => new Response(notCosigned.proof), /Too few witnesses/],
  ]) {
    assert.equal((await attempt(10, tooEarly)).xrId, GENUINE.answer.xr_id);
    await assert.rejects(attempt(11, tooEarly), explanation);
  }
});
