//! What concerns the person and no tenant: account, invitations, a new password, tenants, appearance.

import { createHmac } from 'node:crypto';
import { expect, HOSTILE, inspect, PASSWORD, signIn, tabTo, test } from './harness';

test('a new password needs a token', async ({ watched: page, service }) => {
  await page.goto(`${service.url}/console/reset`);
  await expect(page.getByRole('heading', { name: 'New password' })).toBeVisible();
  await inspect(page, 'asking for a token');
  await tabTo(page, 'I have a token');
  await page.keyboard.press('Enter');
  await page.getByLabel('Token').fill('no token');
  await page.getByLabel('New password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toBeVisible();
  await inspect(page, 'a token that opens nothing');
  await page.goto(`${service.url}/console/reset#a-token`);
  await page.reload();
  await expect(page.getByLabel('Token'), 'a link brings the token').toHaveValue('a-token');
});

test('a link that was used before leads to the ordinary sign-in', async ({ watched: page, service }) => {
  await page.goto(`${service.url}/console?signInError=SIGN_IN_LINK_USED`);
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
  await expect(page.getByRole('status')).toHaveText('The sign-in link was used before, or has expired. Sign in with your password.');
  await expect(page).toHaveURL(`${service.url}/console/`);
  await inspect(page, 'a used link');
});

test('an account, its tenants and its appearance', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  await page.goto(`${service.url}/console/account`);
  await signIn(page, person);
  await expect(page.getByText(person.email)).toBeVisible();
  await inspect(page, 'account');
  await tabTo(page, 'Current password', 'textbox');
  await page.keyboard.type('a wrong guess');
  await page.keyboard.press('Tab');
  await page.keyboard.type('another long password');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toBeVisible();
  await page.getByLabel('Current password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(page.getByText('The password was changed.')).toBeVisible();

  await tabTo(page, 'You');
  await page.keyboard.press('Enter');
  await page.getByLabel('Dark').check();
  await expect(page.locator('html')).toHaveAttribute('data-theme', 'dark');
  await inspect(page, 'the menu of the person');
  await page.getByLabel('System', { exact: true }).check();
  await page.getByRole('link', { name: 'New tenant' }).click();
  await page.getByLabel('Name').fill(HOSTILE);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await expect(page.getByLabel('Tenant')).toContainText(HOSTILE);
  await page.getByLabel('Tenant').selectOption('Warehouse');
  await expect(page).toHaveURL(person.page());
  await page.goto(`${service.url}/console`);
  await expect(page, 'the next visit begins with the last tenant').toHaveURL(person.page());

  page.expected.push(/^404 GET \/public\/invitations\/unknown$/);
  await page.goto(`${service.url}/console/invitation#unknown`);
  await expect(page.getByText('Not found', { exact: true })).toBeVisible();
  await inspect(page, 'an invitation that does not exist');
  await page.goto(`${service.url}/console/nowhere`);
  await expect(page.getByRole('heading', { name: 'Page not found' })).toBeVisible();
  await inspect(page, 'no such page');

  await page.goto(`${service.url}/console/account`);
  await page.getByRole('button', { name: 'Sign out everywhere' }).click();
  await inspect(page, 'what signing out everywhere does');
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click();
  await expect(page.getByText('You are signed out everywhere.')).toBeVisible();
  await page.reload();
  await expect(page.getByLabel('E-mail')).toBeVisible();
});

/** What an authenticator app shows for a secret (RFC 6238). */
function code(secret: string, steps = 0): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const bits = [...secret].map((char) => alphabet.indexOf(char).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + steps));
  const hash = createHmac('sha1', key).update(counter).digest();
  const number = hash.readUInt32BE((hash.at(-1) ?? 0) & 15) & 0x7fff_ffff;
  return String(number % 1_000_000).padStart(6, '0');
}

