import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";

import { DeliveryFailure, ReceiverFailure } from "../src/failures.js";
import { Receiver } from "../src/receiver.js";
import { Reporter } from "../src/reporter.js";
import { GENUINE, VECTORS } from "./signing.js";

const measurement = { body: '{"event_id":"evt_AAAAAAAAAAAAAAAAAAAAAA"}' };

/** The pauses between attempts, which take no time here, and never a shorter one than the doubled ones. */
const pausesS = [];
const { setTimeout } = globalThis;
mock.method(Math, "random", () => 0);
mock.method(globalThis, "setTimeout", (act, ms, ...rest) => {
  pausesS.push(ms / 1000);
  return setTimeout(act, 0, ...rest);
});

beforeEach(() => {
  pausesS.length = 0;
  Math.random.mock.mockImplementation(() => 0);
});

const say = (status, headers) => new Response(null, { status, headers });

/** A service that answers what `answer` returns for a path, and remembers what it was asked. */
function serve(answer, limits = {}) {
  const requests = [];
  const fetch = async (url, request) => {
    const path = new URL(url).pathname;
    requests.push({ path, ...request });
    return answer(path, requests.length);
  };
  return { requests, limits: { fetch, ...limits } };
}

const resolveAt = ({ limits }) => new Receiver("https://example.org", limits).resolve(GENUINE.token);
const reportAt = ({ limits }, getToken = () => "token") =>
  new Reporter("https://publisher.example.org", getToken, limits).report(measurement);
const failsAs = (reason) => (failure) => failure.reason === reason;
const answerGenuinely = (path) => Response.json(path === "/v1/keys" ? VECTORS.keys : GENUINE.answer);

