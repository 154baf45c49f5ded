// Prints, for each file of float samples at 48 kHz that is named, what npm's ggwave hears in it, as a line of JSON.
import { readFileSync } from "node:fs";
import ggwave from "ggwave";

const module = await ggwave();
module.disableLog();
for (const path of process.argv.slice(2)) {
  // A new instance for each: an unfinished frame would hide the next one.
  const instance = module.init(module.getDefaultParameters());
  const heard = module.decode(instance, new Int8Array(readFileSync(path)));
  console.log(JSON.stringify(Buffer.from(heard).toString()));
  module.free(instance);
}
