//! SQL of upload clocks and idempotency keys, besides the statements that store uploads.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};

use super::commits::LogKey;
use super::kinds::Kind;

/// The last id issued to a tenant; 0 when there is none yet.
pub async fn last_id(conn: &mut Conn, (tenant_uuid, kind): LogKey) -> Result<i64> {
    let last_id = sql("SELECT last_id FROM upload_clocks WHERE tenant_uuid = $1 AND kind = $2")
        .bind((tenant_uuid, kind.name()))
        .optional_scalar(conn)
        .await?;
    Ok(last_id.unwrap_or(0))
}

/// The last ids issued to these tenants, of the kinds this version knows. The list must not be
/// empty.
pub async fn last_ids(
    conn: &mut Conn,
    tenants: impl IntoIterator<Item = TenantUuid>,
) -> Result<Vec<(LogKey, i64)>> {
    let rows: Vec<(TenantUuid, String, i64)> =
        sql("SELECT tenant_uuid, kind, last_id FROM upload_clocks WHERE tenant_uuid IN ")
            .push_list(tenants)
            .all(conn)
            .await?;
    let known = |(tenant_uuid, kind, last_id): (TenantUuid, String, i64)| {
        Some(((tenant_uuid, Kind::from_name(&kind)?), last_id))
    };
    Ok(rows.into_iter().filter_map(known).collect())
}

/// Deletes up to `limit` idempotency keys of a tenant's uploads that were received before `before`
/// and returns how many.
pub async fn delete_keys(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    sql(
        "DELETE FROM upload_keys WHERE tenant_uuid = $1 AND (idempotency_key, hub_uuid, kind) IN \
         (SELECT idempotency_key, hub_uuid, kind FROM upload_keys \
         WHERE tenant_uuid = $1 AND first_id < $2 LIMIT $3)",
    )
    .bind((tenant_uuid, before.as_micros(), limit))
    .execute(tx)
    .await
}
