//! Names for many devices: by a pattern, or from a list.

import type { Device } from './names';

export interface Naming {
  device: Device;
  name: string;
}

/** The end of an address that is the device's own, as the service shows it. */
const shortAddress = ({ address }: Device) => address?.replaceAll(':', '').slice(-6) ?? '';

/** `Fridge {n}` gives Fridge 1, Fridge 2 and so on; `{model}`, `{address}` and `{serial}` are the device's own. */
export function byPattern(devices: Device[], pattern: string, first: number): Naming[] {
  return devices.map((device, index) => {
    const parts: Record<string, string> = { n: String(first + index), model: device.deviceName, address: shortAddress(device), serial: device.serialNumber ?? '' };
    return { device, name: pattern.replace(/\{(\w+)\}/g, (whole, part: string) => parts[part] ?? whole).trim() };
  });
}

/** The parts of a line of CSV, with commas, semicolons or tabs between them. */
function partsOf(line: string): string[] {
  const separator = ['\t', ';', ','].find((one) => line.includes(one)) ?? ',';
  const parts = [''];
  let quoted = false;
  for (const [index, letter] of [...line].entries()) {
    if (letter === '"') {
      // Two within quotation marks are one.
      if (quoted && line[index + 1] === '"') parts[parts.length - 1] += '"';
      else if (line[index - 1] !== '"' || !quoted) quoted = !quoted;
    } else if (letter === separator && !quoted) parts.push('');
    else parts[parts.length - 1] += letter;
  }
  return parts.map((part) => part.trim());
}

const plain = (text: string) => text.toLowerCase().replace(/[^0-9a-z]/g, '');

/**
 * Lines with an address, a serial number or an id, and a name. `unknown` are those that name no device, or several.
 */
export function fromList(devices: Device[], text: string): { names: Naming[]; unknown: string[] } {
  const found = new Map<string, Device | null>();
  const add = (key: string | null | undefined, device: Device) => {
    if (key) found.set(key, found.has(key) && found.get(key) !== device ? null : device);
  };
  for (const device of devices) {
    add(plain(device.address ?? ''), device);
    add(plain(device.serialNumber ?? ''), device);
    add(String(device.deviceInstanceId), device);
  }
  const names: Naming[] = [];
  const unknown: string[] = [];
  for (const line of text.split(/\r?\n/).filter((line) => line.trim())) {
    const [key = '', name = ''] = partsOf(line);
    const device = found.get(plain(key));
    if (device && name) names.push({ device, name });
    else unknown.push(line);
  }
  return { names, unknown };
}
