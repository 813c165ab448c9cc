//! A tenant is managed: its people, its keys, what changed, and the tenant itself.

import { readFileSync } from 'node:fs';
import { expect, HOSTILE, inspect, safe, signIn, tabTo } from './harness';
import { dialog, expectError, named, press, test } from './managed';

test('people are invited, given a role and removed', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const other = await named(service, '<img src=x onerror="window.hacked=1">');
  await page.goto(owner.page('/members'));
  await signIn(page, owner);
  await expect(page.getByText('last owner')).toBeVisible();

  await press(page, 'Invite');
  await tabTo(page, 'E-mail', 'textbox');
  await page.keyboard.type('nobody');
  await page.keyboard.press('Enter');
  await expectError(page, 'E-mail', /e-mail/);
  await inspect(page, 'an invitation that is refused');
  await page.getByLabel('E-mail').fill('new@example.com');
  await page.keyboard.press('Enter');
  await expect(page.getByText('The invitation for new@example.com was sent.')).toBeVisible();

  await press(page, 'Invite');
  await tabTo(page, 'Invite', 'combobox');
  await page.keyboard.type('An existing');
  await tabTo(page, 'Persona id', 'textbox');
  await page.keyboard.type(other.personaUuid);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('cell', { name: /^<img src=x/ })).toBeVisible();
  const role = async () => (await owner.call('GET', '/tenant/personas')).members.find((one: { email: string }) => one.email === other.email)?.role;
  expect(await role()).toBe('VIEWER');
  await inspect(page, 'members');

  await press(page, /^Change the role of <img/);
  await page.getByRole('radio', { name: /^VIEWER/ }).focus();
  await page.keyboard.press('ArrowDown');
  await expect(page.getByRole('radio', { name: /^EDITOR/ })).toBeChecked();
  await inspect(page, 'what another role means');
  await press(page, 'Change the role');
  await expect(page.getByText(/is now EDITOR/)).toBeVisible();
  expect(await role()).toBe('EDITOR');
  await press(page, /^Remove <img/);
  await press(page, 'Remove the member');
  await expect(page.getByText(/is no longer a member/)).toBeVisible();
  expect(await role()).toBeUndefined();

  await press(page, 'Invitations (1)', 'link');
  await expect(page.getByText('pending', { exact: true })).toBeVisible();
  await inspect(page, 'invitations');
  await press(page, 'Send the invitation for new@example.com again');
  await press(page, 'Send it again');
  await expect(page.getByText('The invitation for new@example.com was sent again.')).toBeVisible();
  await press(page, 'Revoke the invitation for new@example.com');
  await press(page, 'Revoke the invitation');
  await expect(page.getByText('No open invitations')).toBeVisible();
  expect((await owner.call('GET', '/tenant/personas')).invitations).toEqual([]);
  await safe(page, 'members');
});

test('a key is created, shown once, changed and revoked', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  await page.goto(owner.page('/api-keys'));
  await signIn(page, owner);
  await expect(page.getByText('No API keys yet')).toBeVisible();
  await press(page, 'Create the first key');
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.type(HOSTILE);
  await page.keyboard.press('Enter');
  await expect(page.getByText(/must name at least one scope/)).toBeVisible();
  await inspect(page, 'a key without scopes');
  await page.getByLabel('hubs:read').focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  await expect(page.getByText('it is shown only once')).toBeVisible();
  const key = (await page.getByRole('group', { name: 'API key' }).locator('code').textContent()) ?? '';
  await inspect(page, 'the key');
  const use = () => fetch(`${service.url}/tenant/hubs`, { headers: { 'x-api-key': key, 'x-tenant-uuid': owner.tenant } }).then(({ status }) => status);
  expect(await use()).toBe(200);
  await press(page, 'I have copied it');
  await expect(page.getByText(key), 'it is gone').toHaveCount(0);
  await expect(page.getByRole('cell', { name: 'hubs:read' })).toBeVisible();

  await press(page, /^Change <img/);
  await dialog(page).getByLabel('Name').fill('ERP');
  await dialog(page).getByLabel('Requests per minute').fill('0');
  await page.keyboard.press('Enter');
  await expectError(page, 'Requests per minute', /between 1 and 100000/);
  await dialog(page).getByLabel('Requests per minute').fill('50');
  await page.getByLabel('devices:write').check();
  await press(page, 'Save');
  await expect(page.getByText('ERP was changed.')).toBeVisible();
  expect(await owner.call('GET', '/tenant/api-keys')).toMatchObject([{ name: 'ERP', scopes: ['hubs:read', 'devices:write'], rateLimitPerMinute: 50 }]);
  await inspect(page, 'API keys');
  await press(page, 'Revoke ERP');
  await press(page, 'Revoke the key');
  await expect(page.getByText('No API keys yet')).toBeVisible();
  expect(await use()).toBe(401);
});

