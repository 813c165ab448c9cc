//! The query of a filter of the audit log.

import type { paths } from '../../api/schema';
import { parseDuration, parseFilter, UUID, type FilterKey } from '../../filter';
import { called, type Member } from '../members/roles';

export type AuditQuery = NonNullable<paths['/tenant/audit-logs']['get']['parameters']['query']>;

const ACTORS: Record<string, NonNullable<AuditQuery['actorType']>> = { person: 'USER', key: 'API_KEY', hub: 'HUB', system: 'SYSTEM' };
const OBJECTS = ['hub', 'hub_job', 'claim_code', 'device', 'device_model', 'pipeline', 'member', 'invitation', 'api_key', 'supplier_bundle', 'external_endpoint', 'consent', 'consent_setting', 'notification_setting', 'vulnerability_statement', 'advisory', 'dependency_track', 'tenant'];

export const KEYS: FilterKey[] = [
  { key: 'by', hint: 'a person, a key, a hub or the system', values: Object.keys(ACTORS) },
  { key: 'person', hint: 'a member, by name, e-mail or id', example: 'person:ann@example.com' },
  { key: 'object', hint: 'the type of the object', values: OBJECTS, example: 'object:hub' },
  { key: 'action', hint: 'the action', example: 'action:hub.update' },
  { key: 'id', hint: 'the id of the object' },
  { key: 'key', hint: 'the number of an API key', example: 'key:7' },
  { key: 'hub', hint: 'changes by a hub, by its id' },
  { key: 'age', hint: 'younger or older than', example: 'age:<1d', values: ['<1h', '<1d', '<7d', '>30d'] },
];

/** The query of the service, and the errors of the text. */
export function auditQuery(text: string, now: number, members: Member[]): { query: AuditQuery; problems: string[] } {
  const query: AuditQuery = {};
  const problems: string[] = [];
  for (const { key, compare, value, text: written } of parseFilter(text)) {
    const actor = ACTORS[value.toLowerCase()];
    const age = parseDuration(value);
    if (key === '') problems.push(`${written} is ignored: the log has no text search. Use a filter such as object:hub.`);
    else if (value === '') continue;
    else if (key === 'by' && actor) query.actorType = actor;
    else if (key === 'by') problems.push(`${written} is ignored: use by:person, by:key, by:hub or by:system.`);
    else if (key === 'person') {
      const person = members.find(
        (one) => [one.email, one.nickname, one.userUuid, called(one)].some((name) => name?.toLowerCase() === value.toLowerCase()),
      );
      if (person) query.actorUuid = person.userUuid;
      else if (UUID.test(value)) query.actorUuid = value;
      else problems.push(`${written} is ignored: no member has this name or e-mail.`);
    } else if (key === 'object') query.objectType = value;
    else if (key === 'action') query.action = value;
    else if (key === 'id') query.objectId = value;
    else if (key === 'key' && /^\d{1,15}$/.test(value)) query.apiKeyId = Number(value);
    else if (key === 'key') problems.push(`${written} is ignored: enter the number of the key.`);
    else if (key === 'hub' && UUID.test(value)) query.actorUuid = value;
    else if (key === 'hub') problems.push(`${written} is ignored: enter the complete id of the hub.`);
    else if (key === 'age' && age !== null) {
      const at = new Date(now - age).toISOString();
      if (compare.startsWith('>')) query.to = at;
      else query.from = at;
    } else if (key === 'age') problems.push(`${written} is ignored: use an age such as age:<1d or age:>30d.`);
    else problems.push(`${written} is ignored: “${key}” is not a filter for the audit log.`);
  }
  return { query, problems };
}
