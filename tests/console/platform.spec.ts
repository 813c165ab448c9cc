//! Platform administration: each page's main task by keyboard alone.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { expect, HOSTILE, inspect, type Person, safe, type Service, signIn, tabTo, test } from './harness';

test.use({ settings: ['--require-approval'] });
test.describe.configure({ mode: 'serial' });

let admin: Person;
let tenant: Person;

const at = (service: Service, path: string) => `${service.url}/console/platform${path}`;
const oauth = { authorize_url: 'https://login.example.com/authorize', token_url: 'https://login.example.com/token', client_id: 'hub', scope: 'devices' };

/** Files of a release that the service trusts: the file itself, its manifest and its signature. */
function release(service: Service, version: string, counter: number): string {
  const folder = join(service.data, 'release-keys', 'agent');
  mkdirSync(folder, { recursive: true });
  const key = join(service.data, 'agent');
  if (counter === 1) {
    service.run(['release', 'keygen', '--no-password', '--out', key]);
    writeFileSync(join(folder, 'agent.pub'), readFileSync(`${key}.pub`));
  }
  const file = join(service.data, `hub-agent-${version}`);
  writeFileSync(file, `agent ${version}`);
  const name = ['--kind', 'agent', '--name', 'hub-agent', '--version', version, '--architecture', 'any', '--counter', String(counter)];
  service.run(['release', 'sign', '--key', `${key}.key`, ...name, file]);
  return file;
}

