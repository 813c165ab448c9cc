//! The language of filters: `is:offline version:<1.4 lastseen:>1h label:"roof top" text`. Terms are
//! joined by AND. A page says which keys it has; an unknown key is an error, never ignored.

export interface Term {
  /** Lower case; '' for text without a key. */
  key: string;
  /** `<`, `<=`, `>`, `>=`, or '' for none. */
  compare: string;
  value: string;
  /** The term as the user wrote it. */
  text: string;
}

/** A whole id, as the API writes those of hubs, tenants and people. */
export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export interface FilterKey {
  key: string;
  /** The meaning of the key, for the suggestions. */
  hint: string;
  /** All values, where they are few. */
  values?: string[];
  example?: string;
}

export function parseFilter(text: string): Term[] {
  const terms: Term[] = [];
  for (const found of text.matchAll(/(?:([A-Za-z]+):)?([<>]=?)?(?:"([^"]*)"?|(\S+))/g)) {
    const [written, key = '', compare = '', quoted, plain = ''] = found;
    // Without a key, a comparison is text like any other.
    // An address, or its beginning, is no key and its value.
    if (/^[0-9a-f]{2}(:[0-9a-f]{2})+$/i.test(written)) terms.push({ key: '', compare: '', value: written, text: written });
    else if (key) terms.push({ key: key.toLowerCase(), compare, value: quoted ?? plain, text: written });
    else terms.push({ key: '', compare: '', value: quoted ?? compare + plain, text: written });
  }
  return terms;
}

/** `90s`, `10min`, `1h`, `2d` in milliseconds, or null. */
export function parseDuration(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)$/i.exec(text);
  const units: Record<string, number> = { s: 1e3, m: 6e4, min: 6e4, h: 36e5, d: 864e5, w: 6048e5 };
  const unit = units[found?.[2]?.toLowerCase() ?? ''];
  return found && unit ? Number(found[1]) * unit : null;
}

/** A term as text that is read as the same term. */
export function writeTerm(key: string, value: string, compare = ''): string {
  return `${key ? `${key}:` : ''}${compare}${/[\s"]/.test(value) ? `"${value.replaceAll('"', '')}"` : value}`;
}

/** `text` with a term added, or in the place of others of its key; without them where the value is empty. */
export function withTerm(text: string, key: string, value: string): string {
  const others = parseFilter(text).filter((term) => term.key !== key);
  return [...others.map((term) => term.text), ...(value ? [writeTerm(key, value)] : [])].join(' ');
}
