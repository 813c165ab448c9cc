import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/audit',
    for: 'tenant',
    needs: 'MANAGE',
    load: () => import('./Audit.svelte'),
    nav: { label: 'Audit log', icon: 'audit', group: 'Manage', order: 8 },
  },
];
