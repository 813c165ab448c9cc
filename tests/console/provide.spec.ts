//! What a tenant provides: bundles, endpoints, notices, consent, its own systems; and its bill.

import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { expect, Hub, HOSTILE, inspect, signIn, tabTo } from './harness';
import { dialog, expectError, press, test } from './managed';

const listening = (server: Server) =>
  new Promise<number>((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)));

test('a bundle is drafted, published and archived', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  await owner.call('POST', '/tenant/device-catalog', { name: HOSTILE });
  await owner.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  await page.goto(owner.page('/bundles'));
  await signIn(page, owner);
  await press(page, 'Create the first bundle');
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.press('Enter');
  await expectError(page, 'Name', /must not be empty|required/i);
  await page.keyboard.type('Cold store');
  await page.getByLabel('Apply it to every hub').focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: 'Cold store' })).toBeVisible();

  await press(page, 'Choose device models');
  await press(page, 'Add');
  await expect(page.getByLabel('Device model', { exact: true })).toBeFocused();
  await page.keyboard.type('<img');
  await page.getByLabel('Devices at a hub').fill('0');
  await page.keyboard.press('Enter');
  await expectError(page, 'Devices at a hub', /between 1 and/);
  await inspect(page, 'the parts of a bundle');
  await page.getByLabel('Devices at a hub').fill('3');
  await page.keyboard.press('Enter');
  await expect(page.getByText('3 devices a hub')).toBeVisible();
  await press(page, 'Choose apps');
  await expect(page.getByText('The tenant has no apps yet.', { exact: false })).toBeVisible();
  await page.keyboard.press('Escape');
  await inspect(page, 'a draft');
  await press(page, 'Publish');
  await press(page, 'Publish the bundle');
  await expect(page.getByText('Cold store is published.')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Choose device models' })).toHaveCount(0);

  const [hub] = await owner.claim(['Roof']);
  await press(page, 'Archive');
  await page.getByRole('radio', { name: 'Remove' }).focus();
  await page.keyboard.press('Space');
  await expect(page.getByText(/Its contents are removed from hubs/)).toBeVisible();
  await page.getByRole('radio', { name: 'Keep' }).check();
  await inspect(page, 'what archiving does');
  await press(page, 'Archive the bundle');
  await expect(page.getByText('Cold store is archived.')).toBeVisible();
  expect(await owner.call('GET', '/tenant/supplier-bundles')).toMatchObject([{ status: 'ARCHIVED', deviceCount: 1 }]);
  await page.goto(owner.page(`/hubs/${hub?.uuid}?tab=apps`));
  await expect(page.getByText(`3 × ${HOSTILE}`), 'the hub tells what the bundle brought').toBeVisible();
  await page.goto(owner.page('/bundles?status=draft'));
  await expect(page.getByText('No bundle has this status')).toBeVisible();
  await press(page, 'Archived', 'link');
  await expect(page.getByRole('link', { name: 'Cold store' })).toBeVisible();
  await inspect(page, 'bundles');
});

