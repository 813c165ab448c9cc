// The pairing page. The claim code comes in the fragment of the URL, which no browser sends. What
// the service says is put on the page as text alone. The access token is kept in memory and nowhere
// else; what continues the login is a cookie that no script can read. While a person signs in
// elsewhere, the code waits in the storage of this tab.
'use strict';

const element = (id) => document.getElementById(id);
const sleep = (millis) => new Promise((resolve) => { setTimeout(resolve, millis); });

const FIRST_PAUSE = 2000;
const LONGEST_PAUSE = 15000;

const CODE = 'claimCode';
const SIGN_IN_ERRORS = {
  SIGN_IN_REFUSED: 'You were not signed in, because you or the other service did not agree.',
  RATE_LIMITED: 'Too many attempts. Wait a minute, then try again.',
  ISSUER_UNAVAILABLE: 'The service where you sign in cannot be reached. Try again shortly.',
  BUSY: 'Many people sign in at this moment. Try again shortly.',
};

let session = null;
// Whether this browser may be signed in without this page knowing it yet.
let mayResume = true;
// What to say once the page is set up.
let complaint = '';
// Raised to end what goes on for an earlier code.
let round = 0;

/// A failure in words for people. `wait` is how many seconds to wait before the next attempt;
/// whatever has none is not tried again.
class Failure extends Error {
  constructor(message, { status = 0, wait = null } = {}) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

function show(id, isShown) { element(id).hidden = !isShown; }
function say(id, text) { element(id).textContent = text; }

function tell(problem) {
  say('problem', problem);
  show('problem', problem !== '');
}

async function call(method, path, body, token) {
  const headers = {};
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), cache: 'no-store' });
  } catch {
    throw new Failure('The service cannot be reached. Check your internet connection.', { wait: 5 });
  }
  let answer = {};
  try {
    answer = await response.json();
  } catch {
    // Whoever stands in between answers without JSON.
  }
  if (response.ok) return answer.data;
  const wait = Number(response.headers.get('Retry-After'));
  const status = response.status;
  if (status === 429) {
    const secs = wait > 0 ? wait : 30;
    throw new Failure(`Too many attempts. Wait ${secs} seconds, then try again.`, { status, wait: secs });
  }
  if (status >= 500) {
    throw new Failure('The service has a problem. This page keeps trying.', { status, wait: wait > 0 ? wait : 10 });
  }
  throw new Failure(typeof answer.message === 'string' ? answer.message : `The service refused with ${status}.`, { status });
}

/// Calls on behalf of the person, with a new token where the old one has expired.
async function callSignedIn(method, path, body) {
  try {
    return await call(method, path, body, session.accessToken);
  } catch (failure) {
    if (failure.status !== 401) throw failure;
  }
  if (!await resume()) throw new Failure('You have been signed out. Sign in again.', { status: 401 });
  return call(method, path, body, session.accessToken);
}

/// Gets an access token with the browser's cookie. Says whether there was one.
async function resume() {
  try {
    session = (await call('POST', '/auth/session/refresh')) ?? null;
  } catch (failure) {
    if (failure.wait !== null) throw failure;
    session = null;
  }
  return session !== null;
}

/// `XXXX-XXXX-XXXX-XXXX`, or an empty text if it cannot be a code.
function spelled(text) {
  const symbols = text.toUpperCase().replace(/[\s-]/g, '').replace(/O/g, '0').replace(/[IL]/g, '1');
  return /^[0-9A-HJKMNP-TV-Z]{16}$/.test(symbols) ? symbols.match(/.{4}/g).join('-') : '';
}

function codeOfUrl() {
  try {
    return decodeURIComponent(location.hash.slice(1)).trim();
  } catch {
    return '';
  }
}

function mark(step) {
  const steps = ['step-code', 'step-claimed', 'step-online'];
  const at = steps.indexOf(step);
  steps.forEach((id, index) => {
    const isDone = index < at || step === 'step-online' && index === at;
    element(id).className = isDone ? 'done' : index === at ? 'now' : '';
    if (index === at && !isDone) element(id).setAttribute('aria-current', 'step');
    else element(id).removeAttribute('aria-current');
  });
}

async function start() {
  round += 1;
  const mine = round;
  tell(complaint);
  complaint = '';
  say('status', '');
  for (const id of ['code-form', 'sign-in', 'offer', 'steps', 'again', 'sign-out']) show(id, false);
  const given = codeOfUrl();
  const code = spelled(given);
  if (code === '') {
    if (given !== '') tell('This is no claim code. A code has 16 letters and digits, such as 7K3M-9QXT-0V4B-HD2R.');
    show('code-form', true);
    element('code').focus();
  } else {
    try {
      if (session === null && mayResume) await insist(mine, resume);
      mayResume = false;
      if (mine !== round) return;
      if (session === null) await offerSignIn(mine);
      else await follow(code, mine);
    } catch (failure) {
      if (mine === round) stop(failure);
    }
  }
}

/// Shows the ways to sign in that this service has.
async function offerSignIn(mine) {
  const methods = await insist(mine, () => call('GET', '/auth/methods'));
  if (mine !== round) return;
  show('sign-out', false);
  show('login-form', methods.password);
  show('issuer', methods.oidc !== null);
  if (methods.oidc !== null) say('issuer', `Sign in with ${methods.oidc.name}`);
  show('sign-in', true);
  element(methods.password ? 'email' : 'issuer').focus();
}

