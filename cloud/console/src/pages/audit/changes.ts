//! The texts of an entry of the audit log.

import type { Schemas } from '../../api/client';
import { csvTable, type CsvColumn } from '../../csv';
import { hubLabel } from '../../names.svelte';
import { called, type Member } from '../members/roles';

export type Entry = Schemas['AuditLogResponse'];

/** The service counts and skips no further. */
export const MOST = 5000;

export interface Change {
  field: string;
  before: string | undefined;
  after: string | undefined;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

export function shown(value: unknown): string {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map(shown).join(value.some(isRecord) ? '; ' : ', ') || 'none';
  if (isRecord(value)) {
    return Object.entries(value)
      .map(([name, one]) => `${name}: ${shown(one)}`)
      .join(', ');
  }
  return String(value);
}

/** The members of an object that differ; of one that is new or gone, those that say anything. */
export function changes({ before, after }: Entry): Change[] {
  if (!isRecord(before) && !isRecord(after)) {
    const [was, is] = [before, after].map((value) => (value == null ? undefined : shown(value)));
    return was === is ? [] : [{ field: 'value', before: was, after: is }];
  }
  const [was, is] = [isRecord(before) ? before : undefined, isRecord(after) ? after : undefined];
  return [...new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})])]
    .map((field) => ({ field, before: was && shown(was[field]), after: is && shown(is[field]) }))
    .filter((one) => (was && is ? one.before !== one.after : (one.before ?? one.after) !== 'none'));
}

/** `what else there is to know`, member by member. */
export const details = ({ detail }: Entry): [string, string][] =>
  isRecord(detail) ? Object.entries(detail).map(([name, value]) => [name, shown(value)]) : [];

export function actorName({ actor }: Entry, members: Member[]): string {
  if (actor.userUuid) {
    const member = members.find(({ userUuid }) => userUuid === actor.userUuid);
    return member ? called(member) : `person ${actor.userUuid.slice(0, 8)}…`;
  }
  if (actor.apiKeyId != null) return `API key ${actor.apiKeyId}`;
  if (actor.hubUuid) return `hub ${hubLabel(actor.hubUuid)}`;
  return actor.name ? `system (${actor.name.toLowerCase()})` : 'system';
}

const json = (value: unknown) => (value === null || value === undefined ? '' : JSON.stringify(value));

/** Entries for a spreadsheet: the time, who it was in `columns` of the page, and the rest. */
export const csv = (entries: Entry[], columns: CsvColumn<Entry>[]) =>
  csvTable(entries, [
    'createdAt',
    ...columns,
    'action',
    'objectType',
    'objectId',
    ['before', ({ before }) => json(before)],
    ['after', ({ after }) => json(after)],
    ['detail', ({ detail }) => json(detail)],
    'address',
    'requestId',
  ]);
