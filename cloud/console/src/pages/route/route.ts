import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/route',
    for: 'tenant',
    load: () => import('./Route.svelte'),
    nav: { label: 'Route', icon: 'rollout', group: 'Build', order: 3 },
  },
];
