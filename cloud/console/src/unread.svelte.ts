//! The number of the user's unread notices, for the bell.

import { api, listed } from './api/client';

/** Above this number, the bell shows "or more". */
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
      // The bell keeps its number: the pages themselves show that the service is unreachable.
    }
  }
}

export const unread = new Unread();
