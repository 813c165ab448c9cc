//! From an empty service to a decoded value on a chart, by keyboard alone; and what becomes of sessions.

import { randomUUID } from 'node:crypto';
import { address, expect, Hub, HOSTILE, inspect, PASSWORD, signIn, tabTo, test } from './harness';

/** A RuuviTag, as it advertises: 24.3 °C, 53 %, 1000 hPa. */
const RUUVI = { '0499': 'BRL8U5TDfAAE//wEDKw2QgDNy7gzTIhP' };

test('an account, a tenant, the first hub and the first device', async ({ watched: page, service }) => {
  await page.goto(`${service.url}/`);
  await expect(page).toHaveURL(/\/console/);
  await expect(page.getByLabel('E-mail')).toBeFocused();
  await inspect(page, 'sign-in');

  await tabTo(page, 'Create an account');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Create an account' })).toBeVisible();
  await page.getByLabel('E-mail').focus();
  await page.keyboard.type('no address');
  await page.keyboard.press('Tab');
  await page.keyboard.type('short');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('E-mail')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('Password')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('E-mail'), 'the first wrong field has the focus').toBeFocused();
  await inspect(page, 'registration with errors');
  await page.getByLabel('E-mail').fill(`${randomUUID()}@example.com`);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.keyboard.press('Enter');

  await expect(page.getByRole('heading', { name: 'Your first tenant' })).toBeVisible();
  await inspect(page, 'first tenant');
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.type(HOSTILE);
  await page.keyboard.press('Enter');

  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await expect(page.getByText('0 of 5 done')).toBeVisible();
  await inspect(page, 'overview of an empty tenant');
  await tabTo(page, 'Create a claim code');
  await page.keyboard.press('Enter');
  await expect(page.getByText('1 of 5 done')).toBeVisible();
  const command = (await page.locator('pre').textContent()) ?? '';
  const code = /--claim-code (\S+)/.exec(command)?.[1] ?? '';
  expect(command).toContain(service.url);

  const hub = await Hub.claim(service, code, HOSTILE);
  await expect(page.getByText('2 of 5 done')).toBeVisible();
  await hub.telemetry({});
  const heard = { address: address(1), name: HOSTILE, manufacturerData: RUUVI };
  await hub.hear([heard]);
  await expect(page.getByText('3 of 5 done')).toBeVisible();
  await inspect(page, 'overview with a hub');

  await tabTo(page, 'Register a device', 'link');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByLabel('Model')).toBeVisible();
  await dialog.getByLabel('Model').focus();
  await page.keyboard.type('RuuviTag');
  await dialog.getByLabel('Address', { exact: true }).focus();
  await page.keyboard.type(address(1));
  await page.keyboard.press('Enter');
  await expect(page.getByRole('link', { name: 'Values' })).toBeVisible();
  await hub.hear([heard]);
  await tabTo(page, 'Values', 'link');
  await page.keyboard.press('Enter');
  const temperature = page.getByRole('img', { name: /temperature/i }).first();
  await expect(temperature, 'a decoded value on a chart').toBeVisible();
  // The same as numbers, in the table that belongs to the chart.
  await expect(page.getByText('24.3 °C').first()).toBeAttached();
  await inspect(page, 'the values of the first device');
  const stored = await page.evaluate(() => [JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.cookie].join());
  expect(stored, 'no token is stored where a script reads it').not.toMatch(/eyJ/);
});

test('sessions', async ({ watched: page, context, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  await page.goto(person.page('/hubs'));
  await signIn(page, person, 'a wrong guess');
  await expect(page.getByRole('alert')).toContainText(/e-mail or (the )?password/i);
  await inspect(page, 'wrong password');
  await page.getByLabel('Password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Fleet' }), 'one arrives where the link led').toBeVisible();

  await page.reload();
  await expect(page.getByRole('heading', { name: 'Fleet' }), 'a new visit goes on').toBeVisible();
  const other = await context.newPage();
  await other.goto(person.page());
  await expect(other.getByRole('heading', { name: 'Overview' }), 'another tab too').toBeVisible();

  await page.getByRole('button', { name: 'You' }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await expect(page.getByRole('heading', { name: 'Sign in' })).toBeVisible();
  await expect(other.getByText('You signed out in another tab.')).toBeVisible();
  await other.close();

  await signIn(page, person);
  await expect(page.getByRole('heading', { name: 'Fleet' })).toBeVisible();
  // Somebody changes the password elsewhere, which ends all other logins.
  await page.goto(person.page('/account').replace(`/t/${person.tenant}`, ''));
  await page.getByLabel('Current password').fill('half a word');
  await person.call('POST', '/auth/password', { currentPassword: PASSWORD, newPassword: `${PASSWORD}!` });
  await page.getByRole('button', { name: 'Change the password' }).click();
  const again = page.getByRole('dialog', { name: 'Sign in again' });
  await expect(again.getByText('Your session has ended.')).toBeVisible();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await expect(again, 'there is no way around it').toBeVisible();
  await inspect(page, 'a session that has ended');
  await again.getByLabel('E-mail').focus();
  await signIn(page, person, `${PASSWORD}!`);
  await expect(again).toBeHidden();
  await expect(page.getByLabel('Current password'), 'what was filled in stays').toHaveValue('half a word');
  await page.getByRole('link', { name: 'Overview' }).click();
  await expect(page.getByRole('heading', { name: 'Your first hour' })).toBeVisible();
});

test('a right that is revoked is reported', async ({ watched: page, service }) => {
  page.expected.push(/^403 GET /);
  const owner = await (await service.person()).createTenant('Warehouse');
  const member = await service.person();
  member.tenant = owner.tenant;
  const grant = (role: string) => owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: member.personaUuid, role });
  const { personaUuid } = await grant('OPERATOR');
  const [hub] = await owner.claim(['Roof']);
  await page.goto(member.page(`/hubs/${hub?.uuid}`));
  await signIn(page, member);
  await page.getByRole('button', { name: 'Release' }).click();
  await grant('VIEWER');
  await page.getByRole('button', { name: 'Release the hub' }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toBeVisible();
  await page.keyboard.press('Escape');
  await owner.call('DELETE', `/tenant/tenants/${owner.tenant}/members/${personaUuid}`);
  await page.getByRole('link', { name: 'Live' }).click();
  await expect(page.getByRole('heading', { name: 'No access to this tenant' })).toBeVisible();
  await inspect(page, 'no access');
  await page.getByRole('link', { name: 'Go to the overview' }).click();
  await expect(page.getByRole('heading', { name: 'Your first tenant' }), 'no endless spinner').toBeVisible();
});
