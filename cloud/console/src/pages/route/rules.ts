//! Rules of the route in words, and as a form writes them.

import type { Schemas } from '../../api/client';
import { Problem } from '../../api/problem';
import { assignedLabel } from '../../assigned.svelte';
import { formatDuration } from '../../format';
import { deviceLabel, hubLabel } from '../../names.svelte';
import { quantityName } from '../devices/names';

export type Rule = Schemas['RouteRule'];
export type Layer = Schemas['RouteLayer'];
export type Otherwise = Schemas['Otherwise'];

export const ACTIONS: Record<Schemas['RouteAction'], { label: string; layers: Layer[] }> = {
  FORWARD: { label: 'Forward', layers: ['HUB', 'CLOUD'] },
  DROP: { label: 'Drop', layers: ['HUB', 'CLOUD'] },
  SAMPLE: { label: 'Forward one event per device and interval', layers: ['HUB'] },
  WINDOW: { label: 'Aggregate into one event per device and interval', layers: ['HUB'] },
  ON_CHANGE: { label: 'Forward when a value changes', layers: ['HUB'] },
};

const seconds = (count: number | null | undefined) => formatDuration((count ?? 0) * 1000);

/** The condition of a rule in words: `what is not known and has at least -70 dBm`. */
export function fits({ match = {} }: Rule, modelName: (deviceUuid: string) => string): string {
  const words = [
    match.known === true && 'a known model',
    match.known === false && 'no known model',
    match.deviceUuid && `model ${modelName(match.deviceUuid)}`,
    match.deviceInstanceId != null && `device ${deviceLabel(match.deviceInstanceId)}`,
    match.hubUuid && `hub ${hubLabel(match.hubUuid)}`,
    match.companyId && `company ${assignedLabel('companies', match.companyId)}`,
    match.serviceUuid && `service ${assignedLabel('services', match.serviceUuid)}`,
    match.minRssiDbm != null && `at least ${match.minRssiDbm} dBm`,
  ].filter(Boolean);
  return words.length ? `events with ${words.join(' and ')}` : 'all events';
}

/** The action of a rule in words. */
export function becomes({ layer, action, everySeconds, quantities = {}, pipelineUuids = [] }: Rule): string {
  const who = layer === 'HUB' ? 'hubs' : 'the service';
  switch (action) {
    case 'DROP':
      return layer === 'HUB' ? 'hubs drop them: they are neither sent nor stored' : 'the service drops them: they are not stored, and no pipeline receives them';
    case 'SAMPLE':
      return `hubs send one event per device every ${seconds(everySeconds)}, and drop the others`;
    case 'WINDOW':
      return `hubs aggregate them into one event per device every ${seconds(everySeconds)}`;
    case 'ON_CHANGE':
      return `hubs send them when ${Object.entries(quantities).map(([quantity, delta]) => `${quantityName(quantity)} has changed by ${delta}`).join(' or ')}, and drop the others`;
    default:
      return layer === 'HUB' ? 'hubs send them' : `${who} keeps them${pipelineUuids.length ? `, and ${pipelineUuids.length === 1 ? 'one pipeline receives' : `${pipelineUuids.length} pipelines receive`} them` : ', and all pipelines receive them'}`;
  }
}

/** The parts of a rule as the form calls them, by the member that the service refuses. */
const PARTS: Record<string, string> = {
  known: 'Model is known',
  deviceUuid: 'Model',
  deviceInstanceId: 'Device',
  hubUuid: 'Hub',
  companyId: 'Company',
  serviceUuid: 'Service',
  minRssiDbm: 'Minimum signal',
  everySeconds: 'Interval',
  quantities: 'Values and their minimum change',
  pipelineUuids: 'Pipelines',
};

/** What is wrong with a part of a rule, such as `match.hubUuid`. */
export function refusedPart(path: string, message: string): string {
  const part = Object.entries(PARTS).find(([member]) => new RegExp(`(^|\\.)${member}\\b`).test(path))?.[1];
  return part ? `${part}: ${message}` : `${path} ${message}`.trim();
}

export const isAll = ({ match = {} }: Rule) => Object.values(match).every((value) => value === null || value === undefined);

