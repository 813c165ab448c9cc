import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/settings',
    for: 'tenant',
    load: () => import('./Settings.svelte'),
    nav: { label: 'Tenant settings', icon: 'settings', group: 'Manage', order: 10 },
  },
];
