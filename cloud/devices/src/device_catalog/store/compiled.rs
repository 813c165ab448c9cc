//! SQL of what recognition needs, for all models of a tenant. Their numbers are bounded.

use hub_base::db::{Conn, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use uuid::Uuid;

use super::super::protocols::ProtocolKind;

#[derive(sqlx::FromRow)]
pub struct ModelRow {
    pub device_uuid: Uuid,
    pub name: String,
    pub auto_register: bool,
    pub expected_interval_secs: Option<i64>,
}

#[derive(sqlx::FromRow)]
pub struct IdentifierRow {
    pub device_identifier_id: i64,
    pub device_uuid: Uuid,
    /// A JSON list.
    pub conditions: String,
}

#[derive(sqlx::FromRow)]
pub struct ProtocolRow {
    pub device_protocol_id: i64,
    pub device_uuid: Uuid,
    #[sqlx(try_from = "String")]
    pub kind: ProtocolKind,
    /// JSON.
    pub definition: String,
    pub revision: i64,
}

pub async fn models(conn: &mut Conn, scope: &Scope) -> Result<Vec<ModelRow>> {
    sql(
        "SELECT device_uuid, name, auto_register, expected_interval_secs FROM device_models \
         WHERE tenant_uuid = $1",
    )
    .bind(scope.tenant_uuid())
    .all(conn)
    .await
}

pub async fn identifiers(conn: &mut Conn, scope: &Scope) -> Result<Vec<IdentifierRow>> {
    sql(
        "SELECT device_identifier_id, device_uuid, conditions FROM device_identifiers \
         WHERE tenant_uuid = $1 ORDER BY device_identifier_id",
    )
    .bind(scope.tenant_uuid())
    .all(conn)
    .await
}

/// The protocols that are in use: the newest of each model, and those that versions name.
pub async fn protocols(conn: &mut Conn, scope: &Scope) -> Result<Vec<ProtocolRow>> {
    sql(
        "SELECT device_protocol_id, device_uuid, kind, definition, revision FROM device_protocols \
         WHERE tenant_uuid = $1 AND (device_protocol_id IN \
         (SELECT MAX(device_protocol_id) FROM device_protocols \
          WHERE tenant_uuid = $1 GROUP BY device_uuid) \
         OR device_protocol_id IN (SELECT device_protocol_id FROM device_versions \
          WHERE tenant_uuid = $1 AND device_protocol_id IS NOT NULL))",
    )
    .bind(scope.tenant_uuid())
    .all(conn)
    .await
}

pub async fn protocols_of_versions(conn: &mut Conn, scope: &Scope) -> Result<Vec<(Uuid, i64)>> {
    sql(
        "SELECT device_version_uuid, device_protocol_id FROM device_versions \
         WHERE tenant_uuid = $1 AND device_protocol_id IS NOT NULL",
    )
    .bind(scope.tenant_uuid())
    .all(conn)
    .await
}

/// The size of all definitions and conditions of the tenant.
pub async fn bytes(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    sql(
        "SELECT CAST((SELECT COALESCE(SUM(LENGTH(definition)), 0) FROM device_protocols \
         WHERE tenant_uuid = $1) + (SELECT COALESCE(SUM(LENGTH(conditions)), 0) \
         FROM device_identifiers WHERE tenant_uuid = $1) AS BIGINT)",
    )
    .bind(scope.tenant_uuid())
    .scalar(conn)
    .await
}
