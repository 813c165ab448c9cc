//! Responses of the billing service, which are passed on as they are: members are not known.

import { formatCount } from '../../format';

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

/** `currentCreditCents` as `Current credit`. */
export function title(name: string): string {
  const words = name
    .replace(/Cents$/, '')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const amount = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** A value as text. Cents are shown as hundredths; a currency is a value beside them. */
export function shown(name: string, value: unknown): string {
  if (value === null || value === undefined || value === '') return 'none';
  if (typeof value === 'number') return /Cents$/.test(name) ? amount.format(value / 100) : formatCount(value);
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'string') return value;
  if (Array.isArray(value)) return value.map((one) => shown('', one)).join(', ') || 'none';
  return Object.entries(value)
    .map(([key, one]) => `${title(key)}: ${shown(key, one)}`)
    .join(', ');
}

/** The members of an answer; what it nests is one line each. */
export function lines(answer: Record<string, unknown>): { name: string; label: string; value: string }[] {
  return Object.entries(answer).flatMap(([name, value]) =>
    isRecord(value) && Object.keys(value).length > 0
      ? Object.entries(value).map(([inner, one]) => ({ name: `${name}.${inner}`, label: `${title(name)}, ${title(inner).toLowerCase()}`, value: shown(inner, one) }))
      : [{ name, label: title(name), value: shown(name, value) }],
  );
}

/** The list in an answer about transactions, whatever it is called. */
export function transactionsIn(answer: Record<string, unknown>): Record<string, unknown>[] {
  const list = Object.values(answer).find((value) => Array.isArray(value) && value.every(isRecord));
  return (list as Record<string, unknown>[] | undefined) ?? [];
}
