//! The tenant's own advisories: as they are written in a form, and in words.

import type { Schemas } from '../../api/client';
import { gathered, Problem } from '../../api/problem';
import { ownApps, ownModels, type Choice } from '../bundles/parts';

export type Advisory = Schemas['AdvisoryResponse'];
type Affected = Advisory['affected'][number];
type Range = NonNullable<Affected['versions']>[number];

/** The most that an advisory has of each. */
export const MOST = { affected: 20, versions: 50 };

export interface WrittenRange {
  key: number;
  introduced: string;
  fixed: string;
  lastAffected: string;
}

/** An app or a device model, and which of its versions. */
export interface WrittenAffected {
  key: number;
  /** `app:` or `model:` and its id; '' while none is chosen. */
  what: string;
  versions: WrittenRange[];
}

export interface Written {
  id: string;
  title: string;
  description: string;
  /** VECTOR: as the vector gives it. */
  severity: Advisory['severity'] | 'VECTOR';
  vector: string;
  aliases: string;
  references: string;
  affected: WrittenAffected[];
}

let last = 0;
export const anyRange = (range: Range = {}): WrittenRange => ({
  key: (last += 1), introduced: range.introduced ?? '', fixed: range.fixed ?? '', lastAffected: range.lastAffected ?? '',
});
export const anyAffected = (affected: Partial<Affected> = {}): WrittenAffected => ({
  key: (last += 1),
  what: affected.appUuid ? `app:${affected.appUuid}` : affected.deviceUuid ? `model:${affected.deviceUuid}` : '',
  versions: (affected.versions ?? []).map(anyRange),
});

export const writtenOf = (advisory?: Advisory): Written => ({
  id: advisory?.id ?? '',
  title: advisory?.title ?? '',
  description: advisory?.description ?? '',
  severity: advisory?.cvssVector ? 'VECTOR' : (advisory?.severity ?? 'UNKNOWN'),
  vector: advisory?.cvssVector ?? '',
  aliases: advisory?.aliases.join('\n') ?? '',
  references: advisory?.references.join('\n') ?? '',
  affected: advisory ? advisory.affected.map(anyAffected) : [anyAffected()],
});

/** The name of the field that an error about an app or a device model has. */
export const fieldOf = ({ what }: WrittenAffected, index: number) => `affected[${index}].${what.startsWith('model:') ? 'deviceUuid' : 'appUuid'}`;

const lines = (text: string) => text.split('\n').map((line) => line.trim()).filter(Boolean);
const given = (text: string) => text.trim() || undefined;

/** The request; what is missing is a problem at its field. */
export function requestOf(written: Written): Schemas['AdvisoryRequest'] {
  const missing: { field: string; message: string }[] = [];
  if (written.severity === 'VECTOR' && !written.vector.trim()) missing.push({ field: 'cvssVector', message: 'enter a vector, or choose a severity' });
  for (const [index, one] of written.affected.entries()) {
    if (!one.what) missing.push({ field: fieldOf(one, index), message: 'choose what is affected' });
    for (const [at, { introduced, fixed, lastAffected }] of one.versions.entries()) {
      const isEmpty = !introduced.trim() && !fixed.trim() && !lastAffected.trim();
      if (isEmpty) missing.push({ field: `affected[${index}].versions[${at}].introduced`, message: 'enter a version, or remove the range' });
    }
  }
  if (missing.length) throw new Problem(400, 'VALIDATION', 'Something is missing.', missing);
  return {
    id: given(written.id),
    title: written.title,
    description: given(written.description),
    ...(written.severity === 'VECTOR' ? { cvssVector: written.vector.trim() } : { severity: written.severity }),
    aliases: lines(written.aliases),
    references: lines(written.references),
    affected: written.affected.map(({ what, versions }) => {
      const [kind, uuid] = what.split(':');
      return {
        ...(kind === 'model' ? { deviceUuid: uuid } : { appUuid: uuid }),
        versions: versions.map(({ introduced, fixed, lastAffected }) => ({ introduced: given(introduced), fixed: given(fixed), lastAffected: given(lastAffected) })),
      };
    }),
  };
}

/** Errors of single aliases or references are shown at the field of all, and a repeated id at its own. */
export function placed(error: unknown): Problem {
  const problem = gathered(error, ['aliases', 'references']);
  return problem.code === 'ADVISORY_EXISTS' ? new Problem(problem.status, problem.code, problem.message, [{ field: 'id', message: problem.message }]) : problem;
}

/** What advisories of the tenant can be about. */
export async function choices(signal: AbortSignal): Promise<{ apps: Choice[]; models: Choice[] }> {
  const [apps, models] = await Promise.all([ownApps(signal), ownModels(signal)]);
  return { apps, models };
}

/** `from 1.1.0 to before 1.10.0`. */
export function rangeText({ introduced, fixed, lastAffected }: Range): string {
  const from = introduced ? `from ${introduced}` : '';
  const to = fixed ? `${from && 'to '}before ${fixed}` : lastAffected ? `through ${lastAffected}` : '';
  if (!to) return from ? `${from} on` : 'all versions';
  return `${from} ${to}`.trim();
}

export const versionsText = ({ versions = [] }: Affected) => (versions.length ? versions.map(rangeText).join('; ') : 'all versions');
