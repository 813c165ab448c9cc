import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/consent',
    for: 'tenant',
    load: () => import('./Consent.svelte'),
    nav: { label: 'Consent', icon: 'consent', group: 'Manage', order: 7 },
  },
  { path: '/consent/new', for: 'tenant', needs: 'MANAGE', load: () => import('./NewVersion.svelte') },
];
