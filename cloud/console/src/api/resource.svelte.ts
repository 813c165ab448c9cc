//! Data of a page: loaded when its dependencies change, reloaded on demand, and again after an outage.

import { untrack } from 'svelte';
import { session } from '../session.svelte';
import { backoff, problemOf, type Problem } from './problem';

export class Resource<T> {
  value = $state.raw<T | undefined>();
  problem = $state.raw<Problem | undefined>();
  loading = $state(true);
  #turn = $state(0);
  #failures = 0;

  constructor(load: (signal: AbortSignal) => Promise<T>) {
    $effect(() => {
      void [this.#turn, session.entries];
      const abort = new AbortController();
      let retry: ReturnType<typeof setTimeout> | undefined;
      untrack(() => (this.loading = true));
      load(abort.signal).then(
        (value) => {
          if (abort.signal.aborted) return;
          [this.value, this.problem, this.loading] = [value, undefined, false];
          this.#failures = 0;
        },
        (error: unknown) => {
          if (abort.signal.aborted) return;
          const problem = problemOf(error);
          [this.problem, this.loading] = [problem, false];
          if (!problem.isOutage) return;
          this.#failures += 1;
          retry = setTimeout(this.reload, backoff(this.#failures));
        },
      );
      return () => {
        clearTimeout(retry);
        abort.abort();
      };
    });
  }

  /** Reloads; the old value stays until the new one is there. */
  reload = () => {
    this.#turn += 1;
  };
}

/**
 * Calls `load`, and calls it anew when a state that it reads before its first `await` changes.
 * For the script of a component. A `load` with nothing to ask for yet, as that of a closed dialog,
 * resolves to undefined: an empty value would be shown until the answer is there. `every` is the
 * seconds between reloads while the page is visible.
 */
export function resource<T>(load: (signal: AbortSignal) => Promise<T>, every?: number): Resource<T> {
  const loaded = new Resource(load);
  if (every) {
    $effect(() => {
      const timer = setInterval(() => {
        if (!document.hidden && !loaded.loading && !session.lapsed) loaded.reload();
      }, every * 1000);
      return () => clearInterval(timer);
    });
  }
  return loaded;
}

/**
 * Calls `load` again, later after each failure, while the problem that it leaves is an outage.
 * For the script of a component, and for what no `Resource` holds.
 */
export function retryOutage(problem: () => Problem | null, load: () => Promise<void>) {
  let failures = 0;
  $effect(() => {
    if (!problem()?.isOutage) {
      failures = 0;
      return;
    }
    failures += 1;
    const retry = setTimeout(() => void load(), backoff(failures));
    return () => clearTimeout(retry);
  });
}
