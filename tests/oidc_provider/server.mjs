// Four OpenID Connect providers on loopback, one for each algorithm that Core accepts, as `oidc-provider` makes them.
// Their addresses are written to standard output as one line of JSON. The process ends when its standard input does.
//
// Each argument is the address of a console, where people come back to after signing in and out with a real browser.

import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

import Provider from "oidc-provider";

// What the provider has to say about its own configuration does not belong into the line of addresses.
console.info = console.warn = () => {};

const KEY_PAIRS = {
  RS256: ["rsa", { modulusLength: 2048 }],
  PS256: ["rsa", { modulusLength: 2048 }],
  ES256: ["ec", { namedCurve: "P-256" }],
  EdDSA: ["ed25519", {}],
};

const API = "https://api.soundmark.test/";
// An access token for one of these is a JWT; without any it is opaque.
const RESOURCES = {
  [API]: API,
  // An API that is called like the console: what another client is given for it names the console in `aud`.
  "urn:soundmark:console": "console",
};
const SCOPE = "openid email roles offline_access";
const CONSOLES = process.argv.slice(2);

// The strength of the login that this request rests on.
function loginOf({ oidc: { entities } }) {
  const { AuthorizationCode: code, RefreshToken: refresh, AccessToken: access, Session: session } = entities;
  const { acr, amr } = code ?? refresh ?? access?.extra ?? session;
  return { acr, amr };
}

function accountOf(ctx, id) {
  return {
    accountId: id,
    claims: () => ({
      sub: id,
      email: `${id}@example.org`,
      email_verified: !id.startsWith("unverified"),
      ...(id.startsWith("root") ? { realm_access: { roles: ["svc_platform_admin"] } } : {}),
      ...loginOf(ctx),
    }),
  };
}

// The console as it is registered at a provider: without a secret, and with one.
function consoleClients() {
  const client = {
    redirect_uris: CONSOLES.map((address) => `${address}/sign-in/callback`),
    post_logout_redirect_uris: CONSOLES.map((address) => `${address}/sign-in/signed-out`),
    response_types: ["code"],
    grant_types: ["authorization_code", "refresh_token"],
  };
  if (CONSOLES.length === 0) return [];
  return [
    { ...client, client_id: "soundmark-console", token_endpoint_auth_method: "none" },
    { ...client, client_id: "soundmark-secret", client_secret: "secret-of-the-console:100%" },
  ];
}

const isConsole = (client) => client.clientId.startsWith("soundmark-");

// Of its own console, an organisation's provider asks nobody for consent.
async function loadExistingGrant({ oidc }) {
  const { clientId } = oidc.client;
  const grant = await oidc.provider.Grant.find(
    oidc.result?.consent?.grantId ?? oidc.session.grantIdFor(clientId) ?? "",
  );
  if (grant !== undefined || !isConsole(oidc.client)) return grant;
  const granted = new oidc.provider.Grant({ accountId: oidc.session.accountId, clientId });
  granted.addOIDCScope(SCOPE);
  granted.addResourceScope(API, SCOPE);
  await granted.save();
  return granted;
}

