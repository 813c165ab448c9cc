import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/billing',
    for: 'tenant',
    load: () => import('./Billing.svelte'),
    nav: { label: 'Billing', icon: 'billing', group: 'Manage', order: 9 },
  },
];