test('the audit log shows names, in few requests', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const hubs = await owner.claim(Array.from({ length: 30 }, (_, index) => `Roof ${index}`));
  const [hub] = hubs;
  if (!hub) throw new Error('no hub');
  const { pipelineUuid } = await owner.call('POST', '/tenant/data-pipelines', { name: HOSTILE, source: { hubUuids: [hub.uuid] }, destination: { kind: 'HTTP', url: 'https://localhost/' } });
  const key = await owner.call('POST', '/tenant/api-keys', { name: 'ERP', scopes: ['hubs:*'] });
  await service.call('PATCH', `/tenant/hubs/${hub.uuid}`, { description: 'by the key' }, { 'x-api-key': key.apiKey, 'x-tenant-uuid': owner.tenant });
  await owner.call('DELETE', `/tenant/hubs/${hubs[1]?.uuid}`);
  await owner.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(owner.page('/audit'));
  await signIn(page, owner);
  const row = (action: string) => page.getByRole('row', { name: action }).first();

  await expect(row('pipeline.create').getByRole('link', { name: HOSTILE })).toHaveAttribute('title', pipelineUuid);
  await expect(row('pipeline.create')).toContainText(owner.email);
  await expect(row('hub.update')).toContainText('API key ERP');
  await expect(row('hub.update').getByRole('link', { name: 'Roof 0' })).toHaveAttribute('title', hub.uuid);
  await expect(row('hub.release'), 'a hub that is gone has the name that it had').toContainText('Roof 1');
  await expect(row('device_model.create').getByRole('link', { name: 'RuuviTag' })).toBeVisible();
  await expect(row('tenant.create')).toContainText('Warehouse');
  await expect(page.getByRole('row', { name: 'hub.claim' })).toHaveCount(30);
  await expect(page.getByRole('cell', { name: /^hub Roof 1$/ }), 'also where the hub is gone').toHaveCount(3);
  const names = asked.filter((path) => path.startsWith('/tenant/') && !/^\/tenant\/(tenants|audit-logs|personas)$/.test(path));
  expect([...new Set(names)].sort(), 'each list once, and no request for a row').toEqual(names.sort());
  expect(names.length, names.join(' ')).toBeLessThanOrEqual(5);

  await press(page, /^Details of hub.update/);
  await expect(dialog(page).getByText(hub.uuid)).toBeVisible();
  await expect(dialog(page).getByRole('button', { name: 'Copy' })).toBeVisible();
  await inspect(page, 'an entry with names');
  await page.keyboard.press('Escape');
  await press(page, /^Details of pipeline.create/);
  await expect(dialog(page), 'also where a value refers to an object').toContainText('hubUuids: Roof 0');
});

