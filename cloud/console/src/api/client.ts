//! The API, typed by the service's own description. Requests get the access token of the session and
//! the tenant of the address; pages name neither.

import createClient from 'openapi-fetch';
import { untrack } from 'svelte';
import { currentTenant } from '../tenants.svelte';
import { accessToken, session, tokenRefused } from '../session.svelte';
import { Problem, problemIn, problemOf } from './problem';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];

/** Sends a request with the credentials of the session; a refused token is replaced once. */
export async function send(request: Request): Promise<Response> {
  const tenant = untrack(currentTenant);
  const path = new URL(request.url).pathname;
  if (tenant && path.startsWith('/tenant/') && !request.headers.has('x-tenant-uuid')) {
    request.headers.set('x-tenant-uuid', tenant);
  }
  const token = await accessToken();
  if (!token) {
    if (untrack(() => session.lapsed)) throw new Problem(401, 'SESSION_ENDED', 'Your session has ended.');
    return fetch(request);
  }
  const retry = request.clone();
  request.headers.set('authorization', `Bearer ${token}`);
  const response = await fetch(request);
  if (response.status !== 401) return response;
  const other = await tokenRefused(token);
  if (!other) return response;
  retry.headers.set('authorization', `Bearer ${other}`);
  return fetch(retry);
}

export const api = createClient<paths>({ baseUrl: location.origin, fetch: send });

type Answer<T> = Promise<{ data?: T; error?: unknown; response: Response }>;

async function answered<T>(answer: Answer<T>): Promise<{ body: T; response: Response }> {
  try {
    const { data, error, response } = await answer;
    if (!response.ok) throw problemIn(response, error);
    return { body: data as T, response };
  } catch (error) {
    throw problemOf(error);
  }
}

/** The `data` of the response; a failure is thrown as a `Problem`. */
export async function data<T>(answer: Answer<{ data: T }>): Promise<T> {
  return (await answered(answer)).body.data;
}

/** The items of a page, the total of all pages, and the time of the service, to the second. */
export async function listed<T>(answer: Answer<{ data: T[] }>): Promise<{ items: T[]; total: number; at: string }> {
  const { body, response } = await answered(answer);
  const { headers } = response;
  const at = new Date(headers.get('date') ?? Date.now()).toISOString();
  return { items: body.data, total: Number(headers.get('x-total-count') ?? body.data.length), at };
}

/** The body of an answer that is no JSON. */
export async function content<T>(answer: Answer<T>): Promise<T> {
  return (await answered(answer)).body;
}

/** For answers without a body. */
export async function done(answer: Answer<unknown>): Promise<void> {
  await answered(answer);
}
