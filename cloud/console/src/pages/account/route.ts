import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [{ path: '/account', for: 'person', load: () => import('./Account.svelte') }];
