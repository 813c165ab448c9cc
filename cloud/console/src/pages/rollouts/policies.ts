//! Update policies and their rollouts in words.

import type { Schemas } from '../../api/client';
import { formatDuration, plural } from '../../format';
import { hubLabel } from '../../names.svelte';
import type { Tone } from '../../parts/Badge.svelte';
import { address, setQuery } from '../../router.svelte';

export type Policy = Schemas['AgentUpdatePolicyResponse'];
export type Rollout = Schemas['AgentRolloutResponse'];

export const STATE: Record<Schemas['RolloutState'], { tone: Tone; text: string }> = {
  RUNNING: { tone: 'accent', text: 'running' },
  HALTED: { tone: 'warn', text: 'halted' },
  ABORTED: { tone: 'bad', text: 'aborted' },
  COMPLETED: { tone: 'good', text: 'completed' },
};

export function scopeName({ scope, hubUuid }: Policy): string {
  if (scope === 'HUB') return `Hub ${hubLabel(hubUuid ?? '')}`;
  return scope === 'UNIT' ? 'All hubs of this tenant' : 'All hubs of the platform';
}

/** The hubs that a policy applies to, for the platform. */
export const reach = ({ scope }: Policy) =>
  scope === 'GLOBAL' ? 'Affects the hubs of all tenants without a policy of their own.' : scope === 'UNIT' ? 'Affects all hubs of one tenant.' : 'Affects one hub.';

export function target({ autoUpdate, channel, version }: Policy): string {
  if (!autoUpdate) return 'hubs are not updated';
  return version ? `stay at ${version} (${channel})` : `follow ${channel}`;
}

/** The share of hubs that get a release, and the waves that follow. */
export function waves({ scope, rollout }: Policy): string {
  if (scope === 'HUB') return 'at once';
  const { percent, stepPercent, stepIntervalSeconds } = rollout;
  if (percent >= 100) return 'all hubs at once';
  if (stepPercent === 0) return `${percent} % of the hubs only`;
  return `${percent} % of the hubs, then ${stepPercent} % more every ${formatDuration(stepIntervalSeconds * 1000)}`;
}

/** The condition at which a rollout halts automatically. */
export const gate = ({ maxFailurePercent, silentAfterSeconds, minFinished }: Schemas['RolloutTerms']) =>
  `when more than ${maxFailurePercent} % of the started hubs fail or are silent for ${formatDuration(silentAfterSeconds * 1000)}, after at least ${plural(minFinished, 'finished hub')}`;

export const hours = ({ window }: Policy) => (window ? `${window.start} to ${window.end}, in the time zone of each hub` : 'at any time');

/** The percentages at which a rollout stands one after the other. */
export function stages({ percent, stepPercent }: Schemas['RolloutTerms']): number[] {
  const all = [percent];
  for (let at = percent; stepPercent > 0 && at < 100; ) {
    at = Math.min(100, at + stepPercent);
    all.push(at);
  }
  return all;
}

export type Verb = 'halt' | 'resume' | 'abort';

/** The possible actions on the rollouts of a policy. */
export function verbs({ rollouts }: Policy): Verb[] {
  const has = (...states: Rollout['state'][]) => rollouts.some(({ state }) => states.includes(state));
  const all: Verb[] = [];
  if (has('RUNNING', 'COMPLETED')) all.push('halt');
  if (has('HALTED')) all.push('resume');
  if (has('RUNNING', 'COMPLETED', 'HALTED')) all.push('abort');
  return all;
}

/** What a page that asks for a policy has filled in, by the address. */
export const asked = () => ({ channel: address.query.get('channel') ?? undefined, version: address.query.get('version') ?? undefined });
export const clearAsked = () => setQuery({ new: undefined, change: undefined, channel: undefined, version: undefined });
