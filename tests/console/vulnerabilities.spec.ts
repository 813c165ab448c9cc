//! Vulnerabilities of what hubs run: brought in by the program, found in what hubs report, narrowed,
//! stated and reported.

import { readFileSync } from 'node:fs';
import { bringIn, bringInCatalog, record, SEVERE, SLIGHT } from './feeds';
import { ADAPTER, expect, HOSTILE, inspect, type Package, type Person, press, report, safe, signIn, tabTo, test } from './harness';

type Watched = Parameters<typeof inspect>[0];
const CVE = 'CVE-2026-1001';
const image = (openssl: string): Package[] => [
  { name: 'bash', version: '5.2.15-2' },
  { name: 'libssl3', version: openssl, source: 'openssl' },
];

const found = async (person: Person, query = ''): Promise<any[]> => person.call('GET', `/tenant/vulnerabilities${query}`);
const rows = (page: Watched, name: string) => page.getByRole('region', { name, exact: true }).locator('tbody tr');
const fact = (page: Watched, name: string) => page.locator('dt', { hasText: new RegExp(`^${name}$`) }).locator('xpath=following-sibling::dd[1]');
const filter = (page: Watched) => page.getByLabel('Filter vulnerabilities');

async function stored(page: Watched, name: string): Promise<{ file: string; text: string }> {
  const waiting = page.waitForEvent('download');
  await press(page, name);
  const download = await waiting;
  return { file: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
}

test('a vulnerability is found, narrowed, stated and reported', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant(HOSTILE);
  await page.goto(owner.page());
  await signIn(page, owner);
  await tabTo(page, 'Vulnerabilities', 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByText('No hubs yet')).toBeVisible();
  await inspect(page, 'vulnerabilities of no hubs');
  const [roof, cellar] = await owner.claim([HOSTILE, 'Cellar']);
  await page.reload();
  await expect(page.getByText('No advisories have been imported')).toBeVisible();
  await expect(page.getByText('hub-cloud vulnerabilities import FILE')).toBeVisible();
  await inspect(page, 'no advisories');
  // Of what is imported, nothing is about what hubs run: none are found.
  bringIn(service, 'crates', [record('CVE-2026-1', 'serde', SLIGHT, undefined, 'crates.io')]);
  await page.reload();
  await expect(page.getByText('No hub has reported its packages')).toBeVisible();
  await inspect(page, 'hubs that have reported nothing');
  for (const hub of [roof, cellar]) await report(hub, image('3.0.11-1'));
  await page.reload();
  await expect(page.getByText('No advisories of Debian have been imported')).toBeVisible();
  bringIn(service, 'other', [record('CVE-2026-2', 'xterm', SLIGHT)]);
  await page.reload();
  await expect(page.getByText('No vulnerabilities found')).toBeVisible();
  await expect(page.getByText('Debian: 1 record,', { exact: false })).toBeVisible();
  await expect(page.getByText('No advisories have been imported')).toHaveCount(0);
  await inspect(page, 'no vulnerabilities');

  // The id of the third contains that of the first.
  bringIn(service, 'few', [record(CVE, 'openssl', SEVERE, '3.0.13-1'), record('CVE-2026-1002', 'bash', SLIGHT), record(`${CVE}0`, 'bash', SEVERE)]);
  bringInCatalog(service, CVE);
  await expect.poll(async () => (await found(owner, '?exploited=true')).length, { message: 'hubs are matched with what is new' }).toBe(1);
  await expect.poll(async () => (await found(owner)).length).toBe(3);
  await page.reload();
  const list = rows(page, 'Vulnerabilities');
  await expect(list).toHaveCount(3);
  await expect(list.first()).toContainText(CVE);
  await expect(list.first()).toContainText('critical');
  await expect(list.first()).toContainText('exploited');
  await expect(list.first()).toContainText('openssl 3.0.11-1, fixed in 3.0.13-1');
  await expect(list.nth(2)).toContainText('bash 5.2.15-2, no fix yet');
  await expect(list.first().locator('td.number')).toHaveText(['2', '0', '0', '0']);
  await expect(page.getByText('Compared with the advisories of')).toContainText('Debian (imported');
  await inspect(page, 'vulnerabilities');

  await tabTo(page, 'Filter vulnerabilities', 'combobox');
  await page.keyboard.type('cve-2026-1002');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/q=cve-2026-1002/);
  await expect(page.getByText('1 vulnerability matches the filter')).toBeVisible();
  await page.reload();
  await expect(filter(page), 'a filter is kept in the address').toHaveValue('cve-2026-1002');
  await filter(page).fill('');
  await expect(list).toHaveCount(3);
  await tabTo(page, 'Severity', 'combobox');
  await page.keyboard.press('ArrowDown');
  await expect(page).toHaveURL(/q=severity%3Acritical/);
  await expect(list).toHaveCount(2);
  await press(page, 'Exploited only');
  await expect(page).toHaveURL(/is%3Aexploited/);
  await expect(list).toHaveCount(1);
  await expect(page.getByRole('button', { name: 'Exploited only' })).toHaveAttribute('aria-pressed', 'true');
  await filter(page).fill('CVE-1999-1 wheel:round severity:awful hub:roof');
  await expect(page.getByText('No vulnerabilities match this filter')).toBeVisible();
  for (const said of [/“wheel” is not a filter/, /use critical, high/, /the complete id of the hub/]) await expect(page.getByText(said)).toBeVisible();
  await inspect(page, 'a filter that is not understood');
  await press(page, 'Show all vulnerabilities');

  await tabTo(page, new RegExp(`^${CVE}$`), 'link');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name: CVE, exact: true })).toBeVisible();
  await expect(page).toHaveURL(new RegExp(`/vulnerabilities/${CVE}$`));
  await expect(fact(page, 'Severity')).toHaveText('critical');
  await expect(fact(page, 'Known exploited')).toContainText('listed by CISA');
  await expect(fact(page, 'Hubs exposed')).toHaveText('2');
  const hubs = rows(page, 'Hubs');
  await expect(hubs).toHaveCount(2);
  await expect(hubs.filter({ hasText: HOSTILE })).toContainText('exposed');
  await expect(page.getByText('No rollout brings them.'), 'the fix of a package of the system').toBeVisible();
  await inspect(page, 'a vulnerability');

  // One hub gets the fixed version by itself; of the other, something is stated.
  await report(cellar, image('3.0.13-1'));
  await expect.poll(async () => (await found(owner, `?q=${CVE}`)).find(({ id }) => id === CVE).hubs.fixed).toBe(1);
  await page.reload();
  await expect(hubs.filter({ hasText: 'Cellar' })).toContainText('fixed');
  await press(page, 'State what it means here');
  await expect(page.getByRole('dialog')).toContainText(CVE);
  await inspect(page, 'a statement');
  await tabTo(page, 'Make the statement');
  await page.keyboard.press('Enter');
  await expect(page.getByLabel('Justification')).toHaveAttribute('aria-invalid', 'true');
  await expect(page.getByLabel('Justification')).toBeFocused();
  await expect(page.getByLabel('Justification')).toHaveAccessibleDescription(/is required of `not_affected`/i);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  await page.keyboard.type(HOSTILE);
  await tabTo(page, 'Make the statement');
  await page.keyboard.press('Enter');
  const said = hubs.filter({ hasText: 'The component is not there' });
  await expect(said).toHaveCount(1);
  for (const word of ['not affected', HOSTILE, owner.email]) await expect(said).toContainText(word);
  await expect(fact(page, 'Hubs not affected')).toHaveText('1');
  await expect(fact(page, 'Hubs exposed')).toHaveText('0');
  await expect(page.getByRole('heading', { name: 'Update' }), 'no hub waits for a fix').toHaveCount(0);
  await inspect(page, 'a vulnerability about which something is stated');

  await expect(page.getByText('It is no legal advice')).toBeVisible();
  const markdown = await stored(page, 'Markdown');
  expect(markdown.file).toBe(`${CVE}-draft.md`);
  for (const part of [CVE, 'no legal advice', 'component_not_present', '3.0.13-1']) expect(markdown.text).toContain(part);
  const csaf = await stored(page, 'CSAF 2.0');
  expect(csaf.file).toBe(`${CVE}-draft.csaf.json`);
  expect(JSON.parse(csaf.text).document.tracking.status).toBe('draft');

  // A statement is withdrawn by another one, which begins with it.
  await press(page, 'State what it means here');
  await expect(page.getByLabel('Impact')).toHaveValue(HOSTILE);
  await page.getByLabel('Status').selectOption('under_investigation');
  await press(page, 'Make the statement');
  await expect(hubs.filter({ hasText: 'under investigation' })).toContainText('exposed');
  await expect(fact(page, 'Hubs exposed')).toHaveText('1');

  await page.goto(owner.page('/audit?q=object:vulnerability_statement'));
  await press(page, CVE, 'link');
  await expect(page.getByRole('heading', { name: CVE, exact: true })).toBeVisible();
  await page.goto(owner.page('/vulnerabilities/CVE-1999-1'));
  await expect(page.getByText('No hub of this tenant has, or had')).toBeVisible();
  await safe(page, 'vulnerabilities');
});

