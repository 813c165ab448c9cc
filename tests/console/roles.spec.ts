//! What a role changes: a tenant that is offered gets another owner, and who may only read is offered
//! nothing that would be refused. Lists of more rows than a page are gone through.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, HOSTILE, inspect, safe, Service, signIn, tabTo, test as shared } from './harness';

const TRANSACTIONS = 120;
/** A billing service, as docs/api/console.md describes it: newest first, `cursor` is the last time received. */
const transactions = Array.from({ length: TRANSACTIONS }, (_, index) => ({
  createdAt: new Date(Date.UTC(2026, 0, 31) - index * 3_600_000).toISOString(),
  amountCents: -index,
  text: `Invoice ${TRANSACTIONS - index} ${HOSTILE}`,
}));
const billing = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://billing');
  const cursor = searchParams.get('cursor');
  const rest = cursor ? transactions.filter(({ createdAt }) => createdAt < cursor) : transactions;
  const answer = pathname.endsWith('/transactions') ? { transactions: rest.slice(0, Number(searchParams.get('limit'))) } : { currentCreditCents: 0 };
  response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
});

const test = shared.extend<object, { service: Service }>({
  service: [
    async ({}, use) => {
      await new Promise<void>((resolve) => billing.listen(0, '127.0.0.1', resolve));
      const url = `http://127.0.0.1:${(billing.address() as AddressInfo).port}`;
      const service = await Service.create(['--billing-url', url, '--billing-token', 'token', '--allow-private-targets']);
      try {
        await use(service);
      } finally {
        await service.remove(false);
        billing.close();
      }
    },
    { scope: 'worker' },
  ],
});

type Watched = Parameters<typeof inspect>[0];
const dialog = (page: Watched) => page.getByRole('dialog');
async function press(page: Watched, name: string | RegExp, role: 'button' | 'link' = 'button') {
  await tabTo(page, name, role);
  await page.keyboard.press('Enter');
}

test('a tenant that is offered is accepted', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant(HOSTILE);
  const heir = await service.person();
  const offer = () => owner.call('POST', `/tenant/tenants/${owner.tenant}/transfer`, { targetPersonaUuid: heir.personaUuid, message: HOSTILE });
  await offer();

  // Somebody of no tenant finds the offer, and may refuse it.
  await page.goto(`${service.url}/console/transfers`);
  await signIn(page, heir);
  const offers = page.getByRole('region', { name: 'Offered to you' });
  await expect(offers).toContainText(owner.email);
  await expect(offers).toContainText(HOSTILE);
  await inspect(page, 'an offer');
  await press(page, /^Reject the tenant/);
  await expect(dialog(page).getByText('Its owner can offer it again', { exact: false })).toBeVisible();
  await tabTo(page, 'Reject it', 'button', dialog(page));
  await page.keyboard.press('Enter');
  await expect(page.getByText('The offer was rejected.')).toBeVisible();
  await expect(page.getByText('No open offers')).toBeVisible();
  await offer();
  await page.reload();
  await press(page, /^Accept the tenant/);
  await expect(dialog(page).getByText('The previous owner stays a member, as ADMIN.')).toBeVisible();
  await inspect(page, 'what accepting means');
  await tabTo(page, 'Become the owner', 'button', dialog(page));
  await page.keyboard.press('Enter');
  await expect(page.getByText('You are the owner now.')).toBeVisible();
  heir.tenant = owner.tenant;
  const members: { email: string; role: string }[] = (await heir.call('GET', '/tenant/personas')).members;
  expect(members.map(({ email, role }) => [email, role]).sort()).toEqual([[heir.email, 'OWNER'], [owner.email, 'ADMIN']].sort());

  // The tenant is there at once, with what an owner may do.
  await press(page, 'Members', 'link');
  await expect(page.getByRole('heading', { name: 'Members', level: 1 })).toBeVisible();
  await expect(page.getByRole('button', { name: 'Invite' })).toBeVisible();
  await press(page, 'Ownership', 'link');
  await expect(page.getByText('You can transfer the tenant in its', { exact: false })).toBeVisible();
  await inspect(page, 'ownership');
  await safe(page, 'a tenant that is accepted');
});

test('a tenant that is offered to another tenant is not its owner’s to accept', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const other = await (await service.person()).createTenant('Holding');
  await other.call('POST', `/tenant/tenants/${other.tenant}/members`, { personaUuid: owner.personaUuid, role: 'VIEWER' });
  await owner.call('POST', `/tenant/tenants/${owner.tenant}/transfer`, { targetTenantUuid: other.tenant });
  await page.goto(owner.page('/members?tab=transfers'));
  await signIn(page, owner);
  await expect(page.getByRole('region', { name: 'Offered to others' })).toContainText('Warehouse');
  await expect(page.getByRole('button', { name: /^Accept/ }), 'the service refuses it').toHaveCount(0);
  await page.context().clearCookies();
  await page.goto(other.page('/members?tab=transfers'));
  await signIn(page, other);
  await press(page, 'Accept the tenant Warehouse');
  await dialog(page).getByRole('button', { name: 'Become the owner' }).press('Enter');
  await expect(page.getByText('You are the owner now.')).toBeVisible();
  expect((await other.call('GET', '/tenant/tenants')).map(({ name, role }: { name: string; role: string }) => [name, role])).toContainEqual(['Warehouse', 'OWNER']);
  await safe(page, 'a tenant for another one');
});

