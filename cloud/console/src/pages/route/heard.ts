//! What was heard lately, on which a rule is tried before it is saved.

import { api, listed, type Schemas } from '../../api/client';
import { PAGE } from '../../api/rows.svelte';
import type { Rule } from './rules';

type Event = Schemas['BleEventResponse'];

const HOUR = 3_600_000;
/** Pages that are read at most: the latest of the hour. */
const PAGES = 10;

export interface Heard {
  events: Event[];
  /** The events of the hour, of which `events` may be the latest. */
  total: number;
}

/** The events that the service kept in the last hour, in ten requests at most. */
export async function lastHour(signal: AbortSignal): Promise<Heard> {
  const from = new Date(Date.now() - HOUR).toISOString();
  const to = new Date().toISOString();
  const events: Event[] = [];
  for (let page = 1; ; page++) {
    const { items, total } = await listed(api.GET('/tenant/ble/events', { params: { query: { from, to, page, size: PAGE } }, signal }));
    events.push(...items);
    if (items.length < PAGE || page === PAGES) return { events, total: Math.max(total, events.length) };
  }
}

const deviceOf = (event: Event) => String(event.deviceInstanceId ?? event.payloadAddress ?? event.address);
const BASE_UUID = /^0000([0-9a-f]{4})-0000-1000-8000-00805f9b34fb$/;
const short = (service: string) => BASE_UUID.exec(service.toLowerCase())?.[1] ?? service.toLowerCase();
const servicesOf = ({ serviceUuids = [], serviceData = {} }: Event) => [...serviceUuids, ...Object.keys(serviceData)].map(short);

/** Whether a rule fits an event, as the service and hubs find it. */
export function matches({ match = {} }: Rule, event: Event): boolean {
  const { deviceUuid, deviceInstanceId, hubUuid, known, minRssiDbm, companyId, serviceUuid } = match;
  return (
    (deviceUuid == null || event.deviceUuid === deviceUuid) &&
    (deviceInstanceId == null || event.deviceInstanceId === deviceInstanceId) &&
    (hubUuid == null || event.hubUuid === hubUuid) &&
    (known == null || (event.deviceUuid != null) === known) &&
    (minRssiDbm == null || (event.rssi != null && event.rssi >= minRssiDbm)) &&
    (companyId == null || Object.keys(event.manufacturerData ?? {}).includes(companyId.toLowerCase())) &&
    (serviceUuid == null || servicesOf(event).includes(short(serviceUuid)))
  );
}

export interface Tried {
  events: number;
  devices: number;
  ofEvents: number;
  ofDevices: number;
  /** Those of `events` that a rule above decides. */
  decidedAbove: number;
  /** What is left of the others; undefined where it depends on values. */
  left: number | undefined;
}

/** What a rule does to what was heard, below the rules `above` it in its layer. */
export function tried(rule: Rule, above: Rule[], { events }: Heard): Tried {
  const fitting = events.filter((event) => matches(rule, event));
  const reached = fitting.filter((event) => !above.some((one) => matches(one, event)));
  const devices = (some: Event[]) => new Set(some.map(deviceOf)).size;
  const interval = (rule.everySeconds ?? 1) * 1000;
  const intervals = () => new Set(reached.map((event) => `${deviceOf(event)} ${Math.floor(Date.parse(event.observedAt) / interval)}`)).size;
  const left = { FORWARD: () => reached.length, DROP: () => 0, SAMPLE: intervals, WINDOW: intervals, ON_CHANGE: () => undefined }[rule.action];
  return {
    events: fitting.length,
    devices: devices(fitting),
    ofEvents: events.length,
    ofDevices: devices(events),
    decidedAbove: fitting.length - reached.length,
    left: left(),
  };
}

/** What of a kind was heard, by the number of devices, the most first. */
function counted(events: Event[], of: (event: Event) => string[]): { id: string; devices: number }[] {
  const found = new Map<string, Set<string>>();
  for (const event of events) {
    for (const id of of(event)) found.set(id, (found.get(id) ?? new Set()).add(deviceOf(event)));
  }
  return [...found].map(([id, { size }]) => ({ id, devices: size })).sort((one, other) => other.devices - one.devices);
}

export const companiesIn = ({ events }: Heard) => counted(events, (event) => Object.keys(event.manufacturerData ?? {})).slice(0, 50);
export const servicesIn = ({ events }: Heard) => counted(events, servicesOf).slice(0, 50);
