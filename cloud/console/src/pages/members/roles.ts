//! The rights of each role, and the names of members.

import type { Schemas } from '../../api/client';
import type { Tone } from '../../parts/Badge.svelte';

export type Role = Schemas['Role'];
export type Member = Schemas['TenantMemberResponse'];

/** From the least to the most. */
export const ROLES: { role: Role; may: string }[] = [
  { role: 'VIEWER', may: 'can view hubs, devices, events and settings' },
  { role: 'EDITOR', may: 'can also change devices, models, pipelines, claim codes and draft bundles' },
  { role: 'OPERATOR', may: 'can also manage hubs, jobs, updates and releases, and publish bundles' },
  { role: 'ADMIN', may: 'can also manage members, API keys and secrets, and read the audit log' },
  { role: 'OWNER', may: 'can also transfer or delete the tenant and appoint owners' },
];

export const ROLE_TONE: Record<Role, Tone> = { VIEWER: 'off', EDITOR: 'off', OPERATOR: 'off', ADMIN: 'accent', OWNER: 'accent' };

export const called = (person: { nickname?: string | null; email?: string | null; personaUuid: string }) =>
  person.nickname || person.email || `persona ${person.personaUuid.slice(0, 8)}…`;
