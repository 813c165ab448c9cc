import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/floor-plans',
    for: 'tenant',
    load: () => import('./Plans.svelte'),
    nav: { label: 'Floor plans', icon: 'plan', group: 'Operate', order: 6 },
  },
  { path: '/floor-plans/:floorPlanUuid', for: 'tenant', load: () => import('./Plan.svelte') },
];
