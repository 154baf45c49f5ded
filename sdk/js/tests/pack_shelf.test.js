// A shelf keeps few packs, and answers as if it kept all of them.
import assert from "node:assert/strict";
import { mock, test } from "node:test";

import { PACKS_MAX, PackShelf } from "../src/pack_shelf.js";
import { hash } from "../src/verifying/commitments.js";
import { findInPacks, OfflinePack } from "../src/verifying/offline_pack.js";
import { makeChance } from "./chance.js";

const NOW = Date.parse("2026-11-21T10:00:00.000Z");
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const PROJECT = "prj_0000000000000000000000";
const CAMPAIGNS = [null, "cmp_0000000000000000000000", "cmp_0000000000000000000001"];
const TOKENS = ["brd_0000000000000000", "brd_0000000000000001"];
const DIGESTS = await Promise.all(TOKENS.map(hash));
const write = (ms) => new Date(ms).toISOString();

/** Return a pack that was made in a minute; the first Code was revoked in the tenth. Its digest says what it is. */
function packOf(minute, campaign = null, { life = 6 * HOUR, project = PROJECT, proof = null } = {}) {
  const [at, digests] = [NOW + minute * MINUTE, DIGESTS.slice(minute < 10 ? 0 : 1)];
  const intent = new Map([
    ["type", "link"],
    ["action", "open"],
    ["resource", new Map()],
  ]);
  const members = new Map(
    Object.entries({
      pack_id: "opk_0000000000000000000000",
      project_id: project,
      campaign_id: campaign,
      issued_at: write(at),
      valid_until: write(at + life),
      key_id: "key",
    }),
  );
  const codes = digests.map((digest) => [digest, { xrId: `xr_${digest}`, intent, expiresAt: NOW + 99 * HOUR }]);
  return new OfflinePack(members, new Map(codes), `${minute} ${campaign} ${life} ${project}`, proof);
}

function fill(packs, shelf = new PackShelf(null)) {
  for (const pack of packs) shelf.add(pack);
  return shelf.packs;
}

/** Run `act` while no time passes, at a time of the wall clock. */
async function at(timeMs, act) {
  mock.timers.enable({ apis: ["Date"], now: timeMs });
  const monotonic = mock.method(performance, "now", () => 0);
  try {
    await act(monotonic);
  } finally {
    monotonic.mock.restore();
    mock.timers.reset();
  }
}

test("the same pack is kept once, with its proof if it came with one", () => {
  const [bare, proven] = [packOf(0), packOf(0, null, { proof: new Uint8Array(1) })];
  assert.deepEqual(fill([bare, packOf(0)]), [bare]);
  assert.deepEqual(fill([bare, proven, bare]), [proven]);
});

test("a newer pack replaces what it covers, if it lasts as long or the other has ended", () =>
  at(NOW, () => {
    const [, first, second] = CAMPAIGNS;
    const [old, other, newer] = [packOf(0, first), packOf(1, second), packOf(5)];
    const short = packOf(5, first, { life: HOUR });
    const last = packOf(60, null, { life: MINUTE });
    const proven = packOf(0, null, { proof: new Uint8Array(1) });
    const cases = [
      ["the same campaign's", [old, packOf(5, first)], [packOf(5, first)]],
      ["the project's", [old, newer], [newer]],
      ["the project's, which comes first", [newer, old], [newer]],
      ["another campaign's", [old, other], [other, old]],
      ["a campaign's beside the project's", [packOf(0), other], [other, packOf(0)]],
      ["one that ends before", [old, short], [short, old]],
      ["an ended one", [packOf(0, null, { life: HOUR }), last], [last]],
      ["one that has a proof", [proven, newer], [newer, proven]],
    ];
    for (const [name, packs, kept] of cases) assert.deepEqual(fill(packs), kept, name);
  }));

test("packs of more than a day ago are forgotten", () =>
  at(NOW, (monotonic) => {
    const shelf = new PackShelf(null);
    fill([packOf(0, null, { life: 24 * HOUR })], shelf);
    monotonic.mock.mockImplementation(() => 24 * HOUR);
    assert.deepEqual(fill([], shelf).length, 1);
    const newer = packOf(24 * 60, null, { project: "prj_other" });
    assert.deepEqual(fill([newer], shelf), [newer]);
  }));

test("a full shelf forgets the oldest, and takes nothing as old, which what it forgot may have silenced", () =>
  at(NOW, () => {
    const of = (number, minute = number) => packOf(minute, null, { project: `prj_${number}` });
    const packs = Array.from({ length: PACKS_MAX + 2 }, (_, number) => of(number));
    const shelf = new PackShelf(null);
    const kept = packs.slice(2).reverse();
    assert.deepEqual(fill(packs, shelf), kept);
    assert.deepEqual(fill([of(1, 0), packs[0]], shelf), kept);
  }));

test("it answers as if it kept every pack", async () => {
  const chance = makeChance(16);
  const below = (limit) => Math.floor(chance() * limit);
  for (let round = 0; round < 200; round += 1) {
    const packs = Array.from({ length: 1 + below(8) }, () =>
      packOf(below(20), CAMPAIGNS[below(3)], { life: (5 + below(35)) * MINUTE }),
    );
    const now = Math.max(NOW + below(60) * MINUTE, ...packs.map((pack) => pack.issuedAt));
    await at(now, async () => {
      const shelf = new PackShelf(null);
      fill(packs, shelf);
      for (const token of TOKENS) {
        assert.deepEqual(await shelf.find(token), await findInPacks(packs, await hash(token), now), `${round}`);
      }
    });
  }
});