/// Repeats what fails for a while only, until it succeeds or another code is looked at.
async function insist(mine, attempt) {
  for (let isTold = false; ; isTold = true) {
    try {
      const answer = await attempt();
      if (isTold && mine === round) tell('');
      return answer;
    } catch (failure) {
      if (mine !== round || !(failure instanceof Failure) || failure.wait === null) throw failure;
      tell(failure.message);
      await sleep(failure.wait * 1000);
      if (mine !== round) throw failure;
    }
  }
}

async function follow(code, mine) {
  show('sign-out', true);
  let pause = FIRST_PAUSE;
  let offer = await insist(mine, () => callSignedIn('POST', '/app/hubs/pairing-codes/offer', { claimCode: code }));
  if (mine !== round) return;
  present(code, offer);
  while (offer.hubUuid === null) {
    mark('step-code');
    say('status', 'Waiting for the hub to use the code …');
    await sleep(pause);
    pause = Math.min(pause * 1.3, LONGEST_PAUSE);
    if (mine !== round) return;
    offer = await insist(mine, () => callSignedIn('POST', '/app/hubs/pairing-codes/offer', { claimCode: code }));
  }
  if (mine !== round) return;
  for (const id of ['how', 'expiry', 'expiry-name']) show(id, false);
  pause = FIRST_PAUSE;
  for (;;) {
    const hub = await insist(mine, () => callSignedIn('GET', `/app/hubs/${encodeURIComponent(offer.hubUuid)}`));
    if (mine !== round) return;
    if (hub.hubIdentifier) name(hub.hubIdentifier);
    if (hub.online) break;
    mark('step-claimed');
    say('status', 'The hub is yours. Waiting until it is online …');
    await sleep(pause);
    pause = Math.min(pause * 1.3, LONGEST_PAUSE);
    if (mine !== round) return;
  }
  mark('step-online');
  say('status', 'Done: the hub is yours, and it is online. You can close this page.');
}

function stop(failure) {
  say('status', '');
  if (failure.status === 401) {
    session = null;
    complaint = failure.message;
    start();
    return;
  }
  show('again', true);
  if (failure.status === 404) {
    show('offer', false);
    show('steps', false);
    tell('This code does not exist, has expired, or was made for another account. Ask for a new one, or sign out to use the other account.');
  } else {
    tell(failure.message);
  }
}

function name(label) {
  say('label', label);
  show('label', true);
  show('label-name', true);
}

function present(code, offer) {
  say('supplier', offer.supplierName);
  say('shown-code', code);
  say('command', `hub-agent claim --code ${code}`);
  say('expiry', new Date(offer.expiresAt).toLocaleString());
  show('label', false);
  show('label-name', false);
  if (offer.hubIdentifier) name(offer.hubIdentifier);
  for (const id of ['how', 'expiry', 'expiry-name', 'offer', 'steps']) show(id, true);
}

element('code-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const code = spelled(element('code').value);
  if (code === '') {
    tell('This is no claim code. A code has 16 letters and digits, such as 7K3M-9QXT-0V4B-HD2R.');
    element('code').focus();
  } else if (location.hash === `#${code}`) {
    start();
  } else {
    location.hash = code;
  }
});

element('login-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const button = event.submitter ?? element('login-form').querySelector('button');
  button.disabled = true;
  tell('');
  try {
    session = await call('POST', '/auth/session', { email: element('email').value.trim(), password: element('password').value });
    element('password').value = '';
    start();
  } catch (failure) {
    tell(failure.status === 401 ? 'The e-mail or the password is wrong.' : failure.message);
    element('password').focus();
  } finally {
    button.disabled = false;
  }
});

element('issuer').addEventListener('click', () => {
  try {
    sessionStorage.setItem(CODE, codeOfUrl());
  } catch {
    // A browser that stores nothing has the person type the code afterwards.
  }
  location.assign('/auth/oidc/login?returnTo=/app/pair');
});

element('sign-out').addEventListener('click', async () => {
  const button = element('sign-out');
  button.disabled = true;
  try {
    await call('DELETE', '/auth/session');
    session = null;
    start();
  } catch (failure) {
    tell(failure.message);
  } finally {
    button.disabled = false;
  }
});

element('again').addEventListener('click', () => {
  element('code').value = '';
  if (location.hash === '') start();
  else location.hash = '';
});

/// Takes the code back after a person has signed in elsewhere, and clears the URL of what came of it.
function comeBack() {
  const error = new URLSearchParams(location.search).get('signInError');
  if (error !== null) complaint = SIGN_IN_ERRORS[error] ?? 'You could not be signed in. Try again.';
  let code = null;
  try {
    code = sessionStorage.getItem(CODE);
    sessionStorage.removeItem(CODE);
  } catch {
    // Nothing was stored.
  }
  const fragment = code ? `#${encodeURIComponent(code)}` : location.hash;
  if (error !== null || code) history.replaceState(null, '', `/app/pair${fragment}`);
}

addEventListener('hashchange', start);
comeBack();
start();
