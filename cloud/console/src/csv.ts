//! Tables as files for a spreadsheet.

/** A text that a spreadsheet would run as a formula is made plain text by an apostrophe. */
function field(value: unknown): string {
  const text = value === null || value === undefined ? '' : String(value);
  const plain = /^[=+\-@\t\r]/.test(text) && typeof value !== 'number' ? `'${text}` : text;
  return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

export function toCsv(columns: string[], rows: unknown[][]): string {
  return [columns, ...rows].map((row) => row.map(field).join(',')).join('\r\n') + '\r\n';
}

/** A member of each item, or a name and what it says of each. */
export type CsvColumn<T> = (keyof T & string) | readonly [name: string, value: (item: T) => unknown];

export type CsvTable = [columns: string[], rows: unknown[][]];

export function csvTable<T>(items: T[], columns: CsvColumn<T>[]): CsvTable {
  const values = columns.map((column) => (typeof column === 'string' ? (item: T) => item[column] : column[1]));
  return [columns.map((column) => (typeof column === 'string' ? column : column[0])), items.map((item) => values.map((value) => value(item)))];
}

/** Has the browser store a text as a file. */
export function download(name: string, text: string, type = 'text/csv') {
  const url = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  const link = document.createElement('a');
  [link.href, link.download] = [url, name];
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
