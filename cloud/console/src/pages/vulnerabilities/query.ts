//! The query of a filter of the vulnerabilities.

import type { Schemas } from '../../api/client';
import type { paths } from '../../api/schema';
import { parseFilter, UUID, type FilterKey } from '../../filter';
import { SEVERITY } from './words';

export type VulnerabilityQuery = NonNullable<paths['/tenant/vulnerabilities']['get']['parameters']['query']>;

export const SEVERITIES = Object.values(SEVERITY).map(({ text }) => text);

const SOURCES: Record<string, Schemas['VulnerabilitySource']> = { published: 'FEED', own: 'OWN' };

export const KEYS: FilterKey[] = [
  { key: 'is', hint: 'known to be exploited', values: ['exploited'] },
  { key: 'severity', hint: 'as those who published it judge it', values: SEVERITIES },
  { key: 'source', hint: 'published by others, or an own advisory', values: Object.keys(SOURCES) },
  { key: 'hub', hint: 'affects what this hub runs, by its id' },
  { key: 'release', hint: 'affects hubs with this release of an app, by its id' },
];

const severityOf = (word: string) =>
  (Object.keys(SEVERITY) as Schemas['VulnerabilitySeverity'][]).find((severity) => SEVERITY[severity].text === word.toLowerCase());

/** The query of the service, and the errors of the text. */
export function vulnerabilityQuery(text: string): { query: VulnerabilityQuery; problems: string[] } {
  const query: VulnerabilityQuery = {};
  const problems: string[] = [];
  const words: string[] = [];
  for (const { key, value, text: written } of parseFilter(text)) {
    const severity = severityOf(value);
    if (key === '') words.push(value);
    else if (value === '') continue;
    else if (key === 'is' && value.toLowerCase() === 'exploited') query.exploited = true;
    else if (key === 'is') problems.push(`${written} is ignored: use is:exploited.`);
    else if (key === 'severity' && severity) query.severity = severity;
    else if (key === 'severity') problems.push(`${written} is ignored: use ${SEVERITIES.join(', ')}.`);
    else if (key === 'source' && SOURCES[value.toLowerCase()]) query.source = SOURCES[value.toLowerCase()];
    else if (key === 'source') problems.push(`${written} is ignored: use ${Object.keys(SOURCES).join(' or ')}.`);
    else if (key === 'hub' && UUID.test(value)) query.hubUuid = value;
    else if (key === 'hub') problems.push(`${written} is ignored: enter the complete id of the hub.`);
    else if (key === 'release' && UUID.test(value)) query.releaseUuid = value;
    else if (key === 'release') problems.push(`${written} is ignored: enter the complete id of the release.`);
    else problems.push(`${written} is ignored: “${key}” is not a filter for vulnerabilities.`);
  }
  if (words.length) query.q = words.join(' ').slice(0, 200);
  return { query, problems };
}
