//! What a device is recognised by: beacons and identity resolving keys, by keyboard alone. Keys are
//! set, removed and never shown again; a device is activated, suspended and retired.

import { expect, HOSTILE, inspect, safe, signIn, tabTo, test } from './harness';

/** Sample data of the Core Specification, Vol 3, Part H, appendix D.7. */
const IDENTITY_KEY = 'ec0234a357c8ad05341010a60a397d9b';
const RESOLVABLE = '70:81:94:0D:FB:AA';
const BIND_KEY = '231d39c1d7cc1ab1aee224cd096db932';
const RUUVI = 'BRL8U5TDfAAE//wEDKw2QgDNy7gzTIhP';
const UUID = '74278bda-b644-4520-8f0c-720eaf059935';
/** An iBeacon with this UUID, 7 and 65535. */
const IBEACON = Buffer.from(`0215${UUID.replaceAll('-', '')}0007ffffc5`, 'hex').toString('base64');

type Watched = Parameters<typeof inspect>[0];
const dialog = (page: Watched) => page.getByRole('dialog');

async function press(page: Watched, name: string | RegExp, within: 'page' | 'dialog' = 'page') {
  await tabTo(page, typeof name === 'string' ? new RegExp(`^${name}$`) : name, 'button', within === 'page' ? page : dialog(page));
  await page.keyboard.press('Enter');
}
async function type(page: Watched, label: string, text: string) {
  await tabTo(page, label, 'textbox', dialog(page));
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(text);
}
async function choose(page: Watched, label: string, option: string) {
  await tabTo(page, label, 'combobox', dialog(page));
  await page.keyboard.type(option);
}
async function expectError(page: Watched, label: string, message: RegExp) {
  const field = dialog(page).getByLabel(label, { exact: true });
  await expect(field).toHaveAttribute('aria-invalid', 'true');
  await expect(field).toBeFocused();
  await expect(field).toHaveAccessibleDescription(message);
}

test('a device is recognised by its beacon', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim([HOSTILE]);
  await page.goto(person.page('/devices?register=new'));
  await signIn(page, person);
  await choose(page, 'Model', 'iBeacon');
  await type(page, 'Name', HOSTILE);
  await choose(page, 'Recognised by', 'iBeacon');
  await page.keyboard.press('Tab');
  await expect(dialog(page).getByLabel('UUID')).toBeFocused();
  await page.keyboard.press('Enter');
  await expectError(page, 'UUID', /must be a UUID/);
  await expect(dialog(page).locator('[aria-invalid="true"]'), 'all that is wrong at once').toHaveCount(3);
  await inspect(page, 'a beacon without its parts');
  await type(page, 'UUID', UUID.toUpperCase());
  await page.keyboard.press('Enter');
  await expectError(page, 'Major', /0 (and|to) 65,?535/);
  await type(page, 'Major', '7');
  await type(page, 'Minor', '65536');
  await page.keyboard.press('Enter');
  await expectError(page, 'Minor', /0 (and|to) 65,?535/);
  await inspect(page, 'a beacon with a bad number');
  expect(await person.call('GET', '/tenant/device-catalog'), 'no model is made for what is refused').toEqual([]);
  await type(page, 'Minor', '65535');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: HOSTILE, level: 1 })).toBeVisible();
  await expect(page.getByText(`iBeacon ${UUID}, 7, 65535`)).toBeVisible();
  await hub?.hear([{ address: '70:81:94:0D:FB:AA', manufacturerData: { '004c': IBEACON } }]);
  await expect(page.getByText('online', { exact: true }), 'whatever address it has').toBeVisible();
  await inspect(page, 'a beacon');

  // The same beacon again, and one of the other kind.
  await page.goto(person.page('/devices?register=new'));
  await choose(page, 'Model', 'iBeacon');
  await choose(page, 'Recognised by', 'iBeacon');
  await type(page, 'UUID', UUID);
  await type(page, 'Major', '7');
  await type(page, 'Minor', '65535');
  await page.keyboard.press('Enter');
  await expectError(page, 'UUID', /device \d+/);
  await choose(page, 'Recognised by', 'Eddystone');
  await type(page, 'Namespace', 'not hex');
  await page.keyboard.press('Enter');
  await expectError(page, 'Namespace', /20 hex/);
  await type(page, 'Namespace', '8b0ca750e7a7e14aabcd');
  await page.keyboard.press('Enter');
  await expectError(page, 'Instance', /12 hex/);
  await inspect(page, 'a beacon of Eddystone that is refused');
  await type(page, 'Instance', '000000000001');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Eddystone-UID 8b0ca750e7a7e14aabcd 000000000001')).toBeVisible();
  await safe(page, 'beacons');
});

