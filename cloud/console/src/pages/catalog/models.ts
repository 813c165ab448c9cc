//! Models of the tenant and of the library: how they are found, and how their parts are named.

import { api, listed, type Schemas } from '../../api/client';
import { everything, PAGE } from '../../api/rows.svelte';
import { parseFilter, type FilterKey } from '../../filter';
import { quantityName } from '../devices/names';

export type Model = Schemas['DeviceCatalogResponse'];
export type LibraryModel = Schemas['LibraryModelResponse'];

/** All models of the tenant, which are at most 1,000; the newest first. */
export const allModels = (signal: AbortSignal): Promise<Model[]> =>
  everything((page, signal) => listed(api.GET('/tenant/device-catalog', { params: { query: { page, size: PAGE } }, signal })), signal);

export const wholeLibrary = (signal: AbortSignal): Promise<LibraryModel[]> =>
  everything((page, signal) => listed(api.GET('/public/device-library', { params: { query: { page, size: PAGE } }, signal })), signal);

export const KEYS: FilterKey[] = [
  { key: 'measures', hint: 'measures this quantity', example: 'measures:temperature', values: ['temperature', 'humidity', 'battery', 'pressure', 'motion', 'button'] },
  { key: 'brand', hint: 'brand', example: 'brand:ruuvi' },
  { key: 'category', hint: 'category', example: 'category:climate' },
];

/** The models that fit a filter, and what of it cannot be used. */
export function filtered<T extends Model | LibraryModel>(models: T[], text: string): { found: T[]; problems: string[] } {
  const problems: string[] = [];
  const terms = parseFilter(text).filter(({ key, text: written }) => {
    const known = key === '' || KEYS.some((one) => one.key === key);
    if (!known) problems.push(`${written} is ignored: “${key}” is not a filter for models.`);
    return known;
  });
  const has = (whole: string | null | undefined, part: string) => (whole ?? '').toLowerCase().includes(part);
  const found = models.filter((model) =>
    terms.every(({ key, value: given }) => {
      const value = given.toLowerCase();
      if (key === 'measures') return model.metrics.some(({ quantity }) => has(quantity, value));
      if (key === 'brand') return has(model.brand, value);
      if (key === 'category') return has(model.category, value);
      const texts = [model.name, model.brand, model.model, model.category, 'key' in model ? model.key : model.template, ...model.aliases];
      return texts.some((one) => has(one, value));
    }),
  );
  return { found, problems };
}

/** `temperature, humidity and 3 more`. */
export function measures(metrics: { quantity: string }[], most = 4): string {
  const names = metrics.map(({ quantity }) => quantityName(quantity));
  return names.length > most + 1 ? `${names.slice(0, most).join(', ')} and ${names.length - most} more` : names.join(', ');
}

export const CONDITIONS: Record<Schemas['DeviceConditionKind'], { label: string; value: string; example: string; mask?: boolean }> = {
  MANUFACTURER_ID: { label: 'Company identifier', value: '4 hex digits', example: '0499' },
  MANUFACTURER_PREFIX: { label: 'Manufacturer data begins with', value: 'company, colon, first bytes in hex', example: '0499:05', mask: true },
  SERVICE_UUID: { label: 'Advertises service', value: '4 hex digits, or a full UUID', example: '180f' },
  SERVICE_DATA_UUID: { label: 'Service data', value: '4 hex digits, or a full UUID', example: 'fcd2' },
  SERVICE_DATA_PREFIX: { label: 'Service data begins with', value: 'service, colon, first bytes in hex', example: 'fcd2:40', mask: true },
  NAME: { label: 'Name is', value: 'the whole advertised name', example: 'Sensor 1' },
  NAME_PREFIX: { label: 'Name begins with', value: 'the beginning of the name', example: 'Ruuvi' },
  ADDRESS_PREFIX: { label: 'Address begins with', value: 'bytes in hex, with colons', example: 'C4:11', mask: true },
  IBEACON: { label: 'iBeacon', value: 'uuid, or uuid/major, or uuid/major/minor', example: 'e2c56db5-dffb-48d2-b060-d0f5a71096e0/1' },
  EDDYSTONE_UID: { label: 'Eddystone-UID', value: 'namespace, or namespace/instance, in hex', example: '00010203040506070809' },
  PAYLOAD_LENGTH: { label: 'Payload length', value: 'company or service, colon, bytes', example: '0499:24' },
};

const conditionText = ({ kind, value, mask }: Schemas['DeviceCondition']) => `${CONDITIONS[kind]?.label ?? kind} ${value}${mask ? ` (mask ${mask})` : ''}`;

/** `Company identifier 0499, and payload has the length 0499:24`. */
export const conditionsText = (conditions: Schemas['DeviceCondition'][]) =>
  conditions.map((one, index) => (index ? conditionText(one).replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase()) : conditionText(one))).join(', and ');