test('tenants get limits, and their hubs are blocked and released', async ({ watched: page, service }) => {
  admin = await service.admin();
  tenant = await (await service.person()).createTenant(HOSTILE);
  await (await service.person()).createTenant('Warehouse');
  const [hub] = await tenant.claim([`Attic ${HOSTILE}`, 'Cellar']);
  if (!hub) throw new Error('no hub');

  // Who is no administrator is offered nothing of it.
  await page.goto(at(service, '/tenants'));
  await signIn(page, tenant);
  await expect(page.getByRole('heading', { name: 'Page not found' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'Tenants' })).toHaveCount(0);
  await page.evaluate(() => fetch('/auth/session', { method: 'DELETE' }));
  await page.reload();

  await page.goto(`${service.url}/console`);
  await signIn(page, admin);
  await expect(page.getByRole('heading', { name: 'Platform', exact: true, level: 1 })).toBeVisible();
  await expect(page.getByRole('link', { name: /^Hubs online/ })).toContainText('of 2');
  await inspect(page, 'the platform');
  await tabTo(page, 'Clear the cache');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Permissions themselves do not change.')).toBeVisible();
  await tabTo(page, 'Close');
  await page.getByRole('dialog').getByRole('button', { name: 'Clear the cache' }).press('Enter');
  await expect(page.getByText('The permission cache was cleared')).toBeVisible();
  expect((await admin.call('GET', '/platform/audit-logs?objectType=permission_cache')).totalElements).toBe(1);

  await tabTo(page, 'Tenants', 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('link', { name: HOSTILE })).toBeVisible();
  await inspect(page, 'tenants');
  await tabTo(page, 'Find tenants', 'combobox');
  await page.keyboard.type('nobody');
  await expect(page.getByText('No tenant has this name or id')).toBeVisible();
  await page.keyboard.press('Control+a');
  await page.keyboard.type('onerror');
  await expect(page.getByText('1 tenant found')).toBeVisible();
  await tabTo(page, HOSTILE, 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByText('2 in use.')).toBeVisible();
  await inspect(page, 'a tenant');

  await tabTo(page, 'Hubs', 'textbox');
  await page.keyboard.type('many');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('textbox', { name: 'Hubs', exact: true }), 'what is wrong is said beside its field').toHaveAccessibleDescription(/Enter a whole number from 0/);
  await expect(page.getByRole('textbox', { name: 'Hubs', exact: true })).toBeFocused();
  await page.keyboard.press('Control+a');
  await page.keyboard.type('2');
  await tabTo(page, 'Stored records', 'textbox');
  await page.keyboard.type('20 GiB');
  await tabTo(page, 'BLE events', 'textbox');
  await page.keyboard.type('7');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('Stored records: 20 GiB instead of the default.');
  await expect(dialog).toContainText('This cannot be undone.');
  await inspect(page, 'what limits change');
  await dialog.getByRole('button', { name: 'Change the limits' }).press('Enter');
  await expect(page.getByText('The limits were changed.')).toBeVisible();
  await page.reload();
  await expect(page.getByLabel('Stored records')).toHaveValue('20 GiB');
  const { limits } = await admin.call('GET', `/platform/tenants/${tenant.tenant}`);
  expect([limits.hubs, limits.storedBytes, limits.retentionDays.bleEvents, limits.apiKeys]).toEqual([2, 20 * 2 ** 30, 7, null]);

  await tabTo(page, 'All hubs', 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByText('2 hubs, released ones included')).toBeVisible();
  await inspect(page, 'hubs of all tenants');
  await tabTo(page, /^Attic/, 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: `Attic ${HOSTILE}`, level: 1 })).toBeVisible();
  await tabTo(page, 'Block');
  await page.keyboard.press('Enter');
  await expect(dialog).toContainText('All its tokens are revoked immediately');
  await tabTo(page, 'Block the hub');
  await page.keyboard.press('Enter');
  await expect(page.getByText('blocked', { exact: true })).toBeVisible();
  await expect(hub.telemetry({ agentVersion: '1.5.0' })).rejects.toThrow(/40[13]/);
  await tabTo(page, 'Unblock');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Unblock the hub');
  await page.keyboard.press('Enter');
  await expect(page.getByText('The hub can claim again.')).toBeVisible();
  await inspect(page, 'a hub of a tenant');
  await tabTo(page, 'Release');
  await page.keyboard.press('Enter');
  await expect(dialog).toContainText('This cannot be undone.');
  const confirmation = await dialog.elementHandle();
  await tabTo(page, 'Release the hub');
  await page.keyboard.press('Enter');
  await expect(page.getByText(/It can no longer be managed/)).toBeVisible();
  await expect(page.getByRole('button', { name: 'Block' })).toHaveCount(0);
  // A busy browser reports the close of a dialog after the page has removed it.
  await confirmation?.evaluate((closed) => closed.dispatchEvent(new Event('close')));
  await safe(page, 'tenants and hubs');
});

