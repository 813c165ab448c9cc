// Lists hubs, uploads once though sent twice, and resumes a stream, all through the types that
// openapi-typescript generates from the description of the service: a path, a parameter or a member
// that the service does not have is an error of the compiler.
//
//   openapi-typescript http://127.0.0.1:8080/openapi.json -o api.d.ts && tsc && node build/example.js http://127.0.0.1:8080

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import createClient, { type Middleware } from "openapi-fetch";
import type { components, paths } from "./api.js";

type BleEvent = components["schemas"]["BleEventResponse"];

const baseUrl = process.argv[2] ?? "http://127.0.0.1:8080";

function bearer(token: string): Middleware {
  return {
    onRequest({ request }) {
      request.headers.set("authorization", `Bearer ${token}`);
    },
  };
}

// The answer's data, or the problem as an error.
async function data<T>(answer: Promise<{ data?: { data: T }; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await answer;
  if (data === undefined) throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)}`);
  return data.data;
}

// A person, a tenant, and a hub that claims itself.
const anyone = createClient<paths>({ baseUrl });
const email = `${randomUUID()}@example.com`;
const session = await data(anyone.POST("/auth/register", { body: { email, password: "a long password" } }));

const person = createClient<paths>({ baseUrl });
person.use(bearer(session.accessToken));
const tenant = await data(person.POST("/tenant/tenants", { body: { name: "Warehouse" } }));
const inTenant = { "X-Tenant-UUID": tenant.tenantUuid };
const code = await data(
  person.POST("/tenant/hubs/claim-codes", { params: { header: inTenant }, body: { validForSeconds: 3600 } }),
);
const credentials = await data(
  anyone.POST("/v1/hubs/claim", { body: { claimCode: code.claimCode, deviceInstanceId: randomUUID() } }),
);
const hub = createClient<paths>({ baseUrl });
hub.use(bearer(credentials.accessToken));

// The same upload twice: the second is recognised by its batch, and stores nothing.
async function upload(batchUuid: string) {
  const event = {
    observedAt: new Date().toISOString(),
    address: "C0:00:00:00:00:01",
    rssi: -61,
    manufacturerData: { "0499": "BQAB" },
  };
  return data(hub.POST("/v1/ble/events", { body: { batchUuid, events: [event] } }));
}
const batchUuid = randomUUID();
assert.equal((await upload(batchUuid)).duplicate, false);
assert.equal((await upload(batchUuid)).duplicate, true);

// Telemetry is recognised by its key.
const key = { "Idempotency-Key": randomUUID() };
for (let attempt = 0; attempt < 2; attempt++) {
  const path = { hubUuid: credentials.hubUuid };
  const { response } = await hub.POST("/v1/hubs/{hubUuid}/telemetry", {
    params: { path, header: key },
    body: { uptimeSecs: 5 },
  });
  assert.equal(response.status, 204);
}

// Lists.
const { data: hubs, response } = await person.GET("/tenant/hubs", { params: { header: inTenant, query: { size: 10 } } });
assert.deepEqual(hubs?.data.map((hub) => hub.hubUuid), [credentials.hubUuid]);
assert.equal(response.headers.get("x-total-count"), "1");
const path = { hubUuid: credentials.hubUuid };
const telemetry = await data(person.GET("/tenant/hubs/{hubUuid}/telemetry", { params: { path, header: inTenant } }));
assert.equal(telemetry.length, 1);

// A failure is a Problem.
const { error } = await person.GET("/tenant/hubs", { params: { header: inTenant, query: { size: 0 } } });
assert.equal(error?.code, "INVALID_FIELD");

// A stream: events after the one that is known, each once.
async function* events(lastEventId: string): AsyncGenerator<{ id: string; data: BleEvent }> {
  const { data: body } = await person.GET("/tenant/stream/ble/events", {
    params: { header: { ...inTenant, "Last-Event-ID": lastEventId } },
    parseAs: "stream",
  });
  assert(body);
  let text = "";
  for await (const chunk of body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const [id, json] = [field("id"), field("data")];
      if (id && json) yield { id, data: JSON.parse(json) as BleEvent };
    }
  }
}
await upload(randomUUID());
await upload(randomUUID());
const stored = await data(person.GET("/tenant/ble/events", { params: { header: inTenant } }));
const oldest = stored.at(-1);
assert(oldest && stored.length === 3);
let lastEventId = oldest.receivedAt;
for (const expected of stored.slice(0, 2).reverse()) {
  // Each in a stream of its own, resumed after the one before.
  for await (const event of events(lastEventId)) {
    assert.equal(event.data.bleEventId, expected.bleEventId);
    assert.equal(event.id, expected.receivedAt);
    lastEventId = event.id;
    break;
  }
}
console.log("TypeScript: hubs listed, uploads recognised, stream resumed");
