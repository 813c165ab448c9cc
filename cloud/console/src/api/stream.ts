//! Server-sent events by `fetch`, since EventSource sends no headers. Follows a stream for as long as
//! it is wanted: resumes after the last event, waits longer after each failure, notices a connection
//! that is dead. Knows nothing of the page, so that a worker may use it.

import { problemIn } from './problem';

export interface StreamEvent {
  id: string;
  data: string;
}

export type StreamState =
  | { kind: 'connecting' }
  | { kind: 'open' }
  /** The connection is lost, or was refused for now. */
  | { kind: 'waiting'; why: string; retryAt: number }
  /** The service refuses the stream: nobody is signed in, or a permission is missing. */
  | { kind: 'ended'; why: string; status: number };

export interface Followed {
  url: string;
  /** The headers of a request; `refused` is the token that was refused. Null: nobody is signed in. */
  headers: (refused?: string) => Promise<Record<string, string> | null>;
  lastId?: string;
  onEvents: (events: StreamEvent[]) => void;
  onState: (state: StreamState) => void;
  signal: AbortSignal;
}

/** The service sends something every 20 seconds. */
const DEAD_AFTER = 50_000;
const LONGEST_WAIT = 15_000;
const LARGEST_EVENT = 8 << 20;

export async function follow({ url, headers, lastId, onEvents, onState, signal }: Followed): Promise<void> {
  let failures = 0;
  let refused: string | undefined;
  while (!signal.aborted) {
    onState({ kind: 'connecting' });
    const attempt = new AbortController();
    const stop = () => attempt.abort();
    signal.addEventListener('abort', stop);
    let watch = setTimeout(stop, DEAD_AFTER);
    let wait = 0;
    let why = 'The connection was lost.';
    try {
      const auth = await headers(refused);
      if (!auth) return onState({ kind: 'ended', why: 'Your session has ended.', status: 401 });
      const response = await fetch(url, {
        headers: { accept: 'text/event-stream', ...auth, ...(lastId ? { 'last-event-id': lastId } : {}) },
        signal: attempt.signal,
        cache: 'no-store',
      });
      if (response.status === 401 && refused === undefined) {
        refused = auth.authorization ?? '';
        continue;
      }
      refused = undefined;
      if (!response.ok || !response.body) {
        const message = await messageOf(response);
        const isOver = response.status >= 400 && response.status < 500 && response.status !== 429 && response.status !== 408;
        if (isOver) return onState({ kind: 'ended', why: message, status: response.status });
        why = message;
        wait = Number(response.headers.get('retry-after') ?? 0) * 1000;
        throw new Error(message);
      }
      onState({ kind: 'open' });
      failures = 0;
      // Events lost before the first one arrives are requested by the time of the service.
      const opened = Date.parse(response.headers.get('date') ?? '');
      if (!lastId && Number.isFinite(opened)) lastId = new Date(opened).toISOString();
      const reader = response.body.getReader();
      const decoder = new TextDecoder();
      let text = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        clearTimeout(watch);
        watch = setTimeout(stop, DEAD_AFTER);
        text += decoder.decode(value, { stream: true });
        if (text.length > LARGEST_EVENT) throw new Error('an event is too large');
        const events: StreamEvent[] = [];
        let start = 0;
        for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n', start)) {
          const event = parse(text.slice(start, end));
          start = end + 2;
          if (!event) continue;
          // A resumed stream must not repeat what is known.
          if (event.id) lastId = event.id;
          // An event with only an id marks the position where a filter discards all events.
          if (event.data) events.push(event);
        }
        text = text.slice(start);
        if (events.length) onEvents(events);
      }
      // The service ends a stream after some minutes, and the client goes on.
      continue;
    } catch {
      if (signal.aborted) return;
      failures += 1;
      wait = Math.max(wait, Math.min(LONGEST_WAIT, 500 * 2 ** (failures - 1)) * (0.5 + Math.random() / 2));
      onState({ kind: 'waiting', why, retryAt: Date.now() + wait });
    } finally {
      clearTimeout(watch);
      signal.removeEventListener('abort', stop);
      attempt.abort();
    }
    await pause(wait, signal);
  }
}

function parse(block: string): StreamEvent | null {
  let id = '';
  let data = '';
  for (const line of block.split('\n')) {
    if (line.startsWith('data:')) data += (data ? '\n' : '') + line.slice(line[5] === ' ' ? 6 : 5);
    else if (line.startsWith('id:')) id = line.slice(3).trim();
  }
  return id || data ? { id, data } : null;
}

async function messageOf(response: Response): Promise<string> {
  return problemIn(response, await response.json().catch(() => undefined)).message;
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
