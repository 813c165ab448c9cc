//! The states of a pipeline in words.

import { sentence } from '../../api/said';
import { formatDuration, plural } from '../../format';
import type { Tone } from '../../parts/Badge.svelte';
import type { Pipeline } from './definition';

export const STATUS: Record<Pipeline['status'], { tone: Tone; text: string }> = {
  RUNNING: { tone: 'good', text: 'running' },
  DISABLED: { tone: 'off', text: 'paused' },
  OPEN_CIRCUIT: { tone: 'warn', text: 'receiver failing' },
  SUSPENDED: { tone: 'bad', text: 'suspended' },
  INVALID: { tone: 'bad', text: 'cannot run' },
};

/** Why it is in its state, for a person. */
export function why({ status, lastError, lost, failingSince }: Pipeline): string {
  const failed = lastError ? ` ${sentence(lastError)}` : '';
  if (status === 'OPEN_CIRCUIT') return `The receiver is failing and is retried periodically; events wait.${failed}`;
  if (status === 'SUSPENDED') return `It stopped automatically and has to be resumed.${failed}`;
  if (status === 'INVALID') return `The definition is not valid; change it.${failed}`;
  if (status === 'DISABLED') return 'Paused; events wait.';
  if (failingSince) return `The last delivery failed and will be retried.${failed}`;
  return lost ? 'Running, but some events were deleted before they were sent.' : '';
}

export function lag({ lagEvents, lagSeconds }: Pipeline): string {
  if (lagEvents === 0) return 'none';
  return `${plural(lagEvents, 'event')}${lagEvents >= 100_000 ? ' or more' : ''}, ${formatDuration(lagSeconds * 1000, 1)}`;
}
