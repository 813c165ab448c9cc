//! The limits of a tenant, as they are written in fields: empty for the default of the service.

import type { Schemas } from '../../api/client';
import { formatCount } from '../../format';

export type Limits = Schemas['TenantLimits'];

export interface LimitField {
  /** The name of the field in errors of the API. */
  name: string;
  label: string;
  min: number;
  max: number;
  unit: 'count' | 'bytes' | 'days';
  hint: string;
}

const BYTES = 2 ** 50;
export const USE_LIMITS: LimitField[] = [
  { name: 'hubs', label: 'Hubs', min: 0, max: 10_000_000, unit: 'count', hint: 'Further claims are rejected.' },
  { name: 'apiKeys', label: 'Valid API keys', min: 0, max: 200, unit: 'count', hint: 'At most 200.' },
  { name: 'streams', label: 'Concurrent streams', min: 0, max: 100_000, unit: 'count', hint: 'Live views and event streams.' },
  { name: 'uploadsPerMinute', label: 'Uploads per minute', min: 1, max: 1_000_000, unit: 'count', hint: 'For each kind of record, starting with the next minute.' },
  { name: 'storedBytes', label: 'Stored records', min: 1, max: BYTES, unit: 'bytes', hint: 'Bytes, or with a unit: 500 MiB, 20 GiB.' },
  { name: 'bytesPerDay', label: 'Records uploaded per day', min: 1, max: BYTES, unit: 'bytes', hint: 'Bytes, or with a unit. Days are in UTC.' },
];
export const RETENTIONS: LimitField[] = (
  [
    ['bleEvents', 'BLE events'],
    ['telemetry', 'Telemetry'],
    ['logs', 'Hub logs'],
    ['jobEvents', 'Job events'],
    ['deliveries', 'Deliveries'],
    ['audit', 'Audit log'],
  ] as const
).map(([name, label]) => ({ name: `retentionDays.${name}`, label, min: 1, max: 3650, unit: 'days', hint: '' }));
const ALL_LIMITS = [...USE_LIMITS, ...RETENTIONS];

const UNITS = ['', 'KiB', 'MiB', 'GiB', 'TiB'];

function valueOf(limits: Limits, name: string): number | null {
  const [first = '', second] = name.split('.');
  const found = (limits as Record<string, unknown>)[first];
  return ((second ? (found as Record<string, unknown> | undefined)?.[second] : found) as number | null | undefined) ?? null;
}

/** Exactly, so that what is read back is the same number: `20 GiB`, `1500`. */
function writeLimit(value: number | null, unit: LimitField['unit']): string {
  if (value === null) return '';
  let [rest, power] = [value, 0];
  while (unit === 'bytes' && rest > 0 && rest % 1024 === 0 && power < UNITS.length - 1) [rest, power] = [rest / 1024, power + 1];
  return power ? `${rest} ${UNITS[power]}` : String(value);
}

/** The number that a field means: null for empty, undefined for what is none. */
function readLimit(text: string, unit: LimitField['unit']): number | null | undefined {
  const found = /^([\d.,_ ]*\d)\s*([KMGT])?(i)?B?$/i.exec(text.trim());
  if (text.trim() === '') return null;
  if (!found || (found[2] && unit !== 'bytes')) return undefined;
  const written = (found[1] ?? '').replaceAll(/[,_ ]/g, '');
  const power = found[2] ? ' KMGT'.indexOf(found[2].toUpperCase()) : 0;
  const value = Number(written) * (found[3] || power === 0 ? 1024 : 1000) ** power;
  return Number.isInteger(value) ? value : undefined;
}

export function textsOf(limits: Limits): Record<string, string> {
  return Object.fromEntries(ALL_LIMITS.map(({ name, unit }) => [name, writeLimit(valueOf(limits, name), unit)]));
}

/** The limits that the fields say, and what is wrong with them. */
export function limitsOf(texts: Record<string, string>): { limits: Limits; wrong: { field: string; message: string }[] } {
  const wrong: { field: string; message: string }[] = [];
  const limits: Record<string, unknown> & { retentionDays: Record<string, number | null> } = { retentionDays: {} };
  for (const { name, unit, min, max } of ALL_LIMITS) {
    const value = readLimit(texts[name] ?? '', unit);
    if (value === undefined || (value !== null && (value < min || value > max))) {
      const most = unit === 'bytes' ? '1024 TiB' : formatCount(max);
      wrong.push({ field: name, message: `Enter a whole number from ${formatCount(min)} to ${most}, or leave it empty for the default.` });
      continue;
    }
    if (name.startsWith('retentionDays.')) limits.retentionDays[name.slice('retentionDays.'.length)] = value;
    else limits[name] = value;
  }
  return { limits: limits as Limits, wrong };
}

/** The effects for the tenant, one sentence each. */
export function effectsOf(before: Limits, after: Limits): string[] {
  const changed = ALL_LIMITS.filter(({ name }) => valueOf(before, name) !== valueOf(after, name));
  const shown = (limits: Limits, { name, unit }: LimitField) => {
    const value = valueOf(limits, name);
    return value === null ? 'the default' : unit === 'days' ? `${formatCount(value)} days` : unit === 'bytes' ? writeLimit(value, unit) : formatCount(value);
  };
  const effects = changed.map((field) => `${field.label}: ${shown(after, field)} instead of ${shown(before, field)}.`);
  if (changed.some(({ name }) => !name.includes('.'))) effects.push('Existing use is not affected. Requests beyond a limit are rejected from now on.');
  const isShorter = ({ name }: LimitField) => valueOf(after, name) !== null && (valueOf(before, name) ?? Infinity) > (valueOf(after, name) ?? 0);
  if (RETENTIONS.some(isShorter)) effects.push('Records older than a shortened retention time are deleted by the next cleanup. This cannot be undone.');
  return effects;
}
