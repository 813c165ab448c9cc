import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/',
    for: 'tenant',
    load: () => import('./Overview.svelte'),
    nav: { label: 'Overview', icon: 'overview', group: 'Operate', order: 1 },
  },
];