test('releases are published, and rolled out, halted and aborted', async ({ watched: page, service }) => {
  const [hub] = await tenant.claim(['Roof']);
  if (!hub) throw new Error('no hub');
  await page.goto(at(service, '/agent-releases'));
  await signIn(page, admin);
  await expect(page.getByText('No releases yet')).toBeVisible();
  await tabTo(page, 'Publish a release');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Publish the release' }).press('Enter');
  await expect(page.getByLabel('Manifest')).toHaveAccessibleDescription(/Select the manifest/);
  await inspect(page, 'publishing a release');
  const file = release(service, '1.5.0', 1);
  await page.getByLabel('Manifest').setInputFiles(`${file}.manifest.json`);
  await expect(dialog).toContainText('hub-agent 1.5.0');
  await page.getByLabel('Signature').setInputFiles({ name: 'x.minisig', mimeType: 'text/plain', buffer: Buffer.from('no signature') });
  await page.getByLabel('File', { exact: true }).setInputFiles(file);
  await dialog.getByRole('button', { name: 'Publish the release' }).press('Enter');
  await expect(page.getByLabel('Signature'), 'the service says what is wrong with it').toHaveAttribute('aria-invalid', 'true');
  await page.getByLabel('Signature').setInputFiles(`${file}.manifest.json.minisig`);
  await page.getByLabel('Channel').last().fill('beta');
  await page.keyboard.press('Enter');
  await expect(page.getByText('hub-agent 1.5.0 (any) is published.')).toBeVisible();
  await expect(page.getByText('active', { exact: true })).toBeVisible();

  await tabTo(page, /Move hub-agent 1.5.0/);
  await page.keyboard.press('Enter');
  await dialog.getByLabel('Channel').fill('not a channel!');
  await page.keyboard.press('Enter');
  await expect(dialog.getByLabel('Channel')).toHaveAttribute('aria-invalid', 'true');
  await dialog.getByLabel('Channel').fill('stable');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('cell', { name: 'stable' })).toBeVisible();
  await tabTo(page, /Set the end of support of hub-agent 1.5.0/);
  await page.keyboard.press('Enter');
  await dialog.getByLabel('Supported until').fill('soon');
  await page.keyboard.press('Enter');
  await expect(dialog.getByLabel('Supported until')).toHaveAttribute('aria-invalid', 'true');
  await dialog.getByLabel('Supported until').fill('2020-01-31');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('cell', { name: /^2020-01-31\s*ended$/ })).toBeVisible();
  // A release whose upload was interrupted.
  const later = release(service, '1.6.0', 2);
  const [manifest, signature] = ['', '.minisig'].map((end) => readFileSync(`${later}.manifest.json${end}`, 'utf8'));
  await admin.call('POST', '/platform/agent-releases', { channel: 'stable', manifest, signature, active: false });
  await page.reload();
  await tabTo(page, /Upload the file of hub-agent 1.6.0/);
  await page.keyboard.press('Enter');
  await dialog.getByLabel('File').setInputFiles(file);
  await dialog.getByRole('button', { name: 'Upload the file' }).press('Enter');
  await expect(dialog.getByLabel('File')).toHaveAttribute('aria-invalid', 'true');
  await dialog.getByLabel('File').setInputFiles(later);
  await dialog.getByRole('button', { name: 'Upload the file' }).press('Enter');
  await expect(page.getByText('not active')).toBeVisible();
  await inspect(page, 'releases');

  await tabTo(page, 'Update policies', 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByText('No update policies yet')).toBeVisible();
  await tabTo(page, 'Create a policy');
  await page.keyboard.press('Enter');
  await page.getByLabel('Channel').fill('');
  await page.getByLabel('First wave').fill('200');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('First wave')).toHaveAttribute('aria-invalid', 'true');
  await inspect(page, 'a policy that is refused');
  await page.getByLabel('Channel').fill('stable');
  await page.getByLabel('First wave').fill('20');
  await page.getByLabel('Each further wave').fill('40');
  await page.keyboard.press('Enter');
  await expect(page.getByText('The policy was saved.')).toBeVisible();
  await expect(page.getByText('Wave 1 of 3: 20 % of the hubs')).toBeVisible();
  await inspect(page, 'a rollout that runs');
  for (const [verb, effect, state] of [
    ['Halt', 'Affects the hubs of all tenants', 'halted'],
    ['Resume', 'Previous failures no longer count', 'running'],
    ['Abort', 'It cannot be resumed', 'aborted'],
  ] as const) {
    await tabTo(page, verb);
    await page.keyboard.press('Enter');
    await expect(dialog).toContainText(effect);
    await tabTo(page, `${verb} the rollout`);
    await page.keyboard.press('Enter');
    await expect(page.getByText(state, { exact: true })).toBeVisible();
  }
  await expect(page.getByRole('button', { name: 'Halt' })).toHaveCount(0);

  await page.goto(at(service, `/hubs/${hub.uuid}`));
  await tabTo(page, 'Update agent');
  await page.keyboard.press('Enter');
  await expect(dialog).toContainText('The agent restarts');
  await dialog.getByLabel('Release', { exact: true }).selectOption({ label: '1.5.0 (stable, any)' });
  await dialog.getByLabel('Days until the job expires').fill('soon');
  await page.keyboard.press('Enter');
  await expect(dialog.getByLabel('Days until the job expires')).toHaveAccessibleDescription(/Enter a number of days/);
  await inspect(page, 'updating a hub');
  await dialog.getByLabel('Days until the job expires').fill('0.5');
  await tabTo(page, 'Update the hub');
  await page.keyboard.press('Enter');
  await expect(page.getByText('A job was created to update the hub to 1.5.0.')).toBeVisible();
  const jobs = await tenant.call('GET', `/tenant/hubs/${hub.uuid}/jobs`);
  // The rollout may have given the hub a job of its own before.
  const own = jobs.filter(({ policyUuid }: any) => !policyUuid);
  expect(own.map(({ type, version }: any) => [type, version])).toEqual([['SELF_UPDATE', '1.5.0']]);
  await safe(page, 'releases and policies');
});

