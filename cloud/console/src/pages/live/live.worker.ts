//! Receives and counts live events, so that the page draws only what is seen, ten times a second.

import { follow, type StreamState } from '../../api/stream';
import { fits, parseLiveFilter, type LiveTerm } from './filter';
import type { AtHub, FromWorker, Gap, LiveRow, Snapshot, Sort, ToWorker, Value } from './messages';

/** Devices that are kept; the one that was heard longest ago goes first. */
const MAX_DEVICES = 5000;
const MAX_HUBS = 64;
const MAX_GAPS = 20;
const DRAW_EVERY = 100;
/** Rows change their places this seldom, so that one can read and point at them. */
const SORT_EVERY = 1000;

interface Kept extends LiveRow {
  receptions: Map<string, AtHub>;
  event: Record<string, unknown>;
  /** Counts of the last ten seconds, by second. */
  seconds: number[];
  order: number;
}

const post = (message: FromWorker) => postMessage(message);
const kept = new Map<string, Kept>();
const gaps: Gap[] = [];
const seconds: number[] = Array.from({ length: 10 }, () => 0);
let sorted: Kept[] = [];
let [received, dropped, droppedDevices, repeated, orders, lag] = [0, 0, 0, 0, 0, 0];
let lastId = '';
let state: StreamState = { kind: 'connecting' };
let [openedAt, takenAt] = [0, 0];
/** Since when events are counted. */
let countedFrom = Date.now();
let lostAt = 0;
let second = Math.floor(Date.now() / 1000);
let view = { sort: 'first' as Sort, first: 0, last: 60, selected: null as string | null, paused: false };
let terms: LiveTerm[] = [];
let sortedAt = 0;
let changed = true;
let following: AbortController | undefined;
let give: ((headers: Record<string, string> | null) => void) | undefined;

function headers(refused?: string): Promise<Record<string, string> | null> {
  return new Promise((resolve) => {
    give = resolve;
    post({ kind: 'credentials', ...(refused === undefined ? {} : { refused }) });
  });
}

interface BleEvent {
  receivedAt: string;
  hubUuid: string;
  address: string;
  name?: string | null;
  rssi?: number | null;
  deviceInstanceId?: number | null;
  processingStatus: string;
  measurements: Value[];
  window?: { count: number } | null;
}

function take(id: string, data: string) {
  // Ids increase; a repetition would be a fault of the service, and is reported.
  if (id && id <= lastId) {
    repeated += 1;
    return;
  }
  lastId = id;
  let event: BleEvent;
  try {
    event = JSON.parse(data) as BleEvent;
  } catch {
    return;
  }
  const at = Date.parse(event.receivedAt);
  takenAt = Date.now();
  lag = Math.max(0, takenAt - at);
  const gap = gaps.at(-1);
  if (gap && !gap.done) {
    if (at < gap.to) gap.late += 1;
    else gap.done = true;
  }
  const count = event.window?.count ?? 1;
  received += count;
  seconds[second % 10] = (seconds[second % 10] ?? 0) + count;
  const key = event.deviceInstanceId ? `device ${event.deviceInstanceId}` : event.address;
  let row = kept.get(key);
  if (row) {
    // A map remembers the order of insertion: the first one is that which was heard longest ago.
    kept.delete(key);
  } else {
    row = {
      key,
      address: event.address,
      name: null,
      deviceInstanceId: event.deviceInstanceId ?? null,
      status: '',
      count: 0,
      rate: 0,
      rssi: null,
      hubs: 0,
      at: '',
      values: [],
      receptions: new Map(),
      event: {},
      seconds: Array.from({ length: 10 }, () => 0),
      order: (orders += 1),
    };
    changed = true;
  }
  kept.set(key, row);
  row.address = event.address;
  row.name = event.name ?? row.name;
  row.status = event.processingStatus;
  row.rssi = event.rssi ?? row.rssi;
  row.at = event.receivedAt;
  row.count += count;
  row.seconds[second % 10] = (row.seconds[second % 10] ?? 0) + count;
  row.event = event as unknown as Record<string, unknown>;
  // Devices send values in turn: each is kept until its next one.
  for (const value of event.measurements) {
    const index = row.values.findIndex(({ quantity, index }) => quantity === value.quantity && index === value.index);
    if (index >= 0) row.values[index] = value;
    else if (row.values.length < 32) row.values.push(value);
  }
  const hub = row.receptions.get(event.hubUuid);
  if (hub) {
    hub.count += count;
    hub.rssi = event.rssi ?? hub.rssi;
    hub.at = event.receivedAt;
  } else if (row.receptions.size < MAX_HUBS) {
    row.receptions.set(event.hubUuid, { hubUuid: event.hubUuid, count, rssi: event.rssi ?? null, at: event.receivedAt });
    row.hubs = row.receptions.size;
  }
  if (kept.size > MAX_DEVICES) {
    const oldest = kept.values().next().value;
    if (oldest) {
      kept.delete(oldest.key);
      dropped += oldest.count;
      droppedDevices += 1;
      changed = true;
    }
  }
}

