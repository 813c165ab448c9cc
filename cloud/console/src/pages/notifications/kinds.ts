//! The types of notices, with their thresholds.

import type { Schemas } from '../../api/client';
import { formatNumber } from '../../format';
import type { Tone } from '../../parts/Badge.svelte';

export type Setting = Schemas['NotificationSettingResponse'];
export type NoticeType = Setting['type'];
export type Channel = Setting['channel'];
export type Threshold = Schemas['Threshold'];

export interface Kind {
  type: NoticeType;
  title: string;
  when: string;
  /** The unit, bounds and default of a numeric threshold. */
  number?: { unit: string; from: number; to: number; usual: number };
}

const minutes = (usual: number) => ({ unit: 'minutes', from: 1, to: 10_080, usual });
export const KINDS: Kind[] = [
  { type: 'HUB_OFFLINE', title: 'Hub offline', when: 'a hub has been offline for this time', number: minutes(10) },
  { type: 'HUB_ONLINE', title: 'Hub back', when: 'a hub is back online after this time', number: minutes(10) },
  { type: 'HUB_BLIND', title: 'Hub blind', when: 'no adapter of a hub has received anything for this time', number: minutes(5) },
  { type: 'JOB_FAILED', title: 'Job failed', when: 'a job of a hub failed or expired' },
  { type: 'ROLLOUT_HALTED', title: 'Rollout halted', when: 'the rollout of a release was halted' },
  { type: 'DEVICE_SILENT', title: 'Device silent', when: 'a device has been silent for this time longer than usual', number: minutes(5) },
  { type: 'DEVICE_BATTERY_LOW', title: 'Battery low', when: 'the battery level of a device is at or below this value', number: { unit: 'percent', from: 1, to: 99, usual: 15 } },
  { type: 'DEVICE_THRESHOLD', title: 'Value out of range', when: 'a value is above or below a limit' },
  { type: 'PIPELINE_FAILING', title: 'Pipeline failing', when: 'a pipeline has not delivered for this time', number: minutes(60) },
  { type: 'CONSENT_WITHDRAWN', title: 'Consent withdrawn', when: 'an app user withdrew their consent' },
  { type: 'CERTIFICATE_EXPIRING', title: 'Certificate expiring', when: 'the certificate of a hub expires within this time', number: { unit: 'days', from: 1, to: 60, usual: 14 } },
  { type: 'HUB_CLONED', title: 'Hub cloned', when: 'two machines use the credentials of the same hub' },
  { type: 'HUB_FLOODING', title: 'Hub flooding', when: 'a hub exceeds its share of the upload limit' },
  { type: 'HUB_CREDENTIALS_EXPIRING', title: 'Credentials expiring', when: 'the credentials of an offline hub expire within this time', number: { unit: 'days', from: 1, to: 60, usual: 7 } },
  { type: 'API_KEY_EXPIRING', title: 'API key expiring', when: 'an API key expires within this time', number: { unit: 'days', from: 1, to: 60, usual: 14 } },
  { type: 'VULNERABILITY_FOUND', title: 'Vulnerability found', when: 'a vulnerability is found in what hubs run' },
  { type: 'SUPPORT_ENDING', title: 'Support ending', when: 'the support of a device model, or of a release that hubs run, ends in 90 days, in 30 days, or has ended' },
  { type: 'DEPENDENCY_TRACK_FAILING', title: 'Dependency-Track failing', when: 'the server of Dependency-Track has taken nothing for this time, or refuses a document', number: minutes(60) },
];

export const CHANNELS: { channel: Channel; label: string; hint: string }[] = [
  { channel: 'IN_APP', label: 'In the console', hint: 'all members see it under the bell' },
  { channel: 'EMAIL', label: 'E-mail', hint: 'at most one e-mail every ten minutes' },
  { channel: 'WEBHOOK', label: 'Webhook', hint: 'a signed message to your server' },
];

export const SEVERITY: Record<Schemas['Severity'], { tone: Tone; text: string }> = {
  INFO: { tone: 'off', text: 'info' },
  WARNING: { tone: 'warn', text: 'warning' },
  CRITICAL: { tone: 'bad', text: 'critical' },
};

export function thresholdText(kind: Kind, threshold: Threshold | null | undefined): string {
  if (kind.number) return `${formatNumber(typeof threshold === 'number' ? threshold : kind.number.usual)} ${kind.number.unit}`;
  if (kind.type !== 'DEVICE_THRESHOLD' || threshold == null) return '';
  if (typeof threshold === 'number') return `temperature above ${formatNumber(threshold)}`;
  const bounds = [
    threshold.above != null && `above ${formatNumber(threshold.above)}`,
    threshold.below != null && `below ${formatNumber(threshold.below)}`,
  ].filter(Boolean);
  return `${threshold.quantity} ${bounds.join(' or ')}`;
}
