//! Names of what entries of the audit log mention by id: one list for each kind that is mentioned,
//! none for each entry.

import { api, data, listed } from '../../api/client';
import { everything, PAGE } from '../../api/rows.svelte';
import { deviceLabel, hubLabel, shortId } from '../../names.svelte';
import { tenants } from '../../tenants.svelte';
import { allModels } from '../catalog/models';
import { called, type Member } from '../members/roles';
import type { Entry } from './changes';

/** Kinds whose names come from a list of their own. */
type Kind = 'api_key' | 'app' | 'device_model' | 'external_endpoint' | 'floor_plan' | 'pipeline' | 'supplier_bundle';
/** The names of objects, by kind and id. */
export type Names = Map<string, string>;

const query = { size: PAGE };
const READS: Record<Kind, (signal: AbortSignal) => Promise<[id: string | number, name: string][]>> = {
  api_key: async (signal) => (await data(api.GET('/tenant/api-keys', { signal }))).map(({ apiKeyId, name }) => [apiKeyId, name]),
  app: async (signal) => (await data(api.GET('/tenant/apps', { params: { query }, signal }))).map(({ appUuid, name }) => [appUuid, name]),
  device_model: async (signal) => (await allModels(signal)).map(({ deviceUuid, name }) => [deviceUuid, name]),
  external_endpoint: async (signal) => (await data(api.GET('/tenant/external-endpoints', { signal }))).map(({ id, name }) => [id, name]),
  floor_plan: async (signal) => (await data(api.GET('/tenant/floor-plans', { signal }))).map(({ floorPlanUuid, name }) => [floorPlanUuid, name]),
  pipeline: async (signal) => (await data(api.GET('/tenant/data-pipelines', { signal }))).map(({ pipelineUuid, name }) => [pipelineUuid, name]),
  supplier_bundle: async (signal) =>
    (await everything((page, signal) => listed(api.GET('/tenant/supplier-bundles', { params: { query: { page, size: PAGE } }, signal })), signal)).map(({ bundleUuid, name }) => [bundleUuid, name]),
};
const isKind = (text: string): text is Kind => text in READS;

/** The kind of object that a member such as `pipelineUuids` or `appUuid` refers to. */
const REFERENCES: [RegExp, Kind | 'hub' | 'device'][] = [
  [/^(bound|offline)?hubUuids?$/i, 'hub'],
  [/^deviceInstanceIds?$/, 'device'],
  [/^deviceUuids?$/, 'device_model'],
  [/^pipelineUuids?$/, 'pipeline'],
  [/^bundleUuids?$/, 'supplier_bundle'],
  [/^appUuids?$/, 'app'],
  [/^apiKeyIds?$/, 'api_key'],
  [/^floorPlanUuids?$/, 'floor_plan'],
];
const referred = (field: string) => REFERENCES.find(([pattern]) => pattern.test(field))?.[1];

function fieldsOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(fieldsOf);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([field, one]) => (one === null ? [] : [field, ...fieldsOf(one)]));
}

/** The kinds that entries mention, in a fixed order. */
function mentioned(entries: Entry[]): Kind[] {
  const found = entries.flatMap(({ actor, objectType, before, after, detail }) => [
    ...(actor.apiKeyId == null ? [] : ['api_key']),
    objectType,
    ...fieldsOf([before, after, detail]).map((field) => referred(field) ?? ''),
  ]);
  return [...new Set(found)].filter(isKind).sort();
}

/** True if the entry says that its object is no more. */
export const isGone = (action: string) => /\.(delete|release|deactivate|remove|leave)$/.test(action);

const TEXTS = ['name', 'displayName', 'hubIdentifier', 'email', 'nickname', 'claimCode', 'version'];

/** The name that an object had at the time, as the entry has it. */
export function nameAtTheTime({ before, after, detail }: Entry): string | undefined {
  for (const value of [after, before, detail]) {
    if (typeof value !== 'object' || value === null) continue;
    const texts = value as Record<string, unknown>;
    const found = TEXTS.map((name) => texts[name]).find((text) => typeof text === 'string' && text !== '');
    if (typeof found === 'string') return found;
  }
  return undefined;
}

/** Reads the names of what entries mention. What no list has, is gone or may not be read has its name in the entries. */
export async function readNames(entries: Entry[], signal: AbortSignal): Promise<Names> {
  const then = entries.map((entry): [string, string | undefined] => [`${entry.objectType} ${entry.objectId}`, nameAtTheTime(entry)]).reverse();
  const lists = await Promise.all(
    mentioned(entries).map(async (kind) => (await READS[kind](signal).catch(() => [])).map(([id, name]): [string, string] => [`${kind} ${id}`, name])),
  );
  return new Map([...then.filter((one): one is [string, string] => one[1] !== undefined), ...lists.flat()]);
}

/** The name of a hub, which a hub that was released has in entries only. */
export function hubName(hubUuid: string, names: Names): string | undefined {
  const label = hubLabel(hubUuid);
  return label === shortId(hubUuid) ? names.get(`hub ${hubUuid}`) : label;
}

/** The name of the object of a kind; undefined if it has none, or is not known. */
function objectName(kind: string, id: string, names: Names): string | undefined {
  if (kind === 'hub') return hubName(id, names);
  if (kind === 'device' && /^\d+$/.test(id)) return deviceLabel(Number(id));
  return names.get(`${kind} ${id}`);
}

const personName = (id: string, members: Member[]) => {
  const member = members.find(({ userUuid, personaUuid }) => id === userUuid || id === personaUuid);
  return member && called(member);
};
const tenantName = (id: string) => tenants.list?.find(({ tenantUuid }) => tenantUuid === id)?.name;

/** The name in the place of an id that the member `field` has. */
export function referenceName(field: string, id: string, names: Names, members: Member[]): string | undefined {
  const kind = referred(field);
  return (kind && objectName(kind, id, names)) ?? personName(id, members) ?? tenantName(id);
}

/** What a type of object is called. */
export const kindName = (objectType: string) => objectType.replaceAll('_', ' ');

/** Types that the whole tenant has one of, and that have its id. */
export const OF_TENANT = ['tenant', 'ble_route', 'notification_setting', 'dependency_track'];

/** The name of the object of an entry: now, else at the time; undefined if only its id is known. */
export function objectOf(entry: Entry, names: Names, members: Member[]): string | undefined {
  const { objectType, objectId } = entry;
  const then = nameAtTheTime(entry);
  if (isGone(entry.action) && then) return then;
  if (objectType === 'hub' || objectType === 'hub_certificate') return hubName(objectId, names) ?? then;
  const [hubUuid = '', adapter] = objectId.split('/');
  if (objectType === 'hub_adapter' && adapter) return `${adapter} of ${hubName(hubUuid, names) ?? hubUuid}`;
  const job = (entry.after ?? entry.before) as { type?: unknown; hubUuid?: unknown } | null | undefined;
  if (objectType === 'hub_job' && typeof job?.type === 'string' && typeof job.hubUuid === 'string') return `${job.type} on ${hubName(job.hubUuid, names) ?? job.hubUuid}`;
  if (objectType === 'device' || isKind(objectType)) return objectName(objectType, objectId, names) ?? then;
  return personName(objectId, members) ?? (OF_TENANT.includes(objectType) ? tenantName(objectId) : undefined) ?? then;
}
