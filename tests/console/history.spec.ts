//! The history of a tenant: days whose events are in files, in a directory or in a bucket.

import { execFileSync } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { address, expect, inspect, needs, type Person, press, safe, Service, signIn, tabTo, test, watch } from './harness';

type Watched = Parameters<typeof inspect>[0];
interface File {
  name: string;
  path: string;
  from: string;
  url: string | null;
}

/** Events of each upload. */
const EVENTS = 3;
const SETTINGS = ['--history-after', '7d', '--ble-retention', '10000d'];
const READER = 'sqlite3 of python3';

/** Moves the uploads of a database to days of their own, from eight days ago back, and has the background work begin anew. */
const MAKE_OLD = `
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    batches = database.execute('SELECT tenant_uuid, first_id FROM ble_batches ORDER BY first_id').fetchall()
    for number, (tenant, first) in enumerate(batches):
        # Midnight may have been between two uploads.
        micros = first - batches[0][1] + (8 + number) * 86_400_000_000
        database.execute('UPDATE ble_batches SET first_id = first_id - ?, last_id = last_id - ? WHERE tenant_uuid = ? AND first_id = ?', (micros, micros, tenant, first))
    database.execute("UPDATE tasks SET next_attempt_at = '2000-01-01T00:00:00.000000Z' WHERE kind = 'history'")
`;

function canMakeOld(): boolean {
  try {
    execFileSync('python3', ['-c', 'import sqlite3'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** An owner with a day in files for each of so many uploads, once the service has moved them. */
async function withDays(service: Service, days: number): Promise<Person> {
  const { email, tenant } = await (await service.person()).createTenant('Warehouse');
  const [hub] = await (await service.login(email, tenant)).claim(['Roof']);
  for (let day = 0; day < days; day++) {
    await hub?.hear(Array.from({ length: EVENTS }, (_, number) => ({ address: address(day * EVENTS + number) })));
  }
  await service.kill();
  execFileSync('python3', ['-c', MAKE_OLD, join(service.data, 'hub-cloud.sqlite')]);
  await service.start();
  const owner = await service.login(email, tenant);
  await expect.poll(async () => (await owner.call('GET', '/tenant/history')).files, { message: 'the days move to files' }).toBe(days);
  return owner;
}

/** A service of one test. */
async function using(service: Service, run: (service: Service) => Promise<void>) {
  let failed = true;
  try {
    await run(service);
    failed = false;
  } finally {
    await service.remove(failed);
  }
}

const row = (page: Watched) => page.getByRole('region', { name: 'Files' }).locator('tbody tr');
const dialog = (page: Watched) => page.getByRole('dialog');
const fact = (page: Watched, name: string) => page.locator('dt', { hasText: new RegExp(`^${name}$`) }).locator('xpath=following-sibling::dd[1]');

test('a history that is off says who can turn it on', async ({ watched: page, service }) => {
  const owner = await (await service.person()).createTenant('Warehouse');
  const viewer = await service.person();
  const stranger = await (await service.person()).createTenant('Elsewhere');
  [viewer.tenant, stranger.tenant] = [owner.tenant, owner.tenant];
  await owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: viewer.personaUuid, role: 'VIEWER' });

  // Every role may read events, and so this.
  for (const person of [owner, viewer]) {
    await page.goto(person.page('/settings'));
    await signIn(page, person);
    await press(page, 'History', 'link');
    await expect(page.getByRole('heading', { name: 'History', level: 1 })).toBeVisible();
    await expect(page.getByText('History is off')).toBeVisible();
    await expect(page.getByText('history-after', { exact: true })).toBeVisible();
    await expect(page.getByRole('region', { name: 'Files' })).toHaveCount(0);
    await page.context().clearCookies();
  }
  await inspect(page, 'a history that is off');

  // Who is no member, or has a role that may read nothing, is not led to it, and the page asks for nothing.
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).pathname));
  await page.goto(stranger.page('/history'));
  await signIn(page, stranger);
  await expect(page.getByText('You do not have access to this tenant.')).toBeVisible();
  await expect(page.getByRole('link', { name: 'History' })).toHaveCount(0);
  await page.context().clearCookies();
  await page.route('**/tenant/tenants', async (route) => {
    const answer = await route.fetch();
    const { data } = await answer.json();
    await route.fulfill({ response: answer, json: { data: data.map((one: object) => ({ ...one, role: 'GUEST' })) } });
  });
  await page.goto(owner.page('/history'));
  await signIn(page, owner);
  await expect(page.getByText('You do not have permission to do this')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Billing' })).toBeVisible();
  await expect(page.getByRole('link', { name: 'History' })).toHaveCount(0);
  expect(asked.filter((path) => path.startsWith('/tenant/history'))).toEqual([]);
  await safe(page, 'a history that is off');
});

