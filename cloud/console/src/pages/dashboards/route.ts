import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/dashboards',
    for: 'tenant',
    load: () => import('./Dashboards.svelte'),
    nav: { label: 'Dashboards', icon: 'overview', group: 'Operate', order: 2 },
  },
  { path: '/dashboards/:dashboardUuid', for: 'tenant', load: () => import('./Dashboard.svelte') },
];
