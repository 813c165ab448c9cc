// From an account to a resumed stream: uploads once though sent twice, all through the types that are
// generated from the description of the service.
//
//   node whole.js http://127.0.0.1:8080

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { connect, followEvents, HubError } from "hub-cloud-client";

const baseUrl = process.argv[2] ?? "http://127.0.0.1:8080";

// The answer's data; a refusal is thrown before.
async function data<T>(answer: Promise<{ data?: { data: T } }>): Promise<T> {
  const { data } = await answer;
  assert(data);
  return data.data;
}

// A person, a tenant, and a hub that claims itself.
const anyone = connect(baseUrl);
const email = `${randomUUID()}@example.com`;
const session = await data(anyone.POST("/auth/register", { body: { email, password: "a long password" } }));

const person = connect(baseUrl, { token: () => session.accessToken });
const tenant = await data(person.POST("/tenant/tenants", { body: { name: "Warehouse" } }));
const inTenant = { "X-Tenant-UUID": tenant.tenantUuid };
const code = await data(
  person.POST("/tenant/hubs/claim-codes", { params: { header: inTenant }, body: { validForSeconds: 3600 } }),
);
const credentials = await data(
  anyone.POST("/v1/hubs/claim", { body: { claimCode: code.claimCode, deviceInstanceId: randomUUID() } }),
);
const hub = connect(baseUrl, { token: credentials.accessToken });

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

// A refusal is thrown.
await assert.rejects(
  person.GET("/tenant/hubs", { params: { header: inTenant, query: { size: 0 } } }),
  (error) => error instanceof HubError && error.status === 400 && error.code === "INVALID_FIELD",
);

// A stream: events after the one that is known, each once.
await upload(randomUUID());
await upload(randomUUID());
const stored = await data(person.GET("/tenant/ble/events", { params: { header: inTenant } }));
const oldest = stored.at(-1);
assert(oldest && stored.length === 3);
let lastEventId = oldest.receivedAt;
for (const expected of stored.slice(0, 2).reverse()) {
  // Each in a stream of its own, resumed after the one before.
  for await (const event of followEvents(person, tenant.tenantUuid, { lastEventId })) {
    assert.equal(event.bleEventId, expected.bleEventId);
    lastEventId = event.receivedAt;
    break;
  }
}
console.log("TypeScript: hubs listed, uploads recognised, stream resumed");
