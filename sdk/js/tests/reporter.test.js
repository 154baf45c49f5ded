import assert from "node:assert/strict";
import { test } from "node:test";

import { DeliveryFailure } from "../src/failures.js";
import { Reporter } from "../src/reporter.js";

const measurement = { body: '{"event_id":"evt_AAAAAAAAAAAAAAAAAAAAAA"}' };
const failsAs = (reason) => (failure) => failure instanceof DeliveryFailure && failure.reason === reason;

/** A backend that gives these answers in turn, and remembers the requests. */
function serve(...answers) {
  const requests = [];
  let tokenCount = 0;
  const fetch = async (url, request) => {
    requests.push({ url, ...request });
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    if (answer === null) throw new TypeError("fetch failed");
    return Response.json({ code: answer.code, status: answer.outcome, title: "PLANTED" }, answer);
  };
  const getToken = async () => `token-${(tokenCount += 1)}`;
  return { requests, reporter: new Reporter("https://publisher.example.org/", getToken, { fetch, retryWaitMaxS: 2 }) };
}

test("an event is delivered with the reporting token, as the bytes that were measured", async () => {
  const { requests, reporter } = serve({ status: 201, outcome: "recorded" });
  assert.equal(await reporter.report(measurement), "recorded");
  const [{ url, method, headers, body, credentials, redirect }] = requests;
  assert.deepEqual(
    { url, method, body, credentials, redirect },
    {
      url: "https://publisher.example.org/v1/events",
      method: "POST",
      body: measurement.body,
      credentials: "omit",
      redirect: "error",
    },
  );
  assert.deepEqual(headers, { Authorization: "Bearer token-1", "Content-Type": "application/json" });
});

test("an event that was there already is a duplicate", async () => {
  assert.equal(await serve({ status: 200, outcome: "duplicate" }).reporter.report(measurement), "duplicate");
});

test("a lost answer is retried with the same bytes and the current token", async () => {
  const { requests, reporter } = serve(null, { status: 503 }, { status: 200, outcome: "duplicate" });
  assert.equal(await reporter.report(measurement), "duplicate");
  assert.deepEqual(
    requests.map((each) => each.body),
    [measurement.body, measurement.body, measurement.body],
  );
  assert.deepEqual(
    requests.map((each) => each.headers.Authorization),
    ["Bearer token-1", "Bearer token-2", "Bearer token-3"],
  );
});

test("each refusal has its reason, and no word of the server", async () => {
  const reasons = [
    [401, "unauthenticated", "unauthenticated"],
    [403, "forbidden", "unauthenticated"],
    [403, "organization_suspended", "organizationSuspended"],
    [400, "malformed_json", "eventInvalid"],
    [413, "payload_too_large", "eventInvalid"],
    [422, "validation_failed", "eventInvalid"],
    [422, "proof_invalid", "proofInvalid"],
    [409, "proof_replayed", "proofReplayed"],
    [409, "event_conflict", "eventConflict"],
    [409, "integration_revoked", "integrationRevoked"],
    [409, "entitlement_required", "entitlementRequired"],
    [409, "something_else", "unintelligible"],
    [429, "event_quota_exceeded", "quotaExceeded"],
    [404, "not_found", "unintelligible"],
  ];
  for (const [status, code, reason] of reasons) {
    const { requests, reporter } = serve({ status, code });
    await assert.rejects(reporter.report(measurement), failsAs(reason), `${status} ${code}`);
    assert.equal(requests.length, 1, "a refusal is not retried");
    await reporter.report(measurement).catch((failure) => assert.ok(!failure.stack.includes("PLANTED")));
  }
});

test("an outcome that contradicts the status is unintelligible", async () => {
  for (const answer of [{ status: 200, outcome: "recorded" }, { status: 201, outcome: "duplicate" }, { status: 201 }]) {
    await assert.rejects(serve(answer).reporter.report(measurement), failsAs("unintelligible"));
  }
});

test("a longer pause than allowed ends the call", async () => {
  const { requests, reporter } = serve({ status: 429, code: "rate_limited", headers: { "Retry-After": "60" } });
  await assert.rejects(reporter.report(measurement), (failure) => failure.retryable && failure.retryAfterS === 60);
  assert.equal(requests.length, 1);
});
