//! Advertisers that are of no model: which of them a filter keeps, and in which order they stand.

import type { Schemas } from '../../api/client';
import { parseFilter, type FilterKey } from '../../filter';

export type Advertiser = Schemas['UnknownAdvertiserResponse'];

export const KEYS: FilterKey[] = [
  { key: 'is', hint: 'suggested, unlisted or named', values: ['suggested', 'unlisted', 'named'] },
  { key: 'company', hint: 'the company name or identifier', example: 'company:0499' },
  { key: 'service', hint: 'advertises this service', example: 'service:fcd2' },
  { key: 'rssi', hint: 'its strongest signal in dBm', example: 'rssi:>-70', values: ['>-60', '>-80'] },
  { key: 'count', hint: 'number of receptions', example: 'count:>100' },
  { key: 'hub', hint: 'received by the hub with this id', example: 'hub:01a2…' },
];

export type Sort = 'most' | 'latest' | 'strongest' | 'hubs';
export const SORTS: [Sort, string][] = [
  ['most', 'Most received first'],
  ['latest', 'Latest first'],
  ['strongest', 'Strongest first'],
  ['hubs', 'Most hubs first'],
];

const ORDERS: Record<Sort, (one: Advertiser, other: Advertiser) => number> = {
  most: (one, other) => other.count - one.count,
  latest: (one, other) => other.lastSeenAt.localeCompare(one.lastSeenAt),
  strongest: (one, other) => (other.rssiMax ?? -999) - (one.rssiMax ?? -999),
  hubs: (one, other) => other.hubUuids.length - one.hubUuids.length || other.count - one.count,
};

export function filtered(all: Advertiser[], text: string, sort: Sort): { found: Advertiser[]; problems: string[] } {
  const problems: string[] = [];
  const terms = parseFilter(text).filter(({ key, value, text: written }) => {
    if (key === '') return value !== '';
    if (!KEYS.some((one) => one.key === key)) problems.push(`${written} is ignored: “${key}” is not a filter for advertisers.`);
    else if (value === '') return false;
    else if (key === 'is' && !['suggested', 'unlisted', 'named'].includes(value)) problems.push(`${written} is ignored: use suggested, unlisted or named.`);
    else if ((key === 'rssi' || key === 'count') && !Number.isFinite(Number(value))) problems.push(`${written} is ignored: enter a number, as in ${key}:>${key === 'rssi' ? '-70' : '100'}.`);
    else return true;
    return false;
  });
  const has = (whole: string | null | undefined, part: string) => (whole ?? '').toLowerCase().includes(part.toLowerCase());
  const compares = (number: number | null | undefined, compare: string, value: string) =>
    typeof number === 'number' && (compare.startsWith('<') ? number < Number(value) : number > Number(value));
  const found = all.filter((one) =>
    terms.every(({ key, value, compare }) => {
      switch (key) {
        case 'is':
          return value === 'named' ? Boolean(one.name) : one.suggestions.length > 0 === (value === 'suggested');
        case 'company':
          return has(one.companyName, value) || one.companyId === value.toLowerCase().replace(/^0x/, '');
        case 'service':
          return one.serviceUuids.some((uuid) => has(uuid, value));
        case 'rssi':
          return compares(one.rssiMax, compare, value);
        case 'count':
          return compares(one.count, compare, value);
        case 'hub':
          return one.hubUuids.some((hub) => hub.startsWith(value.toLowerCase()));
        default:
          return has(one.name, value) || has(one.address, value) || has(one.companyName, value);
      }
    }),
  );
  return { found: found.sort(ORDERS[sort]), problems };
}
