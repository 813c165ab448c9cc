import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [{ path: '/reset', for: 'anyone', load: () => import('./Reset.svelte') }];