test('a viewer of the catalog is offered nothing that is refused', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const viewer = await service.person();
  viewer.tenant = owner.tenant;
  await owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: viewer.personaUuid, role: 'VIEWER' });
  const { deviceUuid } = await owner.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const { deviceUuid: empty } = await owner.call('POST', '/tenant/device-catalog', { name: HOSTILE });
  await owner.call('POST', '/tenant/manuals', { deviceUuid, title: HOSTILE, format: 'MARKDOWN', content: HOSTILE });
  await owner.call('POST', '/tenant/device-versions', { deviceUuid, version: '1.0' });
  const refused: string[] = [];
  page.on('response', (answer) => {
    if (answer.status() === 403) refused.push(answer.url());
  });
  await page.goto(viewer.page('/catalog'));
  await signIn(page, viewer);
  await expect(page.getByRole('link', { name: 'RuuviTag' })).toBeVisible();
  const writes = /^(Add|New|Create|Edit|Delete|Save|Change|Remove|Reprocess|Make|Write|Discard|Move)/;
  for (const [path, seen] of [
    ['/catalog', 'RuuviTag'],
    ['/catalog/library?q=ruuvi', 'RuuviTag'],
    [`/catalog/${deviceUuid}`, /fixes|bits|0499/],
    [`/catalog/${deviceUuid}?tab=decoder`, /ruuvi/i],
    [`/catalog/${deviceUuid}?tab=versions`, '1.0'],
    [`/catalog/${deviceUuid}?tab=forms`, /form/i],
    [`/catalog/${deviceUuid}?tab=manuals`, HOSTILE],
    [`/catalog/${deviceUuid}?tab=actions`, /action/i],
    [`/catalog/${empty}`, 'No identifiers yet'],
    [`/catalog/${empty}?tab=decoder`, /decoder/i],
    ['/route', /Default action/],
    ['/unknown', /No unknown advertisers/],
  ] as const) {
    await page.goto(viewer.page(path));
    await expect(page.getByRole('main').getByText(seen).first(), path).toBeVisible();
    await page.waitForLoadState('networkidle');
    const main = page.getByRole('main');
    for (const role of ['button', 'link'] as const) {
      const offered = await main.getByRole(role, { name: writes }).evaluateAll((all) => all.map((one) => one.textContent));
      expect(offered, `${path}: a ${role} that would be refused`).toEqual([]);
    }
    if (path.includes('catalog')) await inspect(page, `${path} for a viewer`);
  }
  expect(refused).toEqual([]);

  // The library can be looked at.
  await page.goto(viewer.page('/catalog/library?q=ruuvi'));
  await press(page, /^View/);
  await expect(dialog(page)).toBeVisible();
  await expect(dialog(page).getByRole('button', { name: /^Add/ })).toHaveCount(0);
  await inspect(page, 'a model of the library for a viewer');
  await safe(page, 'the catalog of a viewer');
});

test('transactions and consents of more than a page are gone through', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const purposes = [{ key: 'service', title: 'To run it', required: true }];
  await owner.call('POST', '/tenant/consent-settings', { version: '1', text: 'Text', purposes, enforce: false });
  // One person, who withdraws and grants again.
  const user = await service.person();
  for (let number = 0; number < 53; number++) {
    const { consentId } = await user.call('POST', '/app/consent', { supplierUuid: owner.tenant, version: '1', purposes: ['service'] });
    await user.call('DELETE', `/app/consent/${consentId}`);
  }
  await page.goto(owner.page('/billing'));
  await signIn(page, owner);
  const row = page.getByRole('region', { name: 'Transactions' }).locator('tbody tr');
  await expect(row).toHaveCount(50);
  await expect(row.first()).toContainText(`Invoice ${TRANSACTIONS} `);
  await expect(page.getByRole('button', { name: 'Newest' })).toHaveCount(0);
  await inspect(page, 'transactions of more than a page');
  await press(page, 'Earlier');
  await expect(row.first()).toContainText('Invoice 70 ');
  await press(page, 'Earlier');
  await expect(row).toHaveCount(20);
  await expect(row.last()).toContainText('Invoice 1 ');
  await expect(page.getByRole('button', { name: 'Earlier' }), 'there is nothing more').toHaveCount(0);
  await page.reload();
  await expect(row.last(), 'the address says where').toContainText('Invoice 1 ');
  await page.goBack();
  await expect(row.first()).toContainText('Invoice 70 ');
  await press(page, 'Newest');
  await expect(row.first()).toContainText(`Invoice ${TRANSACTIONS} `);

  await page.goto(owner.page('/consent?tab=records'));
  await expect(page.getByText('53 records, newest first')).toBeVisible();
  const receipts = page.getByRole('button', { name: /^Receipt/ });
  await expect(receipts).toHaveCount(50);
  await inspect(page, 'consents of more than a page');
  await page.getByRole('button', { name: 'Next page' }).press('Enter');
  await expect(receipts).toHaveCount(3);
  await expect(page.getByText('51–53 of 53')).toBeVisible();
  await expect(page.getByRole('button', { name: 'Next page' })).toBeDisabled();
  await expect(page.getByRole('button', { name: 'Previous page' }), 'the focus is not lost with the last page').toBeFocused();
  await page.keyboard.press('Enter');
  await expect(receipts).toHaveCount(50);
  await expect(page.getByRole('button', { name: 'Next page' })).toBeFocused();

  // A page that is gone, such as after its last row was deleted, is not shown as an empty list.
  await page.goto(owner.page('/consent?tab=records&page=9'));
  await expect(page.getByText(/There is no page \d+: the list has 53 entries/)).toBeVisible();
  await expect(page.getByText('Nobody has consented yet')).toHaveCount(0);
  await inspect(page, 'a page that is gone');
  await press(page, 'Previous page');
  await expect(page.getByText('51–53 of 53'), 'it leads to the last one').toBeVisible();
  await expect(receipts).toHaveCount(3);
  await safe(page, 'pages of lists');
});
