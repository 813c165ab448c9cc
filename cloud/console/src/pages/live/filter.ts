//! Filters of live events.

import { parseFilter, UUID, type FilterKey } from '../../filter';
import type { LiveRow } from './messages';

export const KEYS: FilterKey[] = [
  { key: 'is', hint: 'decoded, known or unknown', values: ['decoded', 'known', 'unknown'] },
  { key: 'address', hint: 'the address contains this text', example: 'address:aa:bb' },
  { key: 'name', hint: 'the name contains this text', example: 'name:sensor' },
  { key: 'rssi', hint: 'signal strength in dBm', example: 'rssi:>-70', values: ['>-60', '>-80'] },
  { key: 'hub', hint: 'received by the hub with this id', example: 'hub:01a2…' },
  { key: 'value', hint: 'has this quantity', example: 'value:temperature' },
];

export interface LiveTerm {
  key: string;
  compare: string;
  value: string;
}

export function parseLiveFilter(text: string): { terms: LiveTerm[]; problems: string[] } {
  const problems: string[] = [];
  const terms = parseFilter(text)
    .map((term) => ({ ...term, value: term.value.toLowerCase() }))
    .filter(({ key, value, text: written }) => {
      if (key === '') return value !== '';
      if (!KEYS.some((one) => one.key === key)) problems.push(`${written} is ignored: “${key}” is not a filter for live events.`);
      else if (value === '') return false;
      else if (key === 'is' && !['decoded', 'known', 'unknown'].includes(value)) {
        problems.push(`${written} is ignored: use decoded, known or unknown.`);
      } else if (key === 'rssi' && !Number.isFinite(Number(value))) {
        problems.push(`${written} is ignored: enter a number in dBm, as in rssi:>-70.`);
      } else return true;
      return false;
    });
  return { terms, problems };
}

/** Times of which the service sends each device's first event alone, as it reads them. */
export const EVERY = ['500ms', '1s', '5s', '30s', '1m', '10m'];

/** A time between 100 milliseconds and an hour; '' if it is none. */
export function parseEvery(text: string | null): string {
  const [, digits, unit] = /^(\d{1,7})(ms|s|m|h)$/.exec(text ?? '') ?? [];
  const milliseconds = Number(digits) * ({ ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit ?? ''] ?? NaN);
  return text && milliseconds >= 100 && milliseconds <= 3_600_000 ? text : '';
}

/** The part of a filter that the service applies, so that fewer events are sent. */
export function queryOf(terms: LiveTerm[], every: string): URLSearchParams {
  const query = new URLSearchParams();
  // The service takes one hub and one address; a device has to match all of the filter.
  const only = (key: string, form: RegExp) => {
    const [term, other] = terms.filter((one) => one.key === key);
    return term && !other && form.test(term.value) ? term.value : undefined;
  };
  const hub = only('hub', UUID);
  const address = only('address', /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/);
  const least = terms.filter((one) => one.key === 'rssi' && !one.compare.startsWith('<')).map(({ value }) => Math.floor(Number(value)) + 1);
  const minRssi = Math.max(...least);
  if (hub) query.set('hubUuid', hub);
  if (address) query.set('address', address);
  if (minRssi >= -128 && minRssi <= 126) query.set('minRssi', String(minRssi));
  if (every) query.set('every', every);
  return query;
}

type Filtered = LiveRow & { receptions: Map<string, unknown> };

export function fits(row: Filtered, terms: LiveTerm[]): boolean {
  return terms.every(({ key, compare, value }) => {
    switch (key) {
      case 'is':
        if (value === 'decoded') return row.values.length > 0;
        return (row.deviceInstanceId !== null || row.status === 'MATCHED' || row.status === 'DECODED') === (value === 'known');
      case 'address':
        return row.address.toLowerCase().includes(value);
      case 'name':
        return row.name?.toLowerCase().includes(value) ?? false;
      case 'rssi':
        return row.rssi !== null && (compare.startsWith('<') ? row.rssi < Number(value) : row.rssi > Number(value));
      case 'hub':
        return [...row.receptions.keys()].some((hub) => hub.startsWith(value));
      case 'value':
        return row.values.some(({ quantity }) => quantity.toLowerCase().includes(value));
      default:
        return `${row.address} ${row.name ?? ''} ${row.values.map(({ quantity }) => quantity).join(' ')}`.toLowerCase().includes(value);
    }
  });
}