test('a device whose address changes is recognised by its key', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim([HOSTILE]);
  if (!hub) throw new Error('no hub');
  const { deviceUuid } = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const hear = () => hub.hear([{ address: RESOLVABLE, manufacturerData: { '0499': RUUVI } }]);
  await page.goto(person.page('/devices?register=new'));
  await signIn(page, person);
  await choose(page, 'Model', 'RuuviTag');
  await type(page, 'Name', 'Tag');
  await choose(page, 'Recognised by', 'Identity resolving');
  await press(page, 'Register', 'dialog');
  await expectError(page, 'Identity resolving key', /required/);
  await page.keyboard.type('ec02');
  await page.keyboard.press('Enter');
  await expectError(page, 'Identity resolving key', /32 hex/);
  await inspect(page, 'a resolving key that is refused');
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(IDENTITY_KEY);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Tag', level: 1 })).toBeVisible();
  await expect(page.getByText('its identity resolving key', { exact: true })).toBeVisible();
  await expect(page.getByText('Not received yet', { exact: true })).toBeVisible();
  await hear();
  await expect(page.getByText('24.3 °C'), 'the address is resolved').toBeVisible();
  expect(await page.content()).not.toContain(IDENTITY_KEY);
  await inspect(page, 'a device with a resolving key');

  // A key that belongs to another device is shown at its field.
  await person.call('POST', '/tenant/devices', { deviceUuid, name: 'Other', identityResolvingKey: BIND_KEY });
  const read = async () => (await person.call('GET', '/tenant/devices')).find(({ name }: { name: string }) => name === 'Tag');
  await press(page, 'Set keys');
  await choose(page, 'Encryption key', 'Keep');
  await choose(page, 'Identity resolving key', 'Set a new key');
  await type(page, 'New identity resolving key', BIND_KEY);
  await page.keyboard.press('Enter');
  await expectError(page, 'New identity resolving key', /device \d+/);
  await inspect(page, 'a key of another device');

  // Nothing is changed where nothing was chosen.
  await choose(page, 'Identity resolving key', 'Keep: set');
  await press(page, 'Save', 'dialog');
  await expect(dialog(page)).toHaveCount(0);
  expect(await read()).toMatchObject({ bindKeyStatus: 'NONE', identityResolvingKeySet: true });

  // Both keys, and then none.
  await press(page, 'Set keys');
  await type(page, 'New key', BIND_KEY);
  await page.keyboard.press('Enter');
  await expect(page.getByText('not used yet')).toBeVisible();
  await press(page, 'Set keys');
  await choose(page, 'Encryption key', 'Remove');
  await expect(dialog(page).getByText('Its encrypted data can no longer be decoded.')).toBeVisible();
  await choose(page, 'Identity resolving key', 'Remove');
  await expect(dialog(page).getByText(/The device has no other identity/)).toBeVisible();
  await inspect(page, 'keys that are removed');
  await press(page, 'Save', 'dialog');
  await expect(page.getByText('no key', { exact: true })).toBeVisible();
  await expect(page.getByText('Recognised by')).toBeVisible();
  await expect(page.getByText('not set', { exact: true })).toBeVisible();
  expect(await read()).toMatchObject({ bindKeyStatus: 'NONE', identityResolvingKeySet: false });
  await safe(page, 'keys');
});

test('a device is activated, suspended, activated again and retired', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const { deviceUuid } = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const { deviceInstanceId } = await person.call('POST', '/tenant/devices', { deviceUuid, name: HOSTILE, identityResolvingKey: IDENTITY_KEY });
  const status = async () => (await person.call('GET', `/tenant/devices/${deviceInstanceId}`)).activationStatus;
  await page.goto(person.page(`/devices/${deviceInstanceId}`));
  await signIn(page, person);
  await expect(page.getByText('registered', { exact: true }).first()).toBeVisible();
  await press(page, 'Activate');
  await expect(dialog(page).getByText('It is also activated automatically', { exact: false })).toBeVisible();
  await inspect(page, 'what activating means');
  await press(page, 'Activate the device', 'dialog');
  await expect(page.getByText(/onerror.* is active\./)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Activate' })).toHaveCount(0);
  expect(await status()).toBe('ACTIVE');
  await press(page, 'Suspend');
  await press(page, 'Suspend the device', 'dialog');
  await expect(page.getByText('suspended', { exact: true }).first()).toBeVisible();
  await expect(page.getByRole('button', { name: 'Suspend' })).toHaveCount(0);
  await press(page, 'Activate');
  await expect(dialog(page).getByText('It is also activated automatically', { exact: false }), 'a suspended one stays so').toHaveCount(0);
  await press(page, 'Activate the device', 'dialog');
  await expect(page.getByText('suspended', { exact: true })).toHaveCount(0);
  expect(await status()).toBe('ACTIVE');

  // What was retired frees its key, and can be deleted alone.
  await press(page, 'Retire');
  await press(page, 'Retire the device', 'dialog');
  await expect(page.getByText('retired', { exact: true }).first()).toBeVisible();
  for (const name of ['Edit', 'Set keys', 'Activate', 'Suspend', 'Retire']) await expect(page.getByRole('button', { name, exact: true })).toHaveCount(0);
  await inspect(page, 'a retired device');
  expect(await status()).toBe('RETIRED');
  // However long the models take to load, no form is there before them.
  await page.route('**/tenant/device-catalog*', async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await route.continue();
  });
  await page.goto(person.page('/devices?register=new'));
  await choose(page, 'Model', 'RuuviTag');
  await type(page, 'Name', 'Its successor');
  await choose(page, 'Recognised by', 'Identity resolving');
  await type(page, 'Identity resolving key', IDENTITY_KEY);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Its successor', level: 1 })).toBeVisible();
  await safe(page, 'the states of a device');
});
