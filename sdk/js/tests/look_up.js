// Prints how long it takes to verify packs, and to look tokens up in them: for `python -m bench offline-packs`.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { hash } from "../src/verifying/commitments.js";
import { readKeyHistory } from "../src/verifying/keys.js";
import { findInPacks, verifyOfflinePack } from "../src/verifying/offline_pack.js";

const LOOKUPS = 10_000;
const folder = process.argv[2];
const read = (name) => new Uint8Array(readFileSync(join(folder, name)));
const tokens = JSON.parse(readFileSync(join(folder, "tokens.json"), "utf8"));
const keys = await readKeyHistory(read("keys.json"));
const names = readdirSync(folder).filter((name) => /^[0-9]+\.json$/.test(name));
const packs = [];
let verifiedS = 0;
for (const name of names) {
  const before = process.cpuUsage();
  packs.push(await verifyOfflinePack(read(name), keys));
  const { user, system } = process.cpuUsage(before);
  verifiedS ||= (user + system) / 1e6;
}

/** Return the milliseconds of processor time that look-ups take of the page's own thread. */
async function measure(known) {
  const takenMs = [];
  for (let number = 0; number < LOOKUPS; number += 1) {
    const token = tokens[(number * 7919) % tokens.length];
    const before = process.threadCpuUsage();
    const found = await findInPacks(known, await hash(token), Date.now());
    const { user, system } = process.threadCpuUsage(before);
    takenMs.push((user + system) / 1000);
    if (found === null) throw new Error("The pack names the token.");
  }
  takenMs.sort((left, right) => left - right);
  return { p50: takenMs[LOOKUPS / 2], "p99.9": takenMs[(LOOKUPS * 999) / 1000], longest: takenMs[LOOKUPS - 1] };
}

const one = await measure(packs.slice(0, 1));
const many = await measure(packs);
console.log(JSON.stringify({ verified_s: verifiedS, one_ms: one, many_ms: many }));