function configurationOf(alg) {
  const [type, options] = KEY_PAIRS[alg];
  const jwk = generateKeyPairSync(type, options).privateKey.export({ format: "jwk" });
  const client = {
    redirect_uris: ["https://console.test/callback"],
    response_types: ["code", "id_token", "code id_token", "id_token token"],
    grant_types: ["authorization_code", "implicit", "refresh_token"],
    token_endpoint_auth_method: "none",
    id_token_signed_response_alg: alg,
    userinfo_signed_response_alg: alg,
  };
  return {
    jwks: { keys: [{ ...jwk, alg, use: "sig", kid: `key-${alg}` }] },
    clients: [
      { ...client, client_id: "console" },
      { ...client, client_id: "other" },
      ...consoleClients(),
      {
        client_id: "machine",
        client_secret: "secret-of-the-machine-in-this-test",
        redirect_uris: [],
        response_types: [],
        grant_types: ["client_credentials"],
        id_token_signed_response_alg: alg,
      },
    ],
    clientDefaults: { id_token_signed_response_alg: alg },
    responseTypes: ["code", "id_token", "code id_token", "id_token token"],
    cookies: { keys: ["of-this-test"] },
    claims: { openid: ["sub", "acr", "amr"], email: ["email", "email_verified"], roles: ["realm_access"] },
    scopes: SCOPE.split(" "),
    acrValues: ["1", "2"],
    // As with Keycloak: a client that may refresh gets a refresh token, and one that is used twice revokes everything.
    issueRefreshToken: (ctx, client, code) =>
      client.grantTypeAllowed("refresh_token") && (isConsole(client) || code.scopes.has("offline_access")),
    rotateRefreshToken: true,
    ttl: { AccessToken: 300, Session: 3600, Interaction: 600, Grant: 3600, IdToken: 300, RefreshToken: 3600 },
    // As with many providers, everything that an access token says of the person stands in the ID token, too.
    conformIdTokenClaims: false,
    findAccount: accountOf,
    loadExistingGrant,
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    extraTokenClaims: (ctx) => ctx.oidc.entities.Account?.claims(), // Nobody's where a machine asks for itself.
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      jwtUserinfo: { enabled: true },
      revocation: { enabled: true },
      // One of the providers does not know the parameter `claims`, and takes `acr_values` for a wish.
      claimsParameter: { enabled: alg !== "ES256" },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (ctx, form) => {
          ctx.body = page("Sign out?", `${form}<button form="op.logoutForm" name="logout" value="yes">Yes</button>`);
        },
      },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        defaultResource: (ctx, client, oneOf) => oneOf ?? (client.clientId === "soundmark-console" ? API : undefined),
        getResourceServerInfo: (ctx, resource) => ({
          scope: SCOPE,
          audience: RESOURCES[resource],
          accessTokenFormat: "jwt",
          jwt: { sign: { alg } },
        }),
      },
    },
  };
}

function page(title, body) {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title>
    <link rel="icon" href="data:,"></head><body><h1>${title}</h1>${body}</body></html>`;
}

const FORM = page(
  "Identity provider",
  `<form method="post">
    <label>Name <input name="subject" autofocus></label>
    <label>One-time password <input name="otp"></label>
    <button>Sign in</button> <button name="cancel" value="yes">Cancel</button>
  </form>`,
);

// Signs the person in that the form names, with a second factor where it gives one, and consents to everything.
async function interact(provider, request, response) {
  const { prompt, params } = await provider.interactionDetails(request, response);
  if (request.method !== "POST") {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end(FORM);
    return;
  }
  const form = new URLSearchParams((await request.toArray()).join(""));
  if (form.has("cancel")) {
    await provider.interactionFinished(request, response, { error: "access_denied", error_description: prompt.name });
    return;
  }
  const accountId = form.get("subject");
  const login = form.get("otp") ? { accountId, acr: "2", amr: ["pwd", "otp"] } : { accountId, acr: "1", amr: ["pwd"] };
  const grant = new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(SCOPE);
  for (const resource of Object.keys(RESOURCES)) grant.addResourceScope(resource, SCOPE);
  await provider.interactionFinished(request, response, { login, consent: { grantId: await grant.save() } });
}

async function serve(alg) {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configurationOf(alg));
  const handle = provider.callback();
  server.on("request", (request, response) => {
    if (!request.url.startsWith("/interaction/")) {
      handle(request, response);
      return;
    }
    interact(provider, request, response).catch((error) => {
      // With the back button people come to a login that is over.
      response.statusCode = error.name === "SessionNotFound" ? 400 : 500;
      response.setHeader("content-type", "text/html; charset=utf-8");
      response.end(page("This login is over", `<pre>${error.name}</pre>`));
    });
  });
  return [alg, issuer];
}

const issuers = Object.fromEntries(await Promise.all(Object.keys(KEY_PAIRS).map(serve)));
process.stdout.write(`${JSON.stringify(issuers)}\n`);
process.stdin.resume().on("end", () => process.exit(0));