test('the domain of an endpoint is proved', async ({ watched: page, service }) => {
  let proof = '';
  const server = createServer((request, response) => {
    response.statusCode = proof && request.url === '/.well-known/hub-verify.txt' ? 200 : 404;
    response.end(proof);
  });
  const port = await listening(server);
  const owner = await (await service.person()).createTenant('Warehouse');
  await page.goto(owner.page('/external-endpoints'));
  await signIn(page, owner);
  await press(page, 'Create the first endpoint');
  await tabTo(page, 'Name', 'textbox');
  await page.keyboard.type(HOSTILE);
  await page.getByLabel('Base URL').fill('ftp://example.com');
  await page.getByLabel('Domain verification').selectOption('WELL_KNOWN');
  await page.getByLabel('Credentials').selectOption('BEARER');
  await page.getByLabel('Token').fill('a secret of the endpoint');
  await page.keyboard.press('Enter');
  await expectError(page, 'Base URL', /http/);
  await inspect(page, 'an endpoint that is refused');
  await page.getByLabel('Base URL').fill(`http://127.0.0.1:${port}/api`);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: HOSTILE })).toBeVisible();
  await expect(page.getByText('a secret of the endpoint')).toHaveCount(0);
  await expect(page.getByRole('group', { name: 'Address of the file' })).toContainText(`http://127.0.0.1:${port}/.well-known/hub-verify.txt`);
  await press(page, 'Verify');
  await expect(page.getByText(/answered 404 and not 200/)).toBeVisible();
  await inspect(page, 'a proof that was not found');
  proof = (await page.getByRole('group', { name: 'Line of the file' }).locator('code').textContent()) ?? '';
  await press(page, 'Verify');
  await expect(page.getByText('The domain is verified.')).toBeVisible();

  await press(page, 'Edit');
  await dialog(page).getByLabel('Domain verification').selectOption('DNS_TXT');
  await dialog(page).getByLabel('Base URL').fill('http://example.com');
  await expect(page.getByText('A new base URL has to be verified again')).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page.getByRole('group', { name: 'Name of the record' })).toContainText('_hub-verify.example.com');
  expect((await owner.call('GET', '/tenant/external-endpoints'))[0]).toMatchObject({ domain_verified: false, authConfig: { type: 'BEARER' } });
  await press(page, 'Verify');
  await expect(page.getByRole('alert').filter({ hasText: 'Verification failed' }), 'the reason is shown').toContainText(/_hub-verify\.example\.com|DNS/);
  await inspect(page, 'a record that was not found');
  await press(page, 'External endpoints', 'link');
  await expect(page.getByText('verification failed', { exact: true })).toBeVisible();
  await inspect(page, 'endpoints');
  await press(page, HOSTILE, 'link');
  await press(page, 'Delete');
  await press(page, 'Delete the endpoint');
  await expect(page.getByText('No external endpoints yet')).toBeVisible();
  server.close();
});

for (const answer of ['Send e-mails', 'No e-mails']) {
  test(`where there is a mail server, the console asks once: ${answer}`, async ({ watched: page, service }) => {
    const owner = await (await service.person()).createTenant('Harbor');
    await page.goto(owner.page('/notification-settings'));
    await signIn(page, owner);
    const question = page.getByRole('heading', { name: 'Send notices by e-mail, too?' });
    await expect(question).toBeVisible();
    await inspect(page, 'the question about e-mails');
    await press(page, answer);
    await expect(question).toHaveCount(0);
    await page.reload();
    const receivers = page.getByRole('row').filter({ hasText: 'Hub offline' }).getByText('managers of the tenant');
    await expect(page.getByRole('row').filter({ hasText: 'Hub offline' })).toBeVisible();
    await expect(receivers).toHaveCount(answer === 'Send e-mails' ? 1 : 0);
    await expect(question, 'asked once').toHaveCount(0);
  });
}

