//! Device models and devices of a tenant.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::Call;
use crate::people::Tenant;

/// The uuid of a model of the tenant's catalog with this name.
pub async fn make_model(tenant: &Tenant, name: &str) -> Uuid {
    made(tenant, "/tenant/device-catalog", json!({"name": name}), "deviceUuid").await
}

/// The uuid of a version of the model.
pub async fn make_version(tenant: &Tenant, device_uuid: Uuid, version: &str) -> Uuid {
    let body = json!({"deviceUuid": device_uuid, "version": version});
    made(tenant, "/tenant/device-versions", body, "deviceVersionUuid").await
}

async fn made(tenant: &Tenant, path: &str, body: Value, member: &str) -> Uuid {
    let made: Value = tenant.client.post(path).json(&body).call().await.expect(200).data();
    made[member].as_str().and_then(|uuid| uuid.parse().ok()).expect("a uuid")
}

/// Registers a device of the model with these further members.
pub async fn make_device(tenant: &Tenant, device_uuid: Uuid, mut body: Value) -> Value {
    body["deviceUuid"] = json!(device_uuid);
    tenant.client.post("/tenant/devices").json(&body).call().await.expect(200).data()
}
