//! Messages between the page of live events and its worker.

export interface Value {
  quantity: string;
  value: number | string | boolean;
  unit?: string | null;
  /** The number of the probe, of a device with several. */
  index?: number | null;
}

/** The last event of a device at one hub. */
export interface AtHub {
  hubUuid: string;
  count: number;
  rssi: number | null;
  at: string;
}

/** One device, or an advertiser that is none of the tenant's. */
export interface LiveRow {
  key: string;
  address: string;
  name: string | null;
  deviceInstanceId: number | null;
  status: string;
  count: number;
  /** Events a second, over the last ten seconds. */
  rate: number;
  rssi: number | null;
  hubs: number;
  at: string;
  values: Value[];
}

/** A device in full: its receptions, and the last event as the service sent it. */
export interface LiveDetail {
  row: LiveRow;
  hubs: AtHub[];
  event: Record<string, unknown>;
}

/** The time in which there was no connection. */
export interface Gap {
  from: number;
  to: number;
  /** Events of that time that were delivered afterwards. */
  late: number;
  /** True if all of them were received. */
  done: boolean;
}

export type Sort = 'first' | 'latest' | 'strongest' | 'most';

export interface Snapshot {
  kind: 'snapshot';
  first: number;
  rows: LiveRow[];
  /** Devices that match the filter, and all that are kept. */
  total: number;
  devices: number;
  /** Events since the beginning: received, of devices that were dropped since, repeated. */
  received: number;
  dropped: number;
  droppedDevices: number;
  repeated: number;
  /** Events a second now. */
  rate: number;
  /** The delay of the last event, in milliseconds. */
  lag: number;
  state: 'connecting' | 'open' | 'waiting' | 'ended';
  why: string;
  retryAt: number;
  gaps: Gap[];
  detail: LiveDetail | null;
}

export type FromWorker = Snapshot | { kind: 'credentials'; refused?: string };

export type ToWorker =
  /** Begins to receive, or receives from another address from now on. */
  | { kind: 'follow'; url: string }
  | { kind: 'credentials'; headers: Record<string, string> | null }
  | { kind: 'view'; filter: string; sort: Sort; first: number; last: number; selected: string | null; paused: boolean }
  | { kind: 'clear' };
