import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [{ path: '/hubs/:hubUuid', for: 'tenant', load: () => import('./Hub.svelte') }];
