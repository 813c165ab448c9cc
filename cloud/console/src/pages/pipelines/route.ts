import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/pipelines',
    for: 'tenant',
    load: () => import('./Pipelines.svelte'),
    nav: { label: 'Pipelines', icon: 'pipeline', group: 'Build', order: 3 },
  },
  { path: '/pipelines/new', for: 'tenant', load: () => import('./New.svelte') },
  { path: '/pipelines/:pipelineUuid', for: 'tenant', load: () => import('./Pipeline.svelte') },
];
