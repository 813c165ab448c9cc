//! The log of activations, of all tenants. An entry outlives its device.

use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, TenantUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use serde::Serialize;

/// The cause of an activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ActivationKind {
    /// A hub asked which device it sees.
    Query,
    /// A person or an API key.
    Operator,
    /// An upload with an advertisement of the device.
    Upload,
}

text_enum!(ActivationKind { Query = "QUERY", Operator = "OPERATOR", Upload = "UPLOAD" });

/// An activation that is still to be stored.
#[derive(Clone, Copy, Debug)]
pub struct Activation {
    /// The hub that saw the device.
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: i64,
    pub kind: ActivationKind,
    pub occurred_at: Timestamp,
}

/// A stored activation.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct StoredActivation {
    pub activation_event_id: i64,
    pub tenant_uuid: TenantUuid,
    pub hub_uuid: Option<HubUuid>,
    pub device_instance_id: i64,
    #[sqlx(try_from = "String")]
    pub kind: ActivationKind,
    pub occurred_at: Timestamp,
}

const COLUMNS: &str =
    "activation_event_id, tenant_uuid, hub_uuid, device_instance_id, kind, occurred_at";

pub async fn insert(tx: &mut Tx, scope: &Scope, activation: &Activation) -> Result<()> {
    sql(
        "INSERT INTO activation_events (tenant_uuid, hub_uuid, device_instance_id, kind, \
         occurred_at) VALUES ($1, $2, $3, $4, $5)",
    )
    .bind((
        scope.tenant_uuid(),
        activation.hub_uuid,
        activation.device_instance_id,
        activation.kind.name(),
        activation.occurred_at,
    ))
    .run(tx)
    .await
}

/// One page of all tenants, latest first, and the total number.
pub async fn list_all(conn: &mut Conn, slice: Slice) -> Result<(Vec<StoredActivation>, i64)> {
    sql("FROM activation_events")
        .page(conn, COLUMNS, &["activation_event_id DESC"], slice)
        .await
}

/// Whether there is an activation of before `before`.
pub async fn has_before(conn: &mut Conn, before: Timestamp) -> Result<bool> {
    sql("SELECT 1 FROM activation_events WHERE occurred_at < $1 LIMIT 1")
        .bind(before)
        .exists(conn)
        .await
}

/// Deletes the oldest of them, up to `limit`, and returns how many.
pub async fn delete_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM activation_events WHERE activation_event_id IN \
         (SELECT activation_event_id FROM activation_events WHERE occurred_at < $1 \
         ORDER BY occurred_at, activation_event_id LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}
