//! Names of hubs and devices known only by id. Each is requested once, a few at a time.

import { SvelteMap } from 'svelte/reactivity';
import { untrack } from 'svelte';
import { api, data } from './api/client';

const AT_ONCE = 4;
const KEPT = 2000;
const known = new SvelteMap<string, string>();
const asked = new Set<string>();
const queue: { key: string; ask: () => Promise<string> }[] = [];
let running = 0;

function next() {
  while (running < AT_ONCE) {
    const one = queue.shift();
    if (!one) return;
    running += 1;
    one
      .ask()
      .then((name) => {
        if (known.size >= KEPT) known.clear();
        known.set(one.key, name);
      })
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

export const deviceLabel = (deviceInstanceId: number) =>
  name(`device ${deviceInstanceId}`, async () => {
    const device = await data(api.GET('/tenant/devices/{deviceInstanceId}', { params: { path: { deviceInstanceId } } }));
    return device.name || device.deviceName;
  }) ?? `device ${deviceInstanceId}`;

/** For platform administrators, who may be no member of the tenant. */
export const tenantLabel = (tenantUuid: string) =>
  name(`tenant ${tenantUuid}`, async () => (await data(api.GET('/platform/tenants/{tenantUuid}', { params: { path: { tenantUuid } } }))).name) ??
  `${tenantUuid.slice(0, 8)}…`;
