import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/members',
    for: 'tenant',
    load: () => import('./Members.svelte'),
    nav: { label: 'Members', icon: 'people', group: 'Manage', order: 1 },
  },
  // Also for a person who is a member of no tenant yet.
  { path: '/transfers', for: 'person', load: () => import('./MyTransfers.svelte') },
];
