//! The query of a filter of the devices.

import type { Schemas } from '../../api/client';
import type { paths } from '../../api/schema';
import { parseFilter, type FilterKey } from '../../filter';
import type { Model } from './models';

export type DeviceQuery = NonNullable<paths['/tenant/devices']['get']['parameters']['query']>;

/** The hub that a text names, or why there is none. */
export interface FoundHub {
  text: string;
  hubUuid?: string;
  problem?: string;
}

const STATES = ['registered', 'active', 'suspended', 'retired'];

export const KEYS: FilterKey[] = [
  { key: 'is', hint: 'online or silent', values: ['online', 'silent'] },
  { key: 'status', hint: STATES.join(', '), values: STATES },
  { key: 'model', hint: 'the model with this name', example: 'model:"Door sensor"' },
  { key: 'hub', hint: 'the nearest hub', example: 'hub:roof' },
];

export const hubText = (text: string) => parseFilter(text).find(({ key, value }) => key === 'hub' && value)?.value ?? '';

/** The query of the service, and the errors of the text; null until models and hub are known. */
export function deviceQuery(text: string, models: Model[] | undefined, hub: FoundHub | undefined): { query: DeviceQuery; problems: string[] } | null {
  const query: DeviceQuery = {};
  const problems: string[] = [];
  const words: string[] = [];
  for (const { key, value, text: written } of parseFilter(text)) {
    const wanted = value.toLowerCase();
    if (key === '') words.push(value);
    else if (value === '') continue;
    else if (key === 'is' && (wanted === 'online' || wanted === 'silent')) query.online = wanted === 'online';
    else if (key === 'is') problems.push(`${written} is ignored: use online or silent.`);
    else if (key === 'status' && STATES.includes(wanted)) query.activationStatus = wanted.toUpperCase() as Schemas['ActivationStatus'];
    else if (key === 'status') problems.push(`${written} is ignored: use ${STATES.join(', ')}.`);
    else if (key === 'model') {
      if (!models) return null;
      const model = models.find(({ name, deviceUuid }) => name.toLowerCase() === wanted || deviceUuid === wanted) ?? one(models, wanted);
      if (model) query.deviceUuid = model.deviceUuid;
      else problems.push(`${written} is ignored: no model, or more than one, matches this name.`);
    } else if (key === 'hub') {
      if (hub?.text !== value) return null;
      if (hub.hubUuid) query.hubUuid = hub.hubUuid;
      else problems.push(`${written} is ignored: ${hub.problem}`);
    } else problems.push(`${written} is ignored: “${key}” is not a filter for devices.`);
  }
  if (words.length) query.q = words.join(' ').slice(0, 200);
  return { query, problems };
}

/** The one whose name begins so, if there is one. */
function one(models: Model[], wanted: string): Model | undefined {
  const found = models.filter(({ name }) => name.toLowerCase().startsWith(wanted));
  return found.length === 1 ? found[0] : undefined;
}
