//! What nobody knows becomes a model with a decoder, and models and the route are written, by keyboard.

import type { Page } from '@playwright/test';
import { address, expect, HOSTILE, inspect, safe, signIn, tabTo, test } from './harness';

/** Company ffff: 23.45 °C in hundredths of a degree, and 100 % of battery. */
const FRAME = 'KQlk';
const decoder = (scale: string) => `{
  "match": {"manufacturer": "ffff"},
  "read": [
    {"quantity": "temperature", "at": 0, "type": "i16", "scale": ${scale}},
    {"quantity": "battery", "at": 2}
  ]
}`;

test('an unknown advertiser becomes a model, and its decoder is written against its frames', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim([HOSTILE]);
  if (!hub) throw new Error('no hub');
  await page.goto(person.page('/unknown'));
  await signIn(page, person);
  await expect(page.getByText('No unknown advertisers in the last 24 hours')).toBeVisible();
  await hub.hear([
    { address: address(1), name: HOSTILE, manufacturerData: { ffff: FRAME } },
    { address: address(1), name: HOSTILE, manufacturerData: { ffff: FRAME } },
    { address: address(2), manufacturerData: { fffe: 'AQ==' }, rssi: -90 },
  ]);
  await expect.poll(async () => (await person.call('GET', '/tenant/ble/unknown')).length).toBe(2);
  await page.goto(person.page('/unknown?q=rssi:>-70+wheel:round'));
  await expect(page.getByText(/“wheel” is not a filter/)).toBeVisible();
  await expect(page.locator('[data-row]')).toHaveCount(1);
  await page.getByLabel('Filter advertisers').fill('');
  await expect(page.locator('[data-row]').first(), 'the one that is heard most stands first').toContainText(address(1));
  await tabTo(page, new RegExp(address(1)));
  await page.keyboard.press('Enter');
  await expect(page.getByRole('region', { name: 'Advertiser' })).toContainText('29 09 64');
  await expect(page).toHaveURL(/address=C0/);
  await inspect(page, 'an unknown advertiser');
  await tabTo(page, 'Create a new model');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.type('Probe');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Probe was created' })).toBeVisible();
  await tabTo(page, 'Write its decoder');
  await page.keyboard.press('Enter');

  // From here on, one draft at a time is tried, and none is stored.
  let [open, most] = [0, 0];
  const isTrial = (request: { url: () => string; method: () => string }) => request.method() === 'POST' && request.url().endsWith('/tenant/device-protocols');
  page.on('request', (request) => isTrial(request) && (most = Math.max(most, (open += 1))));
  page.on('requestfinished', (request) => isTrial(request) && (open -= 1));
  const protocols = () => person.call('GET', '/tenant/device-protocols');
  const tests = page.getByRole('region', { name: 'Tests' });
  await expect(tests.getByText(/^No values decoded: .*not take this frame/)).toBeVisible();
  const editor = page.getByLabel('Definition in JSON');
  const write = async (text: string) => {
    await tabTo(page, 'Definition in JSON', 'textbox');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.insertText(text);
  };
  const starter = await editor.inputValue();
  await write('{"match": {"manufacturer": "ffff"}, "read": [}');
  await expect(page.getByText('a value is missing here').or(page.getByText(/is not expected here/)).first()).toBeVisible();
  await page.keyboard.press('ControlOrMeta+z');
  await expect(editor, 'the undo of the browser is kept').toHaveValue(starter);
  await write(decoder('0'));
  await expect(page.getByText('does not compile')).toBeVisible();
  await expect(editor).toHaveAttribute('aria-invalid', 'true');
  await inspect(page, 'a decoder that does not compile');
  await tabTo(page, 'Line 4');
  await page.keyboard.press('Enter');
  expect(await editor.evaluate((area: HTMLTextAreaElement) => area.value.slice(area.selectionStart, area.selectionStart + 7))).toBe('"scale"');
  await write(decoder('0.01'));
  await expect(tests.getByRole('row', { name: /temperature 23.45/ })).toBeVisible();
  await tabTo(page, /^Expect these values/);
  await page.keyboard.press('Enter');
  await expect(page.getByText('1 test passes')).toBeVisible();
  await write(decoder('0.1'));
  await expect(tests.getByRole('row', { name: /temperature 23.45 234.5/ })).toBeVisible();
  await page.keyboard.press('ControlOrMeta+s');
  await expect(page.getByText(/Not saved: tests\[0\]/)).toBeVisible();
  expect(await protocols(), 'nothing was stored until now').toEqual([]);
  await inspect(page, 'a decoder whose test fails');

  await page.getByRole('link', { name: 'Fleet' }).click();
  await expect(page.getByText(/is not saved. Your changes are kept/)).toBeVisible();
  await page.goBack();
  await expect(page.getByText('Your unsaved changes were restored')).toBeVisible();
  await expect(editor).toHaveValue(decoder('0.1'));
  await page.getByLabel('Kind').selectOption('SCRIPT');
  await page.getByLabel('Script in JavaScript').fill('function decode(frame) {\n  return {;\n}');
  await expect(page.getByRole('button', { name: 'Line 2' }), 'a problem of a script is shown at its line').toBeVisible();
  await page.getByLabel('Kind').selectOption('BUILTIN');
  const decoders = page.getByLabel('Built-in decoder');
  await expect(decoders, 'the service names its decoders').toHaveText(/ruuvi\s*bthome/);
  await expect(decoders, 'one is chosen').toHaveValue('ruuvi');
  await page.getByLabel('Kind').selectOption('DECLARATIVE');
  await write(decoder('0.01'));
  await expect(page.getByText('1 test passes')).toBeVisible();
  await page.keyboard.press('ControlOrMeta+s');
  await expect(page.getByText(/was saved as revision 1/)).toBeVisible();
  const [stored] = await protocols();
  expect(stored.tests).toEqual([{ address: address(1), name: HOSTILE, manufacturerData: { ffff: '290964' }, expect: { temperature: 23.45, battery: 100 } }]);
  expect(most, 'drafts that were tried at a time').toBe(1);

  await tabTo(page, 'Add a frame');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Bytes', 'textbox');
  await page.keyboard.insertText('no bytes!');
  await tabTo(page, 'Add the test');
  await page.keyboard.press('Enter');
  await expect(page.getByText('must be bytes in hexadecimal or base64')).toBeVisible();
  await page.getByLabel('Bytes').fill('02 01 06 06 ff ff ff 00 80 32');
  await page.getByRole('button', { name: 'Add the test' }).click();
  await expect(tests.getByRole('row', { name: /temperature -327.68/ }).or(tests.getByRole('row', { name: /battery 50/ })).first()).toBeVisible();
  await page.getByRole('button', { name: 'Discard changes' }).click();

  await tabTo(page, 'Reprocess stored events');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Preview the changes');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('region', { name: 'Examples' })).toContainText('temperature 23.45 °C');
  await inspect(page, 'the changes that reprocessing would make');
  await tabTo(page, 'Start reprocessing');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog').getByText('done', { exact: true })).toBeVisible();
  await expect(page).toHaveURL(/reprocess=/);
  const [event] = await person.call('GET', '/tenant/ble/events?processingStatus=DECODED');
  expect(event.measurements.map(({ value }: { value: number }) => value).sort()).toEqual([100, 23.45]);

  await page.goto(person.page('/live'));
  await expect(page.getByText('live', { exact: true })).toBeVisible();
  await hub.hear([{ address: address(1), name: HOSTILE, manufacturerData: { ffff: 'ZABk' } }]);
  await page.getByRole('button', { name: new RegExp(address(1)) }).click();
  await page.getByRole('link', { name: 'Use as a decoder test' }).click();
  await expect(tests.getByRole('row', { name: /temperature 1/ })).toBeVisible();
  await safe(page, 'decoder');
});

