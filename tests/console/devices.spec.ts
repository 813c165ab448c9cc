//! Devices are registered, found, sent commands and retired, by keyboard alone.

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { address, expect, HOSTILE, type Hub, inspect, type Person, safe, type Service, signIn, tabTo, test } from './harness';

const DEVICES = 130;
const KEY = '231d39c1d7cc1ab1aee224cd096db932';
// A RuuviTag, as it advertises: 24.3 °C, 53 %, 1000 hPa.
const RUUVI = 'BRL8U5TDfAAE//wEDKw2QgDNy7gzTIhP';
const heard = { address: address(1), name: HOSTILE, manufacturerData: { '0499': RUUVI } };

/** The steps that a hub takes for the command that it is given next. */
async function carryOut(hub: Hub, value: string) {
  let job: { hubJobUuid: string; command: { steps: { value?: string }[] } } | undefined;
  await expect.poll(async () => (job = (await hub.call('GET', `/v1/hubs/${hub.uuid}/desired-state`)).jobs[0])).toBeTruthy();
  const steps = [{ characteristic: '2a19', operation: 'READ', value }];
  const body = { eventUuid: randomUUID(), kind: 'SUCCEEDED', detail: { steps }, occurredAt: new Date().toISOString() };
  await hub.call('POST', `/v1/hubs/${hub.uuid}/jobs/${job?.hubJobUuid}/events`, body);
  return job?.command.steps.map((step) => step.value);
}

async function define(person: Person, deviceUuid: string) {
  const properties = { level: { type: 'integer', title: HOSTILE, minimum: 0, maximum: 100 }, mode: { enum: ['calm', 'quick'] } };
  const steps = [{ service: '180f', characteristic: '2a19', operation: 'WRITE', value: [{ parameter: 'level', type: 'u8' }] }];
  const parameters = { type: 'object', properties, required: ['level'] };
  await person.call('POST', '/tenant/action-definitions', { actionId: 'dim', name: HOSTILE, deviceUuid, parameters, transport: { kind: 'GATT', steps } });
}

/** A tenant with a device that two hubs hear; the first one can connect to it. */
async function heardDevice(service: Service) {
  const person = await (await service.person()).createTenant(HOSTILE);
  const [roof, cellar] = await person.claim([HOSTILE, 'Cellar']);
  if (!roof || !cellar) throw new Error('no hubs');
  const { deviceUuid } = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const device = await person.call('POST', '/tenant/devices', { deviceUuid, name: HOSTILE, address: address(1) });
  await hear(roof, cellar);
  return { person, roof, device, path: (tab: string) => person.page(`/devices/${device.deviceInstanceId}?tab=${tab}`) };
}

async function hear(roof: Hub, cellar: Hub) {
  await roof.call('POST', '/v1/hubs/adapters', { adapters: [{ address: '00:1A:7D:DA:71:13', name: 'hci0', powered: true }] });
  await Promise.all([roof.telemetry({}), roof.hear([{ ...heard, rssi: -50 }]), cellar.hear([{ ...heard, rssi: -75 }])]);
}

