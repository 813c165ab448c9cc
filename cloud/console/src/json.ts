//! Positions in a JSON text: of a syntax error, and of each value, so that an error of the service is
//! shown at its value.

export interface Place {
  from: number;
  to: number;
}
export type ReadJson = { value: unknown; places: Map<string, Place>; problem?: undefined } | { problem: Place & { message: string } };

class Wrong extends Error {
  constructor(
    readonly at: number,
    message: string,
  ) {
    super(message);
  }
}

const DEEPEST = 200;

/** Parses JSON strictly. `places` has the range of each value by its JSON pointer; that of a
 *  member begins with its name. */
export function readJson(text: string): ReadJson {
  const places = new Map<string, Place>();
  let at = 0;
  const blank = () => {
    while (at < text.length && ' \t\n\r'.includes(text[at] ?? '')) at += 1;
  };
  const string = (): string => {
    const found = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
    found.lastIndex = at;
    const [whole] = found.exec(text) ?? [];
    if (whole === undefined) throw new Wrong(at, 'this text is not closed on its line: a quotation mark is missing');
    try {
      const value = JSON.parse(whole) as string;
      at += whole.length;
      return value;
    } catch {
      throw new Wrong(at, 'this text has an invalid escape sequence');
    }
  };
  const value = (pointer: string, from: number, depth: number): unknown => {
    if (depth > DEEPEST) throw new Wrong(at, 'this is nested too deeply');
    const start = at;
    const read = inner(pointer, depth);
    places.set(pointer, { from: Math.min(from, start), to: at });
    return read;
  };
  const inner = (pointer: string, depth: number): unknown => {
    const char = text[at];
    if (char === undefined) throw new Wrong(at, 'a value is missing here');
    if (char === '"') return string();
    if (char === '{' || char === '[') {
      const end = char === '{' ? '}' : ']';
      const members: [string, unknown][] = [];
      const opened = at;
      at += 1;
      for (;;) {
        blank();
        if (text[at] === end && members.length === 0) break;
        const from = at;
        let name = String(members.length);
        if (char === '{') {
          if (text[at] === end) throw new Wrong(at, 'there is an extra comma before this brace');
          if (text[at] !== '"') throw new Wrong(at, at >= text.length ? `the ${char} of line ${lineOf(text, opened)} is not closed` : 'the name of a member is expected here, in quotation marks');
          name = string();
          if (members.some(([other]) => other === name)) throw new Wrong(from, `“${name}” is used more than once`);
          blank();
          if (text[at] !== ':') throw new Wrong(at, 'a colon is expected here');
          at += 1;
          blank();
        } else if (text[at] === end) throw new Wrong(at, 'there is an extra comma before this bracket');
        else if (at >= text.length) throw new Wrong(at, `the ${char} of line ${lineOf(text, opened)} is not closed`);
        members.push([name, value(`${pointer}/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`, from, depth + 1)]);
        blank();
        if (text[at] === end) break;
        if (at >= text.length) throw new Wrong(at, `the ${char} of line ${lineOf(text, opened)} is not closed`);
        if (text[at] !== ',') throw new Wrong(at, `a comma or ${end} is expected here`);
        at += 1;
      }
      at += 1;
      return char === '[' ? members.map(([, member]) => member) : Object.fromEntries(members);
    }
    const word = /[-+.\w]+/y;
    word.lastIndex = at;
    const [found] = word.exec(text) ?? [];
    if (found === undefined) throw new Wrong(at, `${char} is not expected here`);
    try {
      const read = JSON.parse(found) as unknown;
      at += found.length;
      return read;
    } catch {
      throw new Wrong(at, `${found.slice(0, 40)} is not a valid value: put text in quotation marks`);
    }
  };
  try {
    blank();
    const read = value('', at, 0);
    blank();
    if (at < text.length) throw new Wrong(at, 'nothing can follow here');
    return { value: read, places };
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    return { problem: { from: error.at, to: Math.min(text.length, error.at + 1), message: error.message } };
  }
}

/** The JSON pointer of a place that the service names: `read/2/scale`, or `steps[2].submit.path`. */
export function pointerOf(path: string): string {
  if (path.includes('/')) return `/${path.replace(/^\//, '')}`;
  return path === '' ? '' : `/${path.replaceAll(/\[(\d+)\]/g, '.$1').replace(/^\./, '').replaceAll('.', '/')}`;
}

/** The place of a pointer, or of the nearest value around it that the text has. */
export function placeOf(places: Map<string, Place>, pointer: string): Place {
  for (let near = pointer; ; near = near.slice(0, near.lastIndexOf('/'))) {
    const found = places.get(near);
    if (found) return found;
    if (near === '') return { from: 0, to: 0 };
  }
}

/** The line of an offset, from 1. */
export function lineOf(text: string, at: number): number {
  let line = 1;
  for (let next = text.indexOf('\n'); next >= 0 && next < at; next = text.indexOf('\n', next + 1)) line += 1;
  return line;
}

/** JSON with short lists and objects on one line. */
export function writeJson(value: unknown, indent = '', width = 100): string {
  const flat = JSON.stringify(value, null, 1)?.replaceAll(/\n\s*/g, ' ').replaceAll(/([[{]) | ([\]}])/g, '$1$2');
  // A value with spaces within texts is written in full.
  const short = flat !== undefined && flat.length + indent.length <= width && !/\n/.test(flat) && JSON.stringify(JSON.parse(flat)) === JSON.stringify(value);
  if (short || typeof value !== 'object' || value === null) return short ? flat : JSON.stringify(value);
  const deeper = `${indent}  `;
  if (Array.isArray(value)) return value.length ? `[\n${value.map((one) => deeper + writeJson(one, deeper, width)).join(',\n')}\n${indent}]` : '[]';
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  if (members.length === 0) return '{}';
  return `{\n${members.map(([name, member]) => `${deeper}${JSON.stringify(name)}: ${writeJson(member, deeper, width)}`).join(',\n')}\n${indent}}`;
}
