// Prints what is heard in files of raw 32-bit samples, which the lines of the input name: a path and a rate in Hz.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

import { hear } from "../src/hearing/decoder.js";

for await (const line of createInterface({ input: process.stdin })) {
  const [path, rateHz] = line.split(" ");
  const bytes = readFileSync(path);
  const samples = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  console.log(JSON.stringify(hear(samples, Number(rateHz)).map((frame) => frame.text)));
}
