//! How many of the person's latest notices are unread, for the bell.

import { api, listed } from './api/client';

/** Beyond this many, the bell says "more". */
const LATEST = 20;

class Unread {
  count = $state(0);
  isMore = $state(false);

  async load() {
    try {
      const { items, total } = await listed(api.GET('/me/notifications', { params: { query: { size: LATEST } } }));
      this.count = items.filter(({ readAt }) => !readAt).length;
      this.isMore = this.count === LATEST && total > LATEST;
    } catch {
      // The bell stays as it was: what cannot be reached is said where it is looked for.
    }
  }
}

export const unread = new Unread();
