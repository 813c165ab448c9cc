//! Live events, as a worker of the page receives and counts them.

import { untrack } from 'svelte';
import { credentials } from '../../api/streamed';
import { session } from '../../session.svelte';
import { loadTenants } from '../../tenants.svelte';
import { startWorker } from '../../worker';
import workerUrl from './live.worker?worker&url';
import type { FromWorker, Snapshot, ToWorker } from './messages';

type View = Omit<Extract<ToWorker, { kind: 'view' }>, 'kind'>;

/** Follows the events that fit `search` for as long as the component is shown, and shows the part of them that `view` names. */
export class Followed {
  live = $state.raw<Snapshot | null>(null);
  failed = $state<string | null>(null);
  #worker = $state.raw<Worker | null>(null);

  constructor(search: () => string, view: () => View) {
    $effect(() => {
      // After another sign-in the stream starts from now.
      void session.entries;
      let started: Worker;
      try {
        started = startWorker(workerUrl);
      } catch (error) {
        this.failed = String(error);
        return;
      }
      const headers = untrack(credentials);
      const send = (message: ToWorker) => started.postMessage(message);
      started.onerror = () => (this.failed = 'The event receiver could not be loaded. Reload the page.');
      started.onmessage = async ({ data }: MessageEvent<FromWorker>) => {
        if (data.kind === 'snapshot') this.live = data;
        else send({ kind: 'credentials', headers: await headers(data.refused).catch(() => ({})) });
      };
      this.#worker = started;
      return () => started.terminate();
    });
    $effect(() => {
      this.#worker?.postMessage({ kind: 'follow', url: new URL(`/tenant/stream/ble/events?${search()}`, location.origin).href } satisfies ToWorker);
    });
    $effect(() => {
      this.#worker?.postMessage({ kind: 'view', ...view() } satisfies ToWorker);
    });
    // The role of the user has changed: the page shows what it still permits.
    const over = $derived(this.live?.state === 'ended');
    $effect(() => {
      if (over) void loadTenants();
    });
  }

  clear() {
    this.#worker?.postMessage({ kind: 'clear' } satisfies ToWorker);
  }
}
