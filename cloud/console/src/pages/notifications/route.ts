import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/notification-settings',
    for: 'tenant',
    load: () => import('./Settings.svelte'),
    nav: { label: 'Notifications', icon: 'bell', group: 'Manage', order: 4 },
  },
  { path: '/notifications', for: 'person', load: () => import('./Notifications.svelte') },
];
