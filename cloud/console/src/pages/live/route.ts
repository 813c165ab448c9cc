import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/live',
    for: 'tenant',
    load: () => import('./Live.svelte'),
    nav: { label: 'Live', icon: 'live', group: 'Operate', order: 3 },
  },
];
