import type { PageRoute } from '../../pages';

export const routes: PageRoute[] = [
  {
    path: '/platform/overview',
    for: 'admin',
    load: () => import('./Overview.svelte'),
    nav: { label: 'Platform', icon: 'platform', group: 'Platform', order: 1 },
  },
  {
    path: '/platform/tenants',
    for: 'admin',
    load: () => import('./Tenants.svelte'),
    nav: { label: 'Tenants', icon: 'people', group: 'Platform', order: 2 },
  },
  { path: '/platform/tenants/:tenantUuid', for: 'admin', load: () => import('./Tenant.svelte') },
  {
    path: '/platform/hubs',
    for: 'admin',
    load: () => import('./Hubs.svelte'),
    nav: { label: 'All hubs', icon: 'hub', group: 'Platform', order: 3 },
  },
  { path: '/platform/hubs/:hubUuid', for: 'admin', load: () => import('./Hub.svelte') },
  {
    path: '/platform/agent-releases',
    for: 'admin',
    load: () => import('./Releases.svelte'),
    nav: { label: 'Agent releases', icon: 'bundle', group: 'Platform', order: 4 },
  },
  {
    path: '/platform/update-policies',
    for: 'admin',
    load: () => import('./Policies.svelte'),
    nav: { label: 'Update policies', icon: 'rollout', group: 'Platform', order: 5 },
  },
  {
    path: '/platform/registration-events',
    for: 'admin',
    load: () => import('./RegistrationEvents.svelte'),
    nav: { label: 'Registration events', icon: 'endpoint', group: 'Platform', order: 6 },
  },
  {
    path: '/platform/activation-events',
    for: 'admin',
    load: () => import('./ActivationEvents.svelte'),
    nav: { label: 'Activations', icon: 'device', group: 'Platform', order: 7 },
  },
  {
    path: '/platform/supplier-approvals',
    for: 'admin',
    load: () => import('./Approvals.svelte'),
    nav: { label: 'Supplier approvals', icon: 'consent', group: 'Platform', order: 8 },
  },
  {
    path: '/platform/audit-logs',
    for: 'admin',
    load: () => import('./AuditLogs.svelte'),
    nav: { label: 'Global audit log', icon: 'audit', group: 'Platform', order: 9 },
  },
];