test('days in files of a directory are counted and listed', async ({ page: plain }) => {
  needs(canMakeOld(), READER);
  const DAYS = 53;
  await using(await Service.create([...SETTINGS]), async (service) => {
    const page = await watch(plain, service);
    const newcomer = await (await service.person()).createTenant('New');
    await page.goto(newcomer.page('/history'));
    await signIn(page, newcomer);
    await expect(fact(page, 'A day moves')).toHaveText('7 d after its end');
    await expect(fact(page, 'In files')).toHaveText('no events yet');
    await expect(page.getByText('A day of BLE events moves to files 7 d after its end.')).toBeVisible();
    await inspect(page, 'a history without days');
    await page.context().clearCookies();

    const owner = await withDays(service, DAYS);
    const files: File[] = await owner.call('GET', '/tenant/history/files?size=100');
    const days = files.map(({ from }) => from.slice(0, 10));
    const [first, second] = days;
    const last = days.at(-1) ?? '';
    const { location } = await owner.call('GET', '/tenant/history');
    await page.goto(owner.page('/history'));
    await signIn(page, owner);
    await expect(fact(page, 'History')).toHaveText('on');
    await expect(fact(page, 'First day')).toHaveText(`${first} UTC`);
    await expect(fact(page, 'Last day')).toHaveText(`${last} UTC`);
    await expect(fact(page, 'Events')).toHaveText(String(DAYS * EVENTS));
    await expect(fact(page, 'Files')).toHaveText(String(DAYS));
    await expect(fact(page, 'Size')).toHaveText(/iB$/);
    await expect(fact(page, 'Folder')).toContainText(location);
    await expect(page.getByText(/directory of the setting files/)).toBeVisible();
    await expect(page.getByRole('group', { name: 'Query for DuckDB' }), 'nobody elsewhere reads a directory').toHaveCount(0);

    // Oldest first, page by page.
    await expect(row(page)).toHaveCount(50);
    await expect(row(page).first()).toContainText(first ?? '');
    await inspect(page, 'a history in a directory');
    await tabTo(page, 'Next page');
    await page.keyboard.press('Enter');
    await expect(row(page)).toHaveCount(DAYS - 50);
    await expect(row(page).last()).toContainText(last);
    await page.reload();
    await expect(page.getByText('51–53 of 53'), 'the address says where').toBeVisible();

    // A filter begins at the first page.
    await tabTo(page, 'Filter the files', 'combobox');
    await page.keyboard.type(`before:${second} wheel:round `);
    await expect(page.getByText('1 file matches the filter')).toBeVisible();
    await expect(page.getByText(/“wheel” is not a filter/)).toBeVisible();
    await expect(row(page)).toHaveCount(1);
    await expect(row(page)).toContainText(first ?? '');
    await inspect(page, 'files that match a filter');
    await tabTo(page, `Details of ${first}`);
    await page.keyboard.press('Enter');
    await expect(dialog(page)).toContainText(files[0]?.path ?? '');
    await expect(dialog(page).getByRole('button', { name: 'Copy the SHA-256' })).toBeVisible();
    await expect(dialog(page).getByRole('button', { name: 'Show a URL' }), 'a directory has none').toHaveCount(0);
    await inspect(page, 'a file in a directory');
    await page.keyboard.press('Escape');
    await tabTo(page, 'Clear the filter');
    await page.keyboard.press('Enter');
    await expect(row(page)).toHaveCount(50);
    await page.getByLabel('Filter the files').fill('day:2001-01-01');
    await expect(page.getByText('No files match this filter')).toBeVisible();
    await press(page, 'Show all files');
    await expect(row(page)).toHaveCount(50);

    // What is in files stays there when no more days move.
    await service.kill();
    service.settings.splice(service.settings.indexOf('--history-after'), 2);
    await service.start();
    await page.goto(owner.page('/history'));
    await expect(fact(page, 'History')).toHaveText('off');
    await expect(fact(page, 'A day moves')).toContainText('not any more');
    await expect(row(page)).toHaveCount(50);
    await inspect(page, 'a history that was turned off');
    // The page was open while the service was away.
    page.expected.push(/^50[234] /);
    await safe(page, 'a history in a directory');
  });
});

