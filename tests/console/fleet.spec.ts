//! Hubs are found, opened, labelled and released, by keyboard alone.

import { readFileSync } from 'node:fs';
import { expect, HOSTILE, type Hub, inspect, safe, signIn, tabTo, test } from './harness';

const HUBS = 250;

test('a fleet is filtered, opened and stored', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant(HOSTILE);
  await page.goto(person.page('/hubs'));
  await signIn(page, person);
  await expect(page.getByText('No hubs yet')).toBeVisible();
  await inspect(page, 'an empty fleet');

  const labels = Array.from({ length: HUBS }, (_, index) => `${index % 5 === 0 ? 'Roof' : 'Cellar'} ${String(index).padStart(4, '0')}`);
  const hubs: Hub[] = [];
  // One after the other where the order matters.
  for (const some of [labels.slice(0, 1), labels.slice(1), [HOSTILE], ['=1+1']]) hubs.push(...(await person.claim(some)));
  await Promise.all(hubs.slice(0, 10).map((hub) => hub.telemetry({ agentVersion: '1.5.0' })));
  await page.reload();
  await expect(page.getByText(`${HUBS + 2} hubs`, { exact: true })).toBeVisible();
  expect(await page.locator('[data-row]').count(), 'rows that are not seen do not exist').toBeLessThan(60);
  await inspect(page, 'a fleet');

  await tabTo(page, 'Filter hubs', 'combobox');
  await page.keyboard.type('label:roof is:on');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/q=label%3Aroof\+is%3Aonline/);
  await expect(page.getByText('2 hubs match the filter', { exact: true })).toBeVisible();
  await page.reload();
  await expect(page.getByLabel('Filter hubs'), 'a filter is kept in the address').toHaveValue('label:roof is:online');
  await page.getByLabel('Filter hubs').fill('version:<1.5 wheel:round');
  await expect(page.getByText(`${HUBS - 8} hubs match the filter`, { exact: true })).toBeVisible();
  await expect(page.getByText(/“wheel” is not a filter/)).toBeVisible();
  await inspect(page, 'a filter that is not understood');
  await page.getByLabel('Filter hubs').fill('lastseen:>1d');
  await expect(page.getByText('No hubs match this filter')).toBeVisible();
  await page.getByRole('button', { name: 'Show all hubs' }).click();

  const stored = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const lines = readFileSync(await (await stored).path(), 'utf8').trim().split('\r\n');
  expect(lines).toHaveLength(HUBS + 3);
  expect(lines[1], 'no spreadsheet runs a label').toContain(",'=1+1,");

  // From the first row to the last one, and into it.
  await tabTo(page, '=1+1', 'link');
  await page.keyboard.press('ArrowDown');
  await expect(page.getByRole('link', { name: HOSTILE })).toBeFocused();
  await page.keyboard.press('End');
  await expect(page.getByRole('link', { name: 'Roof 0000' })).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Roof 0000' })).toBeVisible();
  await safe(page, 'fleet');
});