test('models are made, described and deleted', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant(HOSTILE);
  await page.goto(person.page('/catalog'));
  await signIn(page, person);
  await tabTo(page, 'Choose from the library', 'link');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Filter the library', 'combobox');
  await page.keyboard.type('ruuvitag measures:pressure');
  await expect(page).toHaveURL(/q=ruuvitag/);
  await expect(page.getByText('acconeer/xm126')).toHaveCount(0);
  await inspect(page, 'the library');
  await tabTo(page, /^Add to my catalog RuuviTag$/);
  await page.keyboard.press('Enter');
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.type(HOSTILE);
  await inspect(page, 'a model of the library');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: HOSTILE })).toBeVisible();

  await tabTo(page, 'Add identifier');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Value', 'textbox');
  await page.keyboard.type('zz');
  await page.keyboard.press('Enter');
  const value = page.getByLabel('Value');
  await expect(value, 'what is wrong stands beside its field').toHaveAttribute('aria-invalid', 'true');
  await expect(value).toBeFocused();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('0abc');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('row', { name: /Company identifier 0abc 16 bits/ })).toBeVisible();
  await inspect(page, 'the identifiers of a model');
  await page.getByRole('row', { name: /0abc/ }).getByRole('button', { name: /^Change/ }).click();
  await page.getByLabel('Value').fill('0abd');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('row', { name: /0abd/ })).toBeVisible();
  await expect(page.getByRole('row', { name: /0abc/ })).toHaveCount(0);

  await page.getByRole('link', { name: 'Forms' }).click();
  await tabTo(page, 'New form');
  await page.keyboard.press('Enter');
  const document = (name: string, title: string) => JSON.stringify({ kind: 'SETUP', name, configJson: { steps: [{ id: 'a', title }] } }, null, 2);
  await page.getByLabel('In JSON').fill(document(HOSTILE, ''));
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await expect(page.getByRole('button', { name: 'Line 8' }), 'a problem is shown at its line').toBeVisible();
  await inspect(page, 'a form that is refused');
  await page.getByLabel('In JSON').fill(document(HOSTILE, 'Where?'));
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await expect(page.getByRole('cell', { name: HOSTILE, exact: true })).toBeVisible();
  for (const [tab, one] of [['Versions', 'version'], ['Manuals', 'manual'], ['Actions', 'action']] as const) {
    await page.getByRole('link', { name: tab }).click();
    await page.getByRole('button', { name: `Create the first ${one}` }).click();
    await page.getByRole('button', { name: 'Create', exact: true }).click();
    await expect(page.getByRole('region', { name: `List of ${tab.toLowerCase()}` }).locator('tbody tr')).toHaveCount(1);
  }
  await page.getByRole('button', { name: /^Edit Dim/ }).click();
  await page.getByLabel('In JSON').fill('{"name": "Dim the light"}');
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('cell', { name: 'Dim the light', exact: true })).toBeVisible();
  await page.getByRole('button', { name: /^Delete Dim/ }).click();
  await page.getByRole('button', { name: 'Delete the action' }).click();
  await expect(page.getByText('No actions yet')).toBeVisible();

  await page.goto(person.page('/catalog'));
  await tabTo(page, 'New model');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.type('Own');
  await tabTo(page, 'Measures', 'textbox');
  await page.keyboard.type('temperature, warmth');
  await tabTo(page, 'Create');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('Measures')).toHaveAttribute('aria-invalid', 'true');
  await page.getByLabel('Measures').fill('temperature');
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await expect(page.getByText('No identifiers yet')).toBeVisible();
  await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Catalog' }).click();
  await page.getByLabel('Filter models').fill('own');
  await expect(page.locator('tbody tr')).toHaveCount(1);
  await page.getByLabel('Filter models').fill('');
  await expect(page.locator('tbody tr')).toHaveCount(2);
  await inspect(page, 'the catalog');
  await tabTo(page, /^Own$/, 'link');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Edit', exact: true }).click();
  await page.getByText('More', { exact: true }).click();
  await page.getByLabel('Supported until').fill('soon');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('Supported until')).toHaveAttribute('aria-invalid', 'true');
  await page.getByLabel('Supported until').fill('2020-01-31');
  await page.keyboard.press('Enter');
  await expect(page.getByText(/^supported until 2020-01-31\s*ended$/)).toBeVisible();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await expect(page.getByText('There are no devices of this model.')).toBeVisible();
  await page.getByRole('button', { name: 'Delete the model' }).click();
  await expect(page.locator('tbody tr')).toHaveCount(1);
  await safe(page, 'catalog');
});

