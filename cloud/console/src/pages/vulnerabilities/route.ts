import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/vulnerabilities',
    for: 'tenant',
    load: () => import('./Vulnerabilities.svelte'),
    nav: { label: 'Vulnerabilities', icon: 'vulnerability', group: 'Operate', order: 4 },
  },
  { path: '/vulnerabilities/:vulnerabilityId', for: 'tenant', load: () => import('./Vulnerability.svelte') },
];
