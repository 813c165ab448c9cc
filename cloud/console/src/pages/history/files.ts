//! Files of the history: their days, the query of a filter of them, and how other software reads them.

import type { Schemas } from '../../api/client';
import type { paths } from '../../api/schema';
import { parseDuration, parseFilter, type FilterKey } from '../../filter';

type Answer = Schemas['HistoryFileResponse'];
export type FilesQuery = Pick<NonNullable<paths['/tenant/history/files']['get']['parameters']['query']>, 'from' | 'to'>;

/** A file without its URL: whoever has that can read the file, so it is asked for when it is shown. */
export type HistoryFile = Omit<Answer, 'url'> & { hasUrl: boolean };
export const withoutUrl = ({ url, ...file }: Answer): HistoryFile => ({ ...file, hasUrl: url != null });

/** How long a URL is valid, as the API says. */
const URL_VALID = 15 * 60_000;
/** When a URL ends that was asked for at a time, by the clock of the browser. */
export const expiryOf = (asked: number) => new Date(asked + URL_VALID).toISOString();

const DAY = 86_400_000;

/** The day of a time, which is one of UTC: those that move to files are. */
export const dayOf = (at: string | number) => new Date(at).toISOString().slice(0, 10);

export const KEYS: FilterKey[] = [
  { key: 'day', hint: 'a day (UTC)', example: 'day:2026-01-31' },
  { key: 'since', hint: 'received since a day, or so long ago', example: 'since:30d', values: ['7d', '30d', '90d'] },
  { key: 'before', hint: 'received before a day, or so long ago', example: 'before:2026-01-31', values: ['7d', '30d', '90d'] },
];

/** The begin of a day (UTC), in milliseconds; null if the text is none. */
function beginOf(text: string): number | null {
  const at = /^\d{4}-\d\d-\d\d$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : NaN;
  return Number.isNaN(at) ? null : at;
}

/** The query of the service, and the errors of the text. */
export function filesQuery(text: string, now: number): { query: FilesQuery; problems: string[] } {
  const query: FilesQuery = {};
  const problems: string[] = [];
  for (const { key, value, text: written } of parseFilter(text)) {
    if (key !== '' && value === '') continue;
    const begin = beginOf(value);
    const ago = parseDuration(value);
    const at = begin ?? (ago === null ? null : now - ago);
    if (key === 'day' && begin !== null) [query.from, query.to] = [begin, begin + DAY].map((time) => new Date(time).toISOString());
    else if (key === 'day') problems.push(`${written} is ignored: use day:2026-01-31.`);
    else if ((key === 'since' || key === 'before') && at !== null) query[key === 'since' ? 'from' : 'to'] = new Date(at).toISOString();
    else if (key === 'since' || key === 'before') problems.push(`${written} is ignored: use ${key}:30d or ${key}:2026-01-31.`);
    else if (key === '') problems.push(`“${written}” is ignored: the list has no text search. Use a filter such as day:2026-01-31.`);
    else problems.push(`${written} is ignored: “${key}” is not a filter for files.`);
  }
  return { query, problems };
}

/** Whether a folder has an address for programs elsewhere, and is not a path on the service's machine. */
export const isAddress = (location: string) => location.includes('://');

/** What DuckDB reads a day with. */
export const duckdb = (location: string, day: string) =>
  'SELECT to_timestamp(ble_event_id / 1e6) AS received_at, hub_uuid, event, reading ' +
  `FROM read_parquet('${location.replaceAll("'", "''")}/*/*.parquet', hive_partitioning = true) WHERE day = '${day}';`;
