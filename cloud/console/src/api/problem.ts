//! Failures of requests, with messages to show.

import { said } from './said';

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly fields: { field: string; message: string }[] = [],
    readonly requestId?: string,
    readonly retryAfterSecs?: number,
  ) {
    super(message);
  }

  /** A role or a membership that was revoked, or was never there. */
  get isForbidden() {
    return this.status === 403;
  }

  /** The service, or what is before it, does not answer for now: a request that reads is sent again. */
  get isOutage() {
    return this.code === 'UNREACHABLE' || (this.status === 503 && !this.code.endsWith('_NOT_CONFIGURED')) || (this.code === 'UNKNOWN' && [502, 504].includes(this.status));
  }
}

const LONGEST_WAIT = 15_000;

/** The time before a request is sent again, in milliseconds, longer after each failure. */
export const backoff = (failures: number) => Math.min(LONGEST_WAIT, 500 * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);

/**
 * The problem with what is wrong below one of `names`, such as `metrics[2].quantity`, moved to that name,
 * for a form with one control for all of it.
 */
export function gathered(error: unknown, names: string[]): Problem {
  const problem = problemOf(error);
  const fields = problem.fields.map(({ field, message }) => {
    const name = names.find((one) => field.startsWith(one) && '.[/'.includes(field.charAt(one.length)) && field.length > one.length);
    return name ? { field: name, message: `${field.slice(name.length).replace(/^[./]/, '')}: ${message}` } : { field, message };
  });
  return new Problem(problem.status, problem.code, problem.message, fields, problem.requestId, problem.retryAfterSecs);
}

export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof DOMException && error.name === 'AbortError') return new Problem(0, 'ABORTED', 'The request was aborted.');
  // fetch rejects with a TypeError when the connection is lost.
  if (error instanceof TypeError && /fetch|network|load failed/i.test(error.message)) {
    return new Problem(0, 'UNREACHABLE', 'The service cannot be reached. Check your network connection and try again.');
  }
  return new Problem(0, 'FAULT', error instanceof Error ? error.message : String(error));
}

/** The problem in a response. `body` is its content, parsed where it is JSON. */
export function problemIn(response: Response, body: unknown): Problem {
  const content = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
  const code = typeof content.code === 'string' ? content.code : 'UNKNOWN';
  const retry = Number(response.headers.get('retry-after') ?? NaN);
  return new Problem(
    response.status,
    code,
    typeof content.message === 'string' ? said(code, content.message) : `The service returned ${response.status}.`,
    Array.isArray(content.errors) ? (content.errors as { field: string; message: string }[]) : [],
    response.headers.get('x-request-id') ?? undefined,
    Number.isFinite(retry) ? retry : undefined,
  );
}
