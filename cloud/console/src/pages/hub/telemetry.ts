//! The telemetry of `hub-agent`. Other agents may send anything, so each value is checked.

import type { Schemas } from '../../api/client';
import { formatBytes, formatDuration, formatNumber } from '../../format';

type Json = Record<string, unknown>;
const object = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {});
const number = (value: unknown): number | null => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const text = (value: unknown): string | null => (typeof value === 'string' ? value : null);

export interface Blind {
  adapter: string;
  from: number;
  /** Null while it lasts. */
  to: number | null;
  reason: string;
}

export interface AdapterReport {
  state: string | null;
  reason: string | null;
  advertisements: number | null;
  perSec: number | null;
  lastHeardAt: string | null;
  restarts: number | null;
}

export interface Report {
  at: number;
  bootId: string | null;
  uptimeSecs: number | null;
  load: number | null;
  memoryUsed: number | null;
  diskFree: number | null;
  diskFreeBytes: number | null;
  temperature: number | null;
  spoolEvents: number | null;
  spoolBytes: number | null;
  spoolDropped: number | null;
  trouble: string | null;
  residentBytes: number | null;
  adapters: Record<string, AdapterReport>;
  blind: Blind[];
}

const share = (part: number | null, whole: number | null) => (part !== null && whole ? (part / whole) * 100 : null);

export function readReport({ data, receivedAt }: Schemas['HubTelemetryResponse']): Report {
  const report = object(data);
  const [machine, spool, agent] = [object(report.machine), object(report.spool), object(report.agent)];
  const adapters: Record<string, AdapterReport> = {};
  const blind: Blind[] = [];
  for (const [address, value] of Object.entries(object(report.adapters))) {
    const adapter = object(value);
    adapters[address] = {
      state: text(adapter.state),
      reason: text(adapter.reason),
      advertisements: number(adapter.advertisements),
      perSec: number(adapter.advertisementsPerSec),
      lastHeardAt: text(adapter.lastHeardAt),
      restarts: number(adapter.restarts),
    };
    for (const period of Array.isArray(adapter.blind) ? adapter.blind : []) {
      const { from, to, reason } = object(period);
      const begin = Date.parse(text(from) ?? '');
      if (!Number.isFinite(begin)) continue;
      const end = Date.parse(text(to) ?? '');
      blind.push({ adapter: address, from: begin, to: Number.isFinite(end) ? end : null, reason: text(reason) ?? 'unknown' });
    }
  }
  const memory = number(machine.memoryTotalBytes);
  const available = number(machine.memoryAvailableBytes);
  const observed = Date.parse(text(report.observedAt) ?? '');
  return {
    at: Number.isFinite(observed) ? observed : Date.parse(receivedAt),
    bootId: text(report.bootId),
    uptimeSecs: number(machine.uptimeSecs),
    load: number(machine.load1m),
    memoryUsed: memory !== null && available !== null ? share(memory - available, memory) : null,
    diskFree: share(number(machine.diskAvailableBytes), number(machine.diskTotalBytes)),
    diskFreeBytes: number(machine.diskAvailableBytes),
    temperature: number(machine.temperatureCelsius),
    spoolEvents: number(spool.events),
    spoolBytes: number(spool.bytes),
    spoolDropped: number(spool.droppedEvents),
    trouble: text(spool.trouble),
    residentBytes: number(agent.residentBytes),
    adapters,
    blind,
  };
}

/** Blind periods of several reports: one that lasts is in each of them, with the same beginning. */
export function blindPeriods(reports: Report[]): Blind[] {
  const periods = new Map<string, Blind>();
  for (const report of [...reports].sort((one, other) => one.at - other.at)) {
    for (const period of report.blind) periods.set(`${period.adapter} ${period.from}`, period);
  }
  return [...periods.values()].sort((one, other) => other.from - one.from);
}

/** Likely reasons why a hub is out of contact, from its last report, the most likely first. */
export function reasons(hub: Schemas['HubDetailResponse'], last: Report | undefined): string[] {
  if (hub.status === 'BLOCKED') {
    return ['A platform administrator blocked it: all its tokens are revoked, and it cannot reconnect.'];
  }
  if (hub.refreshExpiresAt && Date.parse(hub.refreshExpiresAt) <= Date.now()) {
    return ['It was offline for so long that its credentials expired. Readmit it, and it reconnects automatically.'];
  }
  if (!hub.lastTelemetryAt) {
    return ['It was claimed but has never sent telemetry: the agent stopped after the claim, or cannot reach the service.'];
  }
  if (!last) return ['Its last telemetry is older than the retention time.'];
  const found: string[] = [];
  if (last.trouble) found.push(`It could not write to its disk: ${last.trouble}`);
  if (last.diskFree !== null && last.diskFree < 3) found.push(`Its disk was nearly full: ${formatBytes(last.diskFreeBytes ?? 0)} free.`);
  if (last.memoryUsed !== null && last.memoryUsed > 95) found.push(`Its memory was nearly full: ${formatNumber(last.memoryUsed)} %.`);
  if (last.temperature !== null && last.temperature > 80) found.push(`Its temperature was high: ${formatNumber(last.temperature)} °C.`);
  if (last.load !== null && last.load > 8) found.push(`Its load was high: ${formatNumber(last.load)}.`);
  if (last.spoolEvents !== null && last.spoolEvents > 1000) {
    found.push(`${formatNumber(last.spoolEvents)} events waited in its spool: its connection was unstable before it was lost.`);
  }
  if (last.uptimeSecs !== null && last.uptimeSecs < 900) {
    found.push(`It had restarted only ${formatDuration(last.uptimeSecs * 1000)} before, and may be restarting repeatedly.`);
  }
  if (found.length === 0) found.push('Its last report shows no problem. It probably lost power or its network connection.');
  return found;
}
