import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");

test("the package exports, under its name, what its README imports and tells of", async () => {
  const receiver = await import("soundmark-receiver");
  const imports = [...readme.matchAll(/import \{ (.*) \} from "\.\/soundmark-receiver\/index.js";/g)];
  const imported = imports.flatMap(([, names]) => names.split(", "));
  assert.equal(imports.length, 4);
  for (const name of imported) assert.equal(typeof receiver[name], "function", name);
  for (const name of Object.keys(receiver)) assert.match(readme, new RegExp(`\\b${name}\\b`), name);
});

test("the package depends on nothing and carries its licence", () => {
  const read = (name) => readFileSync(new URL(`../${name}`, import.meta.url), "utf8");
  const described = JSON.parse(read("package.json"));
  assert.equal(described.dependencies, undefined);
  assert.equal(read("LICENSE"), read("../../LICENSE"));
});
