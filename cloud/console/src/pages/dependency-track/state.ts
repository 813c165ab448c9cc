//! How a server of Dependency-Track does, in words.

import type { Schemas } from '../../api/client';
import { formatCount } from '../../format';
import type { Tone } from '../../parts/Badge.svelte';

export type Server = Schemas['DependencyTrackResponse'];

/** Lists of packages, or releases, that the server has or is still to get. */
type Counts = Pick<Server, 'sent' | 'waiting' | 'refused'>;

export const counts = ({ sent, waiting, refused }: Counts) =>
  [`${formatCount(sent)} sent`, `${formatCount(waiting)} waiting`, refused > 0 ? `${formatCount(refused)} refused` : ''].filter(Boolean).join(', ');

export const refusedBy = ({ refused, releases }: Server) => refused + releases.refused;

/** True if the last try failed. What the server refuses is no failure of it. */
export const isFailing = ({ retryAt }: Server) => Boolean(retryAt);

export function stateOf(server: Server): { tone: Tone; text: string } {
  if (isFailing(server)) return { tone: 'bad', text: 'failing' };
  if (refusedBy(server) > 0) return { tone: 'warn', text: 'some refused' };
  if (server.waiting + server.releases.waiting > 0) return { tone: 'accent', text: 'sending' };
  return server.sent + server.releases.sent > 0 ? { tone: 'good', text: 'up to date' } : { tone: 'off', text: 'nothing to send yet' };
}
