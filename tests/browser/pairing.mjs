// Pairs hubs on the page, as people with a phone, a keyboard and a screen reader do.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { chromium } from 'playwright-core';

const url = process.argv[2];
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PASSWORD = 'correct horse battery staple';
const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
const PATIENCE = 60000;

async function call(method, path, body, token, headers = {}) {
  const response = await fetch(url + path, {
    method,
    headers: { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text).data;
}

async function register() {
  const email = `${randomUUID()}@example.com`;
  const login = await call('POST', '/auth/register', { email, password: PASSWORD });
  return { email, token: login.accessToken };
}

/// The supplier, whose name is hostile, and who lets people pair hubs.
const owner = await register();
const tenant = (await call('POST', '/tenant/tenants', { name: HOSTILE }, owner.token)).tenantUuid;
const inTenant = { 'x-tenant-uuid': tenant };
await call('POST', '/tenant/consent-settings', {
  version: '1', text: 'We read your sensors.', selfPairing: true, enforce: false,
  purposes: [{ key: 'monitoring', title: 'Show you values', required: true }],
}, owner.token, inTenant);

const person = await register();
const pairingCode = () => call('POST', '/app/hubs/pairing-codes', { supplierUuid: tenant }, person.token);

async function claim(code) {
  return call('POST', '/v1/hubs/claim', { claimCode: code, deviceInstanceId: randomUUID(), hubIdentifier: HOSTILE });
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });
const requested = [];

/// A page that notes what the policy forbids, what fails, and what it loads.
async function open(target, options = {}) {
  const context = await browser.newContext({ viewport: { width: 320, height: 640 }, ...options });
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => {
      window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(String(error)));
  page.on('request', (request) => requested.push(request.url()));
  await page.goto(target);
  return page;
}

async function check(page, where) {
  assert.deepEqual(await page.evaluate(() => window.violations), [], `${where}: the policy forbade something`);
  assert.deepEqual(page.errors, [], `${where}: a script failed`);
  assert.equal(await page.evaluate(() => window.hacked), undefined, `${where}: a name was run`);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= 320, `${where}: ${width} pixels wide on a phone`);
  // Evaluated by the debugger, which no policy concerns.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
  assert.deepEqual(told, [], `${where}: barriers for people`);
}

/// Signs in with the keyboard alone.
async function signIn(page, password = PASSWORD) {
  await page.waitForSelector('#login-form:not([hidden])');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'email');
  await page.keyboard.type(person.email);
  await page.keyboard.press('Tab');
  await page.keyboard.type(password);
  await page.keyboard.press('Enter');
}

try {
  console.log('--- a hub comes online');
  for (const colorScheme of ['light', 'dark']) {
    const code = await pairingCode();
    assert.equal(code.pairingUrl, `${url}/app/pair#${code.claimCode}`);
    const page = await open(code.pairingUrl, { colorScheme });
    await check(page, `${colorScheme}: login`);
    await signIn(page, 'a wrong guess');
    await page.getByText('The e-mail or the password is wrong.').waitFor();
    await check(page, `${colorScheme}: wrong password`);
    await page.fill('#password', PASSWORD);
    await page.keyboard.press('Enter');
    await page.waitForSelector('#offer:not([hidden])');
    assert.equal(await page.textContent('#supplier'), HOSTILE);
    assert.equal(await page.textContent('#shown-code'), code.claimCode);
    assert.match(await page.textContent('#status'), /Waiting for the hub to use the code/);
    await check(page, `${colorScheme}: offer`);
    const hub = await claim(code.claimCode);
    await page.getByText('The hub is yours. Waiting until it is online').waitFor({ timeout: PATIENCE });
    assert.equal(await page.textContent('#label'), HOSTILE);
    await check(page, `${colorScheme}: claimed`);
    await fetch(`${url}/v1/hubs/${hub.hubUuid}/telemetry`, {
      method: 'POST', headers: { 'content-type': 'application/json', authorization: `Bearer ${hub.accessToken}` }, body: '{}',
    });
    await page.getByText('Done: the hub is yours, and it is online.').waitFor({ timeout: PATIENCE });
    assert.equal(await page.locator('#steps li.done').count(), 3);
    await check(page, `${colorScheme}: online`);
    const stored = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]);
    assert.deepEqual(stored, [0, 0, ''], 'nothing stays in the browser');
    await page.context().close();
  }

  console.log('--- codes that lead nowhere');
  const foreign = await call('POST', '/app/hubs/pairing-codes', { supplierUuid: tenant }, owner.token);
  const short = await call('POST', '/tenant/hubs/claim-codes', { validForSeconds: 1,
    ownerUserUuid: (await call('GET', '/app/profile', undefined, person.token)).userUuid }, owner.token, inTenant);
  await new Promise((resolve) => { setTimeout(resolve, 1500); });
  let shown;
  for (const code of ['0000-0000-0000-0000', foreign.claimCode, short.claimCode]) {
    const page = await open(`${url}/app/pair#${code}`);
    await signIn(page);
    await page.waitForSelector('#again:not([hidden])');
    const told = await page.textContent('#problem');
    assert.match(told, /does not exist, has expired, or was made for another account/);
    shown ??= told;
    assert.equal(told, shown, 'one cannot be told from another');
    assert.ok(await page.isHidden('#offer'));
    await check(page, code);
    // From here to another code, by keyboard.
    await page.focus('#again');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#code-form:not([hidden])');
    await page.keyboard.type('no code at all');
    await page.keyboard.press('Enter');
    await page.getByText('This is no claim code.').waitFor();
    await check(page, 'the form of codes');
    await page.context().close();
  }

  console.log('--- typed in lower case, and a service that is away for a moment');
  const code = await pairingCode();
  const page = await open(`${url}/app/pair`);
  await page.waitForSelector('#code-form:not([hidden])');
  await page.keyboard.type(code.claimCode.toLowerCase().replaceAll('-', ' '));
  await page.keyboard.press('Enter');
  await signIn(page);
  await page.waitForSelector('#offer:not([hidden])');
  await page.context().setOffline(true);
  await page.getByText('The service cannot be reached.').waitFor({ timeout: PATIENCE });
  await page.context().setOffline(false);
  await claim(code.claimCode);
  await page.getByText('The hub is yours. Waiting until it is online').waitFor({ timeout: PATIENCE });
  assert.ok(await page.isHidden('#problem'), 'what is over is told no more');
  await check(page, 'after the outage');

  console.log('--- what it loads');
  const own = requested.filter((one) => one.startsWith('http') && !one.startsWith(url));
  assert.deepEqual(own, [], 'everything comes from the service');
  assert.ok(!requested.some((one) => one.split('#')[0].includes(code.claimCode)), 'no code is in a URL that is sent');
  let bytes = 0;
  for (const path of ['/app/pair', '/app/pair.css', '/app/pair.js']) {
    bytes += (await (await fetch(url + path)).arrayBuffer()).byteLength;
  }
  assert.ok(bytes < 50 * 1024, `${bytes} bytes`);
  console.log(`${bytes} bytes`);
} finally {
  await browser.close();
}
