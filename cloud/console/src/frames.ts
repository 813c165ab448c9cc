//! Frames as hubs upload them, as people have them, in hexadecimal or base64, and as tests of a decoder.

/** The input of a decoder, with payloads in hexadecimal. */
export interface Frame {
  name?: string;
  address?: string;
  manufacturerData?: Record<string, string>;
  serviceData?: Record<string, string>;
  serviceUuids?: string[];
}
export type Expected = number | string | boolean | null;
export type Test = Frame & { secrets?: { bindKey?: string }; expect: Record<string, Expected> };

export const toHex = (bytes: Iterable<number>) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
const spaced = (hex: string) => hex.replaceAll(/(..)(?=.)/g, '$1 ');

/** The bytes of a text in hexadecimal, with or without spaces, colons and `0x`, or in base64. */
export function bytesOf(text: string): Uint8Array | null {
  const plain = text.trim().replaceAll(/0x|[\s:,-]/gi, '');
  if (plain !== '' && plain.length % 2 === 0 && /^[0-9a-f]+$/i.test(plain)) {
    return Uint8Array.from(plain.match(/../g) ?? [], (byte) => parseInt(byte, 16));
  }
  try {
    const compact = text.replaceAll(/\s/g, '').replaceAll('-', '+').replaceAll('_', '/');
    if (compact === '') return null;
    return Uint8Array.from(atob(compact), (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}

const reversed = (bytes: Uint8Array) => toHex([...bytes].reverse());
const dashed = (hex: string) => hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** A whole advertisement: parts of a length, a type and data. Null if it is none. */
export function advertisementOf(bytes: Uint8Array): Frame | null {
  const frame: Frame = {};
  let parts = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = bytes[at] ?? 0;
    // Zeros fill the rest.
    if (length === 0) {
      if (bytes.subarray(at).some((byte) => byte !== 0)) return null;
      break;
    }
    if (at + 1 + length > bytes.length) return null;
    const type = bytes[at + 1] ?? 0;
    const data = bytes.subarray(at + 2, at + 1 + length);
    at += 1 + length;
    parts += 1;
    const size = { 2: 2, 3: 2, 4: 4, 5: 4, 6: 16, 7: 16 }[type];
    const dataOf = { 0x16: 2, 0x20: 4, 0x21: 16 }[type];
    if (type === 0xff && data.length >= 2) (frame.manufacturerData ??= {})[reversed(data.subarray(0, 2))] = toHex(data.subarray(2));
    else if (dataOf && data.length >= dataOf) (frame.serviceData ??= {})[dashed(reversed(data.subarray(0, dataOf)))] = toHex(data.subarray(dataOf));
    else if (type === 8 || type === 9) frame.name = new TextDecoder().decode(data);
    else if (size) for (let from = 0; from + size <= data.length; from += size) (frame.serviceUuids ??= []).push(dashed(reversed(data.subarray(from, from + size))));
    else if (type > 0x3d) return null;
  }
  const { manufacturerData, serviceData, name, serviceUuids } = frame;
  return parts > 0 && (manufacturerData || serviceData || name || serviceUuids) ? frame : null;
}

/** The frame of an event of the service, whose payloads are in base64. */
export function frameOfEvent(event: Record<string, unknown>): Frame {
  const payloads = (data: unknown) => {
    const found = Object.entries((data ?? {}) as object).map(([id, bytes]) => [id, toHex(bytesOfBase64(String(bytes)))] as const);
    return found.length ? Object.fromEntries(found) : undefined;
  };
  const uuids = event.serviceUuids;
  return {
    name: typeof event.name === 'string' ? event.name : undefined,
    address: typeof event.address === 'string' ? event.address : undefined,
    manufacturerData: payloads(event.manufacturerData),
    serviceData: payloads(event.serviceData),
    serviceUuids: Array.isArray(uuids) && uuids.length ? uuids.map(String) : undefined,
  };
}

function bytesOfBase64(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

/** A frame of the address of a page, which anybody may have written. */
export function frameOfText(text: string | null): Frame | null {
  if (!text) return null;
  try {
    const input = JSON.parse(text) as Record<string, unknown>;
    if (typeof input !== 'object' || input === null) return null;
    const isText = (value: unknown) => typeof value === 'string';
    const isTexts = (value: unknown) => typeof value === 'object' && value !== null && Object.values(value).every(isText);
    const frame: Frame = {};
    if (isText(input.name)) frame.name = input.name as string;
    if (isText(input.address)) frame.address = input.address as string;
    if (isTexts(input.manufacturerData)) frame.manufacturerData = input.manufacturerData as Record<string, string>;
    if (isTexts(input.serviceData)) frame.serviceData = input.serviceData as Record<string, string>;
    if (Array.isArray(input.serviceUuids) && input.serviceUuids.every(isText)) frame.serviceUuids = input.serviceUuids as string[];
    return Object.keys(frame).length ? frame : null;
  } catch {
    return null;
  }
}

/** A frame in words, one line for each part. */
export function frameLines(frame: Frame): [string, string][] {
  const lines: [string, string][] = [];
  const payloads = (what: string, data: unknown) => {
    for (const [id, bytes] of Object.entries((data ?? {}) as object)) lines.push([`${what} ${id}`, spaced(String(bytes))]);
  };
  payloads('Manufacturer', frame.manufacturerData);
  payloads('Service', frame.serviceData);
  if (frame.serviceUuids?.length) lines.push(['Services', frame.serviceUuids.join(', ')]);
  if (frame.name) lines.push(['Name', frame.name]);
  if (frame.address) lines.push(['Address', frame.address]);
  return lines;
}

/** The raw parts of an event: its frame and its transmission. It comes from outside, unchecked. */
export function rawParts(event: Record<string, unknown>): [string, string][] {
  const lines = frameLines(frameOfEvent(event));
  if (typeof event.txPower === 'number') lines.push(['TX power', `${event.txPower} dBm`]);
  if (typeof event.addressType === 'string') lines.push(['Address type', event.addressType]);
  return lines;
}