test('a hub is shown, labelled and released', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim([HOSTILE]);
  if (!hub) throw new Error('no hub');
  const path = `/hubs/${hub.uuid}`;
  await page.goto(person.page(path));
  await signIn(page, person);
  await expect(page.getByRole('heading', { name: HOSTILE })).toBeVisible();
  await expect(page.getByText('It was claimed but has never sent telemetry')).toBeVisible();
  await inspect(page, 'a hub that is offline');

  const from = new Date(Date.now() - 90_000).toISOString();
  const to = new Date(Date.now() - 30_000).toISOString();
  const adapter = '00:1A:7D:DA:71:13';
  await hub.call('POST', '/v1/hubs/adapters', { adapters: [{ address: adapter, name: '<img src=x onerror="window.hacked=1">', powered: true }] });
  for (const perSec of [10, 20]) {
    await hub.telemetry({
      observedAt: new Date(Date.now() - (perSec === 10 ? 60_000 : 0)).toISOString(),
      machine: { uptimeSecs: 86_400, load1m: 0.5, memoryTotalBytes: 1e9, memoryAvailableBytes: 5e8, diskTotalBytes: 1e10, diskAvailableBytes: 5e9 },
      spool: { events: 3, droppedEvents: 0 },
      adapters: {
        [adapter]: { state: 'LISTENING', advertisements: 1000, advertisementsPerSec: perSec, lastHeardAt: to, restarts: 1, blind: [{ from, to, reason: HOSTILE }] },
      },
    });
  }
  await page.reload();
  await expect(page.getByText('listening')).toBeVisible();
  await expect(page.getByRole('region', { name: 'Blind periods' })).toContainText(HOSTILE);
  await inspect(page, 'a hub that is online');
  await tabTo(page, 'Telemetry', 'link');
  await page.keyboard.press('Enter');
  await expect(page.locator('canvas').first()).toBeVisible();
  await inspect(page, 'telemetry');

  await tabTo(page, 'Logs', 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByText('No log lines yet')).toBeVisible();
  await hub.log([HOSTILE], 'ERROR');
  await expect(page.getByRole('log')).toContainText(HOSTILE);
  await hub.log(Array.from({ length: 80 }, (_, index) => `line ${index}`));
  await expect(page.getByText('line 79')).toBeInViewport();
  await page.getByRole('log').evaluate((log) => log.scrollTo({ top: 0 }));
  await expect(page.getByText('paused')).toBeVisible();
  await hub.log(['a line that waits']);
  await expect(page.getByRole('button', { name: '1 new line' })).toBeVisible();
  await expect(page.getByText('a line that waits')).toHaveCount(0);
  await tabTo(page, '1 new line');
  await page.keyboard.press('Enter');
  await expect(page.getByText('a line that waits')).toBeVisible();
  await inspect(page, 'log');

  // The pages of the tenant have one called Apps too.
  const parts = page.getByRole('navigation', { name: 'Hub sections' });
  for (const tab of ['Jobs', 'Apps']) {
    await tabTo(page, tab, 'link', parts);
    await page.keyboard.press('Enter');
    await expect(page.getByText(/No jobs yet|No apps on this hub/)).toBeVisible();
    await inspect(page, tab);
  }

  await tabTo(page, 'Edit');
  await page.keyboard.press('Enter');
  await page.getByLabel('Label').fill('Roof');
  await page.getByLabel('Country').fill('xx');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('Country')).toHaveAttribute('aria-invalid', 'true');
  await page.getByLabel('Country').fill('de');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Roof' })).toBeVisible();
  expect((await person.call('GET', `/tenant/hubs/${hub.uuid}`)).country).toBe('DE');
  await tabTo(page, 'Overview', 'link', parts);
  await page.keyboard.press('Enter');
  await expect(page.getByText('Germany (DE)')).toBeVisible();
  await tabTo(page, 'Release');
  await page.keyboard.press('Enter');
  await expect(page.getByText('This cannot be undone.')).toBeVisible();
  await inspect(page, 'what a release does');
  await tabTo(page, 'Release the hub');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Roof was released.')).toBeVisible();
  await expect(page.getByText('No hubs yet')).toBeVisible();
});

test('a hub that is two machines says so, and one that was away is readmitted', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim([HOSTILE]);
  if (!hub) throw new Error('no hub');
  let [original, copy] = [hub, hub];
  for (let turn = 0; turn < 4; turn++) {
    original = await original.refresh('first-boot');
    copy = await copy.refresh('<img src=x onerror="window.hacked=1">');
  }
  await page.goto(person.page('/hubs'));
  await signIn(page, person);
  await expect(page.getByText('cloned', { exact: true })).toBeVisible();
  await inspect(page, 'a fleet with a copied card');
  await tabTo(page, HOSTILE, 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Two machines use the credentials of this hub')).toBeVisible();
  await expect(page.getByText('first-boot')).toBeVisible();
  await inspect(page, 'a copied card');
  await expect(page.getByRole('button', { name: 'Readmit' }), 'it comes back by itself').toHaveCount(0);

  // Its credentials expire, as far as the page can see.
  await page.route(`**/tenant/hubs/${hub.uuid}`, async (route) => {
    const answer = await route.fetch();
    const body = await answer.json();
    body.data.refreshExpiresAt = new Date(Date.now() - 60_000).toISOString();
    await route.fulfill({ response: answer, json: body });
  });
  await page.reload();
  await expect(page.getByText('its credentials expired')).toBeVisible();
  await tabTo(page, 'Readmit');
  await page.keyboard.press('Enter');
  await inspect(page, 'what readmitting does');
  await tabTo(page, 'Readmit the hub');
  await page.keyboard.press('Enter');
  await expect(page.getByText('The hub can reconnect within seven days.')).toBeVisible();
  await safe(page, 'a hub that comes back');
});
