//! Names on platform pages, and links between them.

import type { Schemas } from '../../api/client';
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