test("no request is cached, carries a cookie or a referrer, follows a redirect or waits for ever", async ({ mock }) => {
  mock.timers.enable({ apis: ["Date"], now: Date.parse(GENUINE.now) });
  const service = serve(answerGenuinely);
  await resolveAt(service);
  const publisher = serve(() => Response.json({ status: "recorded" }, { status: 201 }));
  await reportAt(publisher);
  const requests = [...service.requests, ...publisher.requests];
  assert.deepEqual(
    requests.map((each) => each.path),
    [`/v1/resolve/${GENUINE.token}`, "/v1/keys", "/v1/events"],
  );
  for (const { path, cache, credentials, redirect, referrerPolicy, signal } of requests) {
    assert.deepEqual(
      { cache, credentials, redirect, referrerPolicy },
      { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" },
      path,
    );
    assert.ok(signal instanceof AbortSignal, path);
  }
  assert.deepEqual(
    service.requests.map((each) => each.headers["X-Svc-Resolution-Proof"]),
    ["ed25519-v1", undefined],
  );
});

test("limits under which no request can be made are the program's mistake", () => {
  const impossible = [
    { timeoutS: 0 },
    { timeoutS: -1 },
    { timeoutS: NaN },
    { timeoutS: Infinity },
    { timeoutS: 86_401 },
    { timeoutS: "soon" },
    { attemptsMax: 0 },
    { attemptsMax: NaN },
    { retryWaitMaxS: -0.1 },
    { retryWaitMaxS: NaN },
  ];
  for (const limits of impossible) {
    assert.throws(() => new Receiver("https://example.org", limits), RangeError, JSON.stringify(limits));
    assert.throws(() => new Reporter("https://example.org", () => "", limits), RangeError, JSON.stringify(limits));
  }
  for (const limits of [{ timeoutS: 86_400 }, { timeoutS: 0.3333 }, { attemptsMax: 1, retryWaitMaxS: 0 }]) {
    assert.ok(new Receiver("https://example.org", limits));
  }
});

test("a timeout need not be a whole number of milliseconds", async ({ mock }) => {
  mock.timers.enable({ apis: ["Date"], now: Date.parse(GENUINE.now) });
  await resolveAt(serve(answerGenuinely, { timeoutS: 10.00001 }));
});

test("only rate limits and temporary trouble are retried, and a delivery also without an answer", () => {
  const receiving = ["codeUnavailable", "expired", "rateLimited", "temporarilyUnavailable", "unverifiable", "network"];
  const delivering = [
    ...["unauthenticated", "organizationSuspended", "eventInvalid", "proofInvalid", "proofReplayed", "eventConflict"],
    ...["integrationRevoked", "entitlementRequired", "quotaExceeded"],
    ...["rateLimited", "temporarilyUnavailable", "network", "unintelligible"],
  ];
  const select = (reasons, Failure) => reasons.filter((reason) => new Failure(reason).retryable);
  assert.deepEqual(select(receiving, ReceiverFailure), ["rateLimited", "temporarilyUnavailable"]);
  assert.deepEqual(select(delivering, DeliveryFailure), ["rateLimited", "temporarilyUnavailable", "network"]);
});

test("what repetition cannot help is requested once", async () => {
  for (const status of [200, 204, 400, 401, 404, 410]) {
    const service = serve(() => say(status));
    await assert.rejects(resolveAt(service), `${status}`);
    assert.equal(service.requests.length, status === 200 ? 2 : 1, `${status}`);
  }
});

test("a call makes as many attempts as it may", async () => {
  for (const [limits, attempts] of [
    [{}, 3],
    [{ attemptsMax: 1 }, 1],
    [{ attemptsMax: 5 }, 5],
  ]) {
    const service = serve(() => say(503), limits);
    await assert.rejects(resolveAt(service), failsAs("temporarilyUnavailable"));
    assert.equal(service.requests.length, attempts);
  }
  for (const [limits, attempts] of [
    [{}, 4],
    [{ attemptsMax: 2 }, 2],
    [{ timeoutS: 1 }, 4],
  ]) {
    const publisher = serve(() => say(503), limits);
    await assert.rejects(reportAt(publisher), failsAs("temporarilyUnavailable"));
    assert.equal(publisher.requests.length, attempts);
  }
});

test("pauses double and are shortened by up to half", async () => {
  for (const [chance, expected] of [
    [0, [0.25, 0.5, 1, 2]],
    [1, [0.125, 0.25, 0.5, 1]],
  ]) {
    Math.random.mock.mockImplementation(() => chance);
    pausesS.length = 0;
    await assert.rejects(resolveAt(serve(() => say(503), { attemptsMax: 5 })));
    assert.deepEqual(pausesS, expected);
  }
});

test("the server can ask for a longer pause, but not for a shorter one", async () => {
  const asked = ["3", "0", "0"];
  await assert.rejects(resolveAt(serve((_, count) => say(503, { "Retry-After": asked[count - 1] }))));
  assert.deepEqual(pausesS, [3, 0.5]);
});

test("the pauses of a call are added up, and a pause beyond the sum ends it at once", async () => {
  const service = serve(() => say(429, { "Retry-After": "3" }), { attemptsMax: 9, retryWaitMaxS: 8 });
  await assert.rejects(resolveAt(service), failsAs("rateLimited"));
  assert.deepEqual(pausesS, [3, 3]);
  const exact = serve(() => say(429, { "Retry-After": "4" }), { attemptsMax: 9, retryWaitMaxS: 8 });
  await assert.rejects(resolveAt(exact), failsAs("rateLimited"));
  assert.equal(exact.requests.length, 3);
});

test("all requests of a call share its attempts and its pauses", async () => {
  const resolve = `/v1/resolve/${GENUINE.token}`;
  const service = serve((path, count) => (path === "/v1/keys" || count === 1 ? say(503) : answerGenuinely(path)));
  await assert.rejects(resolveAt(service), failsAs("temporarilyUnavailable"));
  assert.deepEqual(
    service.requests.map((each) => each.path),
    [resolve, resolve, "/v1/keys", "/v1/keys"],
  );
  assert.deepEqual(pausesS, [0.25, 0.5]);
});

test("each call has attempts of its own", async () => {
  const service = serve(() => say(503));
  const receiver = new Receiver("https://example.org", service.limits);
  for (const requestCount of [3, 6]) {
    await assert.rejects(receiver.resolve(GENUINE.token));
    assert.equal(service.requests.length, requestCount);
  }
});

test("without a reporting token nothing is sent, and the reason reaches the program", async () => {
  const publisher = serve(() => say(503));
  const withdrawn = new Error("The person withdrew their consent.");
  const getToken = async () => {
    if (publisher.requests.length > 0) throw withdrawn;
    return "token";
  };
  await assert.rejects(reportAt(publisher, getToken), (error) => error === withdrawn);
  assert.equal(publisher.requests.length, 1, "the retry needs a token as well");
});
