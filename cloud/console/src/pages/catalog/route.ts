import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/catalog',
    for: 'tenant',
    load: () => import('./Models.svelte'),
    nav: { label: 'Catalog', icon: 'catalog', group: 'Build', order: 1 },
  },
  { path: '/catalog/library', for: 'tenant', load: () => import('./Library.svelte') },
  { path: '/catalog/:deviceUuid', for: 'tenant', load: () => import('./Model.svelte') },
];