test('a device is registered, edited and given its key', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant(HOSTILE);
  const [roof, cellar] = await person.claim([HOSTILE, 'Cellar']);
  if (!roof || !cellar) throw new Error('no hubs');
  await page.goto(person.page('/devices'));
  await signIn(page, person);
  await expect(page.getByText('No devices yet')).toBeVisible();
  await inspect(page, 'no devices');

  await tabTo(page, 'Register the first device');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByRole('option', { name: 'RuuviTag', exact: true })).toBeAttached();
  await tabTo(page, /^Register$/);
  await page.keyboard.press('Enter');
  await expect(dialog.getByLabel('Model'), 'the first wrong field has the focus').toBeFocused();
  await page.keyboard.type('RuuviTag');
  await page.keyboard.press('Tab');
  await page.keyboard.type(HOSTILE);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.type('no address');
  await page.keyboard.press('Enter');
  await expect(dialog.getByLabel('Address')).toHaveAttribute('aria-invalid', 'true');
  await expect(dialog.getByLabel('Address')).toBeFocused();
  await expect(dialog.getByText(/must be an address such as/i)).toBeVisible();
  await inspect(page, 'a device with a bad address');
  expect(await person.call('GET', '/tenant/device-catalog'), 'no model is made for what is refused').toEqual([]);
  await page.keyboard.press('Control+A');
  await page.keyboard.type(address(1).toLowerCase());
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: HOSTILE })).toBeVisible();
  await expect(page.getByText('Not received yet', { exact: true })).toBeVisible();

  await hear(roof, cellar);
  await expect(page.getByText('24.3 °C')).toBeVisible();
  await expect(page.getByText('online', { exact: true })).toBeVisible();
  await inspect(page, 'state of a device');

  await tabTo(page, 'Edit');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Add a label');
  await page.keyboard.press('Enter');
  await dialog.getByLabel('Name of label 1').focus();
  await page.keyboard.type('room');
  await page.keyboard.press('Tab');
  await page.keyboard.type(HOSTILE);
  await tabTo(page, 'Add a correction');
  await page.keyboard.press('Enter');
  await dialog.getByLabel('Quantity 1').selectOption('temperature');
  await dialog.getByLabel('Factor 1').fill('9999999999');
  await tabTo(page, 'Save');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText(/^temperature factor must be between/), 'what is refused stands beside its field').toBeVisible();
  await inspect(page, 'a calibration that is refused');
  await dialog.getByLabel('Factor 1').fill('2');
  await page.keyboard.press('Enter');
  await expect(page.getByText('measured × 2 + 0')).toBeVisible();

  await tabTo(page, 'Set keys');
  await page.keyboard.press('Enter');
  await tabTo(page, 'New key', 'textbox');
  await page.keyboard.type('abc');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText(/must be 32 hex digits/i)).toBeVisible();
  await page.keyboard.press('Control+A');
  await page.keyboard.type(KEY);
  await page.keyboard.press('Enter');
  await expect(page.getByText('not used yet')).toBeVisible();
  expect(await page.content(), 'a key is not shown again').not.toContain(KEY);

});

test.describe('times of a chart', () => {
  test.use({ timezoneId: 'Asia/Kolkata', locale: 'en-US' });
  test('are of 24 hours, in the time zone of the browser', async ({ watched: page, service }) => {
    await page.addInitScript(() => {
      const drawn: string[] = [];
      Object.assign(window, { drawn });
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        drawn.push(text);
        fillText.call(this, text, ...place);
      };
    });
    const { person, path } = await heardDevice(service);
    await page.goto(path('values'));
    await signIn(page, person);
    const chart = page.getByRole('img', { name: 'temperature' });
    await expect(chart.locator('canvas')).toBeVisible();
    const drawn: string[] = await page.evaluate(() => (window as any).drawn);
    expect(drawn, 'a time of the axis').toContainEqual(expect.stringMatching(/(^| )([01]\d|2[0-3]):[0-5]\d$/));
    expect(drawn.filter((text) => /[ap]m|\//i.test(text)), 'times as they are written in the United States').toEqual([]);

    // What is read at the last value, which was heard just now.
    const box = await chart.locator('.u-over').boundingBox();
    if (!box) throw new Error('the chart has no area');
    await page.mouse.move(box.x + box.width - 2, box.y + box.height / 2);
    const read = chart.locator('.u-legend .u-value').first();
    await expect(read).toHaveText(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
    const at = await read.evaluate((element) => new Date(element.textContent ?? '').getTime());
    expect(Math.abs(Date.now() - at), 'milliseconds from now').toBeLessThan(3_600_000);
  });
});

test('a device is watched', async ({ watched: page, service }) => {
  const { person, path } = await heardDevice(service);
  await page.goto(path('values'));
  await signIn(page, person);
  await expect(page.getByRole('img', { name: 'temperature' }).locator('canvas')).toBeVisible();
  await inspect(page, 'values of a device');
  await page.getByLabel('Quantity').selectOption('temperature');
  await expect(page.locator('canvas')).toHaveCount(1);
  await tabTo(page, 'Values');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/quantity=temperature.*view=table/);
  await expect(page.getByRole('cell', { name: '24.3 °C' })).toHaveCount(2);
  await inspect(page, 'values one by one');
  const stored = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const lines = readFileSync(await (await stored).path(), 'utf8').trim().split('\r\n');
  expect(lines).toHaveLength(3);
  expect(lines[1]).toMatch(/,24\.3$/);
  await page.getByRole('button', { name: 'Custom' }).click();
  await page.getByLabel('to', { exact: true }).fill('2020-01-01T00:00');
  await expect(page.getByText('The start must be before the end.')).toBeVisible();

  await page.goto(path('timeline'));
  await expect(page.getByRole('cell', { name: 'heard' })).toBeVisible();
  await inspect(page, 'timeline of a device');
  await page.goto(path('where'));
  await expect(page.getByRole('row', { name: /^1 .*onerror.* -50/ }), 'the strongest comes first').toBeVisible();
  await expect(page.getByRole('row', { name: /^2 Cellar -75/ })).toBeVisible();
  await inspect(page, 'receptions of a device');
  await page.goto(path('events'));
  await expect(page.getByRole('cell', { name: /05 12 fc 53/ })).toHaveCount(1);
  await tabTo(page, 'Processing');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText('On reception')).toBeVisible();
  await inspect(page, 'processing of an event');

});

