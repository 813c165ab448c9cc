// Lists hubs and follows events.
import { connect, followEvents } from "hub-cloud-client";

const { HUB_SERVICE_URL: url = "", HUB_API_KEY: apiKey = "", HUB_TENANT: tenant = "" } = process.env;
const client = connect(url, { apiKey });
const { data: hubs } = await client.GET("/tenant/hubs", { params: { header: { "X-Tenant-UUID": tenant } } });
for (const hub of hubs?.data ?? []) console.log(hub.hubUuid, hub.status);
for await (const event of followEvents(client, tenant)) {
  console.log(event.receivedAt, event.address, event.rssi, JSON.stringify(event.measurements));
}
