//! Pages ask for nothing that they cannot get: in the browser's console of an ordinary visit is no red line.

import { expect, type Person, safe, signIn, test } from './harness';

const OF_TENANT = [
  '', '/hubs', '/devices', '/live', '/floor-plans', '/rollouts', '/vulnerabilities', '/claim-codes', '/pipelines', '/pipelines/new', '/apps', '/unknown', '/catalog', '/catalog/library',
  '/route', '/members', '/api-keys', '/bundles', '/notification-settings', '/external-endpoints', '/audit', '/history', '/settings', '/consent',
  '/consent/new', '/supplier-oauth', '/billing', '/advisories', '/new-advisory', '/dependency-track',
];

test('a new tenant is looked through without a red line', async ({ watched: page, service }) => {
  const red: string[] = [];
  page.on('console', (message) => message.type() === 'error' && red.push(`${message.text()} ${message.location().url}`));
  let last = 0;
  for (const event of ['request', 'response', 'requestfailed'] as const) page.on(event, () => (last = Date.now()));
  const visit = async (person: Person, paths: string[], base = (path: string) => person.page(path)) => {
    for (const path of paths) {
      await page.goto(base(path));
      await expect(page.getByRole('heading', { level: 1 }).first()).toBeVisible();
      // Streams stay open: what is waited for is that nothing more is asked and answered.
      await expect.poll(() => Date.now() - last, { message: `${path}: everything is answered`, intervals: [50] }).toBeGreaterThan(300);
    }
  };
  const owner = await (await service.person()).createTenant('Warehouse');
  await page.goto(`${service.url}/console`);
  await expect(page.getByLabel('E-mail')).toBeVisible();
  expect(red, 'a first visit asks for no session').toEqual([]);
  await signIn(page, owner);
  await expect(page.getByRole('heading', { name: 'Overview' })).toBeVisible();
  await visit(owner, OF_TENANT.filter((path) => path !== '/live'));
  await visit(owner, ['/account', '/notifications', '/transfers', '/tenants/new'], (path) => `${service.url}/console${path}`);
  expect(red, 'a new tenant').toEqual([]);

  // With something in it, also what is no more: a hub that was released, a device that was deleted.
  const [hub, gone] = await owner.claim(['Roof', 'Cellar']);
  const model = await owner.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
  const [kept, deleted] = [1, 2].map((number) => owner.call('POST', '/tenant/devices', { deviceUuid: model.deviceUuid, name: `Door ${number}`, address: `C0:00:00:00:00:0${number}` }));
  const [device, lost] = [await kept, await deleted];
  for (const one of [hub, gone]) await one?.hear([{ address: 'C0:00:00:00:00:01' }, { address: 'C0:00:00:00:00:02' }, { address: 'C0:00:00:00:00:03' }]);
  const rules = [hub, gone].map((one) => ({ layer: 'CLOUD', action: 'FORWARD', match: { hubUuid: one?.uuid } }));
  await owner.call('PUT', '/tenant/ble/route', { otherwise: 'FORWARD', rules });
  const pipeline = await owner.call('POST', '/tenant/data-pipelines', { name: 'To ERP', enabled: false, source: {}, destination: { kind: 'HTTP', url: 'https://receiver.invalid/' } });
  await owner.call('DELETE', `/tenant/hubs/${gone?.uuid}`);
  await owner.call('DELETE', `/tenant/devices/${lost.deviceInstanceId}`);
  const tabs = (path: string, names: string[]) => [path, ...names.map((tab) => `${path}?tab=${tab}`)];
  await visit(owner, [
    ...OF_TENANT.filter((path) => path !== '/live'),
    ...tabs(`/hubs/${hub?.uuid}`, ['hears', 'telemetry', 'jobs', 'apps', 'bundles', 'packages']),
    ...tabs(`/devices/${device.deviceInstanceId}`, ['values', 'timeline', 'where', 'commands', 'events']),
    ...tabs(`/catalog/${model.deviceUuid}`, ['identifiers', 'decoder', 'versions', 'forms', 'manuals', 'actions']),
    ...tabs(`/pipelines/${pipeline.pipelineUuid}`, ['condition', 'deliveries', 'dead-letters', 'replays']),
  ]);
  expect(red, 'a tenant with hubs and devices').toEqual([]);

  // Who may not see a page sees that without a request.
  const viewer = await service.person();
  viewer.tenant = owner.tenant;
  await owner.call('POST', `/tenant/tenants/${owner.tenant}/members`, { personaUuid: viewer.personaUuid, role: 'VIEWER' });
  await page.getByRole('button', { name: 'You' }).click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await expect(page.getByLabel('E-mail')).toBeVisible();
  await page.goto(viewer.page('/audit'));
  await signIn(page, viewer);
  await expect(page.getByText('You do not have permission to do this')).toBeVisible();
  await visit(viewer, OF_TENANT.filter((path) => path !== '/live'));
  expect(red, 'a viewer').toEqual([]);

  await visit(viewer, ['/live']);
  // A session that has ended elsewhere is one that this browser still remembers.
  await viewer.call('DELETE', '/auth/sessions');
  await page.goto(viewer.page());
  await expect(page.getByLabel('E-mail')).toBeVisible();
  expect(red, 'a session that has ended').toEqual([]);
  await safe(page, 'ordinary visits');
});
