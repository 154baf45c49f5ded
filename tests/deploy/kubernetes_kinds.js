// Reads resources of Kubernetes as JSON, and prints what is wrong with each: values that its kind's schema refuses, and
// fields that its kind does not have, which the schema allows.
import { readFileSync } from "node:fs";
// The one that the generated clients need; the newer one of tests/javascript has no functions to call.
import ts from "../generators/node_modules/typescript/lib/typescript.js";

const resources = JSON.parse(readFileSync(0, "utf8"));
const lines = [];
for (const resource of resources) {
  const kinds = await import(`kubernetes-models/${resource.apiVersion}`);
  try {
    new kinds[resource.kind](resource).validate();
  } catch (error) {
    console.log(`${resource.kind} ${resource.metadata.name}: ${error.message}`);
  }
  const type = `import("kubernetes-models/${resource.apiVersion}").I${resource.kind}`;
  lines.push(`{ const _: ${type} = ${JSON.stringify(resource)}; }`);
}

const name = new URL("resources.ts", import.meta.url).pathname;
const options = { noEmit: true, strict: true, skipLibCheck: true, module: ts.ModuleKind.NodeNext, types: [] };
const host = ts.createCompilerHost(options);
const { getSourceFile, fileExists } = host;
host.fileExists = (path) => path === name || fileExists(path);
host.getSourceFile = (path, ...rest) =>
  path === name
    ? ts.createSourceFile(path, `export {};\n${lines.join("\n")}`, ts.ScriptTarget.Latest)
    : getSourceFile(path, ...rest);
const program = ts.createProgram([name], options, host);
for (const { file, start, messageText } of ts.getPreEmitDiagnostics(program)) {
  const line = file ? file.getLineAndCharacterOfPosition(start).line - 1 : -1;
  const resource = resources[line];
  const what = resource ? `${resource.kind} ${resource.metadata.name}` : "resources.ts";
  console.log(`${what}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`);
}
