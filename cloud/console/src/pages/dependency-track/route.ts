import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [{ path: '/dependency-track', for: 'tenant', load: () => import('./DependencyTrack.svelte') }];
