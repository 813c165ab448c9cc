//! What a request failed with, in words for a person.

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

  /** A role or a membership that was taken away, or was never there. */
  get isForbidden() {
    return this.status === 403;
  }
}

/**
 * The problem with what is wrong below one of `names`, such as `metrics[2].quantity`, told at that name,
 * for a form that has one control for all of it.
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
  // fetch tells a lost connection as a TypeError.
  if (error instanceof TypeError && /fetch|network|load failed/i.test(error.message)) {
    return new Problem(0, 'UNREACHABLE', 'The service cannot be reached. Check the network; the page tries again when you ask it to.');
  }
  return new Problem(0, 'FAULT', error instanceof Error ? error.message : String(error));
}

/** The problem that a response tells. `body` is what it contained, read as JSON where that was possible. */
export function problemIn(response: Response, body: unknown): Problem {
  const told = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
  const retry = Number(response.headers.get('retry-after') ?? NaN);
  return new Problem(
    response.status,
    typeof told.code === 'string' ? told.code : 'UNKNOWN',
    typeof told.message === 'string' ? sentence(told.message) : `The service answered ${response.status}.`,
    Array.isArray(told.errors) ? (told.errors as { field: string; message: string }[]) : [],
    response.headers.get('x-request-id') ?? undefined,
    Number.isFinite(retry) ? retry : undefined,
  );
}

/** What the service says in half a sentence, as a whole one. */
export function sentence(text: string): string {
  const upper = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(upper) ? upper : `${upper}.`;
}
