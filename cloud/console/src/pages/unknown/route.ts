import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/unknown',
    for: 'tenant',
    load: () => import('./Unknown.svelte'),
    nav: { label: 'Unknown', icon: 'search', group: 'Operate', order: 5 },
  },
];