/** The events that the rules discard, one sentence each. */
export function losses(rules: Rule[], otherwise: Otherwise, modelName: (deviceUuid: string) => string): string[] {
  const sentences = rules
    .filter(({ action }) => action !== 'FORWARD')
    .map((rule) => {
      const what = fits(rule, modelName);
      return `${what.charAt(0).toUpperCase()}${what.slice(1)}: ${becomes(rule)}.`;
    });
  if (otherwise === 'DROP') {
    sentences.push(
      rules.some(({ layer }) => layer === 'CLOUD')
        ? 'Events that match no rule: the service drops them. Hubs send them, but they are not stored.'
        : 'Events that match no rule: hubs drop them. They are neither sent nor stored.',
    );
  }
  if (otherwise === 'WINDOW') sentences.push('Events that match no rule: hubs aggregate them into one event per device and interval.');
  return sentences;
}

/** A rule as the form has it. */
export interface WrittenRule {
  layer: Layer;
  action: Schemas['RouteAction'];
  known: '' | 'true' | 'false';
  deviceUuid: string;
  deviceInstanceId: string;
  hubUuid: string;
  companyId: string;
  serviceUuid: string;
  minRssiDbm: string;
  everySeconds: string;
  quantities: string;
  pipelineUuids: string[];
}

export function writtenOf(rule: Rule): WrittenRule {
  const { match = {} } = rule;
  return {
    layer: rule.layer,
    action: rule.action,
    known: match.known == null ? '' : match.known ? 'true' : 'false',
    deviceUuid: match.deviceUuid ?? '',
    deviceInstanceId: match.deviceInstanceId == null ? '' : String(match.deviceInstanceId),
    hubUuid: match.hubUuid ?? '',
    companyId: match.companyId ?? '',
    serviceUuid: match.serviceUuid ?? '',
    minRssiDbm: match.minRssiDbm == null ? '' : String(match.minRssiDbm),
    everySeconds: rule.everySeconds == null ? '' : String(rule.everySeconds),
    quantities: Object.entries(rule.quantities ?? {}).map(([quantity, delta]) => `${quantity} ${delta}`).join(', '),
    pipelineUuids: rule.pipelineUuids ?? [],
  };
}

/** The rule that a form says; what cannot be one is thrown, with its field. */
export function ruleOf(written: WrittenRule): Rule {
  const fields: { field: string; message: string }[] = [];
  const refuse = (field: string, message: string) => {
    fields.push({ field, message });
    return undefined;
  };
  const whole = (field: 'minRssiDbm' | 'everySeconds', min: number, max: number, what: string) => {
    const text = written[field].trim();
    const number = Number(text);
    return /^-?\d+$/.test(text) && number >= min && number <= max ? number : refuse(field, what);
  };
  const match: NonNullable<Rule['match']> = {};
  if (written.known) match.known = written.known === 'true';
  if (written.deviceUuid) match.deviceUuid = written.deviceUuid;
  if (written.deviceInstanceId) match.deviceInstanceId = Number(written.deviceInstanceId);
  if (written.hubUuid) match.hubUuid = written.hubUuid;
  if (written.companyId) match.companyId = written.companyId;
  if (written.serviceUuid) match.serviceUuid = written.serviceUuid;
  if (written.minRssiDbm.trim()) match.minRssiDbm = whole('minRssiDbm', -128, 127, 'must be a whole number from -128 to 127');
  const rule: Rule = { layer: written.layer, action: written.action, match };
  if (written.action === 'SAMPLE' || written.action === 'WINDOW') rule.everySeconds = whole('everySeconds', 1, 86_400, 'must be a whole number from 1 to 86,400');
  if (written.action === 'ON_CHANGE') {
    const quantities: Record<string, number> = {};
    for (const one of written.quantities.split(/[,\n]/).map((text) => text.trim()).filter(Boolean)) {
      const [, quantity = '', delta = ''] = /^([a-z0-9_]+)[\s:=]+(\d+(?:\.\d+)?)$/i.exec(one) ?? [];
      if (!quantity || !(Number(delta) > 0)) refuse('quantities', `“${one}” must be a quantity and its minimum change, such as temperature 0.1`);
      else quantities[quantity] = Number(delta);
    }
    if (!Object.keys(quantities).length) refuse('quantities', 'must have a quantity and its minimum change, such as temperature 0.1');
    rule.quantities = quantities;
  }
  if (written.layer === 'CLOUD' && written.action === 'FORWARD' && written.pipelineUuids.length) rule.pipelineUuids = written.pipelineUuids;
  if (fields.length) throw new Problem(400, 'VALIDATION', '', fields);
  return rule;
}
