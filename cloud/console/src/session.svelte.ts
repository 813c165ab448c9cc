//! The session of the user. The access token is in memory only: no credential is stored where a
//! script could read it later. Sign-in, refresh and sign-out are in this module only.

import { problemIn, problemOf, type Problem } from './api/problem';
import { address, BASE, navigate } from './router.svelte';

/** A cookie keeps the session; scripts hold only the access token. */
interface Login {
  userUuid: string;
  accessToken: string;
  expiresAt: string;
}

export interface Methods {
  password: boolean;
  registration: 'OPEN' | 'INVITED' | 'CLOSED';
  passwordReset: boolean;
  /** Whether the service can send notices by e-mail. */
  mail: boolean;
  oidc: { name: string; issuer: string } | null;
}

export interface Person {
  userUuid: string;
  isAdmin: boolean;
  /** The id by which others add the user to a tenant. */
  personaUuid?: string;
}

type State = 'starting' | 'out' | 'in';

class Session {
  state = $state<State>('starting');
  person = $state.raw<Person | null>(null);
  /** The reason of the last sign-out, shown at the sign-in. */
  ended = $state<string | null>(null);
  /** True after the session expired: the page stays, so that the user can continue. */
  lapsed = $state(false);
  /** Counts sign-ins: resources that failed before are reloaded. */
  entries = $state(0);
  /** Why it is not known whether somebody is signed in. */
  problem = $state.raw<Problem | null>(null);
}

export const session = new Session();

/** The time before its expiry at which a token is replaced, in milliseconds. */
const EARLY = 60_000;
let login: Login | null = null;
let refreshing: Promise<string | null> | null = null;

/** Remembers in this browser that somebody signed in: without it, there is no session to ask for. */
const SIGNED_IN = 'hub-console-signed-in';

/** True unless this browser knows that nobody is signed in. */
function mayBeSignedIn(): boolean {
  try {
    return localStorage.getItem(SIGNED_IN) !== null;
  } catch {
    // A browser that stores nothing asks.
    return true;
  }
}

function rememberSignedIn(is: boolean) {
  try {
    if (is) localStorage.setItem(SIGNED_IN, 'yes');
    else localStorage.removeItem(SIGNED_IN);
  } catch {
    // As above.
  }
}

/** Tells the other tabs of this browser. */
const tabs = new BroadcastChannel('hub-console');
tabs.onmessage = ({ data }) => {
  if (data === 'signed-out' && session.state === 'in') leave('You signed out in another tab.');
  if (data === 'signed-in' && (session.state === 'out' || session.lapsed)) void refresh().catch(() => {});
};

async function call<T>(method: string, path: string, body?: unknown, token?: string): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, {
      method,
      headers: {
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(token ? { authorization: `Bearer ${token}` } : {}),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    throw problemOf(error);
  }
  const text = await response.text();
  let answer: unknown;
  try {
    answer = text === '' ? undefined : JSON.parse(text);
  } catch {
    answer = undefined;
  }
  if (!response.ok) throw problemIn(response, answer);
  return (answer as { data: T } | undefined)?.data as T;
}

function enter(next: Login) {
  login = next;
  rememberSignedIn(true);
  const { roles, personaUuid } = claims(next.accessToken);
  const isAdmin = roles.includes('PLATFORM_ADMIN');
  // The same person keeps what is shown.
  if (session.person?.userUuid !== next.userUuid || session.person.isAdmin !== isAdmin) {
    session.person = { userUuid: next.userUuid, isAdmin, personaUuid };
  }
  if (session.state !== 'in' || session.lapsed) session.entries += 1;
  session.ended = null;
  session.lapsed = false;
  session.state = 'in';
}

function leave(reason: string | null) {
  login = null;
  rememberSignedIn(false);
  session.ended = reason;
  session.lapsed = false;
  session.person = null;
  session.state = 'out';
}

function lapse() {
  login = null;
  session.ended = 'Your session has ended. Sign in to continue.';
  session.lapsed = true;
}