function enter(next: StreamState) {
  const now = Date.now();
  if (state.kind === 'open' && next.kind === 'waiting') lostAt = now;
  if (next.kind === 'open') {
    if (!openedAt) countedFrom = now;
    openedAt = now;
    if (lostAt) {
      gaps.push({ from: lostAt, to: openedAt, late: 0, done: false });
      if (gaps.length > MAX_GAPS) gaps.shift();
      lostAt = 0;
    }
  }
  state = next;
}

const ORDERS: Record<Sort, (one: Kept, other: Kept) => number> = {
  first: (one, other) => one.order - other.order,
  latest: (one, other) => (one.at < other.at ? 1 : one.at > other.at ? -1 : 0),
  strongest: (one, other) => (other.rssi ?? -999) - (one.rssi ?? -999),
  most: (one, other) => other.rate - one.rate || other.count - one.count,
};

/** Events a second, over the last ten or as many as there have been. */
function rateOf(counts: number[]): number {
  const elapsed = (Date.now() - countedFrom) / 1000;
  return counts.reduce((sum, count) => sum + count, 0) / Math.min(10, Math.max(1, elapsed));
}

function tick() {
  const now = Math.floor(Date.now() / 1000);
  for (; second < now; second = Math.max(second + 1, now - 10)) {
    seconds[(second + 1) % 10] = 0;
    for (const row of kept.values()) {
      row.rate = rateOf(row.seconds);
      row.seconds[(second + 1) % 10] = 0;
    }
  }
}

function snapshot(): Snapshot {
  tick();
  const now = Date.now();
  if (!view.paused && now - sortedAt >= SORT_EVERY) {
    if (changed || view.sort !== 'first' || terms.length) {
      sorted = [...kept.values()].filter((row) => fits(row, terms)).sort(ORDERS[view.sort]);
      changed = false;
    }
    sortedAt = now;
  }
  // Without a later event, silence says that all of a gap have come.
  const gap = gaps.at(-1);
  if (gap && !gap.done && state.kind === 'open' && now - Math.max(openedAt, takenAt) > 3000) gap.done = true;
  const selected = view.selected === null ? undefined : kept.get(view.selected);
  return {
    kind: 'snapshot',
    first: view.first,
    rows: sorted.slice(view.first, view.last).map(plain),
    total: sorted.length,
    devices: kept.size,
    received,
    dropped,
    droppedDevices,
    repeated,
    rate: rateOf(seconds),
    lag,
    state: state.kind,
    why: state.kind === 'waiting' || state.kind === 'ended' ? state.why : '',
    retryAt: state.kind === 'waiting' ? state.retryAt : 0,
    gaps,
    detail: selected
      ? {
          row: plain(selected),
          hubs: [...selected.receptions.values()].sort((one, other) => (other.rssi ?? -999) - (one.rssi ?? -999)),
          event: selected.event,
        }
      : null,
  };
}

function plain({ key, address, name, deviceInstanceId, status, count, rate, rssi, hubs, at, values }: Kept): LiveRow {
  return { key, address, name, deviceInstanceId, status, count, rate, rssi, hubs, at, values };
}

onmessage = ({ data }: MessageEvent<ToWorker>) => {
  if (data.kind === 'follow') {
    if (!following) {
      setInterval(() => {
        if (!view.paused) post(snapshot());
      }, DRAW_EVERY);
    }
    following?.abort();
    following = new AbortController();
    const { signal } = following;
    void follow({
      url: data.url,
      headers,
      onEvents: (events) => {
        if (signal.aborted) return;
        for (const { id, data: text } of events) take(id, text);
      },
      onState: (next) => signal.aborted || enter(next),
      signal,
    });
  } else if (data.kind === 'credentials') {
    give?.(data.headers);
    give = undefined;
  } else if (data.kind === 'clear') {
    kept.clear();
    seconds.fill(0);
    countedFrom = Date.now();
    gaps.length = 0;
    [sorted, received, dropped, droppedDevices, repeated, changed] = [[], 0, 0, 0, 0, true];
    post(snapshot());
  } else {
    const { kind: _, filter, ...rest } = data;
    if (rest.sort !== view.sort || terms.length > 0 || filter) changed = true;
    terms = parseLiveFilter(filter).terms;
    changed = true;
    sortedAt = 0;
    view = rest;
    post(snapshot());
  }
};
