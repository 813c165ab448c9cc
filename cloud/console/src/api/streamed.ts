//! Streams for pages: with the credentials of the session and the tenant of the address.

import { currentTenant } from '../tenants.svelte';
import { accessToken, tokenRefused } from '../session.svelte';

/** The headers of a stream of the current tenant, for `follow`. */
export function credentials(): (refused?: string) => Promise<Record<string, string> | null> {
  const tenant = currentTenant();
  return async (refused) => {
    const token = refused === undefined ? await accessToken() : await tokenRefused(refused.replace(/^Bearer /, ''));
    return token ? { authorization: `Bearer ${token}`, 'x-tenant-uuid': tenant ?? '' } : null;
  };
}