test('people choose their notices, and read them', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  await page.goto(owner.page('/notification-settings'));
  await signIn(page, owner);
  const row = (notice: string) => page.getByRole('row').filter({ hasText: notice });
  await expect(row('Hub offline').getByText('on', { exact: true }), 'in the console without a setting').toHaveCount(1);
  await expect(row('Value out of range').getByText('on', { exact: true }), 'needs a bound').toHaveCount(0);

  await press(page, 'Change Hub offline');
  await page.getByLabel('From').fill('0');
  await page.getByRole('checkbox', { name: 'Webhook' }).focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Enter');
  await expectError(page, 'From', /from 1 to 10080/);
  await expectError(page, 'URL', /required/);
  await inspect(page, 'a setting that is refused');
  await page.getByLabel('From').first().fill('30');
  await page.getByLabel('URL').fill('https://example.com/hook');
  await page.keyboard.press('Enter');
  await expect(page.getByText('30 minutes')).toBeVisible();
  await expect(page.getByText('https://example.com/hook')).toBeVisible();
  await press(page, 'Change Value out of range');
  await page.getByRole('checkbox', { name: 'E-mail' }).check();
  await page.getByLabel('Above').fill('8.5');
  await page.keyboard.press('Enter');
  await expect(page.getByText('temperature above 8.5')).toBeVisible();
  await inspect(page, 'notification settings');

  // Notices come when something has lasted for minutes: these are the service's answers then.
  const notice = (notificationId: number, readAt: string | null) => ({ notificationId, type: 'HUB_OFFLINE', title: `Hub ${notificationId} is offline`, body: HOSTILE, severity: 'WARNING', tenantUuid: owner.tenant, hubUuid: randomUUID(), deviceInstanceId: null, readAt, createdAt: new Date().toISOString() });
  let read = false;
  await page.route('**/me/notifications?*', (route) => {
    const items = [notice(2, read ? new Date().toISOString() : null), notice(1, new Date().toISOString())];
    return route.fulfill({ json: { data: items }, headers: { 'x-total-count': '2' } });
  });
  await page.route('**/app/notifications/2/read', (route) => {
    read = route.request().method() === 'PUT';
    return route.fulfill({ json: { data: null } });
  });
  await page.goto(`${service.url}/console/notifications`);
  await expect(page.getByRole('link', { name: 'Notices, 1 unread' })).toBeVisible();
  await expect(page.getByRole('listitem').filter({ hasText: 'Hub 2 is offline' })).toContainText(HOSTILE);
  await inspect(page, 'notices');
  await press(page, 'Mark “Hub 2 is offline” as read');
  await expect(page.getByRole('link', { name: 'Notices, none unread' })).toBeVisible();
});

test('users are asked for consent', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  await page.goto(owner.page('/consent'));
  await signIn(page, owner);
  await expect(page.getByText('Consent is not set up yet')).toBeVisible();
  await press(page, 'Set up consent', 'link');
  await tabTo(page, 'Text', 'textbox');
  await page.keyboard.type(HOSTILE);
  await page.getByLabel('Required').uncheck();
  await page.getByLabel('Enforce').check();
  await press(page, 'Activate the version');
  await expectError(page, 'Title', /./);
  await expectError(page, 'Enforce', /needs a purpose that is required/);
  await inspect(page, 'a version that is refused');
  await page.getByLabel('Title').fill('To run the service');
  await page.getByLabel('Required').check();
  await press(page, 'Activate the version');
  await expect(page.getByRole('heading', { name: 'Version 1' })).toBeVisible();
  await expect(page.getByText(HOSTILE)).toBeVisible();
  await inspect(page, 'what users are asked');

  const user = await service.person();
  await user.call('POST', '/app/consent', { supplierUuid: owner.tenant, version: '1', purposes: ['service'] });
  await owner.call('POST', '/tenant/consent-settings', { version: '2', text: 'Another', purposes: [{ key: 'service', title: 'To run it', required: true }], enforce: false });
  await press(page, 'Records', 'link');
  await expect(page.getByText('outdated')).toBeVisible();
  await inspect(page, 'what users granted');
  await press(page, /^Receipt/);
  await expect(dialog(page).getByRole('group', { name: 'Receipt' })).toContainText(/^ey/);
  await page.keyboard.press('Escape');
  await page.getByRole('cell', { name: '1', exact: true }).getByRole('link').click();
  await expect(page.getByText('This version is not active.')).toBeVisible();
  await expect(page.getByText(HOSTILE)).toBeVisible();
});

