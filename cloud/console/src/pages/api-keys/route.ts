import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/api-keys',
    for: 'tenant',
    needs: 'MANAGE',
    load: () => import('./ApiKeys.svelte'),
    nav: { label: 'API keys', icon: 'key', group: 'Manage', order: 2 },
  },
];
