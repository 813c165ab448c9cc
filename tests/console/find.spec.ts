//! What needs somebody, what a hub hears, and how devices are named and found, by keyboard alone.

import { address, expect, HOSTILE, inspect, type Person, signIn, tabTo, test } from './harness';

/** BTHome v2: a battery of 5 percent. */
const LOW_BATTERY = { fcd2: 'QAEF' };

async function withDevices(person: Person, count: number) {
  const { deviceUuid } = await person.call('POST', '/tenant/device-catalog', { template: 'bthome/v2', name: 'Door sensor' });
  for (let number = 1; number <= count; number++) await person.call('POST', '/tenant/devices', { deviceUuid, address: address(number) });
}

test('devices are named at once, and found by Ctrl+K', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  await person.claim([HOSTILE]);
  await withDevices(person, 3);
  await page.goto(person.page('/devices'));
  await signIn(page, person);
  await expect(page.getByRole('link', { name: 'Door sensor 000001' }), 'the model and the end of the address').toBeVisible();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));

  await tabTo(page, 'Name devices');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Pattern').fill('Door {n}');
  await dialog.getByLabel('First number').fill('7');
  await expect(dialog.getByText('Door sensor 000001 → Door 7')).toBeVisible();
  await inspect(page, 'names by a pattern');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('link', { name: 'Door 9' })).toBeVisible();

  await tabTo(page, 'Name devices');
  await page.keyboard.press('Enter');
  await tabTo(page, 'List', 'button', dialog);
  await page.keyboard.press('Enter');
  await dialog.getByRole('textbox', { name: 'List' }).fill(`${address(2).toLowerCase()};"Cellar, left"\n${address(77)},Nobody\n`);
  await expect(dialog.getByRole('status')).toContainText('1 line names no device');
  await inspect(page, 'names from a list');
  await tabTo(page, 'Name 1 device', 'button', dialog);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('link', { name: 'Cellar, left' })).toBeVisible();
  expect((await person.call('GET', '/tenant/devices')).map(({ name }: { name: string }) => name).sort()).toEqual(['Cellar, left', 'Door 7', 'Door 9']);

  // The palette's code comes when it is first opened.
  const palette = page.getByRole('combobox', { name: 'Page, hub or device' });
  await page.keyboard.press('Control+K');
  await expect(palette).toBeFocused();
  await page.keyboard.type('cellar');
  await expect(page.getByRole('option', { name: /Cellar, left/ })).toBeVisible();
  await inspect(page, 'the palette');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Cellar, left' })).toBeVisible();
  await page.keyboard.press('/');
  await expect(palette).toBeFocused();
  await page.keyboard.type('<img');
  await expect(page.getByRole('option', { name: HOSTILE })).toBeVisible();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('floor');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Floor plans' })).toBeVisible();
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard shortcuts' })).toBeVisible();
  await inspect(page, 'the shortcuts');
  expect(asked.filter((path) => /^\/tenant\/devices\/\d+$/.test(path)).length, 'one request for the page of one device, beside the names given').toBeLessThanOrEqual(6);
});

test('a group of the navigation stays folded', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  await page.goto(person.page('/devices'));
  await signIn(page, person);
  const navigation = page.getByRole('navigation', { name: 'Pages' });
  await expect(navigation.getByRole('link', { name: 'API keys' })).toBeVisible();
  await navigation.getByText('Manage', { exact: true }).click();
  await expect(navigation.getByRole('link', { name: 'API keys' })).toBeHidden();
  await page.reload();
  await expect(navigation.getByRole('link', { name: 'Devices' })).toBeVisible();
  await expect(navigation.getByRole('link', { name: 'API keys' })).toBeHidden();
  await inspect(page, 'a folded group');
});

test('a hub shows what it hears, and the overview what needs somebody', async ({ watched: page, service }) => {
  test.setTimeout(120_000);
  const person = await (await service.person()).createTenant('Warehouse');
  const [roof, cellar] = await person.claim(['Roof', 'Cellar']);
  if (!roof || !cellar) throw new Error('no hubs');
  await withDevices(person, 1);
  await page.goto(person.page(`/hubs/${roof.uuid}?tab=hears`));
  await signIn(page, person);
  await expect(page.getByText('Waiting for the next event')).toBeVisible();
  const hear = async () => {
    await roof.hear([
      { address: address(1), manufacturerData: {}, serviceData: LOW_BATTERY },
      { address: address(9), name: HOSTILE },
    ]);
    await cellar.hear([{ address: address(30) }]);
  };
  await expect(async () => {
    await hear();
    await expect(page.getByRole('link', { name: 'Door sensor 000001' })).toBeVisible({ timeout: 1000 });
  }).toPass();
  await expect(page.getByText('battery 5 %')).toBeVisible();
  await expect(page.getByRole('link', { name: address(9) }), 'an unknown one').toBeVisible();
  await expect(page.getByText(address(30)), 'what another hub hears').toHaveCount(0);
  await inspect(page, 'what a hub hears');

  await page.goto(person.page());
  const attention = page.getByRole('region', { name: 'Needs attention' });
  // The service looks every 15 s.
  const device = attention.getByRole('link', { name: 'The battery of device Door sensor 000001 is low' });
  await expect(device).toBeVisible({ timeout: 60_000 });
  await inspect(page, 'what needs somebody');
  await device.focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Door sensor 000001' })).toBeVisible();
});
