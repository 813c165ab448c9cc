import type { Schemas } from '../../api/client';
import type { Tone } from '../../parts/Badge.svelte';

export type Endpoint = Schemas['ExternalEndpointResponse'];

export const AUTH: Record<string, string> = { BEARER: 'bearer token', BASIC: 'user name and password', HEADER: 'a header' };

export function proof(endpoint: Endpoint): { tone: Tone; text: string } {
  if (endpoint.domain_verified) return { tone: 'good', text: 'verified' };
  return endpoint.verify_error ? { tone: 'bad', text: 'verification failed' } : { tone: 'warn', text: 'not verified' };
}
