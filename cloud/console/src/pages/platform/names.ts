//! Names on platform pages, and links between them.

import { api, listed, type Schemas } from '../../api/client';
import { Problem } from '../../api/problem';
import { PAGE } from '../../api/rows.svelte';
import { named, namedHub } from '../../names.svelte';
import type { Tone } from '../../parts/Badge.svelte';
import { BASE } from '../../router.svelte';

/** The address of a platform page: `platformHref('/hubs', { q: 'roof' })`. */
export function platformHref(path: string, query?: Record<string, string>): string {
  return `${BASE}/platform${path}${query ? `?${new URLSearchParams(query)}` : ''}`;
}

/** Items on a page of a list. */
export const SIZE = 25;

export const EVENT_STATUS: Record<Schemas['Status'], { tone: Tone; text: string }> = {
  PENDING: { tone: 'accent', text: 'pending' },
  DELIVERED: { tone: 'good', text: 'delivered' },
  FAILED: { tone: 'bad', text: 'failed' },
};

const hubsOf = async (query: { q?: string; page?: number }) => {
  const { items, total } = await listed(api.GET('/platform/hubs', { params: { query: { ...query, size: PAGE } } }));
  return { items: items.map((hub) => ({ id: hub.hubUuid, name: namedHub(hub) })), total };
};

/** The name of a hub of any tenant. */
export const platformHubLabel = named({
  kind: 'platform hub',
  page: (page) => hubsOf({ page }),
  one: async (hubUuid) => {
    const found = (await hubsOf({ q: hubUuid })).items.find(({ id }) => id === hubUuid);
    if (!found) throw new Problem(404, 'NOT_FOUND', 'No hub has this id.');
    return found.name;
  },
});
