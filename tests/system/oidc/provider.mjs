// A certified OpenID Connect provider for the tests: oidc-provider with its own login and consent pages, in memory.
//
//   node provider.mjs [PORT [SERVICE]]
//
// It serves on 127.0.0.1 and writes `listening on URL` to standard error; URL is the issuer. Any login is let in with any password. Access tokens for the resource
// https://hubs.example.com are JWTs. What a test may ask of it beside OpenID Connect:
//
//   POST /test/rotate?alg=ES256    signs with a new key of this algorithm; the old keys are gone
//   GET  /test/fetches             how often the key set was asked for
//   GET  /test/exchanges           how often tokens were asked for
//   POST /test/hold?millis=300     answers of clients' requests leave so much later, from now on
//
// `hub-cloud-cli` is the client of the command line. Confidential clients are the service at SERVICE, https://hubs.example.com by default: `hub-cloud`, at which people sign
// in with a browser, and `hubs`, which it is at the authorization server of a supplier.

import { createServer } from 'node:http';
import { generateKeyPair as generateWithCallback, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import Provider from 'oidc-provider';

const RESOURCE = 'https://hubs.example.com';
const SERVICE = process.argv[3] ?? RESOURCE;
// In a thread of its own: primes for RSA take long on a busy machine, and requests go on meanwhile.
const generateKeyPair = promisify(generateWithCallback);
const KINDS = {
  RS256: () => generateKeyPair('rsa', { modulusLength: 2048 }),
  PS256: () => generateKeyPair('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPair('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPair('ec', { namedCurve: 'P-384' }),
  EdDSA: () => generateKeyPair('ed25519'),
};

async function key(alg) {
  const jwk = (await KINDS[alg]()).privateKey.export({ format: 'jwk' });
  return { ...jwk, alg, use: 'sig', kid: randomBytes(8).toString('hex') };
}

// Who logs in as `name` is name@example.com; `admin` may do all, `nobody` has no verified address.
const claims = (sub) => ({
  sub,
  name: `The ${sub}`,
  email: `${sub}@example.com`,
  email_verified: sub !== 'nobody',
  roles: sub === 'admin' ? ['PLATFORM_ADMIN'] : [],
});

function provider(issuer, keys, alg) {
  const made = new Provider(issuer, {
    clients: [{
      client_id: 'hub-cloud-cli',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: ['http://127.0.0.1/callback'],
      id_token_signed_response_alg: alg,
    }, {
      client_id: 'hubs',
      client_secret: 'a secret of supplier and service: 1',
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: [`${SERVICE}/auth/supplier-link/callback`],
      id_token_signed_response_alg: alg,
    }, {
      client_id: 'hub-cloud',
      client_secret: 'a secret of service and issuer: 2',
      token_endpoint_auth_method: 'client_secret_basic',
      grant_types: ['authorization_code'],
      response_types: ['code'],
      redirect_uris: [`${SERVICE}/auth/oidc/callback`],
      id_token_signed_response_alg: alg,
    }],
    jwks: { keys },
    cookies: { keys: ['tests'] },
    pkce: { required: () => true, methods: ['S256'] },
    scopes: ['openid', 'offline_access', 'profile', 'email'],
    claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
    findAccount: (ctx, sub) => ({ accountId: sub, claims: () => claims(sub) }),
    // As issuers do whose access tokens carry what a resource needs to know of a person.
    extraTokenClaims: (ctx, token) => (token.accountId ? (({ sub, ...rest }) => rest)(claims(token.accountId)) : undefined),
    features: {
      devInteractions: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, resource) => {
          if (resource !== RESOURCE) throw new Error(`unknown resource ${resource}`);
          return {
            audience: RESOURCE,
            scope: '',
            accessTokenFormat: 'jwt',
            accessTokenTTL: 3600,
            jwt: { sign: { alg } },
          };
        },
      },
    },
    enabledJWA: {
      idTokenSigningAlgValues: Object.keys(KINDS),
    },
    rotateRefreshToken: true,
    ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 86400, IdToken: 3600, Interaction: 600, RefreshToken: 86400, Session: 86400 },
  });
  made.on('server_error', (ctx, error) => console.error('server_error', error));
  return made.callback();
}

let serve;
let fetches = 0;
let exchanges = 0;
let heldMillis = 0;
const HELD = ['/token', '/token/revocation', '/me', '/.well-known/openid-configuration'];
const server = createServer(async (request, response) => {
  const url = new URL(request.url, 'http://127.0.0.1');
  const answer = (value) => response.end(`${JSON.stringify(value)}\n`);
  if (url.pathname === '/test/rotate' && request.method === 'POST') {
    const alg = url.searchParams.get('alg');
    serve = provider(issuer, [await key(alg)], alg);
    return answer({});
  }
  if (url.pathname === '/test/hold' && request.method === 'POST') {
    heldMillis = Number(url.searchParams.get('millis'));
    return answer({});
  }
  if (url.pathname === '/test/fetches') return answer({ fetches });
  if (url.pathname === '/test/exchanges') return answer({ exchanges });
  if (url.pathname === '/jwks') fetches += 1;
  if (url.pathname === '/token') exchanges += 1;
  if (heldMillis > 0 && HELD.includes(url.pathname)) {
    const end = response.end.bind(response);
    response.end = (...body) => setTimeout(() => end(...body), heldMillis);
  }
  return serve(request, response);
});

let issuer;
// Whoever reaches it gets an answer, so it listens once it has its keys.
const keys = await Promise.all(Object.keys(KINDS).map(key));
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  serve = provider(issuer, keys, 'RS256');
  console.error(`listening on ${issuer}`);
});
// Ends with the process that started it.
process.stdin.on('end', () => process.exit(0)).resume();
