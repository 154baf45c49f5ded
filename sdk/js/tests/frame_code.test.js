import assert from "node:assert/strict";
import { test } from "node:test";

import {
  CODE_BASE,
  CODE_ROWS,
  findCheckBytes,
  findEffects,
  findNibbles,
  KNOWN_NIBBLES,
  multiply,
  UNKNOWN_BYTES,
} from "../src/hearing/frame_code.js";
import { makeChance } from "./chance.js";

test("check bytes are those that ggwave sends", () => {
  // ggwave 0.4.3.
  assert.equal(
    Buffer.from(findCheckBytes(Buffer.from("XRC1:brd_ABCDEFGHabcdefgh"), 10)).toString("hex"),
    "b494031432dd1bd5b6c9",
  );
  assert.equal(Buffer.from(findCheckBytes([25], 2)).toString("hex"), "2b32");
});

test("every frame begins with the same 24 half bytes, and ends with two that are 0", () => {
  for (const token of ["A".repeat(16), "zyxwvutsrqponmlk"]) {
    const nibbles = findNibbles(`XRC1:brd_${token}`);
    assert.equal(nibbles.length, 78);
    assert.deepEqual(nibbles.slice(0, 24), KNOWN_NIBBLES);
    assert.deepEqual([...nibbles.slice(-2)], [0, 0]);
  }
});

test("any 16 of the 26 unknown bytes determine the others", () => {
  const chance = makeChance(4);
  for (let round = 0; round < 50; round += 1) {
    const order = [...CODE_BASE.keys()].sort(() => chance() - 0.5);
    const [believed, rest] = [order.slice(0, 16), order.slice(16)];
    const content = CODE_BASE.slice();
    for (const row of CODE_ROWS) {
      const factor = Math.floor(256 * chance());
      for (let at = 0; at < UNKNOWN_BYTES; at += 1) content[at] ^= multiply(factor, row[at]);
    }
    const effects = findEffects(believed, rest);
    const determined = rest.map((place, at) =>
      believed.reduce(
        (sum, other, index) => sum ^ multiply(content[other] ^ CODE_BASE[other], effects[index][at]),
        CODE_BASE[place],
      ),
    );
    assert.deepEqual(
      determined,
      rest.map((place) => content[place]),
    );
  }
});
