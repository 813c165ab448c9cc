"""From an account to a resumed stream: lists hubs, uploads once though sent twice, all through the client that is generated
from the description of the service.

    python whole.py http://127.0.0.1:8080
"""

import datetime
import sys
import uuid
from http import HTTPStatus

from hub_cloud import connect, follow_events, ok
from hub_cloud_client import Client
from hub_cloud_client.api.auth import auth_register
from hub_cloud_client.api.hub_api import hub_claim, hub_upload_ble_events, hub_upload_telemetry
from hub_cloud_client.api.tenant_ble import ble_events_list
from hub_cloud_client.api.tenant_hubs import claim_codes_create, hub_telemetry_list, hubs_list
from hub_cloud_client.api.tenant_tenants import tenants_create
from hub_cloud_client.models import (
    BleEvent,
    BleEventUploadRequest,
    ClaimCodeGenerateRequest,
    CreateTenantRequest,
    HubClaimRequest,
    Problem,
    RegisterRequest,
)

def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def main(url: str) -> None:
    # A person, a tenant, and a hub that claims itself.
    anyone = Client(base_url=url)
    account = RegisterRequest(email=f"{uuid.uuid4()}@example.com", password="a long password")
    session = ok(auth_register.sync(client=anyone, body=account)).data
    person = connect(url, token=session.access_token)
    founded = ok(tenants_create.sync(client=person, body=CreateTenantRequest(name="Warehouse"))).data
    tenant = str(founded.tenant_uuid)
    request = ClaimCodeGenerateRequest(valid_for_seconds=3600)
    code = ok(claim_codes_create.sync(client=person, x_tenant_uuid=tenant, body=request)).data
    claim = HubClaimRequest(claim_code=code.claim_code, device_instance_id=str(uuid.uuid4()))
    credentials = ok(hub_claim.sync(client=anyone, body=claim)).data
    hub = connect(url, token=credentials.access_token)

    # The same upload twice: the second is recognised by its batch, and stores nothing.
    def upload(batch_uuid: uuid.UUID) -> bool:
        event = BleEvent(observed_at=now(), address="C0:00:00:00:00:01", rssi=-61)
        body = BleEventUploadRequest(batch_uuid=batch_uuid, events=[event])
        return ok(hub_upload_ble_events.sync(client=hub, body=body)).data.duplicate

    batch_uuid = uuid.uuid4()
    assert not upload(batch_uuid)
    assert upload(batch_uuid)

    # Telemetry is recognised by its key.
    key = str(uuid.uuid4())
    for _ in range(2):
        answer = hub_upload_telemetry.sync_detailed(
            hub_uuid=credentials.hub_uuid, client=hub, body={"uptimeSecs": 5}, idempotency_key=key
        )
        assert answer.status_code == HTTPStatus.NO_CONTENT

    # Lists.
    listed = hubs_list.sync_detailed(client=person, x_tenant_uuid=tenant, size=10)
    assert [hub.hub_uuid for hub in ok(listed.parsed).data] == [credentials.hub_uuid]
    assert listed.headers["x-total-count"] == "1"
    telemetry = ok(hub_telemetry_list.sync(client=person, x_tenant_uuid=tenant, hub_uuid=credentials.hub_uuid))
    assert len(telemetry.data) == 1

    # A failure is a Problem.
    problem = hubs_list.sync(client=person, x_tenant_uuid=tenant, size=0)
    assert isinstance(problem, Problem) and problem.code == "INVALID_FIELD"

    # A stream: events after the one that is known, each once, each in a stream of its own.
    upload(uuid.uuid4())
    upload(uuid.uuid4())
    stored = ok(ble_events_list.sync(client=person, x_tenant_uuid=tenant)).data
    assert len(stored) == 3
    last_event_id = stored[-1].received_at
    for expected in reversed(stored[:2]):
        event = next(follow_events(person, tenant, last_event_id=last_event_id))
        assert event.ble_event_id == expected.ble_event_id
        last_event_id = event.received_at
    print("Python: hubs listed, uploads recognised, stream resumed")


main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080")
