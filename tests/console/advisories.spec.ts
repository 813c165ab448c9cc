//! Own advisories are written, lead to what fixes them, are changed and deleted.

import { SEVERE } from './feeds';
import { expect, HOSTILE, inspect, press, runs, safe, signIn, tabTo, test } from './harness';
import { Publisher } from './publisher';

type Watched = Parameters<typeof inspect>[0];
const ID = 'ACME-2026-1';
const rows = (page: Watched, name: string) => page.getByRole('region', { name, exact: true }).locator('tbody tr');
const fact = (page: Watched, name: string) => page.locator('dt', { hasText: new RegExp(`^${name}$`) }).locator('xpath=following-sibling::dd[1]');
const dialog = (page: Watched) => page.getByRole('dialog');

test('an advisory is written, and its fix is installed', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  await page.goto(owner.page('/vulnerabilities'));
  await signIn(page, owner);
  await tabTo(page, 'Own advisories', 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByText('No advisories of your own yet')).toBeVisible();
  await inspect(page, 'no advisories of a tenant');
  await press(page, 'Write the first advisory', 'link');
  await expect(page.getByText('No apps and no device models yet')).toBeVisible();

  const publisher = new Publisher(service, ['app']);
  const app = await owner.call('POST', '/tenant/apps', { name: 'logger' });
  await owner.call('POST', '/tenant/device-catalog', { name: HOSTILE });
  const old = await publisher.publish(owner, app, '1.0.0', 1);
  const [roof, cellar] = await owner.claim([HOSTILE, 'Cellar']);
  for (const hub of [roof, cellar]) await runs(hub, app.appUuid, old, '1.0.0');
  await page.reload();
  await expect(page.getByLabel('App or device model')).toContainText(HOSTILE);
  await tabTo(page, 'Create the advisory');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('App or device model')).toBeFocused();
  await expect(page.getByLabel('App or device model')).toHaveAccessibleDescription('choose what is affected');

  // What the service refuses stands at its field, one after the other.
  await page.getByLabel('App or device model').selectOption('logger');
  await page.getByLabel('Id', { exact: true }).fill('CVE-2026-1');
  await page.getByLabel('Severity').selectOption('from a vector of CVSS');
  await page.getByLabel('Vector of CVSS').fill('AV:N');
  await page.getByLabel('References').fill('https://example.com/1\nnone');
  await press(page, 'Add a range of versions');
  await expect(page.getByLabel('From version')).toBeFocused();
  await press(page, 'Create the advisory');
  for (const label of ['Title', 'Vector of CVSS', 'References']) await expect(page.getByLabel(label)).not.toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('From version')).toHaveAccessibleDescription(/enter a version, or remove the range/);
  await page.getByLabel('From version').fill('soon');
  await press(page, 'Create the advisory');
  for (const label of ['Title', 'Vector of CVSS', 'References']) await expect(page.getByLabel(label)).toHaveAttribute('aria-invalid', 'true');
  await inspect(page, 'an advisory that is refused');
  await page.getByLabel('Title').fill(HOSTILE);
  await page.getByLabel('Vector of CVSS').fill(SEVERE);
  await page.getByLabel('References').fill('https://example.com/1');
  await press(page, 'Create the advisory');
  await expect(page.getByLabel('From version')).toHaveAccessibleDescription(/must be a version such as 1.2.3/);
  await page.getByLabel('From version').fill('1.0.0');
  await page.getByLabel('Fixed in').fill('1.1.0');
  await press(page, 'Create the advisory');
  await expect(page.getByLabel('Id', { exact: true })).toHaveAttribute('aria-invalid', 'true');
  await page.getByLabel('Id', { exact: true }).fill(ID);
  await press(page, 'Create the advisory');
  await expect(page.getByRole('heading', { name: ID, exact: true })).toBeVisible();
  await expect(fact(page, 'Severity')).toContainText('critical');
  await expect(fact(page, 'Affected')).toHaveText('logger: from 1.0.0 to before 1.1.0');
  await expect(fact(page, 'Changed')).toContainText(owner.email);
  await inspect(page, 'an advisory');

  // No release has the fix yet; the next one has, and is tried on one hub.
  await press(page, 'Who is affected', 'link');
  await expect(fact(page, 'Hubs exposed')).toHaveText('2');
  await expect(page.getByText('No release of logger from 1.1.0 on is ready yet.')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Publish logger 1.1.0' })).toHaveAttribute('href', new RegExp(`/apps/${app.appUuid}$`));
  const fixed = await publisher.publish(owner, app, '1.1.0', 2);
  await page.reload();
  await press(page, 'Install logger 1.1.0…');
  await expect(page.getByLabel('Number of hubs')).toHaveValue('2');
  await page.getByLabel('Number of hubs').fill('some');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Enter a whole number')).toBeVisible();
  await inspect(page, 'the installation of a fix');
  await page.getByLabel('Number of hubs').fill('1');
  await page.keyboard.press('Enter');
  await expect(page.getByText('logger 1.1.0 will be installed on 1 hub.')).toBeVisible();
  await expect(fact(page, 'Hubs updating')).toHaveText('1');
  await expect(rows(page, 'Hubs').filter({ hasText: 'updating' }).getByRole('link', { name: 'its jobs' })).toHaveAttribute('href', /tab=jobs/);
  const jobs = (await Promise.all([roof, cellar].map((hub) => owner.call('GET', `/tenant/hubs/${hub?.uuid}/jobs`)))).flat();
  expect(jobs.map(({ type, releaseUuid }: { type: string; releaseUuid: string }) => [type, releaseUuid])).toEqual([['APP_INSTALL', fixed]]);
  await inspect(page, 'an own advisory among vulnerabilities');
  await press(page, 'an own advisory', 'link');

  await press(page, 'Edit');
  await expect(page.getByLabel('Title')).toHaveValue(HOSTILE);
  await page.getByLabel('Title').fill('The logger logs secrets');
  await press(page, 'Save');
  await expect(page.getByText('Saved.')).toBeVisible();
  const changes = rows(page, 'Changes');
  await expect(changes).toHaveCount(2);
  await expect(changes.first()).toContainText('changed: title');
  for (const text of [HOSTILE, 'The logger logs secrets', owner.email]) await expect(changes.first()).toContainText(text);
  await expect(changes.last()).toContainText('created');
  await inspect(page, 'an advisory that was changed');

  // An id is there once.
  await page.goto(owner.page('/new-advisory'));
  await page.getByLabel('Id', { exact: true }).fill(ID);
  await page.getByLabel('Title').fill('Another one');
  await page.getByLabel('App or device model').selectOption({ label: HOSTILE });
  await press(page, 'Create the advisory');
  await expect(page.getByLabel('Id', { exact: true })).toHaveAccessibleDescription(/is there already/);
  await press(page, 'Cancel');
  await expect(rows(page, 'Advisories')).toHaveCount(1);
  await inspect(page, 'advisories');

  const viewer = await service.person();
  viewer.tenant = owner.tenant;
  await owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: viewer.personaUuid, role: 'VIEWER' });
  await page.context().clearCookies();
  await page.goto(viewer.page(`/advisories/${ID}`));
  await signIn(page, viewer);
  await expect(page.getByText('The logger logs secrets').first()).toBeVisible();
  await expect(page.getByRole('button', { name: /^(Edit|Delete)$/ })).toHaveCount(0);
  await page.context().clearCookies();
  await page.goto(owner.page(`/advisories/${ID}`));
  await signIn(page, owner);
  await press(page, 'Delete');
  await expect(dialog(page)).toContainText('The statements about it are deleted, too.');
  await inspect(page, 'what deleting an advisory does');
  await dialog(page).getByRole('button', { name: 'Delete the advisory' }).press('Enter');
  await expect(page.getByText('No advisories of your own yet')).toBeVisible();
  expect(await owner.call('GET', '/tenant/vulnerabilities?source=OWN')).toEqual([]);
  publisher.remove();
  await safe(page, 'own advisories');
});
