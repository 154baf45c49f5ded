import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { KeyCache } from "../src/key_cache.js";
import { Receiver } from "../src/receiver.js";
import { GENUINE, VECTORS } from "./signing.js";

let nowMs = 0;
mock.method(performance, "now", () => nowMs);

/** A source of key sets, each of them another object, that counts what is fetched and fails on command. */
let source;
const fetchKeys = async () => {
  source.count += 1;
  nowMs += source.durationMs;
  if (source.failure) throw source.failure;
  return { keys: { number: source.count }, maxAgeS: source.maxAgeS };
};

beforeEach(() => {
  nowMs = 5_000;
  source = { count: 0, durationMs: 0, failure: null, maxAgeS: null };
});

test("keys are fresh for as long as the server says, and for 60 seconds at most", async () => {
  for (const [maxAgeS, freshS] of [
    [30, 30],
    [60, 60],
    [86_400, 60],
    [null, 60],
    [0, 0],
  ]) {
    source.maxAgeS = maxAgeS;
    const cache = new KeyCache();
    const first = await cache.getFresh(fetchKeys);
    nowMs += 1000 * freshS - 1;
    if (freshS > 0) assert.equal(await cache.getFresh(fetchKeys), first, `max-age=${maxAgeS}`);
    nowMs += 1;
    assert.notEqual(await cache.getFresh(fetchKeys), first, `max-age=${maxAgeS}`);
  }
});

test("the age of keys counts from their request", async () => {
  source.durationMs = 4_000;
  const cache = new KeyCache();
  const first = await cache.getFresh(fetchKeys);
  nowMs = 5_000 + 59_999;
  assert.equal(await cache.getFresh(fetchKeys), first);
  nowMs += 1;
  assert.notEqual(await cache.getFresh(fetchKeys), first);
});

test("whoever needs keys at the same time shares one fetch, and its failure", async () => {
  const cache = new KeyCache();
  const ask = () => Promise.allSettled(Array.from({ length: 5 }, () => cache.getFresh(fetchKeys)));
  source.failure = new Error("out of reach");
  assert.deepEqual(new Set((await ask()).map((each) => each.reason)), new Set([source.failure]));
  source.failure = null;
  assert.deepEqual(new Set((await ask()).map((each) => each.value)), new Set([{ number: 2 }]));
  assert.equal(source.count, 2);
});

test("keys that are newer than the known ones are returned without a fetch", async () => {
  const cache = new KeyCache();
  const known = await cache.getFresh(fetchKeys);
  const newer = await cache.getNewer(known, fetchKeys);
  assert.equal(source.count, 2);
  assert.equal(await cache.getNewer(known, fetchKeys), newer);
  assert.equal(source.count, 2);
});

test("keys are fetched for unknown key ids once in ten seconds, also if the fetch failed", async () => {
  const cache = new KeyCache();
  const known = await cache.getFresh(fetchKeys);
  source.failure = new Error("out of reach");
  await assert.rejects(cache.getNewer(known, fetchKeys));
  source.failure = null;
  nowMs += 9_999;
  assert.equal(await cache.getNewer(known, fetchKeys), null);
  assert.equal(source.count, 2);
  nowMs += 1;
  assert.deepEqual(await cache.getNewer(known, fetchKeys), { number: 3 });
});

test("whoever meets unknown key ids at the same time shares one fetch", async () => {
  const cache = new KeyCache();
  const known = await cache.getFresh(fetchKeys);
  const found = await Promise.all(Array.from({ length: 5 }, () => cache.getNewer(known, fetchKeys)));
  assert.equal(new Set(found).size, 1);
  assert.equal(source.count, 2);
});

test("after a fetch that failed, the old keys are not used", async () => {
  const cache = new KeyCache();
  const known = await cache.getFresh(fetchKeys);
  source.failure = new Error("out of reach");
  await assert.rejects(cache.getNewer(known, fetchKeys));
  await assert.rejects(cache.getFresh(fetchKeys), "a key that was withdrawn must stop verifying");
  source.failure = null;
  assert.deepEqual(await cache.getFresh(fetchKeys), { number: 4 });
});

test("an answer whose key appears in a second fetch is resolved with it", async ({ mock }) => {
  mock.timers.enable({ apis: ["Date"], now: Date.parse(GENUINE.now) });
  const published = [{ keys: [] }, VECTORS.keys, VECTORS.keys];
  const paths = [];
  const fetch = async (url) => {
    paths.push(new URL(url).pathname);
    return Response.json(paths.at(-1) === "/v1/keys" ? published.shift() : GENUINE.answer);
  };
  const receiver = new Receiver("https://example.org", { fetch });
  assert.equal((await receiver.resolve(GENUINE.token)).xrId, GENUINE.answer.xr_id);
  await receiver.resolve(GENUINE.token);
  const resolve = `/v1/resolve/${GENUINE.token}`;
  assert.deepEqual(paths, [resolve, "/v1/keys", "/v1/keys", resolve]);
});

test("the max-age of the response counts, wherever it stands in Cache-Control", async ({ mock }) => {
  mock.timers.enable({ apis: ["Date"], now: Date.parse(GENUINE.now) });
  const freshness = {
    "public, max-age=30": 30,
    "MAX-AGE=30": 30,
    "max-age=0": 0,
    "no-store": 60,
    "x-max-age=5": 60,
    "max-age=5x": 60,
  };
  for (const [header, freshS] of Object.entries(freshness)) {
    let fetchedCount = 0;
    const fetch = async (url) => {
      if (new URL(url).pathname !== "/v1/keys") return Response.json(GENUINE.answer);
      fetchedCount += 1;
      return Response.json(VECTORS.keys, { headers: { "Cache-Control": header } });
    };
    const receiver = new Receiver("https://example.org", { fetch });
    await receiver.resolve(GENUINE.token);
    nowMs += Math.max(0, 1000 * freshS - 1);
    await receiver.resolve(GENUINE.token);
    assert.equal(fetchedCount, freshS > 0 ? 1 : 2, header);
    nowMs += 1;
    await receiver.resolve(GENUINE.token);
    assert.equal(fetchedCount, freshS > 0 ? 2 : 3, header);
  }
});
