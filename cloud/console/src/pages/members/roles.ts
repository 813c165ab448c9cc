//! The rights of each role, and the names of members.

import type { Schemas } from '../../api/client';
import type { Tone } from '../../parts/Badge.svelte';

export type Role = Schemas['Role'];
export type Member = Schemas['TenantMemberResponse'];

/** From the least to the most. */
export const ROLES: { role: Role; may: string }[] = [
  { role: 'VIEWER', may: 'sees hubs, devices, events and settings' },
  { role: 'EDITOR', may: 'changes devices, models, pipelines, claim codes and drafts of bundles, too' },
  { role: 'OPERATOR', may: 'acts on hubs with jobs, updates and releases, and publishes bundles, too' },
  { role: 'ADMIN', may: 'manages members, API keys and secrets, and reads the audit log, too' },
  { role: 'OWNER', may: 'may give the tenant away, delete it and make others owners, too' },
];

export const ROLE_TONE: Record<Role, Tone> = { VIEWER: 'off', EDITOR: 'off', OPERATOR: 'off', ADMIN: 'accent', OWNER: 'accent' };

export const called = (person: { nickname?: string | null; email?: string | null; personaUuid: string }) =>
  person.nickname || person.email || `persona ${person.personaUuid.slice(0, 8)}…`;
