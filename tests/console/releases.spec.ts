//! What is known of a release: until when it is supported, its documents, and of what it consists.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, HOSTILE, inspect, press, safe, signIn, tabTo, test } from './harness';
import { Publisher } from './publisher';

type Watched = Parameters<typeof inspect>[0];
const COUNT = 60;
const rows = (page: Watched, name: string) => page.getByRole('region', { name, exact: true }).locator('tbody tr');
const fact = (page: Watched, name: string) => page.locator('dt', { hasText: new RegExp(`^${name}$`) }).locator('xpath=following-sibling::dd[1]');
const dialog = (page: Watched) => page.getByRole('dialog');

test('a release says until when it is supported, and of what it consists', async ({ watched: page, service }) => {
  const person = await (await service.person()).createTenant('Warehouse');
  const publisher = new Publisher(service, ['app']);
  const app = await person.call('POST', '/tenant/apps', { name: 'logger' });
  const purls = Array.from({ length: COUNT }, (_, index) => `pkg:npm/part-${String(index).padStart(2, '0')}@1.0.0`);
  const components = [...purls.map((purl) => ({ type: 'library', name: purl.slice(8, -6), version: '1.0.0', purl })), { type: 'library', name: HOSTILE, version: '2' }];
  const sbom = join(publisher.files, 'sbom.json');
  writeFileSync(sbom, JSON.stringify({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1, components }));
  await publisher.publish(person, app, '1.0.0', 1);
  await publisher.publish(person, app, '1.1.0', 2, ['--sbom', sbom]);

  await page.goto(person.page(`/apps/${app.appUuid}`));
  await signIn(page, person);
  const releases = rows(page, 'Releases');
  await expect(releases).toHaveCount(2);
  await inspect(page, 'the releases of an app');
  await press(page, '1.0.0', 'link');
  await expect(page.getByRole('heading', { name: 'logger 1.0.0' })).toBeVisible();
  await expect(page.getByText('The manifest of this release names no document')).toBeVisible();
  await expect(page.getByText('It is not known of what the release consists')).toBeVisible();
  await inspect(page, 'a release of which nothing is known');

  await press(page, 'logger', 'link');
  await press(page, '1.1.0', 'link');
  await expect(fact(page, 'Supported until')).toHaveText('not set');
  await expect(page.getByText('The bill of materials is missing')).toBeVisible();
  await tabTo(page, 'Set the end of support');
  await page.keyboard.press('Enter');
  await page.getByLabel('Supported until').fill('tomorrow');
  await page.keyboard.press('Enter');
  await expect(page.getByText('Must be a day such as 2026-01-31')).toBeVisible();
  await inspect(page, 'an end of support that is none');
  await page.getByLabel('Supported until').fill('2020-01-31');
  await page.keyboard.press('Enter');
  await expect(fact(page, 'Supported until')).toHaveText(/2020-01-31\s*ended/);

  // Another document than the one that was signed is refused, also one of the same size.
  await tabTo(page, 'Upload Bill of materials');
  await page.keyboard.press('Enter');
  await dialog(page).getByRole('button', { name: 'Upload the document' }).press('Enter');
  await expect(page.getByText('Select the document')).toBeVisible();
  const other = join(publisher.files, 'other.json');
  writeFileSync(other, '{}');
  await page.getByLabel('Document', { exact: true }).setInputFiles(other);
  await dialog(page).getByRole('button', { name: 'Upload the document' }).press('Enter');
  await expect(page.getByText(/the manifest expects/i)).toBeVisible();
  const changed = join(publisher.files, 'changed.json');
  writeFileSync(changed, readFileSync(sbom, 'utf8').replace('part-00', 'tart-00'));
  await page.getByLabel('Document', { exact: true }).setInputFiles(changed);
  await dialog(page).getByRole('button', { name: 'Upload the document' }).press('Enter');
  await expect(page.getByLabel('Document', { exact: true })).toHaveAccessibleDescription(/The SHA-256 of the document is/);
  await inspect(page, 'a document that was not signed');
  await page.getByLabel('Document', { exact: true }).setInputFiles(sbom);
  await dialog(page).getByRole('button', { name: 'Upload the document' }).press('Enter');
  await expect(page.getByText('The document was uploaded.')).toBeVisible();

  const waiting = page.waitForEvent('download');
  await press(page, 'Download Bill of materials');
  const file = await waiting;
  expect(file.suggestedFilename()).toBe('logger-1.1.0-sbom.json');
  expect(readFileSync(await file.path(), 'utf8')).toBe(readFileSync(sbom, 'utf8'));

  await page.reload();
  const shown = rows(page, 'Components');
  await expect(shown).toHaveCount(50);
  await expect(page.getByText(`${COUNT + 1} components`)).toBeVisible();
  await expect(shown.filter({ hasText: HOSTILE })).toContainText('not matched with advisories');
  await inspect(page, 'the components of a release');
  await press(page, 'Next page');
  await expect(shown).toHaveCount(COUNT + 1 - 50);
  await page.getByLabel('Find components').fill('PART-07');
  await expect(page.getByText('1 component matches')).toBeVisible();
  await expect(shown).toContainText(['pkg:npm/part-07@1.0.0']);
  await page.getByLabel('Find components').fill('nothing');
  await expect(page.getByText('No component has this in its name')).toBeVisible();
  await press(page, 'Show all components');

  // Its vulnerabilities are those that the filter of their page shows.
  await press(page, '0 vulnerabilities', 'link');
  await expect(page).toHaveURL(/\/vulnerabilities\?q=release%3A/);
  await page.goto(person.page(`/apps/${app.appUuid}`));
  await expect(releases.first()).toContainText(new RegExp(`${COUNT + 1}\\s*declared`));
  await expect(releases.first()).toContainText(/2020-01-31\s*ended/);
  publisher.remove();
  await safe(page, 'a release');
});

test('who may only read is offered no change of a release', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const viewer = await service.person();
  viewer.tenant = owner.tenant;
  await owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: viewer.personaUuid, role: 'VIEWER' });
  const publisher = new Publisher(service, ['app']);
  const app = await owner.call('POST', '/tenant/apps', { name: 'logger' });
  const vex = join(publisher.files, 'vex.json');
  const head = { '@context': 'https://openvex.dev/ns/v0.2.0', '@id': 'https://example.com/vex/1', author: 'Example', timestamp: '2026-01-01T00:00:00Z', version: 1 };
  writeFileSync(vex, JSON.stringify({ ...head, statements: [{ vulnerability: { name: 'CVE-2026-1' }, products: [{ '@id': 'pkg:generic/logger' }], status: 'fixed' }] }));
  const releaseUuid = await publisher.publish(owner, app, '1.0.0', 1, ['--vex', vex]);
  await page.goto(viewer.page(`/apps/${app.appUuid}/releases/${releaseUuid}`));
  await signIn(page, viewer);
  await expect(rows(page, 'Documents')).toContainText('OpenVEX');
  await expect(rows(page, 'Documents')).toContainText('not yet');
  await expect(page.getByRole('button', { name: /^(Upload|Set the end)/ })).toHaveCount(0);
  await page.goto(viewer.page(`/apps/${app.appUuid}/releases/${app.appUuid}`));
  await expect(page.getByText('The app has no such release.')).toBeVisible();
  publisher.remove();
  await safe(page, 'a release for those who look on');
});
