//! The query of a filter of the audit log.

import type { paths } from '../../api/schema';
import { parseDuration, parseFilter, UUID, type FilterKey } from '../../filter';

export type AuditQuery = NonNullable<paths['/platform/audit-logs']['get']['parameters']['query']>;

const KINDS = ['user', 'api_key', 'hub', 'system'];

export const KEYS: FilterKey[] = [
  { key: 'action', hint: 'the action', example: 'action:hub.update' },
  { key: 'object', hint: 'the type of the object', example: 'object:hub' },
  { key: 'id', hint: 'the id of the object' },
  { key: 'actor', hint: 'a kind of actor, or the id of a user or hub', values: KINDS },
  { key: 'key', hint: 'the number of an API key', example: 'key:12' },
  { key: 'tenant', hint: 'the id of a tenant' },
  { key: 'since', hint: 'newer than an age or a date', example: 'since:2d', values: ['1h', '1d', '7d'] },
  { key: 'before', hint: 'older than an age or a date', example: 'before:2026-01-31' },
];

/** A time ago, or a day in the time zone of the browser. */
function timeOf(text: string, now: number): string | null {
  const ago = parseDuration(text);
  if (ago !== null) return new Date(now - ago).toISOString();
  const at = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2})?$/.test(text) ? new Date(text.includes('T') ? text : `${text}T00:00`) : null;
  return at && !Number.isNaN(at.getTime()) ? at.toISOString() : null;
}

/** The query of the service, and the errors of the text. */
export function auditQuery(text: string, now: number): { query: AuditQuery; problems: string[] } {
  const query: AuditQuery = {};
  const problems: string[] = [];
  for (const { key, value, text: written } of parseFilter(text)) {
    if (key !== '' && value === '') continue;
    if (key === 'action') query.action = value;
    else if (key === 'object') query.objectType = value;
    else if (key === 'id') query.objectId = value;
    else if (key === 'actor' && KINDS.includes(value.toLowerCase())) query.actorType = value.toUpperCase() as NonNullable<AuditQuery['actorType']>;
    else if (key === 'actor' && UUID.test(value)) query.actorUuid = value;
    else if (key === 'actor') problems.push(`${written} is ignored: use user, api_key, hub or system, or the id of a user or hub.`);
    else if (key === 'key' && /^\d{1,15}$/.test(value)) query.apiKeyId = Number(value);
    else if (key === 'key') problems.push(`${written} is ignored: enter the number of the key, such as key:12.`);
    else if (key === 'tenant' && UUID.test(value)) query.tenantUuid = value;
    else if (key === 'tenant') problems.push(`${written} is ignored: enter the complete id of a tenant, as shown on its page.`);
    else if (key === 'since' || key === 'before') {
      const at = timeOf(value, now);
      if (at === null) problems.push(`${written} is ignored: use ${key}:2d or ${key}:2026-01-31.`);
      else query[key === 'since' ? 'from' : 'to'] = at;
    } else if (key === '') problems.push(`“${written}” is ignored: the log has no text search. Use a filter such as action:hub.update.`);
    else problems.push(`${written} is ignored: “${key}” is not a filter for the log.`);
  }
  return { query, problems };
}
