//! Hubs are placed on a floor plan and a device is looked for, by keyboard and by pointer.

import { drawing } from './drawing';
import { address, expect, HOSTILE, inspect, safe, signIn, tabTo, test } from './harness';

const SAVED = 'All changes are saved';

test('a plan is made and hubs are placed', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [one, other, third] = await person.claim([HOSTILE, 'Cellar', 'Roof']);
  if (!one || !other || !third) throw new Error('no hubs');
  await page.goto(person.page('/floor-plans'));
  await signIn(page, person);
  await expect(page.getByText('No floor plans yet')).toBeVisible();
  await inspect(page, 'no floor plans');

  await tabTo(page, 'New plan');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await tabTo(page, 'Create the plan');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText('Must not be empty'), 'beside the name').toBeVisible();
  await expect(dialog.getByLabel('Name')).toBeFocused();
  await page.keyboard.type(HOSTILE);
  await dialog.getByLabel('Width in metres').fill('wide');
  await dialog.getByLabel('Image').setInputFiles({ name: 'plan.png', mimeType: 'image/png', buffer: Buffer.from('<svg/>') });
  await page.keyboard.press('Enter');
  await expect(dialog.getByText(/number of metres/)).toBeVisible();
  await inspect(page, 'a plan that is refused');
  await dialog.getByLabel('Width in metres').fill('41,5');
  await page.keyboard.press('Enter');
  await expect(dialog.getByText(/must be a PNG, JPEG or WebP image/i)).toBeVisible();
  await dialog.getByLabel('Image').setInputFiles({ name: 'plan.png', mimeType: 'image/png', buffer: drawing(800, 500) });
  await tabTo(page, 'Create the plan');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: HOSTILE })).toBeVisible();
  await expect(page.getByText('41.5 m wide')).toBeVisible();
  expect(await person.call('GET', '/tenant/floor-plans'), 'a second try makes no second plan').toHaveLength(1);
  await expect(page.locator('.area img')).toHaveJSProperty('naturalWidth', 800);

  // By keyboard: placed from the list, moved with the arrow keys.
  await tabTo(page, 'Place Cellar');
  await page.keyboard.press('Enter');
  const cellar = page.locator(`[data-hub="${other.uuid}"]`);
  await expect(cellar).toBeFocused();
  for (const key of ['Shift+ArrowLeft', 'Shift+ArrowLeft', 'ArrowRight', 'ArrowUp']) await page.keyboard.press(key);
  await expect(cellar).toHaveAccessibleName('Cellar, 31 % from the left, 49 % from the top');
  await expect(page.getByText(SAVED)).toBeVisible();
  const read = async () => (await person.call('GET', '/tenant/floor-plans'))[0];
  expect((await read()).hubs).toEqual([{ hubUuid: other.uuid, x: 0.31, y: 0.49 }]);

  // By pointer.
  await page.getByRole('button', { name: `Place ${HOSTILE}` }).click();
  const dragged = page.locator(`[data-hub="${one.uuid}"]`);
  const [from, area] = [await dragged.boundingBox(), await page.locator('.area').boundingBox()];
  if (!from || !area) throw new Error('nothing to drag');
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(area.x + area.width * 0.6, area.y + area.height * 0.3, { steps: 4 });
  await page.mouse.move(area.x + area.width * 2, area.y + area.height * 0.25, { steps: 4 });
  await page.mouse.up();
  await expect(dragged).toHaveAccessibleName(/100 % from the left, 25(\.\d)? % from the top/);
  await page.getByRole('button', { name: 'Place Roof' }).click();
  await expect(page.getByText('All hubs are on the plan')).toBeVisible();
  await expect(page.getByText(SAVED)).toBeVisible();
  expect((await read()).hubs).toHaveLength(3);
  await page.keyboard.press('Delete');
  await expect(page.getByText('2 hubs on the plan')).toBeVisible();
  await expect(page.getByText(SAVED)).toBeVisible();
  await page.reload();
  await expect(cellar, 'it stays where it was put').toHaveAccessibleName('Cellar, 31 % from the left, 49 % from the top');
  await inspect(page, 'a plan with hubs');
  // On a phone, hubs keep their names.
  await page.setViewportSize({ width: 320, height: 800 });
  for (const name of [HOSTILE, 'Cellar']) await expect(page.locator('[data-hub]').getByText(name, { exact: true })).toBeVisible();
  await page.setViewportSize({ width: 1280, height: 800 });
  await safe(page, 'floor plans');
});