test('mandates of users are listed, and a trade secret is kept from recipients', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const user = await service.person();
  const { claimCode } = await owner.call('POST', '/tenant/hubs/claim-codes', { ownerUserUuid: JSON.parse(Buffer.from(user.token.split('.')[1] ?? '', 'base64url').toString()).sub });
  await Hub.claim(service, claimCode, 'Roof');
  const until = new Date(Date.now() + 86_400_000).toISOString();
  const granted = await user.call('POST', '/app/mandates', { recipient: { name: HOSTILE }, until, form: 'PULL' });
  await page.goto(owner.page('/consent?tab=mandates'));
  await signIn(page, owner);
  await expect(page.getByText(HOSTILE)).toBeVisible();
  await expect(page.getByText('in force')).toBeVisible();
  await press(page, 'Add quantity');
  await tabTo(page, 'Quantity', 'textbox');
  await page.keyboard.type('vibration');
  await press(page, 'Save');
  await expectError(page, 'Reason', /./);
  await inspect(page, 'a trade secret without a reason');
  await page.getByLabel('Reason').fill(HOSTILE);
  await press(page, 'Save');
  await expect(page.getByRole('cell', { name: 'vibration', exact: true })).toBeVisible();
  await inspect(page, 'mandates and trade secrets');
  const [withheld] = (await user.call('GET', '/app/mandates'))[0].withheld;
  expect(withheld.reason).toBe(HOSTILE);
  await press(page, 'Remove vibration');
  await press(page, 'Remove');
  await expect(page.getByRole('cell', { name: 'vibration', exact: true })).toBeHidden();
  await user.call('DELETE', `/app/mandates/${granted.mandateUuid}`);
  await page.reload();
  await expect(page.getByText('ended by the person')).toBeVisible();
});

test('supplier OAuth is configured, and billing says what it is', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  await page.goto(owner.page('/supplier-oauth'));
  await signIn(page, owner);
  await press(page, 'Configure');
  await tabTo(page, 'Client secret', 'textbox');
  await page.keyboard.type('a secret of the client');
  await page.keyboard.press('Enter');
  await expectError(page, 'Client id', /./);
  await inspect(page, 'a configuration that is refused');
  for (const [label, text] of [['Authorize URL', 'https://id.example.com/authorize'], ['Token URL', 'https://id.example.com/token'], ['Client id', HOSTILE], ['Scope', 'openid']] as const) {
    await page.getByLabel(label).fill(text);
  }
  await press(page, 'Add a return URL');
  await page.keyboard.type('javascript:alert(1)');
  await page.keyboard.press('Enter');
  await expectError(page, 'Return URL 1', /URL with https/);
  await page.getByLabel('Return URL 1', { exact: true }).fill('com.example.app:/linked');
  await page.keyboard.press('Enter');
  await expect(page.getByText('set, never shown')).toBeVisible();
  await expect(page.getByText(HOSTILE)).toBeVisible();
  await expect(page.getByText('a secret of the client')).toHaveCount(0);
  await inspect(page, 'a configuration');
  await press(page, 'Delete');
  await press(page, 'Delete the configuration');
  await expect(page.getByText('No configuration yet')).toBeVisible();

  await page.goto(owner.page('/billing'));
  await expect(page.getByText('Billing is not set up')).toBeVisible();
  await inspect(page, 'no billing');
  const answers: Record<string, unknown> = {
    balance: { currentCreditCents: 1250, activeSubscription: null, lastInvoice: { number: HOSTILE } },
    entitlement: { tier: 'PRO', limits: { hubs: 100 } },
    transactions: { transactions: [{ createdAt: '2026-01-31T08:00:00Z', amountCents: -500, text: HOSTILE }] },
  };
  await page.route('**/tenant/setup', (route) => route.fulfill({ json: { data: { billing: true, consent: false, supplierOauth: false } } }));
  await page.route('**/tenant/billing/*', (route) => route.fulfill({ json: { data: answers[new URL(route.request().url()).pathname.split('/').at(-1) ?? ''] } }));
  await page.reload();
  await expect(page.getByText('12.50')).toBeVisible();
  await expect(page.getByRole('cell', { name: HOSTILE })).toBeVisible();
  await inspect(page, 'billing');
});
