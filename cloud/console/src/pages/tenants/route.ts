import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [{ path: '/tenants/new', for: 'person', load: () => import('./NewTenant.svelte') }];