test('who may look on sees a plan, and one that is deleted is gone', async ({ watched: page, service }) => {
  page.expected.push(/^404 GET \/tenant\/floor-plans\//);
  const person = await (await service.person()).createTenant('Warehouse');
  const [hub] = await person.claim(['Cellar']);
  if (!hub) throw new Error('no hub');
  const plan = await person.call('POST', '/tenant/floor-plans', { name: 'Hall', hubs: [{ hubUuid: hub.uuid, x: 0.2, y: 0.2 }] });
  const guest = await service.person();
  await person.call('POST', `/tenant/tenants/${person.tenant}/members`, { personaUuid: guest.personaUuid, role: 'VIEWER' });
  const path = `/floor-plans/${plan.floorPlanUuid}`;
  await page.goto(person.page(path));
  await signIn(page, guest);
  await expect(page.getByRole('heading', { name: 'Hall' })).toBeVisible();
  const cellar = page.getByRole('button', { name: /^Cellar, 20 % from the left/ });
  await cellar.focus();
  await page.keyboard.press('ArrowRight');
  await expect(cellar, 'who may not move it does not').toBeVisible();
  await expect(page.getByRole('button', { name: /Delete|Edit|Place|from the plan/ })).toHaveCount(0);

  // As its owner, in the same browser.
  await page.context().clearCookies();
  await page.goto(person.page(path));
  await signIn(page, person);
  await tabTo(page, 'Delete');
  await page.keyboard.press('Enter');
  await expect(page.getByText('This cannot be undone.')).toBeVisible();
  await inspect(page, 'what deleting a plan does');
  await tabTo(page, 'Delete the plan');
  await page.keyboard.press('Enter');
  await expect(page.getByText('No floor plans yet')).toBeVisible();
  await page.goto(person.page(path));
  await expect(page.getByText('Floor plan not found')).toBeVisible();
  await safe(page, 'a plan that is gone');
});

test('a device is nearer to the hub that hears it better', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const [one, other, third] = await person.claim([HOSTILE, 'Cellar', 'Roof']);
  if (!one || !other || !third) throw new Error('no hubs');
  const model = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const device = await person.call('POST', '/tenant/devices', { deviceUuid: model.deviceUuid, name: HOSTILE, address: address(1) });
  const placed = [{ hubUuid: other.uuid, x: 0.31, y: 0.49 }, { hubUuid: one.uuid, x: 1, y: 0.25 }];
  await person.call('POST', '/tenant/floor-plans', { name: 'Without hubs' });
  const { floorPlanUuid } = await person.call('POST', '/tenant/floor-plans', { name: 'Hall', hubs: placed });
  const headers = { authorization: `Bearer ${person.token}`, 'x-tenant-uuid': person.tenant };
  await fetch(`${service.url}/tenant/floor-plans/${floorPlanUuid}/image`, { method: 'PUT', headers, body: new Uint8Array(drawing(800, 500)) });
  for (const [hub, rssi] of [[other, -50], [one, -70], [third, -80]] as const) await hub.hear([{ address: address(1), rssi }]);
  await page.goto(person.page(`/floor-plans?device=${device.deviceInstanceId}`));
  await signIn(page, person);
  await expect(page).toHaveURL(/floor-plans\/[0-9a-f-]+\?device=/);
  const where = page.getByRole('region', { name: 'Find a device on the plan' });
  await expect(where).toContainText('Two hubs on this plan received it');
  await expect(where).toContainText('Estimated from signal strength');
  await expect(where.getByRole('row', { name: /Roof/ })).toContainText('(not on this plan)');
  const spot = await page.locator('.spot').textContent();
  const left = Number(/([\d.]+) % from the left/.exec(spot ?? '')?.[1]);
  // A tenth of the weight of one at -50 dBm has one at -70.
  expect(left, 'between the hubs, by their weights').toBeCloseTo((31 + 0.1 * 100) / 1.1, 0);
  await inspect(page, 'where a device is');
  await page.getByLabel('Heard within').selectOption('15m');
  await expect(page).toHaveURL(/span=15m/);
  await tabTo(page, 'Select another device');
  await page.keyboard.press('Enter');
  await tabTo(page, HOSTILE);
  await safe(page, 'where a device is');
});
