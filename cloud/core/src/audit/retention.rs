//! Deletes old entries of the audit log. The database itself refuses to delete any of its last day.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::ActorType;

/// A tenant that keeps its entries for less time than the service does.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct ShortKeeper {
    pub tenant_uuid: TenantUuid,
    pub retention_days: i64,
}

/// Up to `limit` tenants after `after` with an audit retention of their own.
pub async fn short_keepers(conn: &mut Conn, after: Uuid, limit: i64) -> Result<Vec<ShortKeeper>> {
    sql(
        "SELECT tenant_uuid, audit_retention_days AS retention_days FROM tenants \
         WHERE audit_retention_days IS NOT NULL AND tenant_uuid > $1 ORDER BY tenant_uuid LIMIT $2",
    )
    .bind((after, limit))
    .all(conn)
    .await
}

/// Whether a kind of actor has an entry of before `before`: in the tenant, or anywhere.
pub async fn has_before(
    conn: &mut Conn,
    tenant_uuid: Option<TenantUuid>,
    actor: ActorType,
    before: Timestamp,
) -> Result<bool> {
    let statement = match tenant_uuid {
        Some(tenant_uuid) => sql("SELECT 1 FROM audit_logs WHERE tenant_uuid = ")
            .push_bind(tenant_uuid)
            .push(" AND "),
        None => sql("SELECT 1 FROM audit_logs WHERE "),
    };
    let statement = statement
        .push("actor = ")
        .push_bind(actor.name())
        .push(" AND created_at < ")
        .push_bind(before);
    statement.push(" LIMIT 1").exists(conn).await
}

/// Deletes the oldest of these entries, up to `limit`, and returns how many.
pub async fn delete_before(
    tx: &mut Tx,
    tenant_uuid: Option<TenantUuid>,
    actor: ActorType,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    let statement = sql("DELETE FROM audit_logs WHERE audit_log_id IN \
         (SELECT audit_log_id FROM audit_logs WHERE ");
    let statement = match tenant_uuid {
        Some(tenant_uuid) => statement
            .push("tenant_uuid = ")
            .push_bind(tenant_uuid)
            .push(" AND "),
        None => statement,
    };
    statement
        .push("actor = ")
        .push_bind(actor.name())
        .push(" AND created_at < ")
        .push_bind(before)
        .push(" ORDER BY created_at, audit_log_id LIMIT ")
        .push_bind(limit)
        .push(")")
        .execute(tx)
        .await
}
