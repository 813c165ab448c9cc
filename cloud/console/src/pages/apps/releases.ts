//! Releases of apps, and their parts in words.

import { api, listed, type Schemas } from '../../api/client';
import { Problem } from '../../api/problem';
import { PAGE } from '../../api/rows.svelte';
import type { Tone } from '../../parts/Badge.svelte';

export type Release = Schemas['AppReleaseResponse'];
export type Document = Release['documents'][number];

export const STATUS: Record<Release['status'], { tone: Tone; text: string }> = {
  READY: { tone: 'good', text: 'ready' },
  AWAITING_FILE: { tone: 'warn', text: 'file missing' },
};

export const DOCUMENT: Record<Document['document'], string> = { sbom: 'Bill of materials', vex: 'Statements about vulnerabilities' };

const FORMATS: Record<string, string> = { CYCLONEDX: 'CycloneDX', SPDX: 'SPDX', OPENVEX: 'OpenVEX' };
export const formatName = (format: string) => FORMATS[format] ?? format;

/** How the components of a release are known. */
export const SOURCE: Record<Release['components']['source'], string> = { DECLARED: 'declared', FOUND: 'found in the file', NONE: 'not known' };

/** One release of an app. The service lists them and has no single one: they are gone through, the newest first. */
export async function releaseOf(appUuid: string, releaseUuid: string, signal: AbortSignal): Promise<Release> {
  for (let page = 1; ; page++) {
    const params = { path: { appUuid }, query: { page, size: PAGE } };
    const { items, total } = await listed(api.GET('/tenant/apps/{appUuid}/releases', { params, signal }));
    const found = items.find((release) => release.releaseUuid === releaseUuid);
    if (found) return found;
    if (items.length < PAGE || page * PAGE >= total) throw new Problem(404, 'NOT_FOUND', 'The app has no such release.');
  }
}
