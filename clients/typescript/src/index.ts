// A client of hub-cloud: the typed calls of openapi-fetch on the paths that openapi-typescript
// generates from the description of the service, and live streams that resume.

import createClient, { type Client, type ClientOptions, type Middleware } from "openapi-fetch";
import type { components, paths } from "./api.js";

export type { components, paths } from "./api.js";
export type Hub = components["schemas"]["HubSummaryResponse"];
export type BleEvent = components["schemas"]["BleEventResponse"];
export type HubClient = Client<paths>;

/** An API key, or the access token of a person: a text, or a function that gets one for each call. */
export type Credential = { apiKey: string } | { token: string | (() => string | Promise<string>) };

/** A refusal of the service. Branch on `code`, never on the message. */
export class HubError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly retryAfterSeconds: number | undefined,
  ) {
    super(message);
    this.name = "HubError";
  }
}

/** A client of the service at this URL. It throws a `HubError` where the service refuses. */
export function connect(baseUrl: string, credential?: Credential, options: Pick<ClientOptions, "fetch"> = {}): HubClient {
  // A redirect would take an API key elsewhere.
  const client = createClient<paths>({ baseUrl, redirect: "error", ...options });
  const middleware: Middleware = {
    async onRequest({ request }) {
      if (credential && "apiKey" in credential) {
        request.headers.set("x-api-key", credential.apiKey);
      } else if (credential) {
        const token = typeof credential.token === "string" ? credential.token : await credential.token();
        request.headers.set("authorization", `Bearer ${token}`);
      }
    },
    async onResponse({ response }) {
      if (response.ok) return;
      const problem: unknown = await response.clone().json().catch(() => undefined);
      const text = (name: string, otherwise: string) =>
        problem && typeof problem === "object" && name in problem ? String(problem[name as keyof typeof problem]) : otherwise;
      const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
      throw new HubError(
        response.status,
        text("code", "UNKNOWN"),
        text("message", `status ${response.status}`),
        Number.isNaN(retryAfter) ? undefined : retryAfter,
      );
    },
  };
  client.use(middleware);
  return client;
}

export interface FollowOptions {
  /** Begin after this event instead of now. */
  lastEventId?: string;
  /** End the stream. */
  signal?: AbortSignal;
}

/**
 * The BLE events of a tenant as they are received. A lost connection is resumed after the last
 * event: none is lost, none comes twice. What cannot get better by waiting is thrown.
 */
export async function* followEvents(client: HubClient, tenant: string, options: FollowOptions = {}): AsyncGenerator<BleEvent> {
  let { lastEventId } = options;
  let pauseMillis = 250;
  while (!options.signal?.aborted) {
    let retryAfterSeconds: number | undefined;
    try {
      const header = { "X-Tenant-UUID": tenant, ...(lastEventId === undefined ? {} : { "Last-Event-ID": lastEventId }) };
      const { data: body, response } = await client.GET("/tenant/stream/ble/events", {
        params: { header },
        parseAs: "stream",
        ...(options.signal ? { signal: options.signal } : {}),
      });
      // Where the stream begins is known before its first event.
      lastEventId ??= began(response.headers.get("date"));
      if (!body) continue;
      pauseMillis = 250;
      for await (const { id, data } of events(body)) {
        lastEventId = id;
        yield JSON.parse(data) as BleEvent;
      }
      // The service ends a stream after some minutes: it goes on at once.
      continue;
    } catch (error) {
      if (options.signal?.aborted) return;
      if (error instanceof HubError && ![408, 429, 502, 503, 504, 507].includes(error.status)) throw error;
      if (error instanceof SyntaxError) throw error;
      retryAfterSeconds = error instanceof HubError ? error.retryAfterSeconds : undefined;
    }
    const millis = Math.min(retryAfterSeconds === undefined ? pauseMillis : retryAfterSeconds * 1000, 15_000);
    await new Promise((resolve) => setTimeout(resolve, millis));
    pauseMillis = Math.min(pauseMillis * 2, 15_000);
  }
}

function began(date: string | null): string | undefined {
  const time = date === null ? Number.NaN : Date.parse(date);
  return Number.isNaN(time) ? undefined : new Date(time).toISOString();
}

/** The longest event that is read. */
const MAX_EVENT_CHARS = 16 * 1024 * 1024;

async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<{ id: string; data: string }> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const [id, data] = [field("id"), field("data")];
      if (id !== undefined && data !== undefined) yield { id, data };
    }
    if (text.length > MAX_EVENT_CHARS) throw new SyntaxError("an event of the stream is too large");
  }
}
