import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { mock, test } from "node:test";

import { ReceiverFailure } from "../src/failures.js";
import { Receiver } from "../src/receiver.js";

const answers = JSON.parse(readFileSync(new URL("../../../docs/vectors/resolution-proof-v1.json", import.meta.url)));
const [genuine] = answers.cases;
const ofJson = (value, init) => new Response(JSON.stringify(value), init);
const failsAs = (reason) => (failure) => failure instanceof ReceiverFailure && failure.reason === reason;

/** A service that answers with these functions, and remembers the paths that were requested. */
function serve(resolve, keys = () => ofJson(answers.keys, { headers: { "Cache-Control": "public, max-age=60" } })) {
  const paths = [];
  const fetch = async (url) => {
    const { pathname } = new URL(url);
    paths.push(pathname);
    return pathname === "/v1/keys" ? keys() : resolve();
  };
  return { paths, receiver: new Receiver("https://example.org/", { fetch, retryWaitMaxS: 1 }) };
}

function at(time, act) {
  mock.timers.enable({ apis: ["Date"], now: Date.parse(time) });
  return act().finally(() => mock.timers.reset());
}

test("a genuine answer is resolved, and the keys are fetched once", async () => {
  const { paths, receiver } = serve(() => ofJson(genuine.answer));
  await at(genuine.now, async () => {
    assert.equal((await receiver.resolve(genuine.token)).xrId, genuine.answer.xr_id);
    await receiver.resolve(genuine.token);
  });
  assert.deepEqual(paths, [`/v1/resolve/${genuine.token}`, "/v1/keys", `/v1/resolve/${genuine.token}`]);
});

test("a text that cannot be a token is unavailable without a request", async () => {
  const { paths, receiver } = serve(() => ofJson(genuine.answer));
  for (const text of ["", "brd_short", `${genuine.token}/../keys`, `${genuine.token}\n`]) {
    await assert.rejects(receiver.resolve(text), failsAs("codeUnavailable"));
  }
  assert.deepEqual(paths, []);
});

test("each status has its reason", async () => {
  const reasons = {
    404: "codeUnavailable",
    410: "expired",
    429: "rateLimited",
    503: "temporarilyUnavailable",
    204: "unverifiable",
    400: "unverifiable",
  };
  for (const [status, reason] of Object.entries(reasons)) {
    const { receiver } = serve(() => new Response(null, { status: Number(status), headers: { "Retry-After": "60" } }));
    await assert.rejects(receiver.resolve(genuine.token), failsAs(reason), status);
  }
});

test("a message of the server appears in no failure", async () => {
  const { receiver } = serve(() => new Response("PLANTED", { status: 404, statusText: "PLANTED" }));
  await assert.rejects(
    receiver.resolve(genuine.token),
    (failure) => !`${failure.stack} ${JSON.stringify(failure)}`.includes("PLANTED"),
  );
});

test("a temporary failure is retried, and a longer pause than allowed ends the call", async () => {
  const statuses = [503, 503, 200];
  const retried = serve(() =>
    statuses[0] === 200 ? ofJson(genuine.answer) : new Response(null, { status: statuses.shift() }),
  );
  await at(genuine.now, () => retried.receiver.resolve(genuine.token));
  assert.deepEqual(statuses, [200]);
  const paused = serve(() => new Response(null, { status: 429, headers: { "Retry-After": "60" } }));
  await assert.rejects(
    paused.receiver.resolve(genuine.token),
    (failure) => failure.retryable && failure.retryAfterS === 60,
  );
  assert.equal(paused.paths.length, 1);
});

test("a lost connection is a network failure and is not retried", async () => {
  const { paths, receiver } = serve(() => Promise.reject(new TypeError("fetch failed")));
  await assert.rejects(receiver.resolve(genuine.token), failsAs("network"));
  assert.equal(paths.length, 1);
});

test("a body of more than 256 KiB is not read to its end", async () => {
  let sentCount = 0;
  const endless = () =>
    new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024 + 0 * (sentCount += 1))) });
  const { receiver } = serve(() => new Response(endless()));
  await assert.rejects(receiver.resolve(genuine.token), failsAs("unverifiable"));
  assert.ok(sentCount < 10, `${sentCount} pieces of 64 KiB`);
});

test("an unknown key id fetches the keys again, at most once in ten seconds", async () => {
  let published = { keys: [] };
  const { paths, receiver } = serve(
    () => ofJson(genuine.answer),
    () => ofJson(published),
  );
  await at(genuine.now, async () => {
    await assert.rejects(receiver.resolve(genuine.token), failsAs("unverifiable"));
    published = answers.keys;
    await assert.rejects(receiver.resolve(genuine.token), failsAs("unverifiable"));
  });
  assert.equal(paths.filter((path) => path === "/v1/keys").length, 2);
});

