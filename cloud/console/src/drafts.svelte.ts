//! Work that is not saved. It is kept in memory while the console is open, so that a look at another page
//! loses nothing; of leaving the console altogether the browser asks.

import { notify } from './notices.svelte';
import { session } from './session.svelte';
import { currentTenant } from './tenants.svelte';

const drafts = new Map<string, unknown>();

function warn(event: BeforeUnloadEvent) {
  event.preventDefault();
}

/** The key of a draft: whose it is, in which tenant, and of what. */
export const draftKey = (of: string) => `${session.person?.userUuid} ${currentTenant()} ${of}`;

/** Keeps a draft by its key; undefined removes it. */
export function keep(key: string, draft: unknown) {
  if (draft === undefined) drafts.delete(key);
  else drafts.set(key, draft);
  if (drafts.size) addEventListener('beforeunload', warn);
  else removeEventListener('beforeunload', warn);
}

export const kept = <T>(key: string): T | undefined => drafts.get(key) as T | undefined;

/** Keeps `draft` while the component exists, and notifies at its end that it is not saved. */
export function keeping(key: string, draft: () => unknown, name: () => string) {
  let left = '';
  $effect(() => {
    keep(key, draft());
    left = name();
  });
  $effect(() => () => {
    // Later: states are those of before while a component ends.
    setTimeout(() => {
      if (drafts.has(key) && session.state === 'in') notify(`${left} is not saved. Your changes are kept until you close the console.`);
    });
  });
}