test('a device is sent a command, and retired', async ({ watched: page, service }) => {
  const { person, roof, device, path } = await heardDevice(service);
  const dialog = page.getByRole('dialog');
  await define(person, device.deviceUuid);
  await page.goto(path('commands'));
  await signIn(page, person);
  await tabTo(page, HOSTILE);
  await page.keyboard.press('Enter');
  await tabTo(page, HOSTILE, 'textbox');
  await page.keyboard.type('x');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText('must be a number')).toBeVisible();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('101');
  await page.keyboard.press('Enter');
  await expect(dialog.getByRole('textbox'), 'what the service refuses is shown at the parameter').toHaveAttribute('aria-invalid', 'true');
  await inspect(page, 'an action with a bad parameter');
  await page.keyboard.press('Control+A');
  await page.keyboard.type('7');
  await page.keyboard.press('Enter');
  expect(await carryOut(roof, '64')).toEqual(['07']);
  await expect(dialog.getByText('succeeded')).toBeVisible();
  await expect(dialog.locator('pre')).toContainText('"value": "64"');
  await inspect(page, 'the result of a command');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('cell', { name: 'succeeded' })).toBeVisible();

  await tabTo(page, 'Suspend');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText(/Commands to it are rejected/)).toBeVisible();
  await tabTo(page, 'Suspend the device');
  await page.keyboard.press('Enter');
  await expect(page.getByText('it does not accept commands until it is activated')).toBeVisible();
  await tabTo(page, 'Retire');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText('This cannot be undone.')).toBeVisible();
  await inspect(page, 'a device is retired');
  await tabTo(page, 'Retire the device');
  await page.keyboard.press('Enter');
  await expect(page.getByText('retired', { exact: true })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Edit' })).toHaveCount(0);
  expect((await person.call('GET', `/tenant/devices/${device.deviceInstanceId}`)).activationStatus).toBe('RETIRED');
});

