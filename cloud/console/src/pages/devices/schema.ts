//! The JSON Schema of what an action takes, as the fields of a form. What a form cannot show is entered
//! as JSON; the service checks all of it.

type Json = Record<string, unknown>;
const object = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {});
const text = (value: unknown) => (typeof value === 'string' && value ? value : undefined);
const number = (value: unknown) => (typeof value === 'number' ? value : undefined);

export type Kind = 'text' | 'long' | 'number' | 'choice' | 'switch' | 'json';
export interface ParameterField {
  /** Its name in the parameters. */
  name: string;
  /** Its place as the service names it: a JSON pointer. */
  pointer: string;
  label: string;
  hint?: string;
  kind: Kind;
  isRequired: boolean;
  isWhole: boolean;
  /** The values as JSON, since they may be of any kind. */
  choices: { value: string; label: string }[];
  usual: unknown;
  min?: number;
  max?: number;
  longest?: number;
}

export function fieldsOf(schema: unknown): ParameterField[] {
  const { properties, required } = object(schema);
  const needed = new Set(Array.isArray(required) ? required : []);
  return Object.entries(object(properties)).map(([name, value]) => {
    const of = object(value);
    const choices = Array.isArray(of.enum) ? of.enum.map((value) => ({ value: JSON.stringify(value), label: typeof value === 'string' ? value : JSON.stringify(value) })) : [];
    const kind = kindOf(of, choices.length);
    const [min, max] = [number(of.minimum) ?? number(of.exclusiveMinimum), number(of.maximum) ?? number(of.exclusiveMaximum)];
    const range = kind !== 'number' ? undefined : min !== undefined && max !== undefined ? `${min} to ${max}` : min !== undefined ? `at least ${min}` : max !== undefined ? `at most ${max}` : undefined;
    const hint = [text(of.description), range, kind === 'json' ? `as JSON${text(of.type) ? `: ${text(of.type)}` : ''}` : undefined, needed.has(name) ? undefined : 'optional'];
    return {
      name,
      pointer: `/parameters/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`,
      label: text(of.title) ?? name.replaceAll('_', ' '),
      hint: hint.filter(Boolean).join('; ') || undefined,
      kind,
      isRequired: needed.has(name),
      isWhole: of.type === 'integer',
      choices,
      usual: of.default,
      min: number(of.minimum),
      max: number(of.maximum),
      longest: number(of.maxLength),
    };
  });
}

function kindOf(of: Json, choices: number): Kind {
  if (choices) return 'choice';
  if (of.type === 'boolean') return 'switch';
  if (of.type === 'integer' || of.type === 'number') return 'number';
  if (of.type === 'string') return (number(of.maxLength) ?? 0) > 200 ? 'long' : 'text';
  return 'json';
}

/** The initial text of the control of a field. */
export function textOf({ kind, usual }: ParameterField): string {
  if (usual === undefined) return kind === 'switch' ? 'false' : '';
  return kind === 'text' || kind === 'long' ? String(usual) : JSON.stringify(usual);
}

export interface Given {
  parameters: Json;
  errors: { field: string; message: string }[];
}

/** The parameters that were entered, and what cannot be sent. */
export function parametersOf(fields: ParameterField[], entered: Record<string, string>): Given {
  const given: Given = { parameters: {}, errors: [] };
  for (const { name, pointer, kind, isRequired, isWhole } of fields) {
    const text = entered[name] ?? '';
    const wrong = (message: string) => given.errors.push({ field: pointer, message });
    if (text.trim() === '') {
      // An empty text is a text where one is needed.
      if (isRequired && (kind === 'text' || kind === 'long')) given.parameters[name] = '';
      else if (isRequired) wrong('is required');
    } else if (kind === 'text' || kind === 'long') given.parameters[name] = text;
    else if (kind === 'number') {
      const value = Number(text.trim().replace(',', '.'));
      if (!Number.isFinite(value)) wrong('must be a number');
      else if (isWhole && !Number.isInteger(value)) wrong('must be a whole number');
      else given.parameters[name] = value;
    } else {
      try {
        given.parameters[name] = JSON.parse(text);
      } catch {
        wrong('is not valid JSON, such as ["a", 1] or {"a": 1}');
      }
    }
  }
  return given;
}

/** The errors of the service, each at the field that it is in. */
export function errorsOf(fields: ParameterField[], errors: { field: string; message: string }[]) {
  return errors.map(({ field, message }) => {
    const of = fields.find(({ pointer }) => field.startsWith(`${pointer}/`));
    return of ? { field: of.pointer, message: `${field.slice(of.pointer.length)} ${message}` } : { field, message };
  });
}