test("resolutions at the same time share one fetch of the keys", async () => {
  const { paths, receiver } = serve(() => ofJson(genuine.answer));
  await at(genuine.now, () => Promise.all(Array.from({ length: 5 }, () => receiver.resolve(genuine.token))));
  assert.equal(paths.filter((path) => path === "/v1/keys").length, 1);
});

test("a pause that the server asks for as a date is kept as well", async () => {
  const at = (pauseS) => new Date(Date.now() + 1000 * pauseS).toUTCString();
  const serveBusy = (retryAfter) =>
    serve(() => new Response(null, { status: 429, headers: { "Retry-After": retryAfter } }));
  const paused = serveBusy(at(60));
  await assert.rejects(
    paused.receiver.resolve(genuine.token),
    ({ retryAfterS }) => retryAfterS > 55 && retryAfterS <= 60,
  );
  assert.equal(paused.paths.length, 1);
  await assert.rejects(serveBusy(at(-60)).receiver.resolve(genuine.token), ({ retryAfterS }) => retryAfterS === 0);
  await assert.rejects(serveBusy("soon").receiver.resolve(genuine.token), ({ retryAfterS }) => retryAfterS === null);
});

/** Serve over HTTP while `act` resolves the genuine token there, within half a second. */
async function resolveOver(answer, act) {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await act(new Receiver(`http://127.0.0.1:${server.address().port}`, { timeoutS: 0.5 }).resolve(genuine.token));
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

test("a redirect is not followed", async () => {
  const paths = [];
  const answer = ({ url }, response) => {
    paths.push(url);
    response.writeHead(302, { Location: "/elsewhere" }).end();
  };
  await resolveOver(answer, (resolving) => assert.rejects(resolving, failsAs("network")));
  assert.deepEqual(paths, [`/v1/resolve/${genuine.token}`]);
});

test("an answer that begins in time and does not end is a network failure", async () => {
  const answer = (_, response) => response.writeHead(200).write("{");
  await resolveOver(answer, (resolving) => assert.rejects(resolving, failsAs("network")));
});

test("a request tells nothing but the token", async () => {
  const requests = [];
  const answer = ({ headers }, response) => {
    requests.push(headers);
    response.writeHead(404, { "Set-Cookie": "seen=1" }).end();
  };
  await resolveOver(answer, (resolving) => assert.rejects(resolving, failsAs("codeUnavailable")));
  const [headers] = requests;
  assert.equal(headers["x-svc-resolution-proof"], "ed25519-v1");
  for (const name of ["cookie", "referer", "authorization"]) assert.equal(headers[name], undefined);
});

test("an address holds no credentials, query or fragment", () => {
  for (const rest of [
    "user@example.org",
    "user:secret@example.org",
    "example.org/?a=b",
    "example.org/?",
    "example.org/#a",
  ]) {
    assert.throws(() => new Receiver(`https://${rest}`), TypeError, rest);
  }
  assert.ok(new Receiver("https://example.org:8443/core/"));
});

test("plain http is for loopback addresses alone", () => {
  for (const url of [
    "http://example.org",
    "ftp://example.org",
    "http://127.0.0.1.example.org",
    "http://127.example.org",
  ]) {
    assert.throws(() => new Receiver(url), TypeError, url);
  }
  for (const url of ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:1"]) assert.ok(new Receiver(url));
});

test("a failure has an explanation for each of its reasons", () => {
  const reasons = ["codeUnavailable", "expired", "rateLimited", "temporarilyUnavailable", "unverifiable", "network"];
  for (const reason of reasons) assert.match(new ReceiverFailure(reason).message, new RegExp(`^${reason}: .+\\.$`));
});

test("a report of abuse is sent once, and each refusal has its reason", async () => {
  const sent = [];
  const reporting = (status) =>
    new Receiver("https://example.org/", {
      fetch: async (url, request) => {
        sent.push([new URL(url).pathname, request.method, JSON.parse(request.body)]);
        if (status === 0) throw new TypeError("no network");
        return new Response("{}", { status, headers: { "Retry-After": "60" } });
      },
    });
  await reporting(202).reportAbuse(genuine.token, "malware", { text: "It is fake.", contact: "me@example.org" });
  await reporting(202).reportAbuse(genuine.token, "spam");
  assert.deepEqual(sent, [
    [
      "/v1/abuse-reports",
      "POST",
      { token: genuine.token, category: "malware", text: "It is fake.", contact: "me@example.org" },
    ],
    ["/v1/abuse-reports", "POST", { token: genuine.token, category: "spam", text: "", contact: null }],
  ]);
  const reasons = { 0: "network", 429: "rateLimited", 503: "temporarilyUnavailable", 422: "unverifiable" };
  for (const [status, reason] of Object.entries(reasons)) {
    sent.length = 0;
    await assert.rejects(reporting(Number(status)).reportAbuse(genuine.token, "spam"), failsAs(reason), status);
    assert.equal(sent.length, 1);
  }
  await assert.rejects(reporting(202).reportAbuse("nonsense", "spam"), failsAs("codeUnavailable"));
});
