import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/supplier-oauth',
    for: 'tenant',
    needs: 'MANAGE',
    load: () => import('./SupplierOauth.svelte'),
    nav: { label: 'Supplier OAuth', icon: 'link', group: 'Manage', order: 6 },
  },
];