/** A bucket that takes everything, as a store of S3 does. */
async function bucket(): Promise<Server> {
  const objects = new Map<string, Buffer>();
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://bucket');
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.method === 'PUT') objects.set(pathname, Buffer.concat(chunks));
    if (request.method === 'DELETE') objects.delete(pathname);
    const object = objects.get(pathname);
    if (!object) return response.writeHead(request.method === 'DELETE' ? 204 : 404).end();
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    const [begin, end] = from === undefined ? [0, object.length] : [Number(from), Math.min(Number(to) + 1, object.length)];
    const part = request.method === 'PUT' ? Buffer.alloc(0) : object.subarray(begin, end);
    if (from !== undefined) response.setHeader('content-range', `bytes ${begin}-${end - 1}/${object.length}`);
    response.writeHead(from === undefined ? 200 : 206, { etag: `"${object.length}"`, 'last-modified': new Date(0).toUTCString(), 'content-length': part.length });
    return response.end(request.method === 'HEAD' ? undefined : part);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

test('files of a bucket are read by others', async ({ page: plain }) => {
  needs(canMakeOld(), READER);
  const store = await bucket();
  const environment = {
    AWS_ACCESS_KEY_ID: 'hubs',
    AWS_SECRET_ACCESS_KEY: 'secret',
    AWS_REGION: 'eu-central-1',
    AWS_ENDPOINT_URL: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
    AWS_ALLOW_HTTP: 'true',
  };
  await using(await Service.create([...SETTINGS, '--files', 's3://hub-files/eu'], environment), async (service) => {
    const page = await watch(plain, service);
    const owner = await withDays(service, 2);
    const [file, other]: File[] = await owner.call('GET', '/tenant/history/files');
    const last = other?.from.slice(0, 10);
    await page.clock.install();
    await page.goto(owner.page('/history'));
    await signIn(page, owner);
    await expect(row(page)).toHaveCount(2);
    const folder = `s3://hub-files/eu/history/tenant_uuid=${owner.tenant}`;
    await expect(fact(page, 'Folder')).toContainText(folder);
    const query = page.getByRole('group', { name: 'Query for DuckDB' });
    await expect(query).toContainText(`FROM read_parquet('${folder}/*/*.parquet', hive_partitioning = true) WHERE day = '${last}';`);
    await tabTo(page, 'Copy', 'button', query);
    await inspect(page, 'a history in a bucket');
    const shown = async () => (await page.content()).split('X-Amz-Signature').length - 1;
    expect(await shown(), 'no URL is shown before it is asked for').toBe(0);

    // A URL is shown once, for as long as it is valid.
    await tabTo(page, `Details of ${file?.from.slice(0, 10)}`);
    await page.keyboard.press('Enter');
    await expect(dialog(page)).toContainText(file?.path ?? '');
    await tabTo(page, 'Show a URL', 'button', dialog(page));
    await page.keyboard.press('Enter');
    const url = dialog(page).getByRole('group', { name: 'URL of the file' });
    await expect(url).toContainText('X-Amz-Signature');
    await expect(dialog(page)).toContainText('Whoever has it can read the file');
    expect(await shown(), 'once').toBe(1);
    const read = Buffer.from(await (await fetch((await url.locator('code').textContent()) ?? '')).arrayBuffer());
    expect(read.subarray(0, 4).toString(), 'it reads the file').toBe('PAR1');
    await inspect(page, 'the URL of a file');
    await page.clock.fastForward('16:00');
    await expect(page.getByText('The URL has expired.')).toBeVisible();
    expect(await shown(), 'and no more').toBe(0);
    await inspect(page, 'a URL that has expired');
    await press(page, 'Show a URL');
    await expect(url, 'another one, as often as it is asked for').toContainText('X-Amz-Signature');
    expect(await shown(), 'once').toBe(1);
    await page.keyboard.press('Escape');

    // Another file took its place since the list was read.
    await page.goto(owner.page('/history'));
    await page.route(/\/tenant\/history\/files\?.*from=/, (route) => route.fulfill({ json: { data: [other] }, headers: { 'x-total-count': '1' } }));
    await tabTo(page, `Details of ${file?.from.slice(0, 10)}`);
    await page.keyboard.press('Enter');
    await tabTo(page, 'Show a URL', 'button', dialog(page));
    await page.keyboard.press('Enter');
    await expect(page.getByText('Another file took its place', { exact: false })).toBeVisible();
    await inspect(page, 'a file that was replaced');
    await page.keyboard.press('Escape');
    expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])), 'no URL is stored').not.toContain('Amz');
    await safe(page, 'a history in a bucket');
  });
  store.close();
});