test('the audit log is filtered, read and stored', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  for (let number = 0; number < 60; number++) await owner.call('PATCH', `/tenant/tenants/${owner.tenant}`, { name: number % 2 ? HOSTILE : '=1+1' });
  await owner.claim(['Roof']);
  await page.goto(owner.page('/audit'));
  await signIn(page, owner);
  await expect(page.getByRole('cell', { name: 'hub.claim', exact: true })).toBeVisible();
  await expect(page.getByRole('row', { name: /tenant\.update/ }).first()).toContainText(HOSTILE);
  await inspect(page, 'the audit log');

  await tabTo(page, 'Filter the audit log', 'combobox');
  await page.keyboard.type(`person:${owner.email} action:tenant.update wheel:round `);
  await expect(page.getByText('60 entries match the filter')).toBeVisible();
  await expect(page.getByText(/“wheel” is not a filter/)).toBeVisible();
  await press(page, 'Next page');
  await expect(page.getByText('51–60 of 60')).toBeVisible();
  await page.reload();
  await expect(page.getByText('51–60 of 60'), 'the filter and the page are in the address').toBeVisible();
  const stored = page.waitForEvent('download');
  await press(page, 'CSV');
  const lines = readFileSync(await (await stored).path(), 'utf8').trim().split('\r\n');
  expect(lines).toHaveLength(61);
  await press(page, /^Details of tenant.update/);
  await expect(dialog(page)).toContainText(HOSTILE);
  await inspect(page, 'an entry');
  await press(page, 'All changes of this object');
  await expect(page).toHaveURL(new RegExp(`q=id%3A${owner.tenant}`));
  await expect(page.getByText('61 entries match the filter')).toBeVisible();
  await press(page, 'Hubs');
  await expect(page.getByText('No entries match this filter')).toBeVisible();
});

test('a tenant is renamed, offered and deleted', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const other = await service.person();
  await owner.call('POST', '/tenant/personas/invite', { personaUuid: other.personaUuid, role: 'ADMIN' });
  await page.goto(owner.page('/settings'));
  await signIn(page, owner);
  await expect(page.getByLabel('Name')).toHaveValue('Warehouse');
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.press('Control+a');
  await page.keyboard.type(HOSTILE);
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('Tenant', { exact: true })).toContainText(HOSTILE);

  await press(page, 'Transfer ownership');
  await tabTo(page, 'Offer the tenant');
  await page.keyboard.press('Enter');
  await expectError(page, /^To$/, /is required/);
  await inspect(page, 'an offer without a receiver');
  await page.getByLabel('To', { exact: true }).selectOption({ label: `${other.email} (ADMIN)` });
  await press(page, 'Offer the tenant');
  await expect(page.getByRole('region', { name: 'Offered to others' })).toContainText(HOSTILE);
  await inspect(page, 'settings');
  expect(await other.call('GET', '/tenant/transfer-requests/incoming')).toHaveLength(1);
  await press(page, /^Cancel the offer/);
  await dialog(page).getByRole('button', { name: 'Cancel the offer' }).click();
  await expect(page.getByText('No open offers')).toBeVisible();

  await press(page, 'Delete the tenant');
  await tabTo(page, 'Name of the tenant', 'textbox');
  await page.keyboard.type('Warehouse');
  await page.keyboard.press('Enter');
  await expectError(page, 'Name of the tenant', /type the name/i);
  await inspect(page, 'what deleting a tenant does');
  await page.getByLabel('Name of the tenant').fill(HOSTILE);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Your first tenant' })).toBeVisible();
  await safe(page, 'a deleted tenant');
});

test('a viewer is offered what a viewer may do', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const viewer = await service.person();
  await owner.call('POST', '/tenant/personas/invite', { personaUuid: viewer.personaUuid, role: 'VIEWER' });
  viewer.tenant = owner.tenant;
  await page.goto(viewer.page('/members'));
  await signIn(page, viewer);
  await press(page, 'Accept the membership');
  await expect(page.getByText('You accepted the membership.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Invite' })).toHaveCount(0);
  await expect(page.getByRole('link', { name: 'Bundles' })).toBeVisible();
  for (const name of ['API keys', 'Audit log', 'Supplier OAuth']) await expect(page.getByRole('link', { name })).toHaveCount(0);
  for (const path of ['/bundles', '/external-endpoints', '/consent', '/notification-settings', '/settings']) {
    await page.goto(viewer.page(path));
    await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
    await expect(page.getByRole('button', { name: /^(Create|New|Change|Tell|Offer|Delete|Rename)/ })).toHaveCount(0);
  }
  await page.goto(viewer.page('/audit'));
  await expect(page.getByText('You do not have permission to do this')).toBeVisible();

  await page.goto(viewer.page('/members'));
  await press(page, 'Leave the tenant');
  await dialog(page).getByRole('button', { name: 'Leave the tenant' }).focus();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Your first tenant' })).toBeVisible();
});