test('devices are filtered, opened and stored', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [roof] = await person.claim(['Roof top']);
  const ruuvi = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag', name: 'Cold room' });
  const other = await person.call('POST', '/tenant/device-catalog', { name: HOSTILE });
  const register = (number: number) => person.call('POST', '/tenant/devices', { deviceUuid: ruuvi.deviceUuid, name: `Sensor ${number}`, address: address(number) });
  // Of requests at once, any may be first: the oldest device, which the list ends with, is registered alone.
  await register(0);
  for (let from = 1; from < DEVICES; from += 10) {
    const some = Array.from({ length: Math.min(10, DEVICES - from) }, (_, index) => from + index);
    await Promise.all(some.map(register));
  }
  await person.call('POST', '/tenant/devices', { deviceUuid: other.deviceUuid, name: '=1+1' });
  await person.call('POST', '/tenant/devices', { deviceUuid: other.deviceUuid, name: HOSTILE });
  await roof?.hear([1, 2, 3].map((number) => ({ ...heard, address: address(number) })));
  await page.goto(person.page('/devices'));
  await signIn(page, person);
  await expect(page.getByText(`${DEVICES + 2} devices`, { exact: true })).toBeVisible();
  expect(await page.locator('[data-row]').count(), 'rows that are not seen do not exist').toBeLessThan(60);
  await expect(page.getByText('=1+1')).toBeVisible();
  await inspect(page, 'devices');

  await tabTo(page, 'Filter devices', 'combobox');
  await page.keyboard.type('model:c');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.keyboard.type('hub:roof is:online');
  await expect(page.getByText('3 devices match the filter', { exact: true })).toBeVisible();
  await expect(page).toHaveURL(/q=model%3A%22Cold\+room%22\+hub%3Aroof\+is%3Aonline/);
  await page.reload();
  await expect(page.getByText('3 devices match the filter', { exact: true }), 'a filter is kept in the address').toBeVisible();
  await page.getByLabel('Filter devices').fill('hub:nowhere wheel:round status:registered Sensor 2');
  await expect(page.getByText(/“wheel” is not a filter/)).toBeVisible();
  await expect(page.getByText(/hub:nowhere is ignored/)).toBeVisible();
  await expect(page.getByText('10 devices match the filter', { exact: true })).toBeVisible();
  await inspect(page, 'a filter that is not understood');
  await page.getByLabel('Filter devices').fill('status:retired');
  await page.getByRole('button', { name: 'Show all devices' }).click();

  const stored = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const lines = readFileSync(await (await stored).path(), 'utf8').trim().split('\r\n');
  expect(lines).toHaveLength(DEVICES + 3);
  expect(lines[0]).toMatch(/,temperature,/);
  expect(lines[2], 'no spreadsheet runs a name').toContain(",'=1+1,");

  await tabTo(page, HOSTILE, 'link');
  await page.route(/\/tenant\/devices\?.*page=2/, async (route) => {
    await new Promise((resolve) => setTimeout(resolve, 6000));
    await route.continue();
  });
  await page.keyboard.press('End');
  const first = page.getByRole('link', { name: 'Sensor 0', exact: true });
  await expect(first, 'a row that takes long to load').toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Sensor 0' })).toBeVisible();
  await tabTo(page, 'Delete');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Delete the device');
  await page.keyboard.press('Enter');
  await expect(page.getByText(`${DEVICES + 1} devices`, { exact: true })).toBeVisible();
  await page.goto(person.page(`/devices?register=${address(2)}`));
  await page.getByRole('dialog').getByLabel('Model').selectOption('Cold room');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await expect(page.getByRole('dialog').getByLabel('Address'), 'an identity in use is shown at its field').toHaveAttribute('aria-invalid', 'true');
  await safe(page, 'devices');
});

test('who may only look is offered nothing else', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const member = await service.person();
  member.tenant = owner.tenant;
  await owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: member.personaUuid, role: 'VIEWER' });
  const { deviceUuid } = await owner.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const { deviceInstanceId } = await owner.call('POST', '/tenant/devices', { deviceUuid, name: 'Sensor' });
  await page.goto(member.page('/devices?register=new'));
  await signIn(page, member);
  await expect(page.getByText('1 device', { exact: true })).toBeVisible();
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Register a device' })).toHaveCount(0);
  await page.goto(member.page(`/devices/${deviceInstanceId}?tab=commands`));
  await expect(page.getByText('No commands yet')).toBeVisible();
  await expect(page.getByRole('button', { name: /Edit|Set keys|Suspend|Retire|Delete/ })).toHaveCount(0);
  await expect(page.getByRole('heading', { name: 'Actions' })).toHaveCount(0);
  await safe(page, 'devices of a viewer');
});
