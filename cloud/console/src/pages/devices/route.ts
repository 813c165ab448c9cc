import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/devices',
    for: 'tenant',
    load: () => import('./Devices.svelte'),
    nav: { label: 'Devices', icon: 'device', group: 'Operate', order: 3 },
  },
  { path: '/devices/:deviceInstanceId', for: 'tenant', load: () => import('./Device.svelte') },
];