test('the packages of a hub lead to its vulnerabilities, page by page', async ({ watched: page, service }) => {
  const COUNT = 60;
  const owner = await (await service.person()).createTenant('Warehouse');
  const viewer = await service.person();
  viewer.tenant = owner.tenant;
  await owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: viewer.personaUuid, role: 'VIEWER' });
  const [cellar, roof] = await owner.claim(['Cellar', HOSTILE]);
  await page.goto(owner.page(`/hubs/${roof?.uuid}`));
  await signIn(page, viewer);
  await tabTo(page, 'Packages', 'link', page.getByRole('navigation', { name: 'Hub sections' }));
  await page.keyboard.press('Enter');
  await expect(page.getByText('No packages reported yet')).toBeVisible();
  await inspect(page, 'a hub without packages');

  const pad = (number: number) => String(number).padStart(2, '0');
  bringIn(service, 'many', Array.from({ length: COUNT }, (_, index) => record(`CVE-2025-20${pad(index)}`, 'zsh', SLIGHT)));
  const others = Array.from({ length: COUNT }, (_, index) => ({ name: `libfoo${pad(index)}`, version: '1.0-1' }));
  await report(roof, [...others, { name: 'zsh-common', version: '5.9-4', source: 'zsh' }]);
  await report(cellar, others);
  await page.reload();
  await expect(fact(page, 'Distribution')).toHaveText('debian 12');
  await expect(fact(page, `Firmware of ${ADAPTER}`)).toHaveText(HOSTILE);
  const packages = rows(page, 'Packages');
  await expect(packages).toHaveCount(50);
  await inspect(page, 'the packages of a hub');
  await press(page, 'Next page');
  await expect(page).toHaveURL(/page=2/);
  await expect(packages).toHaveCount(11);
  await tabTo(page, 'Find packages', 'combobox');
  await page.keyboard.type('ZSH');
  await expect(page.getByText('1 package matches')).toBeVisible();
  await expect(page).toHaveURL(/q=ZSH/);
  await expect(packages).toContainText(['zsh-common']);
  await page.getByLabel('Find packages').fill('nothing');
  await expect(page.getByText('No package has this in its name')).toBeVisible();

  await expect.poll(async () => (await found(owner)).length, { message: 'hubs are matched with what is new' }).toBeGreaterThan(0);
  await press(page, 'Vulnerabilities of this hub', 'link');
  await expect(page).toHaveURL(new RegExp(`q=hub%3A${roof?.uuid}`));
  await expect(page.getByText(`${COUNT} vulnerabilities match the filter`)).toBeVisible();
  await expect(page.getByRole('link', { name: HOSTILE })).toHaveAttribute('href', new RegExp(`/hubs/${roof?.uuid}`));
  const list = rows(page, 'Vulnerabilities');
  await expect(list).toHaveCount(50);
  await press(page, 'Next page');
  await expect(page).toHaveURL(/page=2/);
  await expect(list).toHaveCount(COUNT - 50);
  await page.reload();
  await expect(list, 'a page is kept in the address').toHaveCount(COUNT - 50);
  await inspect(page, 'the vulnerabilities of a hub');
  await filter(page).fill(`hub:${cellar?.uuid}`);
  await expect(page.getByText('No vulnerabilities match this filter')).toBeVisible();
  await press(page, 'Show all vulnerabilities');

  // Who may only read is offered no statement.
  await press(page, 'CVE-2025-2059', 'link');
  await expect(rows(page, 'Hubs')).toContainText([HOSTILE]);
  await expect(page.getByRole('button', { name: 'State what it means here' })).toHaveCount(0);
  await expect(page.getByRole('button', { name: 'Markdown' })).toBeVisible();
  await inspect(page, 'a vulnerability without a fix');
});
