// What a program does with the TypeScript types that were generated, by openapi-fetch, which knows every path, parameter
// and answer from them. It is compiled strictly, so a call that the document does not know does not even start.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { env: Record<string, string | undefined> };

type Given = {
  base_url: string;
  token: string;
  organization_id: string;
  project_id: string;
  intent: components["schemas"]["Intent"];
};

const given = JSON.parse(process.env["GIVEN"] ?? "") as Given;
const tenant = { organization_id: given.organization_id };
const receiver = createClient<paths>({ baseUrl: given.base_url });
const issuer = createClient<paths>({
  baseUrl: given.base_url,
  headers: { Authorization: `Bearer ${given.token}` },
});

const must = <T>(value: T | undefined, what: string): T => {
  if (value === undefined) throw new Error(`${what} was not answered`);
  return value;
};

const issue = async () => {
  const expires_at = new Date(Date.now() + 86_400_000).toISOString();
  const body = { ...tenant, project_id: given.project_id, issuer: "Radio Nordlicht", expires_at, intent: given.intent };
  const { data } = await issuer.POST("/v1/codes", { body });
  const issued = must(data, "the issuance");
  if (!("xr_id" in issued)) throw new Error("a verdict is the answer to a dry run only");
  return issued;
};

const pageThrough = async (): Promise<string[]> => {
  const listed: string[] = [];
  let cursor: string | null = null;
  do {
    const query: { organization_id: string; limit: number; cursor?: string } = { ...tenant, limit: 2 };
    if (cursor !== null) query.cursor = cursor;
    const { data } = await issuer.GET("/v1/codes", { params: { query } });
    const page: components["schemas"]["CodePage"] = must(data, "the list");
    listed.push(...page.data.map((code) => code.xr_id));
    cursor = page.next_cursor;
  } while (cursor !== null);
  return listed;
};

const codes = [await issue(), await issue(), await issue()];
const first = must(codes[0], "the first");
const path = { xr_id: first.xr_id };
const resolution = must(
  (
    await receiver.GET("/v1/resolve/{broadcast_token}", {
      params: { path: first, header: { "X-Svc-Resolution-Proof": "ed25519-v1" } },
    })
  ).data,
  "the resolution",
);
const keys = must((await receiver.GET("/v1/keys")).data, "the keys");
const history = must((await receiver.GET("/v1/keys/history")).data, "the history");
const wav = must(
  (await issuer.GET("/v1/codes/{xr_id}/audio", { params: { path, query: tenant }, parseAs: "arrayBuffer" })).data,
  "the sound",
);
const zip = must(
  (
    await issuer.POST("/v1/codes/audio-bundle", {
      params: { query: { ...tenant, project_id: given.project_id } },
      body: { xr_ids: codes.map((code) => code.xr_id), protocol: 4 },
      parseAs: "arrayBuffer",
    })
  ).data,
  "the bundle",
);
const revoked = must(
  (await issuer.POST("/v1/codes/{xr_id}/revoke", { params: { path, query: tenant } })).data,
  "the revocation",
);
const detail = must((await issuer.GET("/v1/codes/{xr_id}", { params: { path, query: tenant } })).data, "the Code");
const unavailable = await receiver.GET("/v1/resolve/{broadcast_token}", { params: { path: first } });
const unauthenticated = await receiver.GET("/v1/organizations");

// The types call what is binary a string; what arrives is what `parseAs` says.
const begins = (bytes: unknown, count: number): string => {
  if (!(bytes instanceof ArrayBuffer)) throw new Error("binary content is expected");
  return new TextDecoder().decode(bytes.slice(0, count));
};

console.log(
  JSON.stringify({
    issued: codes.map((code) => code.xr_id),
    listed: await pageThrough(),
    intent: resolution.intent,
    proof_key: must(resolution.resolution_proof, "the proof").key_id,
    keys: keys.keys.map((key) => key.kid),
    history: history.keys.map((key) => key.kid),
    wav: begins(wav, 4),
    zip: begins(zip, 2),
    status: [revoked.status, detail.status],
    problems: [must(unavailable.error, "a problem").code, must(unauthenticated.error, "a problem").code],
  }),
);
