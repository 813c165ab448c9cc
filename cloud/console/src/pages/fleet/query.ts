//! The query of a filter of the fleet.

import type { paths } from '../../api/schema';
import { parseDuration, parseFilter, type FilterKey } from '../../filter';

export type HubQuery = NonNullable<paths['/tenant/hubs']['get']['parameters']['query']>;

export const KEYS: FilterKey[] = [
  { key: 'is', hint: 'online, offline or blocked', values: ['online', 'offline', 'blocked'] },
  { key: 'label', hint: 'the label contains this text', example: 'label:roof' },
  { key: 'version', hint: 'agent version', example: 'version:<1.4' },
  { key: 'lastseen', hint: 'time since last contact', example: 'lastseen:>1h', values: ['>1h', '>1d', '<5min'] },
];

/** The query of the service, and the errors of the text. */
export function hubQuery(text: string, now: number): { query: HubQuery; problems: string[] } {
  const query: HubQuery = {};
  const problems: string[] = [];
  const words: string[] = [];
  for (const { key, compare, value, text: written } of parseFilter(text)) {
    if (key === '') words.push(value);
    else if (value === '') continue;
    else if (key === 'is' && /^(online|offline|blocked)$/i.test(value)) {
      query.status = value.toUpperCase() as NonNullable<HubQuery['status']>;
    } else if (key === 'label') query.label = value;
    else if (key === 'version') query.version = compare + value;
    else if (key === 'lastseen' && parseDuration(value) !== null) {
      const at = new Date(now - (parseDuration(value) ?? 0)).toISOString();
      if (compare.startsWith('<')) query.seenFrom = at;
      else query.seenTo = at;
    } else if (key === 'lastseen') problems.push(`${written} is ignored: use a time such as lastseen:>1h or lastseen:<5min.`);
    else if (key === 'is') problems.push(`${written} is ignored: use online, offline or blocked.`);
    else problems.push(`${written} is ignored: “${key}” is not a filter for hubs.`);
  }
  if (words.length) query.q = words.join(' ');
  return { query, problems };
}
