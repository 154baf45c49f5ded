// Four OpenID Connect providers on loopback, one for each algorithm that Core accepts, as `oidc-provider` makes them.
// Their addresses are written to standard output as one line of JSON. The process ends when its standard input does.

import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

import Provider from 'oidc-provider';

// What the provider has to say about its own configuration does not belong into the line of addresses.
console.info = console.warn = () => {};

const KEY_PAIRS = {
  RS256: ['rsa', { modulusLength: 2048 }],
  PS256: ['rsa', { modulusLength: 2048 }],
  ES256: ['ec', { namedCurve: 'P-256' }],
  EdDSA: ['ed25519', {}],
};

// An access token for one of these is a JWT; without any it is opaque.
const RESOURCES = {
  'https://api.soundmark.test/': 'https://api.soundmark.test/',
  // An API that is called like the console: what another client is given for it names the console in `aud`.
  'urn:soundmark:console': 'console',
};
const SCOPE = 'openid email roles offline_access';

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
      email_verified: !id.startsWith('unverified'),
      ...(id.startsWith('root') ? { realm_access: { roles: ['svc_platform_admin'] } } : {}),
      ...loginOf(ctx),
    }),
  };
}

function configurationOf(alg) {
  const [type, options] = KEY_PAIRS[alg];
  const jwk = generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' });
  const client = {
    redirect_uris: ['https://console.test/callback'],
    response_types: ['code', 'id_token', 'code id_token', 'id_token token'],
    grant_types: ['authorization_code', 'implicit', 'refresh_token'],
    token_endpoint_auth_method: 'none',
    id_token_signed_response_alg: alg,
    userinfo_signed_response_alg: alg,
  };
  return {
    jwks: { keys: [{ ...jwk, alg, use: 'sig', kid: `key-${alg}` }] },
    clients: [
      { ...client, client_id: 'console' },
      { ...client, client_id: 'other' },
      {
        client_id: 'machine',
        client_secret: 'secret-of-the-machine-in-this-test',
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
        id_token_signed_response_alg: alg,
      },
    ],
    clientDefaults: { id_token_signed_response_alg: alg },
    responseTypes: ['code', 'id_token', 'code id_token', 'id_token token'],
    cookies: { keys: ['of-this-test'] },
    claims: { openid: ['sub', 'acr', 'amr'], email: ['email', 'email_verified'], roles: ['realm_access'] },
    scopes: SCOPE.split(' '),
    // As with many providers, everything that an access token says of the person stands in the ID token, too.
    conformIdTokenClaims: false,
    findAccount: accountOf,
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    extraTokenClaims: (ctx) => ctx.oidc.entities.Account?.claims(), // Nobody's where a machine asks for itself.
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      jwtUserinfo: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, resource) => ({
          scope: SCOPE,
          audience: RESOURCES[resource],
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg } },
        }),
      },
    },
  };
}

// Signs the person in that the form names, with a second factor where it gives one, and consents to everything.
async function interact(provider, request, response) {
  const { prompt, params } = await provider.interactionDetails(request, response);
  if (request.method !== 'POST') {
    response.end(prompt.name);
    return;
  }
  const form = new URLSearchParams((await request.toArray()).join(''));
  const accountId = form.get('subject');
  const login = form.has('otp') ? { accountId, acr: '2', amr: ['pwd', 'otp'] } : { accountId, acr: '1', amr: ['pwd'] };
  const grant = new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(SCOPE);
  for (const resource of Object.keys(RESOURCES)) grant.addResourceScope(resource, SCOPE);
  await provider.interactionFinished(request, response, { login, consent: { grantId: await grant.save() } });
}

async function serve(alg) {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configurationOf(alg));
  const handle = provider.callback();
  server.on('request', (request, response) => {
    if (!request.url.startsWith('/interaction/')) {
      handle(request, response);
      return;
    }
    interact(provider, request, response).catch((error) => {
      response.statusCode = 500;
      response.end(error.stack);
    });
  });
  return [alg, issuer];
}

const issuers = Object.fromEntries(await Promise.all(Object.keys(KEY_PAIRS).map(serve)));
process.stdout.write(`${JSON.stringify(issuers)}\n`);
process.stdin.resume().on('end', () => process.exit(0));
