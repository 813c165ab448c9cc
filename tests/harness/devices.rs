//! Device models and devices of a tenant.

use hub_base::db::sql;
use hub_ingest::batches::Rewritten;
use hub_ingest::{ProcessingStatus, log};
use hub_protocol::{HubUuid, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::TestApp;
use crate::client::Call;
use crate::events;
use crate::people::Tenant;

/// The uuid of a model of the tenant's catalog with this name.
pub async fn make_model(tenant: &Tenant, name: &str) -> Uuid {
    made(
        tenant,
        "/tenant/device-catalog",
        json!({"name": name}),
        "deviceUuid",
    )
    .await
}

/// The uuid of a version of the model.
pub async fn make_version(tenant: &Tenant, device_uuid: Uuid, version: &str) -> Uuid {
    let body = json!({"deviceUuid": device_uuid, "version": version});
    made(tenant, "/tenant/device-versions", body, "deviceVersionUuid").await
}

async fn made(tenant: &Tenant, path: &str, body: Value, member: &str) -> Uuid {
    let made: Value = tenant
        .client
        .post(path)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    made[member]
        .as_str()
        .and_then(|uuid| uuid.parse().ok())
        .expect("a uuid")
}

/// Registers a device of the model with these further members.
pub async fn make_device(tenant: &Tenant, device_uuid: Uuid, mut body: Value) -> Value {
    body["deviceUuid"] = json!(device_uuid);
    tenant
        .client
        .post("/tenant/devices")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data()
}

/// Notes of the tenant's events after an id, in order, that they are of the device, and what they
/// say. Returns their ids.
pub async fn put_readings(
    app: &TestApp,
    tenant: &Tenant,
    after: i64,
    device_instance_id: i64,
    device_uuid: Uuid,
    values: &[Value],
) -> Vec<i64> {
    let events = events::of_tenant(&app.app.db, tenant.tenant_uuid).await;
    let ids: Vec<i64> = events
        .iter()
        .map(|event| event.ble_event_id)
        .filter(|id| *id > after)
        .collect();
    assert_eq!(ids.len(), values.len());
    let rewritten = |(id, values): (&i64, &Value)| {
        let reading = json!({"deviceUuid": device_uuid, "protocolRevision": 3, "values": values});
        Rewritten {
            ble_event_id: *id,
            device_instance_id: Some(device_instance_id),
            processing_status: ProcessingStatus::Decoded,
            reading: Some(reading.to_string().into()),
            more_bytes: 0,
        }
    };
    let rewritten: Vec<Rewritten> = ids.iter().zip(values).map(rewritten).collect();
    let now = app.app.clock.now();
    let rewrite = log::rewrite(&app.app, tenant.tenant_uuid, rewritten, now).await;
    let mut tx = app.app.db.begin().await.expect("a transaction");
    let are_there = rewrite.expect("changes").apply(&mut tx).await;
    assert!(are_there.expect("an update"));
    tx.commit_unaudited("a test").await.expect("a commit");
    ids
}

/// Notes that a hub of the tenant hears the device best, and its last values.
pub async fn put_state(
    app: &TestApp,
    tenant: &Tenant,
    device_instance_id: i64,
    hub_uuid: HubUuid,
    at: Timestamp,
    state: &Value,
) {
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO device_states (device_instance_id, tenant_uuid, last_seen_at, \
         nearest_hub_uuid, nearest_rssi_dbm, nearest_since, online_until, state) \
         VALUES ($1, $2, $3, $4, -60, $3, $3, $5) \
         ON CONFLICT (tenant_uuid, device_instance_id) DO UPDATE SET \
         last_seen_at = excluded.last_seen_at, \
         nearest_hub_uuid = excluded.nearest_hub_uuid, state = excluded.state",
    )
    .bind((
        device_instance_id,
        tenant.tenant_uuid,
        at,
        hub_uuid,
        state.to_string(),
    ))
    .run(&mut tx)
    .await
    .expect("a row");
    tx.commit_unaudited("a test").await.expect("a commit");
}
