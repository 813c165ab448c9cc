//! The texts of an entry of the audit log.

import type { Schemas } from '../../api/client';
import { csvTable, type CsvColumn } from '../../csv';
import { shortId } from '../../names.svelte';
import { called, type Member } from '../members/roles';
import { hubName, type Names } from './objects';

export type Entry = Schemas['AuditLogResponse'];

/** The service counts and skips no further. */
export const MOST = 5000;

export interface Change {
  field: string;
  before: Text | undefined;
  after: Text | undefined;
}

/** A value as text, with names in the place of ids. */
export interface Text {
  text: string;
  /** The value with its ids, where names are shown instead. */
  ids?: string;
}

/** The name in the place of an id, where there is one; `field` is the member that has it. */
export type NameOf = (field: string, id: string) => string | undefined;

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

function shown(value: unknown, field = '', nameOf: NameOf = () => undefined): string {
  if (value === null || value === undefined) return 'none';
  if (typeof value === 'string') return nameOf(field, value) ?? value;
  if (typeof value === 'number') return nameOf(field, String(value)) ?? String(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (Array.isArray(value)) return value.map((one) => shown(one, field, nameOf)).join(value.some(isRecord) ? '; ' : ', ') || 'none';
  if (isRecord(value)) {
    return Object.entries(value)
      .map(([name, one]) => `${name}: ${shown(one, name, nameOf)}`)
      .join(', ');
  }
  return String(value);
}

function textOf(value: unknown, field: string, nameOf: NameOf): Text {
  const [text, ids] = [shown(value, field, nameOf), shown(value)];
  return text === ids ? { text } : { text, ids };
}

const same = (one: unknown, other: unknown) => shown(one) === shown(other);

/** The members of an object that differ; of one that is new or gone, those that say anything. */
export function changes({ before, after }: Pick<Entry, 'before' | 'after'>, nameOf: NameOf): Change[] {
  if (!isRecord(before) && !isRecord(after)) {
    const [was, is] = [before, after].map((value) => (value == null ? undefined : textOf(value, '', nameOf)));
    return was?.text === is?.text ? [] : [{ field: 'value', before: was, after: is }];
  }
  const [was, is] = [isRecord(before) ? before : undefined, isRecord(after) ? after : undefined];
  return [...new Set([...Object.keys(was ?? {}), ...Object.keys(is ?? {})])]
    .filter((field) => (was && is ? !same(was[field], is[field]) : !same((was ?? is)?.[field], null)))
    .map((field) => ({ field, before: was && textOf(was[field], field, nameOf), after: is && textOf(is[field], field, nameOf) }));
}

/** `what else there is to know`, member by member. */
export const details = ({ detail }: Entry, nameOf: NameOf): [string, Text][] =>
  isRecord(detail) ? Object.entries(detail).map(([name, value]) => [name, textOf(value, name, nameOf)]) : [];

export function actorName({ actor }: Entry, members: Member[], names: Names): string {
  if (actor.userUuid) {
    const member = members.find(({ userUuid }) => userUuid === actor.userUuid);
    return member ? called(member) : `person ${actor.userUuid.slice(0, 8)}…`;
  }
  if (actor.apiKeyId != null) return `API key ${names.get(`api_key ${actor.apiKeyId}`) ?? actor.apiKeyId}`;
  if (actor.hubUuid) return `hub ${hubName(actor.hubUuid, names) ?? shortId(actor.hubUuid)}`;
  return actor.name ? `system (${actor.name.toLowerCase()})` : 'system';
}

/** The id of who it was. */
export const actorId = ({ actor }: Entry): string | undefined => actor.userUuid ?? actor.hubUuid ?? (actor.apiKeyId == null ? undefined : String(actor.apiKeyId));

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
