import type { Schemas } from '../../api/client';
import type { Tone } from '../../parts/Badge.svelte';

export type Bundle = Schemas['BundleResponse'];

export const STATUS: Record<Bundle['status'], { tone: Tone; text: string }> = {
  DRAFT: { tone: 'accent', text: 'draft' },
  PUBLISHED: { tone: 'good', text: 'published' },
  ARCHIVED: { tone: 'off', text: 'archived' },
};
