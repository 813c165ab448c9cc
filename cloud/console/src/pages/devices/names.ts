//! Names and states of devices and their parts.

import type { Schemas } from '../../api/client';
import { Problem } from '../../api/problem';
import { baseOf } from '../../format';
import type { Tone } from '../../parts/Badge.svelte';

export type Device = Schemas['DeviceInstanceResponse'];
type Shown = { tone: Tone; text: string };

/** A retired or suspended device is shown as such, heard or not. */
export function deviceStatus({ activationStatus, online, lastSeenAt }: Device): Shown {
  if (activationStatus === 'RETIRED') return { tone: 'off', text: 'retired' };
  if (activationStatus === 'SUSPENDED') return { tone: 'warn', text: 'suspended' };
  if (online) return { tone: 'good', text: 'online' };
  return lastSeenAt ? { tone: 'warn', text: 'silent' } : { tone: 'off', text: 'not heard' };
}

export const ACTIVATION: Record<Schemas['ActivationStatus'], Shown> = {
  REGISTERED: { tone: 'off', text: 'registered' },
  ACTIVE: { tone: 'good', text: 'active' },
  SUSPENDED: { tone: 'warn', text: 'suspended' },
  RETIRED: { tone: 'off', text: 'retired' },
};

export const KEY_STATUS: Record<Schemas['BindKeyStatus'], Shown & { means: string }> = {
  NONE: { tone: 'off', text: 'no key', means: 'Encrypted data cannot be decoded.' },
  SET: { tone: 'accent', text: 'not used yet', means: 'No encrypted data was received since the key was set.' },
  VERIFIED: { tone: 'good', text: 'valid', means: 'The key decrypts the data of the device.' },
  WRONG: { tone: 'bad', text: 'wrong key', means: 'The key does not decrypt the data of the device. Set the correct key.' },
};

export const COMMAND_STATUS: Record<Schemas['CommandStatus'], Shown> = {
  QUEUED: { tone: 'off', text: 'waiting' },
  SENT: { tone: 'accent', text: 'delivered' },
  SUCCEEDED: { tone: 'good', text: 'succeeded' },
  FAILED: { tone: 'bad', text: 'failed' },
  EXPIRED: { tone: 'warn', text: 'expired' },
};

export const PROCESSING: Record<Schemas['ProcessingStatus'], Shown> = {
  RECEIVED: { tone: 'off', text: 'received' },
  MATCHED: { tone: 'accent', text: 'recognised' },
  UNMATCHED: { tone: 'off', text: 'not recognised' },
  DECODED: { tone: 'good', text: 'decoded' },
  FAILED: { tone: 'bad', text: 'failed' },
};

export const DELIVERY: Record<Schemas['DeliveryStatus'], Shown> = {
  NONE: { tone: 'off', text: 'no pipeline' },
  PENDING: { tone: 'accent', text: 'pending' },
  DELIVERED: { tone: 'good', text: 'delivered' },
  FAILED: { tone: 'warn', text: 'failing' },
  DEAD: { tone: 'bad', text: 'dead letter' },
};

// The quantities of most interest, and those about the transmission; all others are between.
const FIRST = [
  ...['temperature', 'temperature_probe', 'humidity', 'co2', 'pm25', 'pressure', 'illuminance', 'motion', 'occupancy', 'opening', 'contact'],
  ...['door', 'water_leak', 'moisture', 'smoke', 'power', 'energy', 'mass', 'button', 'battery', 'voltage'],
];
const LAST = ['data_format', 'measurement_sequence', 'packet_id', 'frame_counter', 'tx_power', 'device_type_id', 'telemetry_version', 'key_id'];
const rank = (quantity: string) => {
  const name = baseOf(quantity);
  return LAST.includes(name) ? FIRST.length + 1 : FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length;
};

/** Quantities, with those that people look for first. */
export const byInterest = (quantities: string[]) => [...quantities].sort((one, other) => rank(one) - rank(other) || one.localeCompare(other, undefined, { numeric: true }));

/** `acceleration_x[1]` as words. */
export const quantityName = (quantity: string) => quantity.replaceAll('_', ' ').replace(/\[(\d+)\]$/, ' $1');

/** A quantity with its number, as the state of a device names it. */
export const nameOf = ({ quantity, index }: { quantity: string; index?: number | null }) => (index == null ? quantity : `${quantity}[${index}]`);

/** The identity of the device in receptions. */
export function identityOf({ address, addressType, beacon, identityResolvingKeySet }: Device): string | null {
  if (beacon?.uuid) return `iBeacon ${beacon.uuid}, ${beacon.major}, ${beacon.minor}`;
  if (beacon?.namespace) return `Eddystone-UID ${beacon.namespace} ${beacon.instance}`;
  if (identityResolvingKeySet) return 'its identity resolving key';
  return address ? `${address}${addressType ? ` (${addressType.toLowerCase()})` : ''}` : null;
}

const partOf = (part: string) => part.replace(/\.scale$/, ' factor').replace(/\.offset$/, ' offset');

/** The problem with what concerns a part of a field, such as `labels.room`, moved to the field. */
export function ofField(problem: Problem, ...fields: string[]): Problem {
  const errors = problem.fields.map(({ field, message }) => {
    const whole = fields.find((one) => field.startsWith(`${one}.`));
    return whole ? { field: whole, message: `${partOf(field.slice(whole.length + 1))} ${message}` } : { field, message };
  });
  return new Problem(problem.status, problem.code, problem.message, errors, problem.requestId, problem.retryAfterSecs);
}
