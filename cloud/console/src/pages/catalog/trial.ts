//! Tries a draft of a protocol: the service compiles it, runs its tests, and stores nothing.

import { api, data, type Schemas } from '../../api/client';
import { problemOf } from '../../api/problem';
import type { Expected, Test } from '../../frames';

export type Kind = Schemas['DeviceProtocolKind'];

export interface Draft {
  kind: Kind;
  definition: unknown;
  tests: Test[];
}

/** A value that is read; `expected` is absent where nothing was expected. */
export interface Outcome {
  quantity: string;
  expected?: Expected;
  got: Expected;
  same: boolean;
}
export interface TestResult {
  state: 'passed' | 'failed' | 'read' | 'refused' | 'not run';
  outcomes: Outcome[];
  /** Why nothing, or something else, is read. */
  why: string;
}
export interface Trial {
  /** The errors of the definition, each with its place. */
  problems: { path: string; message: string }[];
  tests: TestResult[];
  /** Why nothing was tried. */
  failure?: string;
  retryAfterSecs?: number;
}

export async function tryDraft(draft: Draft, signal: AbortSignal): Promise<Trial> {
  const { kind, definition } = draft;
  const tests = draft.tests as unknown as Record<string, unknown>[];
  try {
    const { tests: outcomes } = await data(api.POST('/tenant/device-protocols/test-run', { body: { kind, definition, tests }, signal }));
    return { problems: [], tests: outcomes.map((outcome, index) => resultOf(outcome, draft.tests[index]?.expect ?? {})) };
  } catch (error) {
    return refusalOf(problemOf(error), draft.tests.length);
  }
}

function resultOf({ passed, values, differing, problem }: Schemas['ProtocolTestOutcome'], expect: Test['expect']): TestResult {
  const read = values as Record<string, Expected>;
  const why = problem ?? '';
  if (Object.keys(expect).length === 0) {
    const outcomes = Object.entries(read).map(([quantity, got]) => ({ quantity, got, same: true }));
    return { state: passed ? 'read' : 'failed', outcomes, why };
  }
  const outcomes = Object.entries(expect).map(([quantity, expected]) => ({ quantity, expected, got: read[quantity] ?? null, same: !differing.includes(quantity) }));
  return { state: passed ? 'passed' : 'failed', outcomes, why: passed ? '' : why };
}

/** The errors at their places in the definition or in a test; no test was run then. */
function refusalOf({ status, message, fields, retryAfterSecs }: ReturnType<typeof problemOf>, count: number): Trial {
  const tests = Array.from({ length: count }, (): TestResult => ({ state: 'not run', outcomes: [], why: '' }));
  if (status !== 400 || fields.length === 0) return { problems: [], tests, failure: message, retryAfterSecs };
  const problems: Trial['problems'] = [];
  for (const { field, message } of fields) {
    const [, index, path = ''] = /^tests\[(\d+)\](.*)$/.exec(field) ?? [];
    const test = index === undefined ? undefined : tests[Number(index)];
    if (test) Object.assign(test, { state: 'refused', why: `${path.replace(/^\./, '')} ${message}`.trim() });
    else if (field.startsWith('definition')) problems.push({ path: field.slice('definition'.length), message });
    else problems.push({ path: '', message: `${field}: ${message}` });
  }
  return { problems, tests };
}
