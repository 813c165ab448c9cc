//! What to do about a condition, and the page where.

import type { Schemas } from '../../api/client';

type Item = Schemas['AttentionItem'];

export const TO_DO: Partial<Record<Item['type'], string>> = {
  HUB_OFFLINE: 'Check its power and its network.',
  HUB_BLIND: 'Check its Bluetooth adapter; its page says why.',
  HUB_FLOODING: 'Check what it uploads, then update or block it.',
  HUB_CREDENTIALS_EXPIRING: 'Bring it online, or readmit it on its page.',
  CERTIFICATE_EXPIRING: 'Bring it online. A hub renews its certificate automatically.',
  API_KEY_EXPIRING: 'Create another one, and give it to the programs that use it.',
  DEVICE_SILENT: 'Check its battery, and whether a hub is near.',
  DEVICE_BATTERY_LOW: 'Replace the battery.',
  DEVICE_THRESHOLD: 'Check its latest values.',
  PIPELINE_FAILING: 'Check the responses of the receiver.',
  DEPENDENCY_TRACK_FAILING: 'Check the address and the API key of the server.',
  ROLLOUT_HALTED: 'See why hubs failed, then resume or abort it.',
};

const PLACES: Partial<Record<Item['type'], string>> = { ROLLOUT_HALTED: '/rollouts', API_KEY_EXPIRING: '/api-keys' };

export function placeOf({ type, hubUuid, deviceInstanceId, pipelineUuid }: Item): string {
  if (deviceInstanceId) return `/devices/${deviceInstanceId}`;
  if (pipelineUuid) return `/pipelines/${pipelineUuid}`;
  if (hubUuid) return `/hubs/${hubUuid}`;
  return PLACES[type] ?? '/notification-settings';
}
