//! The rows of a long list, of which only the pages that are seen are loaded.

import { SvelteMap } from 'svelte/reactivity';
import { session } from '../session.svelte';
import { backoff, problemOf, type Problem } from './problem';

/** The most that a page of the API has. */
export const PAGE = 100;
/** Pages that are kept; those farthest from what is seen go first. */
const KEPT = 40;

export type LoadPage<T> = (page: number, signal: AbortSignal) => Promise<{ items: T[]; total: number }>;
type Progress = (count: number, total: number) => void;

export class Rows<T> {
  total = $state(0);
  loaded = $state(false);
  problem = $state.raw<Problem | undefined>();
  /** When the service last answered, in milliseconds. */
  answeredAt = $state<number | undefined>();
  #pages = new SvelteMap<number, T[]>();
  #asked = new Set<number>();
  #abort = new AbortController();
  #seen: [number, number] = [0, 0];
  #failures = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  readonly #load: LoadPage<T>;
  /** Settles when the first page is loaded, or has failed. */
  readonly ready: Promise<void>;

  constructor(load: LoadPage<T>) {
    this.#load = load;
    this.ready = this.#fetch(0);
  }

  at(index: number): T | undefined {
    return this.#pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  /** All rows, also those that are not seen. */
  all = (signal: AbortSignal, progress: Progress) => everything(this.#load, signal, progress);

  /** All rows that are loaded. */
  loadedRows(): T[] {
    return [...this.#pages.values()].flat();
  }

  /** Loads the pages of the rows from `first` to before `last`. */
  need(first: number, last: number) {
    this.#seen = [Math.floor(first / PAGE), Math.floor(Math.max(first, last - 1) / PAGE)];
    for (let page = this.#seen[0]; page <= this.#seen[1]; page++) {
      if (!this.#pages.has(page)) void this.#fetch(page);
    }
  }

  /** Reloads the visible rows in place. */
  refresh = () => {
    for (let page = this.#seen[0]; page <= this.#seen[1]; page++) void this.#fetch(page);
    for (const page of [...this.#pages.keys()]) {
      if (page < this.#seen[0] || page > this.#seen[1]) this.#pages.delete(page);
    }
  };

  stop() {
    clearTimeout(this.#retry);
    this.#abort.abort();
  }

  async #fetch(page: number) {
    if (this.#asked.has(page) || this.#abort.signal.aborted) return;
    this.#asked.add(page);
    try {
      const { items, total } = await this.#load(page + 1, this.#abort.signal);
      if (this.#abort.signal.aborted) return;
      this.#pages.set(page, items);
      [this.total, this.loaded, this.problem, this.answeredAt] = [total, true, undefined, Date.now()];
      this.#failures = 0;
      this.#forget();
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#fail(problemOf(error));
    } finally {
      this.#asked.delete(page);
    }
  }

  /** After an outage, the rows that are seen are loaded again. */
  #fail(problem: Problem) {
    this.problem = problem;
    if (!problem.isOutage) return;
    clearTimeout(this.#retry);
    this.#failures += 1;
    this.#retry = setTimeout(this.refresh, backoff(this.#failures));
  }

  #forget() {
    const middle = (this.#seen[0] + this.#seen[1]) / 2;
    const far = [...this.#pages.keys()].sort((one, other) => Math.abs(other - middle) - Math.abs(one - middle));
    for (const page of far.slice(0, Math.max(0, far.length - KEPT))) this.#pages.delete(page);
  }
}

/**
 * The rows that `load` finds; while it is undefined, those from before. What fits another filter takes
 * the place of what is shown once it is there, and is loaded again every 15 seconds. For the script of a
 * component.
 */
export function rowsOf<T>(load: () => LoadPage<T> | undefined): { readonly shown: Rows<T> } {
  let shown = $state.raw<Rows<T>>(new Rows(() => new Promise(() => {})));
  $effect(() => () => shown.stop());
  $effect(() => {
    void session.entries;
    const asked = load();
    if (!asked) return;
    const next = new Rows(asked);
    let gone = false;
    void next.ready.then(() => {
      if (gone) return next.stop();
      shown.stop();
      shown = next;
    });
    const timer = setInterval(() => document.hidden || session.lapsed || next.refresh(), 15_000);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  });
  return {
    get shown() {
      return shown;
    },
  };
}

/** All items of a list, page after page; `progress` gets the number of items so far. */
export async function everything<T>(load: LoadPage<T>, signal: AbortSignal, progress: Progress = () => {}): Promise<T[]> {
  const all: T[] = [];
  for (let page = 1; ; page++) {
    const { items, total } = await load(page, signal);
    all.push(...items);
    progress(all.length, total);
    if (items.length < PAGE || all.length >= total) return all;
  }
}
