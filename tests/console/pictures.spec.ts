//! The pictures of docs/console.md: HUB_PICTURES=docs/console tests/console/run PROGRAM pictures
//!
//! A palette of 64 colours makes them a third as large. Needs pngquant.

import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { drawing } from './drawing';
import { address, expect, signIn, test, type Hub } from './harness';
import { named } from './managed';

const folder = process.env.HUB_PICTURES;
const PLACES = ['Roof', 'Cellar', 'Dock 4', 'Cold store', 'Gate', 'Lobby', 'Laboratory', 'Aisle 12'];
// A RuuviTag, as it advertises: 24.3 °C, 53 %, 1000 hPa.
const RUUVI = 'BRL8U5TDfAAE//wEDKw2QgDNy7gzTIhP';

/** What a hub heard of the first sensor within a day, with some hours of silence. */
function day(hub: Hub, index: number) {
  const events = Array.from({ length: 288 }, (_, number) => {
    const bytes = Buffer.from(RUUVI, 'base64');
    bytes.writeInt16BE(Math.round((21 + 4 * Math.sin(number / 45) + Math.random()) / 0.005), 1);
    bytes.writeUInt16BE(number + 1, 16);
    const observedAt = new Date(Date.now() - (number + 1) * 300_000).toISOString();
    return { observedAt, address: address(1), rssi: -48 - index * 9 - (number % 5), manufacturerData: { '0499': bytes.toString('base64') } };
  });
  const batch = { batchUuid: randomUUID(), events: events.filter((_, number) => number % (index + 1) === 0 && (number < 100 || number > 130)) };
  return hub.call('POST', '/v1/ble/events', batch);
}

