//! The effects of jobs on a hub, for confirmations.

import type { Schemas } from '../../api/client';

/** A job that downloads something; `within` says how long it waits for a hub that is not in contact. */
export const jobEffect = (status: Schemas['HubStatus'], within = '') =>
  `The hub gets the job ${status === 'ONLINE' ? 'within seconds' : `when it is back online${within}`}, downloads the release and verifies its signature.`;

export const RESTART_EFFECTS = [
  'The agent restarts and misses advertisements for a few seconds.',
  'If the new version cannot reach the service, the hub returns to the current one automatically.',
];
