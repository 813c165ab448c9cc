//! The time that a page shows, as the address has it: `span=7d`, or `span=own` with `from` and `to`.

import { toLocal } from '../../format';

export interface Span {
  id: string;
  /** Milliseconds before now; null of one with a beginning and an end. */
  length: number | null;
  from: number;
  to: number;
  problem?: string;
}

const HOUR = 3_600_000;
export const SPANS: Record<string, [number, string]> = {
  '1h': [HOUR, 'Hour'],
  '24h': [24 * HOUR, '24 hours'],
  '7d': [7 * 24 * HOUR, '7 days'],
  '30d': [30 * 24 * HOUR, '30 days'],
};

/** `most` is how long an own one may be, in milliseconds. */
export function spanOf(query: URLSearchParams, ids: string[], usual: string, most = Infinity): Span {
  const asked = query.get('span') ?? usual;
  if (asked === 'own' && ids.includes('own')) {
    const [from, to] = [Date.parse(query.get('from') ?? ''), Date.parse(query.get('to') ?? '')];
    let problem: string | undefined;
    if (Number.isNaN(from) || Number.isNaN(to)) problem = 'Enter a start and an end.';
    else if (from >= to) problem = 'The start must be before the end.';
    else if (from >= Date.now()) problem = 'The start must be in the past.';
    else if (to - from > most) problem = `The time range can be at most ${Math.round(most / (24 * HOUR))} days.`;
    return { id: 'own', length: null, from, to, problem };
  }
  const id = ids.includes(asked) && SPANS[asked] ? asked : usual;
  return { id, length: SPANS[id]?.[0] ?? HOUR, from: 0, to: 0 };
}

/** From when to when it is, if it is asked for now. */
export function period({ length, from, to }: Span): { from: string; to: string } {
  const end = length === null ? to : Date.now();
  return { from: new Date(length === null ? from : end - length).toISOString(), to: new Date(end).toISOString() };
}

const EVERY: [number, string][] = [
  [10, '10s'],
  [30, '30s'],
  [60, '1m'],
  [300, '5m'],
  [600, '10m'],
  [1800, '30m'],
  [3600, '1h'],
  [7200, '2h'],
  [14_400, '4h'],
  [21_600, '6h'],
  [43_200, '12h'],
];

/** The length of a bucket, so that a chart of this time has about 200. */
export function bucketOf({ from, to }: { from: string; to: string }): string {
  const seconds = (Date.parse(to) - Date.parse(from)) / 1000;
  return EVERY.find(([every]) => seconds / every <= 200)?.[1] ?? '1d';
}

/** Conversion between a time and the text of a `datetime-local` input. */
export const localTime = (at: number) => (Number.isFinite(at) ? toLocal(at).slice(0, 16) : '');
export const timeOf = (local: string) => (local ? new Date(local).toISOString() : undefined);
