//! The tenants of the person, the one that the address names, and what the person may do in it.

import { problemIn, problemOf, type Problem } from './api/problem';
import type { components } from './api/schema';
import { address, BASE, match, navigate } from './router.svelte';
import { accessToken, tokenRefused } from './session.svelte';

export type Tenant = components['schemas']['TenantResponse'];
export type Right = 'READ' | 'WRITE' | 'OPERATE' | 'MANAGE';

const BITS: Record<Right, number> = { READ: 1, WRITE: 2, OPERATE: 4, MANAGE: 8 };
const ROLES: Record<string, number> = { VIEWER: 1, EDITOR: 3, OPERATOR: 7, ADMIN: 15, OWNER: 15 };
const LAST = 'hub-console-tenant';

class Tenants {
  list = $state.raw<Tenant[] | null>(null);
  problem = $state.raw<Problem | null>(null);
  readonly uuid = $derived(match('/t/:tenant', address.path.split('/').slice(0, 3).join('/'))?.tenant ?? null);
  readonly current = $derived(this.list?.find((tenant) => tenant.tenantUuid === this.uuid) ?? null);
  /** The tenant whose pages the navigation leads to: that of the address, or the last one. */
  readonly near = $derived(this.uuid ?? rememberedTenant(this.list)?.tenantUuid ?? null);
}

export const tenants = new Tenants();

export function currentTenant(): string | null {
  return tenants.uuid;
}

/** True if the role of the user in this tenant includes a right; the service checks each request. */
export function may(right: Right): boolean {
  return ((ROLES[tenants.current?.role ?? ''] ?? 0) & BITS[right]) !== 0;
}

export const isOwner = () => tenants.current?.role === 'OWNER';

/** The address of a page of the current tenant: `href('/hubs', { q: 'roof' })`. */
export function href(path: string, query?: Record<string, string | undefined>): string {
  const given = Object.entries(query ?? {}).filter((entry): entry is [string, string] => Boolean(entry[1]));
  const text = given.length ? `?${new URLSearchParams(given)}` : '';
  return `${BASE}/t/${tenants.near}${path === '/' ? '' : path}${text}`;
}

/** Reloads the tenants and roles of the user. */
export async function loadTenants(): Promise<void> {
  try {
    const token = await accessToken();
    if (!token) return;
    const ask = (bearer: string) => fetch('/tenant/tenants', { headers: { authorization: `Bearer ${bearer}` } });
    let response = await ask(token);
    if (response.status === 401) {
      const other = await tokenRefused(token);
      if (!other) return;
      response = await ask(other);
    }
    // A proxy before the service answers with a page of its own.
    const body: unknown = await response.json().catch(() => undefined);
    if (!response.ok) throw problemIn(response, body);
    tenants.list = (body as { data: Tenant[] }).data;
    tenants.problem = null;
  } catch (error) {
    tenants.problem = problemOf(error);
  }
}

export function forgetTenants() {
  tenants.list = null;
  tenants.problem = null;
}

/** Opens the overview of a tenant, and remembers it for the next visit of this browser. */
export function openTenant(tenantUuid: string, { replace = false } = {}) {
  remember(tenantUuid);
  navigate(`/t/${tenantUuid}`, { replace });
}

export function remember(tenantUuid: string) {
  try {
    localStorage.setItem(LAST, tenantUuid);
  } catch {
    // A browser that stores nothing begins with the first tenant.
  }
}

export function rememberedTenant(list: Tenant[] | null): Tenant | undefined {
  let last: string | null = null;
  try {
    last = localStorage.getItem(LAST);
  } catch {
    // As above.
  }
  return list?.find((tenant) => tenant.tenantUuid === last) ?? list?.[0];
}
