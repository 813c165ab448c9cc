//! Vulnerabilities and statements in words.

import type { Schemas } from '../../api/client';
import type { Tone } from '../../parts/Badge.svelte';
import { called, type Member } from '../members/roles';

export type Vulnerability = Schemas['VulnerabilityResponse'];
export type AffectedPackage = Schemas['AffectedPackageResponse'];
export type Statement = Schemas['StatementResponse'];

export type Feed = Schemas['AdvisoryFeedResponse'];

/** The feed of what is known to be exploited, which has no advisories. */
const CATALOG = 'KEV';
/** The feed about the packages of hubs. */
export const DEBIAN = 'Debian';
export const advisoriesOf = (feeds: Feed[]) => feeds.filter(({ feed }) => feed !== CATALOG);
export const hasCatalog = (feeds: Feed[]) => feeds.some(({ feed }) => feed === CATALOG);

/** From the worst to the least. */
export const SEVERITY: Record<Schemas['VulnerabilitySeverity'], { tone: Tone; text: string }> = {
  CRITICAL: { tone: 'bad', text: 'critical' },
  HIGH: { tone: 'bad', text: 'high' },
  MEDIUM: { tone: 'warn', text: 'medium' },
  LOW: { tone: 'off', text: 'low' },
  NONE: { tone: 'off', text: 'none' },
  UNKNOWN: { tone: 'off', text: 'unknown' },
};

export const EXPLOITED: { tone: Tone; text: string } = { tone: 'bad', text: 'exploited' };

export const STANDING: Record<Schemas['Standing'], { tone: Tone; text: string }> = {
  EXPOSED: { tone: 'bad', text: 'exposed' },
  UPDATING: { tone: 'accent', text: 'updating' },
  NOT_AFFECTED: { tone: 'off', text: 'not affected' },
  FIXED: { tone: 'good', text: 'fixed' },
};

/** The status of a statement, and what it does. */
export const STATUS: Record<Schemas['VexStatus'], { text: string; effect: string }> = {
  not_affected: { text: 'not affected', effect: 'Hubs with an affected package count as not affected.' },
  affected: { text: 'affected', effect: 'Hubs with an affected package count as exposed.' },
  under_investigation: { text: 'under investigation', effect: 'Hubs with an affected package count as exposed.' },
  fixed: { text: 'fixed', effect: 'Hubs with an affected package count as fixed, though the version does not show it.' },
};

export const JUSTIFICATION: Record<Schemas['VexJustification'], string> = {
  component_not_present: 'The component is not there',
  vulnerable_code_not_present: 'The component is there without the vulnerable code',
  vulnerable_code_not_in_execute_path: 'The vulnerable code is never run',
  vulnerable_code_cannot_be_controlled_by_adversary: 'An attacker cannot reach the vulnerable code',
  inline_mitigations_already_exist: 'Something else prevents the harm',
};

/** The page of a vulnerability. Others name it, so its id may be any text. */
export const placeOf = (vulnerabilityId: string) => `/vulnerabilities/${encodeURIComponent(vulnerabilityId)}`;

/** Who made a statement, such as `API_KEY:7`. */
export function authorName(author: string, members: Member[]): string {
  const [kind, id = ''] = author.split(':');
  if (kind === 'API_KEY') return `API key ${id}`;
  const member = members.find(({ userUuid }) => userUuid === id);
  return member ? called(member) : 'somebody who is no member any more';
}