if (folder) {
  test('pictures', async ({ watched: page, service }) => {
    const root = resolve(import.meta.dirname, '../..', folder);
    const person = await (await service.person()).createTenant('Northern Warehouses');
    const shot = async (name: string) => {
      const picture = await page.screenshot();
      const small = execFileSync('pngquant', ['--strip', '--speed', '1', '64', '-'], { input: picture });
      writeFileSync(join(root, `${name}.png`), small);
    };
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });

    const model = await person.call('POST', '/tenant/device-catalog', { template: 'ruuvi/ruuvitag' });
    for (let number = 1; number <= 4; number++) {
      await person.call('POST', '/tenant/devices', { deviceUuid: model.deviceUuid, name: `Sensor ${number}`, address: address(number) });
    }
    const hubs = await person.claim(Array.from({ length: 64 }, (_, index) => `${PLACES[index % 8]}, hub ${index + 1}`));
    const report = (hub: Hub, minutesAgo: number, index: number) =>
      hub.telemetry({
        observedAt: new Date(Date.now() - minutesAgo * 60_000).toISOString(),
        agentVersion: ['1.4.0', '1.4.2', '1.5.0'][index % 3],
        machine: { uptimeSecs: 864_000 + index, load1m: 0.4 + Math.sin(minutesAgo / 5) / 4, memoryTotalBytes: 1e9, memoryAvailableBytes: 6e8 - minutesAgo * 2e6, diskTotalBytes: 16e9, diskAvailableBytes: 9e9, temperatureCelsius: 48 + (minutesAgo % 7) },
        agent: { residentBytes: 21e6 },
        spool: { events: Math.max(0, Math.round(40 * Math.sin(minutesAgo / 6))), droppedEvents: 0 },
        adapters: { '00:1A:7D:DA:71:13': { state: 'LISTENING', advertisements: 61_234, advertisementsPerSec: 38 + 9 * Math.cos(minutesAgo / 4), lastHeardAt: new Date().toISOString(), restarts: 0, blind: [] } },
      });
    for (const [index, hub] of hubs.entries()) if (index % 9 !== 4) await report(hub, 0, index);
    const first = hubs.at(-1);
    if (!first) throw new Error('no hub');
    await first.call('POST', '/v1/hubs/adapters', { adapters: [{ address: '00:1A:7D:DA:71:13', name: 'hci0', powered: true, discovering: true }] });
    for (let minute = 45; minute >= 0; minute--) await report(first, minute, 0);

    const [device] = await person.call('GET', '/tenant/devices?q=Sensor 1');
    for (const [index, hub] of hubs.slice(-5).entries()) await day(hub, index);
    const probe = await person.call('POST', '/tenant/device-catalog', { name: 'Freezer probe', brand: 'Own', metrics: [{ quantity: 'temperature' }, { quantity: 'battery' }] });
    await person.call('POST', `/tenant/device-catalog/${probe.deviceUuid}/identifiers`, { kind: 'MANUFACTURER_PREFIX', value: 'ffff:29' });
    const read = [{ quantity: 'temperature', at: 0, type: 'i16', scale: 0.01, missing: -32768 }, { quantity: 'battery', at: 2 }];
    await person.call('POST', '/tenant/device-protocols', {
      deviceUuid: probe.deviceUuid,
      name: 'Advertisements',
      kind: 'DECLARATIVE',
      definition: { match: { manufacturer: 'ffff', length: 3 }, read },
      tests: [
        { manufacturerData: { ffff: '290964' }, expect: { temperature: 23.45, battery: 100 } },
        { manufacturerData: { ffff: '008064' }, expect: { temperature: null, battery: 100 } },
      ],
    });
    const rules = [
      { layer: 'HUB', match: { companyId: '004c' }, action: 'DROP' },
      { layer: 'HUB', match: { known: false }, action: 'WINDOW', everySeconds: 300 },
      { layer: 'CLOUD', match: { minRssiDbm: -90 }, action: 'FORWARD' },
    ];
    await person.call('PUT', '/tenant/ble/route', { rules, otherwise: 'DROP' });

    const steps = [
      { op: 'filter', when: 'temperature > 25 and rssi > -90' },
      { op: 'convert', quantity: 'temperature', unit: '°F' },
      { op: 'sample', everySeconds: 60, by: 'DEVICE' },
    ];
    const pipeline = { name: 'Warm rooms', enabled: false, source: {}, steps, destination: { kind: 'HTTP', url: 'https://receiver.example.com/readings' } };
    const { pipelineUuid } = await person.call('POST', '/tenant/data-pipelines', pipeline);
    const ids: string[] = [];
    for (let number = 1; number <= 24; number++) {
      ids.push((await person.call('POST', '/tenant/hubs/claim-codes', { note: `Dock ${number}` })).id);
    }
    for (const [index, name] of ['Ann Berg', 'Jo Lind', 'Sam Ek'].entries()) {
      const { personaUuid } = await named(service, name);
      await person.call('POST', '/tenant/personas/invite', { personaUuid, role: ['ADMIN', 'OPERATOR', 'VIEWER'][index] });
    }
    const places = [[0.31, 0.49], [0.36, 0.82], [0.82, 0.24]] as const;
    const placed = places.map(([x, y], index) => ({ hubUuid: hubs.at(-5 + index)?.uuid, x, y }));
    const { floorPlanUuid } = await person.call('POST', '/tenant/floor-plans', { name: 'Hall 3', widthMetres: 40, hubs: placed });
    const headers = { authorization: `Bearer ${person.token}`, 'x-tenant-uuid': person.tenant };
    await fetch(`${service.url}/tenant/floor-plans/${floorPlanUuid}/image`, { method: 'PUT', headers, body: new Uint8Array(drawing(800, 500)) });

    await page.goto(person.page('/live'));
    await signIn(page, person);
    await expect(page.getByText('live', { exact: true })).toBeVisible();
    for (let round = 0; round < 6; round++) {
      for (const hub of hubs.slice(-3)) {
        await hub.hear([
          ...[1, 2, 3, 4].map((number) => ({ address: address(number), rssi: -55 - number * 4, manufacturerData: { '0499': RUUVI } })),
          ...Array.from({ length: 18 }, (_, index) => ({ address: address(40 + index), rssi: -60 - index, manufacturerData: { '0059': 'AQID' }, ...(index % 4 ? {} : { name: 'Tag' }) })),
        ]);
      }
    }
    await page.getByText('Sensor 1').click();
    await expect(page.getByRole('region', { name: 'Device' })).toContainText('temperature');
    await page.waitForTimeout(1500);
    await shot('live');
    for (const [name, path, text] of [
      ['fleet', '/hubs', 'hub 64'],
      ['hub', `/hubs/${first.uuid}`, 'listening'],
      ['device-values', `/devices/${device.deviceInstanceId}?tab=values`, 'mean'],
      ['unknown', '/unknown', 'Tag'],
      ['decoder', `/catalog/${probe.deviceUuid}?tab=decoder`, '2 tests pass'],
      ['route', '/route', 'Dropped data'],
      ['pipeline', `/pipelines/${pipelineUuid}`, 'Warm rooms'],
      ['floor-plan', `/floor-plans/${floorPlanUuid}?device=${device.deviceInstanceId}`, 'Estimated'],
      ['claim-labels', `/claim-codes/labels?ids=${ids.join()}`, 'Dock 24'],
      ['members', '/members', 'Sam Ek'],
    ] as const) {
      await page.goto(person.page(path));
      await expect(page.getByText(text).first()).toBeVisible();
      await page.waitForTimeout(1000);
      await shot(name);
    }
  });
}
