//! The estimated place of a device, by the signal at each hub. Walls, people and the orientation of a
//! device change signals by as much as a room does, so pages call it an estimate.

import type { Schemas } from '../../api/client';

export type Position = Schemas['FloorPlanHub'];
export type Reception = Schemas['DeviceReceptionsResponse'];

export interface Heard {
  position: Position;
  reception: Reception;
  /** 0 for a signal that is barely received to 1 for one from beside the hub. */
  strength: number;
}

const [WEAKEST, STRONGEST] = [-95, -40];

/** The hubs on a plan that received a device with a known strength, the strongest first. */
export function heardOn(hubs: Position[], receptions: Reception[]): Heard[] {
  const byHub = new Map(receptions.map((reception) => [reception.hubUuid, reception]));
  const heard = hubs.flatMap((position) => {
    const reception = byHub.get(position.hubUuid);
    if (reception?.rssiMean == null) return [];
    const part = (reception.rssiMean - WEAKEST) / (STRONGEST - WEAKEST);
    return [{ position, reception, strength: Math.min(1, Math.max(0, part)) }];
  });
  return heard.sort((one, other) => other.strength - one.strength);
}

/**
 * Between the hubs, nearer to those with stronger signals. In the open a signal has a tenth of its
 * power, 10 dB, at three times the distance: each hub counts by the inverse of its distance.
 */
export function estimate(heard: Heard[]): { x: number; y: number } | null {
  let [x, y, sum] = [0, 0, 0];
  for (const { position, reception } of heard) {
    const weight = 10 ** ((reception.rssiMean ?? WEAKEST) / 20);
    x += weight * position.x;
    y += weight * position.y;
    sum += weight;
  }
  return sum > 0 ? { x: x / sum, y: y / sum } : null;
}

/** The precision of the estimate, in words. */
export function trust(hubs: number): string {
  if (hubs === 0) return 'No hub on this plan received it.';
  if (hubs === 1) return 'One hub on this plan received it: it is somewhere near that hub.';
  if (hubs === 2) return 'Two hubs on this plan received it: it is shown between them, but may be off that line.';
  return `${hubs} hubs on this plan received it.`;
}

export const percent = (part: number) => `${Math.round(part * 1000) / 10} %`;
export const place = ({ x, y }: { x: number; y: number }) => `${percent(x)} from the left, ${percent(y)} from the top`;
