import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/apps',
    for: 'tenant',
    load: () => import('./Apps.svelte'),
    nav: { label: 'Apps', icon: 'bundle', group: 'Build', order: 5 },
  },
  { path: '/apps/:appUuid', for: 'tenant', load: () => import('./App.svelte') },
  { path: '/apps/:appUuid/releases/:releaseUuid', for: 'tenant', load: () => import('./Release.svelte') },
];
