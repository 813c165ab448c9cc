import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  { path: '/advisories', for: 'tenant', load: () => import('./Advisories.svelte') },
  // An advisory may have any id, `new` too.
  { path: '/new-advisory', for: 'tenant', needs: 'OPERATE', load: () => import('./NewAdvisory.svelte') },
  { path: '/advisories/:advisoryId', for: 'tenant', load: () => import('./Advisory.svelte') },
];
