//! What filters and files mean, without a browser.

import { expect, test } from '@playwright/test';
import { said } from '../../cloud/console/src/api/said';
import { toCsv } from '../../cloud/console/src/csv';
import { parseDuration, parseFilter, withTerm } from '../../cloud/console/src/filter';
import { duckdb, expiryOf, filesQuery, isAddress } from '../../cloud/console/src/pages/history/files';
import { fits, parseLiveFilter } from '../../cloud/console/src/pages/live/filter';
import { auditQuery } from '../../cloud/console/src/pages/platform/audit';
import { effectsOf, limitsOf, textsOf } from '../../cloud/console/src/pages/platform/limits';
import { compareVersions, highest } from '../../cloud/console/src/pages/vulnerabilities/versions';
import { blindPeriods, readReport, reasons } from '../../cloud/console/src/pages/hub/telemetry';

test('filters', () => {
  const terms = (text: string) => parseFilter(text).map(({ key, compare, value }) => `${key}|${compare}|${value}`);
  expect(terms('is:offline version:<1.4 lastseen:>=1h label:"roof top" b8:27 >5 "two words"')).toEqual([
    'is||offline',
    'version|<|1.4',
    'lastseen|>=|1h',
    'label||roof top',
    '||b8:27',
    '||>5',
    '||two words',
  ]);
  expect(terms('label:"open end')).toEqual(['label||open end']);
  expect(terms('aa:bb:cc be:ef is:on')).toEqual(['||aa:bb:cc', '||be:ef', 'is||on']);
  expect(terms('')).toEqual([]);
  expect(withTerm('is:online roof', 'is', 'cold store')).toBe('roof is:"cold store"');
  expect(['90s', '10min', '1.5h', '2d', '1w', '5', 'h', '-1h'].map(parseDuration)).toEqual([90e3, 6e5, 54e5, 1728e5, 6048e5, null, null, null]);
});

test('filters of live events', () => {
  const row = {
    key: 'A',
    address: 'AA:BB',
    name: 'Sensor',
    deviceInstanceId: null,
    status: 'UNMATCHED',
    count: 1,
    rate: 1,
    rssi: -60,
    hubs: 1,
    at: '',
    values: [{ quantity: 'temperature', value: 20 }],
    receptions: new Map([['01a2-3', {}]]),
  };
  const kept = (text: string) => fits(row, parseLiveFilter(text).terms);
  for (const text of ['', 'is:decoded', 'is:unknown', 'address:aa', 'name:SENS', 'rssi:>-70', 'rssi:<-50', 'hub:01a2', 'value:temp', 'bb sensor']) {
    expect(kept(text), text).toBe(true);
  }
  for (const text of ['is:known', 'address:cc', 'name:x', 'rssi:>-60', 'rssi:<-60', 'hub:ff', 'value:humidity', 'bb x']) {
    expect(kept(text), text).toBe(false);
  }
  expect(parseLiveFilter('rssi:strong is:old wheel:1 is:decoded').problems).toHaveLength(3);
});

test('no spreadsheet runs a name', () => {
  expect(toCsv(['a', 'b'], [['=1+1', -5], ['x,"y"', null], ['two\nlines', '@x']])).toBe('a,b\r\n\'=1+1,-5\r\n"x,""y""",\r\n"two\nlines",\'@x\r\n');
});

test('telemetry of any shape', () => {
  const record = (data: unknown) => ({ data, receivedAt: '2026-01-31T09:30:00.000000Z', hubUuid: 'h', hubTelemetryId: 1 }) as any;
  for (const data of [null, 5, 'text', [], {}, { machine: 5, adapters: [1], spool: null }, { adapters: { a: null, b: { blind: [5, { from: 'never' }] } } }]) {
    expect(readReport(record(data)).blind, JSON.stringify(data)).toEqual([]);
  }
  const blind = (to?: string) => ({ adapters: { A: { state: 'BLIND', blind: [{ from: '2026-01-31T09:00:00Z', to, reason: 'gone' }] } } });
  const later = { ...record(blind('2026-01-31T09:10:00Z')), receivedAt: '2026-01-31T09:31:00.000000Z' };
  const periods = blindPeriods([later, record(blind())].map(readReport));
  expect(periods.map(({ from, to, reason }) => [(to ?? 0) - from, reason]), 'one that was reported twice is one').toEqual([[600_000, 'gone']]);
  const hub = { status: 'OFFLINE', lastTelemetryAt: '2026-01-31T09:30:00.000000Z' } as any;
  expect(reasons(hub, readReport(record({ spool: { trouble: 'read-only' } })))[0]).toContain('read-only');
  expect(reasons(hub, readReport(record({})))[0]).toContain('no problem');
});

