//! Names of hubs and devices known only by id. Each is requested once: hubs a few at a time, devices
//! together.

import { SvelteMap } from 'svelte/reactivity';
import { untrack } from 'svelte';
import { api, data } from './api/client';

const AT_ONCE = 4;
const KEPT = 2000;
const known = new SvelteMap<string, string>();
const asked = new Set<string>();
const queue: { key: string; ask: () => Promise<string> }[] = [];
let running = 0;

/** Keeps a name. Once there are too many, those that a page still shows are requested again. */
function remember(key: string, name: string) {
  if (known.size >= KEPT) {
    known.clear();
    asked.clear();
  }
  asked.add(key);
  known.set(key, name);
}

function next() {
  while (running < AT_ONCE) {
    const one = queue.shift();
    if (!one) return;
    running += 1;
    one
      .ask()
      .then((name) => remember(one.key, name))
      // A deleted or invisible object is shown by its id.
      .catch(() => {})
      .finally(() => {
        running -= 1;
        next();
      });
  }
}

function name(key: string, ask: () => Promise<string>): string | undefined {
  const found = known.get(key);
  if (found === undefined && !asked.has(key)) {
    asked.add(key);
    queue.push({ key, ask });
    untrack(next);
  }
  return found;
}

export const hubLabel = (hubUuid: string) =>
  name(`hub ${hubUuid}`, async () => {
    const hub = await data(api.GET('/tenant/hubs/{hubUuid}', { params: { path: { hubUuid } } }));
    return hub.hubIdentifier || hub.hostname || hub.deviceInstanceId;
  }) ?? `${hubUuid.slice(0, 8)}…`;

/** The most devices that one request asks for. */
const TOGETHER = 100;
let wanted: number[] = [];

/** Requests the names of all devices that a page has asked for since, together. */
function askForDevices() {
  const ids = wanted.splice(0, TOGETHER);
  if (wanted.length > 0) queueMicrotask(askForDevices);
  const query = { deviceInstanceIds: ids.join(','), size: TOGETHER };
  data(api.GET('/tenant/devices', { params: { query } }))
    .then((devices) => {
      for (const { deviceInstanceId, displayName } of devices) remember(`device ${deviceInstanceId}`, displayName);
    })
    // A deleted or invisible device is shown by its id.
    .catch(() => {});
}

export function deviceLabel(deviceInstanceId: number): string {
  const key = `device ${deviceInstanceId}`;
  if (!known.has(key) && !asked.has(key)) {
    asked.add(key);
    // What a page shows at once is asked for at once.
    if (wanted.length === 0) setTimeout(askForDevices, 20);
    wanted.push(deviceInstanceId);
  }
  return known.get(key) ?? `device ${deviceInstanceId}`;
}

/** For platform administrators, who may be no member of the tenant. */
export const tenantLabel = (tenantUuid: string) =>
  name(`tenant ${tenantUuid}`, async () => (await data(api.GET('/platform/tenants/{tenantUuid}', { params: { path: { tenantUuid } } }))).name) ??
  `${tenantUuid.slice(0, 8)}…`;
