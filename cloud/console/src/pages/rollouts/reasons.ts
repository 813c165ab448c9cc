//! Why hubs failed to get a release: read from their jobs, since a rollout only counts them.

import { api, data, listed, type Schemas } from '../../api/client';
import { PAGE } from '../../api/rows.svelte';
import type { Policy, Rollout } from './policies';

export interface Reason {
  /** The stable word of the hub, or what is known in its place. */
  reason: string;
  /** The message of one of the hubs. */
  message: string;
  hubUuids: string[];
}

/** Hubs whose jobs are read. */
export const READ = 2 * PAGE;
const AT_ONCE = 4;

async function reasonAt(hubUuid: string, rollout: Rollout, signal: AbortSignal): Promise<{ reason: string; message: string } | null> {
  const path = { hubUuid };
  const { items } = await listed(api.GET('/tenant/hubs/{hubUuid}/jobs', { params: { path, query: { size: PAGE } }, signal }));
  // The newest one says how it is now.
  const job = items.find(({ releaseUuid, type }) => type === 'SELF_UPDATE' && releaseUuid === rollout.releaseUuid);
  if (!job || (job.status !== 'FAILED' && job.status !== 'EXPIRED')) return null;
  if (job.status === 'EXPIRED') return { reason: 'EXPIRED', message: 'It did not finish before its deadline.' };
  const params = { path: { hubUuid, jobUuid: job.hubJobUuid } };
  const detail: Schemas['HubJobDetailResponse'] = await data(api.GET('/tenant/hub-monitoring/{hubUuid}/jobs/{jobUuid}', { params, signal }));
  const reason = (detail.result as { reason?: unknown } | null | undefined)?.reason;
  return { reason: typeof reason === 'string' ? reason : 'no reason given', message: job.detail ?? '' };
}

/** The failures of a rollout by their reason, the most frequent first. */
export async function reasonsOf(policy: Policy, rollout: Rollout, signal: AbortSignal): Promise<Reason[]> {
  const hubUuids: string[] = policy.hubUuid ? [policy.hubUuid] : [];
  for (let page = 1; !policy.hubUuid && hubUuids.length < READ; page++) {
    const query = { version: `<${rollout.version}`, page, size: PAGE };
    const { items } = await listed(api.GET('/tenant/hubs', { params: { query }, signal }));
    hubUuids.push(...items.map((hub) => hub.hubUuid));
    if (items.length < PAGE) break;
  }
  const found = new Map<string, Reason>();
  for (let from = 0; from < hubUuids.length; from += AT_ONCE) {
    const some = hubUuids.slice(from, from + AT_ONCE);
    const answers = await Promise.all(some.map((hubUuid) => reasonAt(hubUuid, rollout, signal)));
    for (const [index, answer] of answers.entries()) {
      const hubUuid = some[index];
      if (!answer || !hubUuid) continue;
      const group = found.get(answer.reason) ?? { ...answer, hubUuids: [] };
      group.hubUuids.push(hubUuid);
      found.set(answer.reason, group);
    }
  }
  return [...found.values()].sort((one, other) => other.hubUuids.length - one.hubUuids.length);
}