/** Chooses the first of what a picker of a dialog offers for a text. */
async function choose(page: Page, label: string, text: string, offered: string) {
  await tabTo(page, label, 'textbox', page.getByRole('dialog'));
  await page.keyboard.type(text);
  await expect(page.getByRole('list', { name: `${label} that can be added` }).getByRole('button').first()).toHaveText(offered);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
}

test('a rule is tried on the events of the last hour', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [roof, cellar] = await person.claim(['Roof', 'Cellar']);
  await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  for (let turn = 0; turn < 3; turn++) {
    await roof?.hear([1, 2].map((number) => ({ address: address(number), rssi: -50, manufacturerData: { '004c': 'EA==' } })));
    await cellar?.hear([{ address: address(3), rssi: -90, serviceData: { fcd2: 'QA==' }, manufacturerData: {} }]);
  }
  const asked: string[] = [];
  page.on('request', (request) => request.url().includes('/tenant/ble/events') && asked.push(request.url()));
  await page.goto(person.page('/route'));
  await signIn(page, person);
  await tabTo(page, 'Add a rule on hubs');
  await page.keyboard.press('Enter');
  const tried = page.getByRole('status', { name: 'The last hour' });
  await expect(tried).toContainText('Matches 9 of 9 events, from 3 of 3 devices. The rule drops them.');
  await choose(page, 'Company', 'appl', 'Apple (004c), 2 devices');
  await expect(page.getByRole('button', { name: 'Remove Apple (004c)' })).toBeVisible();
  await expect(tried).toContainText('Matches 6 of 9 events, from 2 of 3 devices.');
  await page.getByLabel('Action', { exact: true }).selectOption('WINDOW');
  await expect(tried).toContainText('Complete the rule to see what it does.');
  await page.getByLabel('Interval in seconds').fill('86400');
  await expect(tried).toContainText(/The rule reduces them to about [24] events/);
  await page.getByLabel('Minimum signal').fill('-40');
  await expect(tried).toContainText('Matches 0 of 9 events, from 0 of 3 devices.');
  await page.getByLabel('Minimum signal').fill('');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Aggregate into one event')).toBeVisible();

  // A rule below another one decides the rest.
  await tabTo(page, 'Add a rule on hubs');
  await page.keyboard.press('Enter');
  await expect(tried).toContainText('Matches 9 of 9 events, from 3 of 3 devices. A rule above already applies to 6 of them. The rule drops the other 3.');
  await choose(page, 'Service', '0xFCD2', 'BTHome (fcd2), 1 device');
  await expect(tried).toContainText('Matches 3 of 9 events, from 1 of 3 devices. The rule drops them.');
  await page.getByRole('button', { name: 'Remove BTHome (fcd2)' }).press('Enter');
  await tabTo(page, 'Hub', 'textbox', page.getByRole('dialog'));
  await page.keyboard.type('roo');
  await expect(page.getByRole('button', { name: 'Roof' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Cellar' }), 'the search is over').toBeHidden();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('button', { name: 'Remove Roof' })).toBeVisible();
  await expect(tried).toContainText('Matches 6 of 9 events, from 2 of 3 devices. A rule above already applies to 6 of them.');
  await inspect(page, 'a rule and what it does');
  expect(asked.length, 'the events are read once for each rule').toBe(2);
});

test('a route is written in order, and says what is lost', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const { deviceUuid } = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const { deviceInstanceId } = await person.call('POST', '/tenant/devices', { deviceUuid, name: 'Cellar door', address: address(1) });
  await page.goto(person.page('/route'));
  await signIn(page, person);
  await expect(page.getByText('None: hubs send all events')).toBeVisible();
  const add = async (where: string) => {
    await tabTo(page, `Add a rule ${where}`);
    await page.keyboard.press('Enter');
  };
  const accept = async () => {
    await tabTo(page, /^(Add|Apply)$/);
    await page.keyboard.press('Enter');
  };
  await add('on hubs');
  await tabTo(page, 'Minimum signal', 'textbox');
  await page.keyboard.type('strong');
  await page.keyboard.press('Enter');
  await expect(page.getByText('must be a whole number from -128 to 127')).toBeVisible();
  await expect(page.getByLabel('Minimum signal')).toBeFocused();
  await inspect(page, 'a rule that is refused');
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.press('Delete');
  // Companies have names; an identifier without one can be chosen, too.
  await choose(page, 'Company', 'fff0', 'fff0');
  await expect(page.getByRole('button', { name: 'Remove fff0' })).toBeVisible();
  await choose(page, 'Company', '004C', 'Apple (004c)');
  await accept();
  await add('on hubs');
  await page.getByLabel('Model is known').selectOption('false');
  await page.getByLabel('Action', { exact: true }).selectOption('WINDOW');
  await page.getByLabel('Interval in seconds').fill('60');
  await accept();
  await add('in the service');
  // A device is chosen by its name, and then deleted before the rule is saved.
  await tabTo(page, 'Device', 'textbox');
  await page.keyboard.type('cell');
  await expect(page.getByRole('button', { name: 'Cellar door' })).toBeVisible();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('button', { name: 'Remove Cellar door' })).toBeVisible();
  await inspect(page, 'a rule of one device');
  await accept();
  await expect(page.getByRole('region', { name: 'In the service' })).toContainText('events with device Cellar door');
  await person.call('DELETE', `/tenant/devices/${deviceInstanceId}`);
  await tabTo(page, 'Move rule 1 down');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('button', { name: 'Move rule 2 up' }), 'the focus stays with the rule that moves').toBeFocused();
  const lost = page.getByRole('region', { name: 'Dropped data' });
  await expect(lost).toContainText('Events with company Apple (004c): hubs drop them');
  await tabTo(page, 'Save the route');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog')).toContainText('hubs aggregate them into one event per device every 1 min');
  await page.getByRole('dialog').getByRole('button', { name: 'Save the route' }).click();
  await expect(page.getByText(/Not saved: a rule is not valid/)).toBeVisible();
  await expect(page.getByRole('region', { name: 'In the service' }).getByRole('listitem')).toContainText('Device: ');
  await inspect(page, 'a route that is refused');
  expect((await person.call('GET', '/tenant/ble/route')).revision).toBe(0);

  await page.getByRole('region', { name: 'In the service' }).getByRole('button', { name: 'Delete rule 1' }).click();
  await page.getByRole('link', { name: 'Fleet' }).click();
  await expect(page.getByText('The route is not saved')).toBeVisible();
  await page.goBack();
  await page.getByLabel('Default action').selectOption('DROP');
  await expect(lost).toContainText('Events that match no rule: hubs drop them');
  await page.getByRole('button', { name: 'Save the route' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save the route' }).click();
  await expect(page.getByText('The route was saved')).toBeVisible();
  const { rules, otherwise } = await person.call('GET', '/tenant/ble/route');
  expect([otherwise, rules.map(({ action }: { action: string }) => action)]).toEqual(['DROP', ['WINDOW', 'DROP']]);

  // Somebody else changes it: nobody's change is lost.
  await person.call('PUT', '/tenant/ble/route', { rules: [], otherwise: 'FORWARD' });
  await page.getByRole('button', { name: 'Delete rule 1' }).click();
  await page.getByRole('button', { name: 'Save the route' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save the route' }).click();
  await expect(page.getByText(/Somebody else has changed the route/)).toBeVisible();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Discard changes' }).click();
  await expect(page.getByText('None: hubs send all events')).toBeVisible();
  await safe(page, 'route');
});
