//! What hubs run goes to a server of Dependency-Track: set, failing, mended, removed.

import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, HOSTILE, inspect, press, report, safe, signIn, tabTo, test } from './harness';

test.use({ settings: ['--allow-private-targets'] });
type Watched = Parameters<typeof inspect>[0];
const KEY = 'odt_a1b2c3';
const fact = (page: Watched, name: string) => page.locator('dt', { hasText: new RegExp(`^${name}$`) }).locator('xpath=following-sibling::dd[1]');

test('a server is set, fails, is mended and removed', async ({ watched: page, service }) => {
  const received: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    received.push(request.headers);
    request.resume();
    response.writeHead(request.headers['x-api-key'] === KEY ? 200 : 401, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const owner = await (await service.person()).createTenant('Warehouse');
  const viewer = await service.person();
  viewer.tenant = owner.tenant;
  await owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: viewer.personaUuid, role: 'VIEWER' });
  const [hub] = await owner.claim([HOSTILE]);
  await report(hub, [{ name: 'bash', version: '5.2.15-2' }]);
  await page.goto(owner.page('/vulnerabilities'));
  await signIn(page, owner);
  await tabTo(page, 'Dependency-Track', 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByText('No server is set')).toBeVisible();
  await inspect(page, 'no server of Dependency-Track');
  await press(page, 'Set the server');
  await page.getByLabel('URL').fill('ftp://dtrack.example.com');
  await page.getByLabel('Project').fill(HOSTILE);
  await page.keyboard.press('Enter');
  for (const label of ['URL', 'API key']) await expect(page.getByLabel(label)).toHaveAttribute('aria-invalid', 'true');
  await inspect(page, 'a server that is refused');
  await page.getByLabel('URL').fill(url);
  await page.getByLabel('API key').fill('wrong');
  await page.keyboard.press('Enter');
  await expect(fact(page, 'Project')).toHaveText(HOSTILE);
  await expect.poll(async () => (await owner.call('GET', '/tenant/dependency-track')).retryAt, { message: 'the server refuses the key' }).not.toBeNull();
  await page.reload();
  await expect(page.getByText('Sending fails:')).toBeVisible();
  await expect(page.getByText('the server answered 401', { exact: false }).first()).toBeVisible();
  await inspect(page, 'a server that fails');

  // The key is never shown: it is entered again with each change.
  await press(page, 'Change');
  await expect(page.getByLabel('API key')).toHaveValue('');
  await page.getByLabel('API key').fill(KEY);
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await owner.call('GET', '/tenant/dependency-track')).sent, { message: 'the list is sent' }).toBe(1);
  await page.reload();
  await expect(page.getByText('up to date')).toBeVisible();
  await expect(fact(page, 'Lists of packages')).toHaveText('1 sent, 0 waiting');
  await expect(fact(page, 'Releases')).toHaveText('0 sent, 0 waiting');
  expect(received.at(-1)?.['x-api-key']).toBe(KEY);
  expect(await page.content()).not.toContain(KEY);
  await press(page, 'Remove');
  await expect(page.getByRole('dialog')).toContainText('What the server has stays there.');
  await inspect(page, 'what removing does');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove the server' }).press('Enter');
  await expect(page.getByText('No server is set')).toBeVisible();

  await page.context().clearCookies();
  await page.goto(viewer.page('/dependency-track'));
  await signIn(page, viewer);
  await expect(page.getByText('An editor of the tenant can set one.')).toBeVisible();
  await expect(page.getByRole('button', { name: /^(Set|Change|Remove)/ })).toHaveCount(0);
  server.close();
  await safe(page, 'Dependency-Track');
});