test('a second factor is set up, asked for, and removed', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  await page.goto(`${service.url}/console/account`);
  await signIn(page, person);
  await page.getByRole('button', { name: 'Set up' }).click();
  const secret = await page.getByText(/^[A-Z2-7]{32}$/).innerText();
  await inspect(page, 'a second factor that is being set up');
  await page.getByRole('textbox', { name: 'Code' }).fill('000000');
  await page.getByRole('button', { name: 'Confirm' }).click();
  await expect(page.getByText('is wrong, or was used')).toBeVisible();
  await page.getByRole('textbox', { name: 'Code' }).fill(code(secret));
  await page.getByRole('button', { name: 'Confirm' }).click();
  await expect(page.getByText('Store these recovery codes')).toBeVisible();
  const recovery = await page.getByText(/^([0-9a-f]{4}-){4}[0-9a-f]{4}$/).allInnerTexts();
  expect(recovery).toHaveLength(10);
  await inspect(page, 'recovery codes');

  // This browser is one of two: the account was made by a program.
  const sessions = page.getByRole('region', { name: 'Sessions' });
  await expect(sessions.getByText('this session')).toBeVisible();
  await sessions.getByRole('button', { name: 'Sign out', exact: true }).first().click();
  await expect(sessions.getByRole('button', { name: 'Sign out', exact: true })).toHaveCount(0);
  await page.getByRole('button', { name: 'Sign out everywhere' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Sign out everywhere' }).click();
  await signIn(page, person);
  await expect(page.getByRole('textbox', { name: 'Code' })).toBeFocused();
  await inspect(page, 'the code at the sign-in');
  await page.getByRole('textbox', { name: 'Code' }).fill(recovery[0] ?? '');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Failed sign-ins' })).toBeVisible();
  await page.getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('textbox', { name: 'Code' }).fill(recovery[1] ?? '');
  await page.getByRole('button', { name: 'Remove the second factor' }).click();
  await expect(page.getByText('The second factor was removed.')).toBeVisible();
});

test('no page speaks of the headers and fields of the API', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  await page.goto(owner.page('/claim-codes'));
  await signIn(page, owner);
  await expect(page.getByText('No claim codes', { exact: true })).toBeVisible();
  page.expected.push(/^403 GET /);
  const refuse = (code: string, message: string) =>
    page.route((url) => /^\/tenant\/(hubs|stream)/.test(url.pathname), (route) => route.fulfill({ status: 403, json: { code, message, requestId: 'r' } }));
  await refuse('TENANT_REQUIRED', 'name the tenant in the header `X-Tenant-UUID`');
  await page.getByRole('link', { name: 'Fleet' }).click();
  await expect(page.getByRole('alert')).toContainText('Choose a tenant first');
  await page.getByRole('link', { name: 'Live' }).click();
  await expect(page.getByRole('status').filter({ hasText: 'Choose a tenant first' })).toBeVisible();
  await refuse('OTHER_CODE', 'the header `X-Tenant-UUID` must repeat `tenantUuid`');
  await page.getByRole('link', { name: 'Claim codes' }).click();
  await expect(page.getByRole('alert')).toContainText('The “tenant” must repeat “tenant”');
  expect(await page.locator('body').innerText()).not.toMatch(/X-Tenant|Uuid|`/);
});

test('a service that cannot be reached is said', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  await page.goto(person.page());
  await signIn(page, person);
  await expect(page.getByRole('heading', { name: 'Your first hour' })).toBeVisible();
  await service.kill();
  await page.getByRole('link', { name: 'Fleet' }).click();
  await expect(page.getByRole('alert').first()).toContainText(/cannot be reached|could not be loaded/);
  await service.start();
  // The page comes back by itself, unless its code was not there yet.
  const reload = page.getByRole('button', { name: 'Reload' });
  await expect(page.getByText('No hubs yet').or(reload)).toBeVisible();
  if (await reload.isVisible()) await reload.click();
  await expect(page.getByText('No hubs yet')).toBeVisible();
});