function claims(token: string): { roles: string[]; personaUuid?: string } {
  try {
    const text = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const { roles, persona_uuid: personaUuid } = JSON.parse(atob(text)) as Record<string, unknown>;
    return { roles: Array.isArray(roles) ? roles : [], personaUuid: typeof personaUuid === 'string' ? personaUuid : undefined };
  } catch {
    return { roles: [] };
  }
}

const WHY: Record<string, string> = {
  SIGN_IN_REFUSED: 'Sign-in was denied by you or by the identity provider.',
  SIGN_IN_FAILED: 'Sign-in failed: the response of the identity provider could not be verified.',
  OTHER_ISSUER: 'Sign-in failed: the response came from a different identity provider.',
  INVALID_TOKEN: 'Sign-in failed: your account was deleted.',
  SIGN_IN_LINK_USED: 'The sign-in link was used before, or has expired. Sign in with your password.',
};

/** A parameter of the address, which then no longer has it. */
function taken(name: string): string | null {
  const query = new URLSearchParams(address.search);
  const value = query.get(name);
  query.delete(name);
  if (value) navigate(address.path + (query.size ? `?${query}` : ''), { replace: true });
  return value;
}

/** Continues the login of this browser, if there is one. */
export async function start() {
  const failed = taken('signInError');
  if (failed) return leave(WHY[failed] ?? 'Sign-in failed. Try again in a moment.');
  // A link has signed this browser in.
  if (taken('signedIn')) rememberSignedIn(true);
  if (!mayBeSignedIn()) return leave(null);
  try {
    await refresh();
    session.problem = null;
  } catch (error) {
    session.problem = problemOf(error);
  }
}

export const methods = () => call<Methods>('GET', '/auth/methods');

export async function signIn(email: string, password: string, otp?: string) {
  enter(await call<Login>('POST', '/auth/session', { email, password, ...(otp ? { otp } : {}) }));
  tabs.postMessage('signed-in');
}

/** Creates an account, and signs this browser in to it. */
export async function register(email: string, password: string, nickname?: string) {
  const made = await call<{ refreshToken: string }>('POST', '/auth/register', { email, password, ...(nickname ? { nickname } : {}) });
  await signIn(email, password);
  // The login that came with the account is not the browser's.
  await call('POST', '/auth/logout', { refreshToken: made.refreshToken }).catch(() => {});
}

/** The next page may be that of somebody who signed in at the issuer. */
export const leaveForIssuer = () => rememberSignedIn(true);

/** The address of an issuer's sign-in, which returns to this page. */
export const issuerUrl = () => `/auth/oidc/login?returnTo=${encodeURIComponent(BASE + (address.path === '/' ? '' : address.path))}`;

export const askForReset = (email: string) => call<void>('POST', '/auth/password/forgot', { email });
export const resetPassword = (token: string, newPassword: string) =>
  call<void>('POST', '/auth/password/reset', { token, newPassword });

export async function signOut() {
  await call('DELETE', '/auth/session');
  leave(null);
  tabs.postMessage('signed-out');
}

/** Ends all logins of the person, in this browser and elsewhere. */
export async function signOutEverywhere() {
  await call('DELETE', '/auth/sessions', undefined, (await accessToken()) ?? undefined);
  leave('You are signed out everywhere.');
  tabs.postMessage('signed-out');
}

/** The access token, replaced before it ends; null when nobody is signed in. */
export async function accessToken(): Promise<string | null> {
  if (!login) return null;
  if (Date.parse(login.expiresAt) - Date.now() > EARLY) return login.accessToken;
  return refresh();
}

/** Another token in the place of one that the service refused; null ends the session. */
export async function tokenRefused(token: string): Promise<string | null> {
  if (login && login.accessToken !== token) return login.accessToken;
  return refresh();
}

function refresh(): Promise<string | null> {
  refreshing ??= exchange().finally(() => (refreshing = null));
  return refreshing;
}

async function exchange(): Promise<string | null> {
  // Without a session, the answer has no body. A failure ends none: the person stays.
  const next = await call<Login | undefined>('POST', '/auth/session/refresh');
  if (next) {
    enter(next);
    return next.accessToken;
  }
  if (session.person) lapse();
  else leave(session.ended);
  return null;
}
