//! Formats of numbers, times and sizes.

const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const timeOnly = new Intl.DateTimeFormat(undefined, { timeStyle: 'medium' });
const whole = new Intl.NumberFormat();
const oneDigit = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

export const formatTime = (at: string | number) => dateTime.format(new Date(at));
export const formatClock = (at: string | number) => timeOnly.format(new Date(at));
export const formatCount = (count: number) => whole.format(count);
export const formatNumber = (value: number) => oneDigit.format(value);

const measured = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 6, maximumFractionDigits: 3, roundingPriority: 'lessPrecision' });
/** Units as the API names them that people write otherwise. */
const UNIT_SIGNS: Record<string, string> = { Cel: '°C', '%RH': '%', '%EL': '%', 'm/s2': 'm/s²', m2: 'm²', m3: 'm³', 'ug/m3': 'µg/m³', Ohm: 'Ω' };

/** Units that people read in others, by size: from so much on, divided by so much. */
const READ_AS: Record<string, { from: number; by: number; unit: string }[]> = {
  Pa: [
    { from: 150_000, by: 1000, unit: 'kPa' },
    { from: 1000, by: 100, unit: 'hPa' },
  ],
  J: [{ from: 36_000, by: 3_600_000, unit: 'kWh' }],
};

/** The unit in which values of this size are read, and what they are divided by: air pressure in hPa. */
export function readableUnit(size: number, unit?: string | null): { by: number; unit?: string } {
  const found = READ_AS[unit ?? '']?.find(({ from }) => Math.abs(size) >= from);
  return found ?? { by: 1, unit: unit ?? undefined };
}

/** What true and false mean of these quantities; of others yes and no. */
const TRUTHS: [quantities: string[], [string, string]][] = [
  [['door', 'garage_door', 'opening', 'window'], ['open', 'closed']],
  [['motion', 'occupancy', 'presence', 'smoke', 'gas', 'carbon_monoxide', 'vibration', 'tamper'], ['detected', 'clear']],
  [['moisture', 'water_leak'], ['wet', 'dry']],
  [['battery_low'], ['low', 'normal']],
];

/** `acceleration_x[1]` without the number of the probe. */
export const baseOf = (quantity: string) => quantity.replace(/\[\d+\]$/, '');

function truth(value: boolean, quantity = ''): string {
  const [yes, no] = TRUTHS.find(([quantities]) => quantities.includes(baseOf(quantity)))?.[1] ?? ['yes', 'no'];
  return value ? yes : no;
}

/** A measured value with its unit: `24.3 °C`, `1,013.2 hPa`, `yes`; `open` where the quantity is known. */
export function formatValue(value: number | string | boolean, unit?: string | null, quantity?: string): string {
  if (typeof value === 'boolean') return truth(value, quantity);
  if (typeof value !== 'number') return `${value}${unit ? ` ${UNIT_SIGNS[unit] ?? unit}` : ''}`;
  const readable = readableUnit(value, unit);
  return `${measured.format(value / readable.by)}${readable.unit ? ` ${UNIT_SIGNS[readable.unit] ?? readable.unit}` : ''}`;
}

/** `1 hub`, `2 hubs`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${whole.format(count)} ${count === 1 ? one : many}`;
}

const UNITS: [number, string][] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** `3 d 4 h`, `12 min`, `5 s`: the two largest units, or one. */
export function formatDuration(milliseconds: number, units = 2): string {
  let rest = Math.max(0, Math.round(milliseconds / 1000));
  const words: string[] = [];
  for (const [seconds, unit] of UNITS) {
    const count = Math.floor(rest / seconds);
    rest -= count * seconds;
    if (count > 0) words.push(`${count} ${unit}`);
    else if (words.length > 0) break;
    if (words.length === units) break;
  }
  return words.join(' ') || '0 s';
}

export function formatAgo(at: string | number, now: number): string {
  const past = now - new Date(at).getTime();
  if (past < -1000) return `in ${formatDuration(-past, 1)}`;
  if (past < 5000) return 'just now';
  return `${formatDuration(past, 1)} ago`;
}

export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let power = 0;
  let value = bytes;
  while (value >= 1024 && power < units.length - 1) {
    value /= 1024;
    power += 1;
  }
  return `${power === 0 ? value : oneDigit.format(value)} ${units[power]}`;
}

/** A time as a field of a form takes it, in the time zone of the browser. */
export function toLocal(at: string | number): string {
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** The time that such a field has; undefined while it is not filled in. */
export function fromLocal(text: string): string | undefined {
  const date = new Date(text);
  return text === '' || Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}
