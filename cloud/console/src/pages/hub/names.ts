//! Names and states of hubs.

import type { Schemas } from '../../api/client';
import type { Tone } from '../../parts/Badge.svelte';

type Named = Pick<Schemas['HubSummaryResponse'], 'hubUuid' | 'hubIdentifier' | 'hostname' | 'deviceInstanceId'>;

export const hubName = (hub: Named) => hub.hubIdentifier || hub.hostname || hub.deviceInstanceId || hub.hubUuid;

const countries = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
/** `Germany (DE)`. */
export function countryName(code: string): string {
  const name = /^[A-Z]{2}$/.test(code) ? countries.of(code) : undefined;
  return name ? `${name} (${code})` : code;
}

export const STATUS: Record<Schemas['HubStatus'], { tone: Tone; text: string }> = {
  ONLINE: { tone: 'good', text: 'online' },
  OFFLINE: { tone: 'warn', text: 'offline' },
  BLOCKED: { tone: 'bad', text: 'blocked' },
};

export const JOB_STATUS: Record<Schemas['HubJobStatus'], { tone: Tone; text: string }> = {
  PENDING: { tone: 'off', text: 'waiting' },
  DISPATCHED: { tone: 'accent', text: 'delivered' },
  RUNNING: { tone: 'accent', text: 'running' },
  SUCCEEDED: { tone: 'good', text: 'succeeded' },
  FAILED: { tone: 'bad', text: 'failed' },
  CANCELLED: { tone: 'off', text: 'cancelled' },
  EXPIRED: { tone: 'warn', text: 'expired' },
};

export const JOB_TYPE: Record<Schemas['HubJobType'], string> = {
  APP_INSTALL: 'Install app',
  APP_REMOVE: 'Remove app',
  SELF_UPDATE: 'Update agent',
  DEVICE_COMMAND: 'Device command',
  MOVE: 'Move to another service',
};
