# Lists hubs and follows events.
import os

from hub_cloud import connect, follow_events, ok
from hub_cloud_client.api.tenant_hubs import hubs_list

tenant = os.environ["HUB_TENANT"]
client = connect(os.environ["HUB_SERVICE_URL"], api_key=os.environ["HUB_API_KEY"])
for hub in ok(hubs_list.sync(client=client, x_tenant_uuid=tenant)).data:
    print(hub.hub_uuid, hub.status)
for event in follow_events(client, tenant):
    print(event.received_at.isoformat(), event.address, event.rssi, [m.to_dict() for m in event.measurements], flush=True)
