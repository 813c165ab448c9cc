//! What happens to pages that are open: a service that is killed under load, a session that ends, a
//! right that is revoked.

import { randomUUID } from 'node:crypto';
import { address, expect, type Hub, inspect, PASSWORD, type Person, type Service, safe, signIn, test } from './harness';
import type { Page } from '@playwright/test';

const received = async (page: Page) => Number(((await page.getByText(/received$/).textContent()) ?? '').replaceAll(/\D/g, ''));
const isLive = (page: Page) => expect(page.getByText('live', { exact: true })).toBeVisible();

/** As a hub uploads: the same batch again until it is accepted. */
async function upload(hub: Hub, from: number, count: number) {
  const observedAt = new Date().toISOString();
  const events = Array.from({ length: count }, (_, index) => ({ address: address(from + index), rssi: -60, observedAt, manufacturerData: { '0499': 'BQAB' } }));
  const body = { batchUuid: randomUUID(), events };
  for (let tries = 0; tries < 300; tries++) {
    try {
      return await hub.call('POST', '/v1/ble/events', body);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error('the batch was never accepted');
}

async function live(page: Page, service: Service): Promise<{ owner: Person; person: Person; member: string; hub: Hub }> {
  const owner = await (await service.person()).createTenant('Warehouse');
  const [hub] = await owner.claim(['Roof']);
  if (!hub) throw new Error('no hub');
  const person = await service.person();
  person.tenant = owner.tenant;
  const member = await owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: person.personaUuid, role: 'VIEWER' });
  await page.goto(person.page('/live'));
  await signIn(page, person);
  await isLive(page);
  return { owner, person, member: member.personaUuid, hub };
}

test('a service that is killed while hubs upload loses and doubles nothing, in two tabs', async ({ watched: page, context, service }) => {
  const { person, hub } = await live(page, service);
  const other = await context.newPage();
  await other.goto(person.page('/live'));
  await isLive(other);
  let sent = 0;
  let goOn = true;
  const uploads = (async () => {
    for (; goOn; sent += 10) {
      await upload(hub, sent, 10);
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  })();
  for (let turn = 0; turn < 2; turn++) {
    const before = sent;
    await expect.poll(() => sent).toBeGreaterThan(before + 50);
    await service.kill();
    await expect(page.getByText('reconnecting', { exact: true })).toBeVisible();
    await service.start();
    await isLive(page);
  }
  goOn = false;
  await uploads;
  for (const tab of [page, other]) {
    await expect.poll(() => received(tab), { message: 'every event once' }).toBe(sent);
    await expect(tab.getByText(`${sent} devices`, { exact: true })).toBeVisible();
    await expect(tab.getByText(/Connection lost from/)).toBeVisible();
    await expect(tab.getByText(/nothing is missing/)).toBeVisible();
  }
  await other.close();
  await safe(page, 'live, after two gaps');
});

test('the fleet says that the service is away, and shows what is new when it is back', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const [hub] = await owner.claim(['Roof']);
  await page.goto(owner.page('/hubs'));
  await signIn(page, owner);
  const row = page.getByRole('row', { name: 'Roof' });
  await expect(row).toContainText('offline');
  await page.evaluate(() => Object.assign(window, { stays: true }));
  const asked: number[] = [];
  page.on('request', (request) => request.url().includes('/tenant/hubs') && asked.push(Date.now()));

  await service.kill();
  const said = page.getByRole('alert');
  await expect(said).toContainText('The service cannot be reached');
  await expect(said).toContainText(/Showing data from .*Reconnecting/);
  await expect(row, 'what was known stays').toBeVisible();
  await inspect(page, 'a fleet in an outage');
  const before = asked.length;
  await expect.poll(() => asked.length, { message: 'it is tried again' }).toBeGreaterThan(before + 1);
  await service.start();
  await hub?.telemetry({ agentVersion: '1.5.0' });
  await expect(said).toHaveCount(0);
  await expect(row).toContainText('online');
  expect(await page.evaluate(() => (window as { stays?: boolean }).stays), 'without a reload').toBe(true);

  // Other pages load again, too.
  await page.getByRole('link', { name: 'Claim codes' }).click();
  await expect(page.getByRole('heading', { name: 'Claim codes' })).toBeVisible();
  await page.getByRole('link', { name: 'Rollouts' }).click();
  await expect(page.getByRole('heading', { name: 'Rollouts', exact: true })).toBeVisible();
  await service.kill();
  await page.getByRole('link', { name: 'Claim codes' }).click();
  await expect(said).toContainText('Reconnecting');
  await service.start();
  await expect(page.getByRole('row'), 'the head and the code').toHaveCount(2);
  await expect(said).toHaveCount(0);
  await safe(page, 'after an outage');
});

test('a page stays when the service goes before the tenants are known, and a start waits for it', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  await owner.claim(['Roof']);
  await page.goto(owner.page('/hubs'));
  await signIn(page, owner);
  const row = page.getByRole('row', { name: 'Roof' });
  await expect(row).toBeVisible();

  // The hubs are there, and the tenants are not.
  let isAway = true;
  await page.route('**/tenant/tenants', (route) => (isAway ? route.abort() : route.continue()));
  await page.reload();
  await expect(row).toBeVisible();
  await page.waitForRequest('**/tenant/tenants');
  await expect(row, 'what is known stays').toBeVisible();
  isAway = false;
  await expect(page.getByRole('combobox', { name: 'Tenant' })).toHaveValue(owner.tenant ?? '');

  // Whether somebody is signed in is not known, then a proxy answers for the service.
  isAway = true;
  await page.route('**/auth/session/refresh', (route) => (isAway ? route.abort() : route.continue()));
  await page.reload();
  const said = page.getByRole('alert');
  await expect(said).toContainText(/The service cannot be reached.*Reconnecting/);
  await page.unroute('**/tenant/tenants');
  await page.route('**/tenant/tenants', (route) => (isAway ? route.fulfill({ status: 502, body: '<h1>Bad gateway</h1>' }) : route.continue()));
  page.expected.push(/^502 GET \/tenant\/tenants/);
  await page.unroute('**/auth/session/refresh');
  await expect(row, 'without the button').toBeVisible();
  isAway = false;
  await expect(page.getByRole('combobox', { name: 'Tenant' })).toHaveValue(owner.tenant ?? '');
  await safe(page, 'after a start in an outage');
});

test('a session that ends under the live view is said, and goes on', async ({ watched: page, service }) => {
  page.expected.push(/^401 GET \/tenant\/stream\//);
  const { person, hub } = await live(page, service);
  await upload(hub, 0, 5);
  await expect.poll(() => received(page)).toBe(5);
  await person.call('DELETE', '/auth/sessions');
  const again = page.getByRole('dialog', { name: 'Sign in again' });
  await expect(again.getByText('Your session has ended.')).toBeVisible();
  await again.getByLabel('E-mail').focus();
  await signIn(page, person, PASSWORD);
  await expect(again).toBeHidden();
  await isLive(page);
  await upload(hub, 10, 5);
  await expect(page.getByText(address(12))).toBeVisible();
});

test('a right that is revoked under the live view is reported', async ({ watched: page, service }) => {
  page.expected.push(/^403 GET /);
  const { owner, member } = await live(page, service);
  await owner.call('DELETE', `/tenant/tenants/${owner.tenant}/members/${member}`);
  await expect(page.getByRole('heading', { name: 'No access to this tenant' })).toBeVisible();
  await expect(page.getByText(address(1))).toHaveCount(0);
});
