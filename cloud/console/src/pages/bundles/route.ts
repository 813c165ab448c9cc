import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/bundles',
    for: 'tenant',
    load: () => import('./Bundles.svelte'),
    nav: { label: 'Bundles', icon: 'bundle', group: 'Manage', order: 3 },
  },
  { path: '/bundles/:bundleUuid', for: 'tenant', load: () => import('./Bundle.svelte') },
];
