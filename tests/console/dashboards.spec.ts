//! A dashboard is made of chosen devices, arranged, shown on the overview and shared by its link.

import { address, expect, HOSTILE, inspect, safe, signIn, tabTo, test } from './harness';

// A RuuviTag, as it advertises: 24.3 °C, 53 %, 1000 hPa.
const RUUVI = 'BRL8U5TDfAAE//wEDKw2QgDNy7gzTIhP';

test('a dashboard shows chosen devices', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim(['Roof']);
  if (!hub) throw new Error('no hub');
  const { deviceUuid } = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  await person.call('POST', '/tenant/devices', { deviceUuid, name: HOSTILE, address: address(1) });
  const other = await person.call('POST', '/tenant/devices', { deviceUuid, name: 'Cellar', address: address(2) });
  await hub.hear([1, 2].map((number) => ({ address: address(number), rssi: -50, manufacturerData: { '0499': RUUVI } })));

  await page.goto(person.page('/dashboards'));
  await signIn(page, person);
  await expect(page.getByText('No dashboards yet')).toBeVisible();
  await inspect(page, 'no dashboards');
  await tabTo(page, 'New dashboard');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await tabTo(page, 'Create the dashboard');
  await page.keyboard.press('Enter');
  await expect(dialog.getByLabel('Name'), 'the wrong field has the focus').toBeFocused();
  await page.keyboard.type(HOSTILE);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: HOSTILE })).toBeVisible();
  await expect(page.getByText('No tiles yet')).toBeVisible();
  await inspect(page, 'an empty dashboard');

  await tabTo(page, 'Add the first tiles');
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Add', exact: true }).press('Enter');
  await expect(dialog.getByText('Choose a device.')).toBeVisible();
  for (const name of [HOSTILE, 'Cellar']) {
    await dialog.getByRole('textbox', { name: 'Devices' }).press('ArrowDown');
    await dialog.getByRole('button', { name, exact: true }).click();
  }
  await expect(dialog.getByLabel('Quantity')).toHaveValue('temperature');
  await inspect(page, 'adding tiles');
  await dialog.getByRole('button', { name: 'Add', exact: true }).press('Enter');
  const tiles = page.getByRole('listitem').filter({ has: page.getByRole('heading', { level: 2 }) });
  await expect(tiles).toHaveCount(2);
  await expect(page.getByText('24.3 °C')).toHaveCount(2);
  for (const kind of ['CHART', 'STATE']) {
    await page.getByRole('button', { name: 'Add tiles' }).press('Enter');
    await dialog.getByRole('textbox', { name: 'Devices' }).press('ArrowDown');
    await dialog.getByRole('button', { name: 'Cellar', exact: true }).click();
    await dialog.getByLabel('Show').selectOption(kind);
    await dialog.getByRole('button', { name: 'Add', exact: true }).press('Enter');
    await expect(dialog).toBeHidden();
  }
  await expect(tiles).toHaveCount(4);
  await expect(page.getByText('online')).toBeVisible();
  await expect(page.locator('canvas')).toBeVisible();
  await inspect(page, 'a dashboard');

  await page.getByRole('button', { name: 'Arrange' }).press('Enter');
  await page.getByRole('button', { name: `Move ${HOSTILE}, temperature back` }).press('Enter');
  await expect(tiles.first().getByRole('heading')).toHaveText('Cellar');
  await page.getByRole('button', { name: 'Remove Cellar, state' }).press('Enter');
  await expect(tiles).toHaveCount(3);
  await inspect(page, 'a dashboard that is arranged');
  await page.reload();
  await expect(tiles.first().getByRole('heading'), 'each change is saved').toHaveText('Cellar');
  await expect(tiles).toHaveCount(3);

  // On the overview; a deleted device says so.
  await page.getByRole('button', { name: 'Edit' }).press('Enter');
  await dialog.getByLabel('Show on the overview').check();
  await dialog.getByRole('button', { name: 'Save' }).press('Enter');
  await expect(dialog).toBeHidden();
  await person.call('DELETE', `/tenant/devices/${other.deviceInstanceId}`);
  await page.goto(person.page());
  await expect(page.getByRole('heading', { name: HOSTILE }).first()).toBeVisible();
  await expect(page.getByText('24.3 °C')).toBeVisible();
  await expect(page.getByText('This device was deleted.').first()).toBeVisible();
  await safe(page, 'a dashboard on the overview');

  await page.getByRole('link', { name: HOSTILE, exact: true }).first().click();
  await page.getByRole('button', { name: 'Delete' }).press('Enter');
  await dialog.getByRole('button', { name: 'Delete the dashboard' }).press('Enter');
  await expect(page.getByText('No dashboards yet')).toBeVisible();
});
