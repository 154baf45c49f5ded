import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mock, test } from "node:test";

import { createDeviceSecret, measure, MeasurementRefused } from "../src/measuring.js";
import { Receiver } from "../src/receiver.js";
import { signAnswer, signProof } from "./signing.js";

const answers = JSON.parse(readFileSync(new URL("../../../docs/vectors/resolution-proof-v1.json", import.meta.url)));
const measured = answers.cases.find((each) => "measurement_proof" in each.answer);
const unmeasured = answers.cases.find((each) => !("measurement_proof" in each.answer));
const integrationId = measured.answer.policy.audience_integration_id;
const refusesAs = (obstacle) => (error) => error instanceof MeasurementRefused && error.obstacle === obstacle;

async function at(time, act) {
  mock.timers.enable({ apis: ["Date"], now: Date.parse(time) });
  try {
    return await act();
  } finally {
    mock.timers.reset();
  }
}

function resolve(each) {
  const fetch = async (url) => Response.json(new URL(url).pathname === "/v1/keys" ? answers.keys : each.answer);
  return new Receiver("https://example.org", { fetch }).resolve(each.token);
}

/** Measure a resolution with a consent of that moment, except for what `options` say. */
const agree = (resolution, options = {}) =>
  measure(resolution, {
    consent: { integrationId, givenAt: new Date() },
    deviceSecret: secret,
    receiverClass: "computer",
    ...options,
  });

const secret = await crypto.subtle.importKey(
  "raw",
  Uint8Array.from({ length: 32 }, (_, index) => index),
  { name: "HMAC", hash: "SHA-256" },
  false,
  ["sign"],
);

test("an event has exactly the members of the contract, and nothing else of the receiver", async () => {
  await at(measured.now, async () => {
    const resolution = await resolve(measured);
    const measurement = await agree(resolution, { country: "TN" });
    const event = JSON.parse(measurement.body);
    assert.match(event.event_id, /^evt_[A-Za-z0-9_-]{22}$/);
    assert.deepEqual(event, {
      event_id: measurement.eventId,
      integration_id: integrationId,
      xr_id: measured.answer.xr_id,
      occurred_at: new Date(measured.now).toISOString(),
      receiver_class: "computer",
      // As the Python SDK derives it (sdk/python, DeviceSecret.derive_measurement_token).
      measurement_token: "mt_Hzow32kwnOUNXYd08pCT6e55FfgwrR0AIcBJMZ83WWQ",
      country: "TN",
      proof: measured.answer.measurement_proof,
    });
  });
});

test("the token changes with the day and the secret, and the id with each event", async () => {
  const tokens = new Set();
  const ids = new Set();
  await at(measured.now, async () => {
    const resolution = await resolve(measured);
    for (const deviceSecret of [secret, secret, await createDeviceSecret()]) {
      const { body } = await agree(resolution, { deviceSecret });
      tokens.add(JSON.parse(body).measurement_token);
      ids.add(JSON.parse(body).event_id);
    }
  });
  assert.equal(tokens.size, 2);
  assert.equal(ids.size, 3);
});

test("the token of one secret is the same all UTC day, and another one on the next", async () => {
  const measureAt = async (time) => {
    const [issued_at, expires_at] = [time, new Date(Date.parse(time) + 120_000).toISOString()];
    const measurement_proof = await signProof({ issued_at, expires_at });
    const answer = await signAnswer({
      changes: { issued_at, expires_at, policy: measured.answer.policy, measurement_proof },
    });
    return at(
      time,
      async () => JSON.parse((await agree(await resolve({ ...measured, answer }))).body).measurement_token,
    );
  };
  const tokens = [];
  for (const time of ["2026-11-20T00:00:00.000Z", "2026-11-20T23:59:59.999Z", "2026-11-21T00:00:00.000Z"]) {
    tokens.push(await measureAt(time));
  }
  const [begin, end, nextDay] = tokens;
  assert.equal(begin, end);
  assert.notEqual(end, nextDay);
});

test("the secret cannot be read by a script", async () => {
  await assert.rejects(crypto.subtle.exportKey("raw", await createDeviceSecret()));
});

test("without a consent for this integration, given by now, no event is made", async () => {
  await at(measured.now, async () => {
    const resolution = await resolve(measured);
    const later = new Date(Date.now() + 121_000);
    const refused = [
      null,
      undefined,
      { integrationId },
      { integrationId, givenAt: null },
      { integrationId, givenAt: 0 },
      { integrationId, givenAt: new Date(NaN) },
      { integrationId, givenAt: later },
      { integrationId: "int_AAAAAAAAAAAAAAAAAAAAAA", givenAt: new Date() },
    ];
    for (const consent of refused) await assert.rejects(agree(resolution, { consent }), refusesAs("consentMissing"));
  });
});

test("a Code that is not measured makes no event", async () => {
  await at(unmeasured.now, async () => {
    await assert.rejects(agree(await resolve(unmeasured)), refusesAs("notMeasured"));
  });
});

test("what resolve did not return, or a proof that has ended, makes no event", async () => {
  const resolution = await at(measured.now, () => resolve(measured));
  await at(measured.now, () => assert.rejects(agree({ ...resolution }), refusesAs("unverifiable")));
  const ended = Date.parse(measured.answer.measurement_proof.expires_at) + 120_000;
  await at(new Date(ended).toISOString(), () => assert.rejects(agree(resolution), refusesAs("unverifiable")));
  await at(new Date(ended - 1).toISOString(), () => agree(resolution));
});

test("an altered resolution measures what was verified", async () => {
  await at(measured.now, async () => {
    const resolution = await resolve(measured);
    resolution.xrId = "xr_AAAAAAAAAAAAAAAAAAAAAA";
    assert.throws(() => (resolution.measurementProof.xr_id = resolution.xrId), TypeError);
    resolution.measurementProof = { ...resolution.measurementProof, proof_id: "prf_AAAAAAAAAAAAAAAAAAAAAA" };
    const event = JSON.parse((await agree(resolution)).body);
    assert.equal(event.xr_id, measured.answer.xr_id);
    assert.deepEqual(event.proof, measured.answer.measurement_proof);
  });
});

test("an unknown receiver class or a malformed country is the program's mistake", async () => {
  await at(measured.now, async () => {
    const resolution = await resolve(measured);
    for (const options of [{ receiverClass: "toaster" }, { country: "tn" }, { country: "TUN" }]) {
      await assert.rejects(agree(resolution, options), TypeError);
    }
  });
});
