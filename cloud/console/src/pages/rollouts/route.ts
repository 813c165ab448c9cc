import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/rollouts',
    for: 'tenant',
    load: () => import('./Rollouts.svelte'),
    nav: { label: 'Rollouts', icon: 'rollout', group: 'Operate', order: 4 },
  },
  { path: '/rollouts/:policyUuid', for: 'tenant', load: () => import('./Policy.svelte') },
];