test('the platform configures a supplier', async ({ watched: page, service }) => {
  const platform = await service.admin();
  const supplier = await (await service.person()).createTenant('Supplier');
  await page.goto(at(service, '/supplier-approvals'));
  await signIn(page, platform);
  await tabTo(page, 'Configure a supplier');
  await page.keyboard.press('Enter');
  await expect(page.getByText('takes effect immediately, without approval', { exact: false })).toBeVisible();
  const fill = async (label: string, text: string) => {
    await tabTo(page, label, 'textbox');
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.type(text);
  };
  await fill('Tenant id', 'nobody');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('Tenant id')).toHaveAttribute('aria-invalid', 'true');
  await inspect(page, 'a supplier that is refused');
  await fill('Tenant id', supplier.tenant);
  await fill('Authorize URL', oauth.authorize_url);
  await fill('Token URL', oauth.token_url);
  await fill('Client id', HOSTILE);
  await fill('Scope', oauth.scope);
  await page.getByLabel('Client secret').fill('a secret of the client');
  await page.keyboard.press('Enter');
  await expect(page.getByText('The configuration is active.')).toBeVisible();
  await expect(page.getByText('No changes to review')).toBeVisible();
  expect(await supplier.call('GET', '/tenant/supplier-oauth-config')).toMatchObject({ ...oauth, client_id: HOSTILE, clientSecretSet: true, approvalStatus: 'APPROVED' });
  expect(await page.content()).not.toContain('a secret of the client');
  await safe(page, 'a supplier that the platform configured');
});

