import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/hubs',
    for: 'tenant',
    load: () => import('./Fleet.svelte'),
    nav: { label: 'Fleet', icon: 'hub', group: 'Operate', order: 2 },
  },
];
