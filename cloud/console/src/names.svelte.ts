//! Names of hubs, devices and tenants known only by id. What a page shows at once is requested
//! together, and once.

import { SvelteMap } from 'svelte/reactivity';
import { api, data, listed } from './api/client';
import { problemOf } from './api/problem';
import { PAGE } from './api/rows.svelte';

const KEPT = 2000;
/** The time in which a page says what it shows, in milliseconds. */
const GATHERED = 20;
const known = new SvelteMap<string, string>();
const asked = new Set<string>();
/** Called when names are forgotten. */
const forgetting: (() => void)[] = [];

/** Keeps a name. Once there are too many, those that a page still shows are requested again. */
function remember(key: string, name: string) {
  if (known.size >= KEPT) {
    known.clear();
    asked.clear();
    for (const forget of forgetting) forget();
  }
  asked.add(key);
  known.set(key, name);
}

/** What could not be asked for is asked for when a page next shows it; what was refused is not. */
function failed(keys: string[], error: unknown) {
  const { status } = problemOf(error);
  if (status >= 400 && status < 500) return;
  for (const key of keys) asked.delete(key);
}

/** An id in the place of a name. */
export const shortId = (id: string) => `${id.slice(0, 8)}…`;

/** Pages of a list that are read for names. */
const PAGES = 5;
/** Objects beyond those pages that are requested one by one. */
const ALONE = 20;
/** The time for which pages after the first are not read again, in milliseconds. */
const FRESH = 60_000;

interface Source {
  kind: string;
  page: (page: number) => Promise<{ items: { id: string; name: string }[]; total: number }>;
  /** For a list that is longer than what is read of it. */
  one: (id: string) => Promise<string>;
}

/** Names from a list, in few requests: what the whole list does not have was deleted, and is not asked for. */
export function named({ kind, page, one }: Source): (id: string) => string {
  const keyOf = (id: string) => `${kind} ${id}`;
  let wanted: string[] = [];
  let readAt = 0;
  forgetting.push(() => (readAt = 0));

  async function ask() {
    const missing = new Set(wanted);
    wanted = [];
    const isFresh = Date.now() - readAt < FRESH;
    for (let number = 1; number <= (isFresh ? 1 : PAGES) && missing.size > 0; number++) {
      const { items, total } = await page(number).catch((error: unknown) => {
        failed([...missing].map(keyOf), error);
        throw error;
      });
      for (const { id, name } of items) {
        remember(keyOf(id), name);
        missing.delete(id);
      }
      if (number === PAGES) readAt = Date.now();
      if (number * PAGE >= total) return;
    }
    for (const id of [...missing].slice(0, ALONE)) {
      await one(id).then((name) => remember(keyOf(id), name), (error: unknown) => failed([keyOf(id)], error));
    }
  }

  return (id) => {
    const key = keyOf(id);
    if (!known.has(key) && !asked.has(key)) {
      asked.add(key);
      // A deleted or invisible object is shown by its id.
      if (wanted.length === 0) setTimeout(() => void ask().catch(() => {}), GATHERED);
      wanted.push(id);
    }
    return known.get(key) ?? shortId(id);
  };
}

/** A hub as lists have it, in words. */
export const namedHub = (hub: { hubIdentifier?: string | null; hostname?: string | null; deviceInstanceId: string }) => hub.hubIdentifier || hub.hostname || hub.deviceInstanceId;

export const hubLabel = named({
  kind: 'hub',
  page: async (page) => {
    const { items, total } = await listed(api.GET('/tenant/hubs', { params: { query: { page, size: PAGE } } }));
    return { items: items.map((hub) => ({ id: hub.hubUuid, name: namedHub(hub) })), total };
  },
  one: async (hubUuid) => namedHub(await data(api.GET('/tenant/hubs/{hubUuid}', { params: { path: { hubUuid } } }))),
});

/** For platform administrators, who may be no member of the tenant. */
export const tenantLabel = named({
  kind: 'tenant',
  page: async (page) => {
    const { items, total } = await listed(api.GET('/platform/tenants', { params: { query: { page, size: PAGE } } }));
    return { items: items.map(({ tenantUuid, name }) => ({ id: tenantUuid, name })), total };
  },
  one: async (tenantUuid) => (await data(api.GET('/platform/tenants/{tenantUuid}', { params: { path: { tenantUuid } } }))).name,
});

let wanted: number[] = [];

/** Requests the names of all devices that a page has asked for since, together. */
function askForDevices() {
  const ids = wanted.splice(0, PAGE);
  if (wanted.length > 0) queueMicrotask(askForDevices);
  const query = { deviceInstanceIds: ids.join(','), size: PAGE };
  data(api.GET('/tenant/devices', { params: { query } }))
    .then((devices) => {
      for (const { deviceInstanceId, displayName } of devices) remember(`device ${deviceInstanceId}`, displayName);
    })
    // A deleted or invisible device is shown by its id.
    .catch((error: unknown) => failed(ids.map((id) => `device ${id}`), error));
}

export function deviceLabel(deviceInstanceId: number): string {
  const key = `device ${deviceInstanceId}`;
  if (!known.has(key) && !asked.has(key)) {
    asked.add(key);
    if (wanted.length === 0) setTimeout(askForDevices, GATHERED);
    wanted.push(deviceInstanceId);
  }
  return known.get(key) ?? `device ${deviceInstanceId}`;
}
