// What the tests in a browser share: callers of the API, and pages that note what goes wrong.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { chromium } from 'playwright-core';

/// Where browsers reach the service, and the issuer. They are two sites to a browser: `localhost`
/// and `127.0.0.1`.
export const url = process.argv[2];
export const issuer = process.argv[3];
export const PASSWORD = 'correct horse battery staple';
export const HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
export const PATIENCE = 60000;

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const api = url.replace('localhost', '127.0.0.1');

export async function call(method, path, body, token, headers = {}) {
  const response = await fetch(api + path, {
    method,
    headers: { 'content-type': 'application/json', ...(token ? { authorization: `Bearer ${token}` } : {}), ...headers },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text === '' ? undefined : JSON.parse(text).data;
}

export async function register() {
  const email = `${randomUUID()}@example.com`;
  const login = await call('POST', '/auth/register', { email, password: PASSWORD });
  return { email, token: login.accessToken };
}

/// A supplier, whose name is hostile, and who lets people pair hubs.
export async function supplier() {
  const owner = await register();
  const tenant = (await call('POST', '/tenant/tenants', { name: HOSTILE }, owner.token)).tenantUuid;
  const inTenant = { 'x-tenant-uuid': tenant };
  await call('POST', '/tenant/consent-settings', {
    version: '1', text: 'We read your sensors.', selfPairing: true, enforce: false,
    purposes: [{ key: 'monitoring', title: 'Show you values', required: true }],
  }, owner.token, inTenant);
  return { owner, tenant, inTenant };
}

export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox'] });

/// The URLs that pages of the service asked for; those of the issuer load fonts from elsewhere.
export const requested = [];

/// A page that notes what the policy forbids, what fails, and what it loads.
export async function open(target, options = {}) {
  const context = await browser.newContext({ viewport: { width: 320, height: 640 }, ...options });
  return openIn(context, target);
}

/// Another tab.
export async function openIn(context, target) {
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => {
      window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(String(error)));
  page.on('request', (request) => { if (!page.url().startsWith(issuer)) requested.push(request.url()); });
  await page.goto(target);
  return page;
}

export async function check(page, where) {
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

/// What scripts of the page find in the browser.
export const stored = (page) => page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]);

/// Logs in at the provider's own pages, up to its question whether the service may know.
export async function logInAtIssuer(page, name) {
  await page.waitForURL(`${issuer}/interaction/**`);
  await page.fill('input[name=login]', name);
  await page.fill('input[name=password]', 'any');
  await page.click('button[type=submit]');
  await page.waitForSelector('input[name=prompt][value=consent]', { state: 'attached' });
}
