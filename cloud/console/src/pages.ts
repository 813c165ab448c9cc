//! All pages. Each folder of `pages/` with a `route.ts` is one or more; nothing else lists them.

import type { Component } from 'svelte';
import type { IconName } from './parts/icons';
import { match } from './router.svelte';
import type { Right } from './tenants.svelte';

export interface PageRoute {
  /** Below `/t/<tenant>` for a page of a tenant, below `/console` for others. */
  path: string;
  /** `tenant` and `person` need a login, `admin` a platform administrator, `anyone` nothing. */
  for: 'tenant' | 'person' | 'admin' | 'anyone';
  // Each page declares the `params` that its path has, which are strings all.
  load: () => Promise<{ default: Component<any> }>;
  /** The right without which it shows nothing: others are not led to it. */
  needs?: Right;
  /** Its entry in the navigation, sorted by `order` within its group. */
  nav?: { label: string; icon: IconName; group: 'Operate' | 'Build' | 'Manage' | 'Platform'; order: number };
}

const modules = import.meta.glob<{ routes: PageRoute[] }>('./pages/*/route.ts', { eager: true });
export const pages: PageRoute[] = Object.values(modules).flatMap((module) => module.routes);

export interface Found {
  page: PageRoute;
  params: Record<string, string>;
}

export function find(path: string): Found | null {
  const inTenant = /^\/t\/[^/]+(\/.*)?$/.exec(path);
  for (const page of pages) {
    if ((page.for === 'tenant') !== Boolean(inTenant)) continue;
    const params = match(page.path, inTenant ? (inTenant[1] ?? '/') : path);
    if (params) return { page, params };
  }
  return null;
}
