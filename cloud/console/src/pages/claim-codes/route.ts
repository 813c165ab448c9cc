import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/claim-codes',
    for: 'tenant',
    load: () => import('./ClaimCodes.svelte'),
    nav: { label: 'Claim codes', icon: 'code', group: 'Operate', order: 5 },
  },
  { path: '/claim-codes/labels', for: 'tenant', load: () => import('./Labels.svelte') },
];
