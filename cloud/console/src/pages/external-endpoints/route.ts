import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/external-endpoints',
    for: 'tenant',
    load: () => import('./ExternalEndpoints.svelte'),
    nav: { label: 'External endpoints', icon: 'endpoint', group: 'Manage', order: 5 },
  },
  { path: '/external-endpoints/:id', for: 'tenant', load: () => import('./ExternalEndpoint.svelte') },
];