test('limits of a tenant', () => {
  const read = (text: string) => limitsOf({ storedBytes: text, hubs: '', apiKeys: '' });
  for (const [text, bytes] of [['20 GiB', 20 * 2 ** 30], ['1.5TiB', 1.5 * 2 ** 40], ['500 MB', 5e8], ['1,000', 1000], ['7 B', 7], ['', null]] as const) {
    expect(read(text).limits.storedBytes, text).toBe(bytes);
  }
  for (const text of ['many', '-5', '0', '1.5', '1025 TiB', '5 days']) expect(read(text).wrong.map(({ field }) => field), text).toEqual(['storedBytes']);
  expect(limitsOf({ hubs: '5 GiB', 'retentionDays.logs': '0' }).wrong.map(({ field }) => field)).toEqual(['hubs', 'retentionDays.logs']);
  const limits = { hubs: 0, storedBytes: 3 * 2 ** 20, bytesPerDay: 1500, retentionDays: { logs: 7 } };
  expect(limitsOf(textsOf(limits)).limits, 'what is read back is the same').toMatchObject(limits);
  const before = { retentionDays: {} };
  expect(effectsOf(before, before)).toEqual([]);
  expect(effectsOf(before, { ...before, hubs: 5 }).join()).not.toContain('deleted');
  expect(effectsOf(before, { retentionDays: { logs: 7 } }).join(), 'a shorter time deletes').toContain('deleted');
  expect(effectsOf({ retentionDays: { logs: 7 } }, { retentionDays: { logs: 30 } }).join()).not.toContain('deleted');
});

test('filters of the audit log', () => {
  const now = Date.parse('2026-01-31T12:00:00Z');
  const uuid = '01a20df7-7ace-7554-86c5-39728d139777';
  const { query, problems } = auditQuery(`action:hub.update object:hub id:x actor:API_KEY key:12 tenant:${uuid} since:1h`, now);
  expect(problems).toEqual([]);
  expect(query).toEqual({ action: 'hub.update', objectType: 'hub', objectId: 'x', actorType: 'API_KEY', apiKeyId: 12, tenantUuid: uuid, from: '2026-01-31T11:00:00.000Z' });
  expect(auditQuery(`actor:${uuid}`, now).query).toEqual({ actorUuid: uuid });
  expect(auditQuery('before:2026-01-31', now).query.to).toBe(new Date('2026-01-31T00:00').toISOString());
  const unused = auditQuery('word actor:me key:x tenant:y since:soon before:2026-13-99 wheel:1', now);
  expect([unused.query, unused.problems.length]).toEqual([{}, 7]);
});

test('filters of the files of the history', () => {
  const now = Date.parse('2026-01-31T12:00:00Z');
  const read = (text: string) => filesQuery(text, now);
  expect(read('')).toEqual({ query: {}, problems: [] });
  expect(read('day:2026-01-30').query, 'a day of UTC').toEqual({ from: '2026-01-30T00:00:00.000Z', to: '2026-01-31T00:00:00.000Z' });
  expect(read('since:7d before:2026-01-31').query).toEqual({ from: '2026-01-24T12:00:00.000Z', to: '2026-01-31T00:00:00.000Z' });
  expect(read('day:"" since:"').problems, 'what is being typed').toEqual([]);
  const unused = read('word day:7d day:2026-13-01 since:soon before:x wheel:1');
  expect([unused.query, unused.problems.length]).toEqual([{}, 6]);
});

test('files of the history for other software', () => {
  expect(['s3://bucket/history/tenant_uuid=1', 'history/tenant_uuid=1'].map(isAddress)).toEqual([true, false]);
  const query = duckdb("s3://bucket/o'neil/history/tenant_uuid=1", '2026-01-31');
  expect(query).toContain("read_parquet('s3://bucket/o''neil/history/tenant_uuid=1/*/*.parquet', hive_partitioning = true)");
  expect(query).toContain("day = '2026-01-31'");
  expect(expiryOf(Date.parse('2026-01-31T12:00:00Z'))).toBe('2026-01-31T12:15:00.000Z');
});

test('versions are in the order of semver', () => {
  const order = ['1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-alpha.beta', '1.0.0-beta.2', '1.0.0-beta.11', '1.0.0-rc.1', '1.0', '1.0.1', '1.9.0', '1.10.0', 'v2'];
  for (const [at, version] of order.slice(1).entries()) expect(compareVersions(order[at] ?? '', version), version).toBeLessThan(0);
  expect([compareVersions('1.2', '1.2.0+build'), compareVersions('nightly', '1')]).toEqual([0, null]);
  expect(highest([{ version: '1.9.0' }, { version: '2.0.0-rc.1' }, { version: '1.10.0' }]), 'of full releases').toEqual({ version: '1.10.0' });
  expect(highest([{ version: '2.0.0-rc.1' }, { version: '2.0.0-rc.2' }])).toEqual({ version: '2.0.0-rc.2' });
});

test('what the service answers is said to people', () => {
  expect(said('TENANT_NOT_ACCESSIBLE', 'you are not a member of the tenant in `X-Tenant-UUID`')).toBe('You are not a member of this tenant. One of its owners or administrators can add you.');
  expect(said('TENANT_REQUIRED', 'name the tenant in the header `X-Tenant-UUID`')).toBe('This page belongs to no tenant. Choose a tenant first.');
  expect(said('OTHER', 'the header `X-Tenant-UUID` names another tenant than the path')).toBe('The “tenant” names another tenant than the path.');
  expect(said('INVALID_FIELD', '`rateLimitPerMinute` is not valid: must be between 1 and 100000')).toBe('“rate limit per minute” is not valid: must be between 1 and 100000.');
  expect(said('INVALID_FIELD', '`rules[3].pipelineUuids` is not valid: there is no such pipeline')).toBe('“pipeline” is not valid: there is no such pipeline.');
  expect(said('OTHER', 'there is no quantity `temperatur`; is `temperature` meant?')).toBe('There is no quantity “temperatur”; is “temperature” meant?');
  expect(said('PERMISSION_DENIED', 'your role VIEWER does not allow this')).toBe('Your role VIEWER does not allow this.');
});
