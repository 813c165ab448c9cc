import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/history',
    for: 'tenant',
    needs: 'READ',
    load: () => import('./History.svelte'),
    nav: { label: 'History', icon: 'history', group: 'Manage', order: 8 },
  },
];
