import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [{ path: '/invitation', for: 'person', load: () => import('./Invitation.svelte') }];