test('suppliers are listed, approved and audited', async ({ watched: page, service }) => {
  const supplier = await (await service.person()).createTenant(`Supplier ${HOSTILE}`);
  await admin.call('PUT', '/platform/supplier-oauth-configs', { supplier_uuid: supplier.tenant, ...oauth });
  await supplier.claim(['Gate']);
  for (const client_id of [HOSTILE, 'mine']) await supplier.call('PUT', '/tenant/supplier-oauth-config', { ...oauth, client_id, client_secret: 'a secret of the client' });
  const model = await supplier.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const device = await supplier.call('POST', '/tenant/devices', { deviceUuid: model.deviceUuid, name: HOSTILE, address: 'C0:00:00:00:00:01' });
  await supplier.call('POST', `/tenant/devices/${device.deviceInstanceId}/activate`);

  await page.goto(at(service, '/supplier-approvals'));
  await signIn(page, admin);
  const change = page.getByRole('region', { name: /What change/ });
  await expect(change).toContainText('mine');
  await expect(change, 'what does not change is not shown').not.toContainText('authorize');
  await expect(change).toContainText('changed (hidden)');
  await inspect(page, 'changes that wait');
  await tabTo(page, /Approve change/);
  await page.keyboard.press('Enter');
  await expect(page.getByText('It replaces the current configuration immediately', { exact: false })).toBeVisible();
  await tabTo(page, 'Close');
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).press('Enter');
  await expect(page.getByText('No changes to review')).toBeVisible();
  expect((await supplier.call('GET', '/tenant/supplier-oauth-config')).client_id).toBe('mine');
  await supplier.call('PUT', '/tenant/supplier-oauth-config', { ...oauth, client_id: HOSTILE });
  await page.reload();
  await expect(change).toContainText(HOSTILE);
  await tabTo(page, /Reject change/);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).press('Enter');
  await expect(page.getByText('No changes to review')).toBeVisible();
  expect((await supplier.call('GET', '/tenant/supplier-oauth-config')).approvalStatus).toBe('REJECTED');

  await tabTo(page, 'Registration events', 'link');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Failed');
  await page.keyboard.press('Enter');
  await expect(page.getByText('No failed events'), 'a tenant without a receiver is no failure').toBeVisible();
  await tabTo(page, 'No receiver');
  await page.keyboard.press('Enter');
  await expect(page.getByText('no registration_url is configured').first()).toBeVisible();
  await page.getByLabel('Type').selectOption('device.registered');
  await expect(page).toHaveURL(/status=NONE&type=device.registered/);
  await expect(page.getByText('1 event with this filter')).toBeVisible();
  await page.getByLabel('Id of a tenant').fill('nobody');
  await page.keyboard.press('Enter');
  await expect(page.getByText('“nobody” is ignored')).toBeVisible();
  await inspect(page, 'registration events');
  await tabTo(page, /Open event/);
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText(`"deviceInstanceId": ${device.deviceInstanceId}`);
  await inspect(page, 'a registration event');
  const [before] = await admin.call('GET', '/platform/registration-events?eventType=device.registered');
  await dialog.getByRole('button', { name: 'Send again' }).press('Enter');
  await expect(dialog).toContainText('with up to ten attempts');
  await dialog.getByRole('button', { name: 'Send again' }).press('Enter');
  await expect(page.getByText('The event will be sent again shortly.')).toBeVisible();
  expect(before.status).toBe('FAILED');

  await tabTo(page, 'Activations', 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByText('a person or an API key')).toBeVisible();
  await inspect(page, 'activations');

  await tabTo(page, 'Global audit log', 'link');
  await page.keyboard.press('Enter');
  await tabTo(page, 'Filter the log', 'combobox');
  await page.keyboard.type('action:registration_event.retry actor:nobody since:1d');
  await expect(page.getByText('1 entry with this filter, latest first')).toBeVisible();
  await expect(page.getByText(/actor:nobody is ignored/)).toBeVisible();
  await expect(page.getByRole('row', { name: /registration_event\.retry/ }), 'people have names').toContainText(admin.email);
  await inspect(page, 'the audit log');
  await tabTo(page, /^Details of/);
  await page.keyboard.press('Enter');
  await expect(dialog).toContainText('registration_event');
  await inspect(page, 'an entry of the audit log');
  await page.keyboard.press('Escape');
  await page.getByLabel('Filter the log').fill('object:tenant');
  await expect(page).toHaveURL(/q=object%3Atenant/);
  await expect(page.getByText('tenant.set_limits')).toBeVisible();
  const stored = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).press('Enter');
  const csv = readFileSync(await (await stored).path(), 'utf8');
  expect(csv).toContain('tenant.set_limits');
  expect(csv).toContain(admin.email);
  expect(csv).not.toContain('hub.claim');
  await safe(page, 'suppliers and audit');

  // The right is revoked while the page is open.
  page.expected.push(/^401 GET \/platform\//);
  service.run(['admin', 'revoke', '--data-dir', service.data, '--email', admin.email]);
  await page.getByRole('button', { name: 'Refresh' }).press('Enter');
  await expect(page.getByText('Your session has ended. Sign in to continue.')).toBeVisible();
  await signIn(page, admin);
  await expect(page.getByRole('heading', { name: 'Page not found' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'Global audit log' })).toHaveCount(0);
});
