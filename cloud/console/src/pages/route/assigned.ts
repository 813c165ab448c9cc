//! Finds companies and services by name or identifier: those of the last hour first.

import { assignedLabel, assignedNames, type Kind } from '../../assigned.svelte';
import { plural } from '../../format';
import { companiesIn, servicesIn, type Heard } from './heard';

/** What a text may be the identifier of, written as people do: `0x004C`. */
const IDENTIFIERS: Record<Kind, RegExp> = {
  companies: /^(?:0x)?([0-9a-f]{4})$/,
  services: /^(?:0x)?([0-9a-f]{4}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/,
};

export async function findAssigned(kind: Kind, q: string, heard: Heard | undefined): Promise<{ id: string; label: string }[]> {
  const text = q.toLowerCase();
  const inLastHour = heard ? (kind === 'companies' ? companiesIn : servicesIn)(heard) : [];
  const devices = new Map(inLastHour.map((one) => [one.id, one.devices]));
  // Without names, identifiers can still be chosen.
  const names = Object.keys((await assignedNames().catch(() => undefined))?.[kind] ?? {});
  const written = IDENTIFIERS[kind].exec(text)?.[1];
  const ids = new Set([...(written ? [written] : []), ...devices.keys(), ...(text ? names : [])]);
  return [...ids]
    .map((id) => ({ id, label: assignedLabel(kind, id) }))
    .filter(({ id, label }) => id === written || label.toLowerCase().includes(text))
    .map(({ id, label }) => ({ id, label: devices.has(id) ? `${label}, ${plural(devices.get(id) ?? 0, 'device')}` : label }));
}
