//! SQL of the numbers of the whole service.

use hub_base::db::{Conn, sql};
use hub_base::error::Result;
use hub_protocol::TenantUuid;

/// The number of tenants that are not deleted.
pub async fn tenants(conn: &mut Conn) -> Result<i64> {
    sql("SELECT COUNT(*) FROM tenants WHERE deleted_at IS NULL")
        .scalar(conn)
        .await
}

/// The BLE events of these minutes (since 1970) that are counted; the last one is not included.
pub async fn events(conn: &mut Conn, (from, to): (i64, i64)) -> Result<i64> {
    sql(
        "SELECT CAST(COALESCE(SUM(events), 0) AS BIGINT) FROM ble_minutes \
         WHERE minute >= $1 AND minute < $2",
    )
    .bind((from, to))
    .scalar(conn)
    .await
}

/// What all tenants store.
pub async fn stored_bytes(conn: &mut Conn) -> Result<i64> {
    sql("SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM stored_bytes")
        .scalar(conn)
        .await
}

/// What a tenant uses of what it may.
#[derive(sqlx::FromRow)]
pub struct Used {
    pub tenant_uuid: TenantUuid,
    pub name: String,
    pub used: i64,
    pub allowed: i64,
}

/// Tenants that store this much of what they may, in percent, or more. `allowed` is for those
/// without a limit of their own.
pub async fn near_stored_bytes(
    conn: &mut Conn,
    allowed: i64,
    percent: i64,
    limit: i64,
) -> Result<Vec<Used>> {
    sql(
        "SELECT tenant_uuid, name, used, allowed FROM (SELECT t.tenant_uuid, t.name, \
         CAST(SUM(b.bytes) AS BIGINT) AS used, COALESCE(t.stored_bytes_limit, $1) AS allowed \
         FROM stored_bytes b JOIN tenants t ON t.tenant_uuid = b.tenant_uuid \
         WHERE t.deleted_at IS NULL GROUP BY t.tenant_uuid, t.name, t.stored_bytes_limit) tenants \
         WHERE used > 0 AND used / $2 >= allowed / 100 \
         ORDER BY used * 1.0 / (allowed + 1) DESC LIMIT $3",
    )
    .bind((allowed, percent, limit))
    .all(conn)
    .await
}

/// The same of what they upload on a day (since 1970).
pub async fn near_bytes_per_day(
    conn: &mut Conn,
    day: i64,
    allowed: i64,
    percent: i64,
    limit: i64,
) -> Result<Vec<Used>> {
    sql(
        "SELECT tenant_uuid, name, used, allowed FROM (SELECT t.tenant_uuid, t.name, \
         CAST(SUM(b.day_bytes) AS BIGINT) AS used, COALESCE(t.bytes_per_day_limit, $1) AS allowed \
         FROM stored_bytes b JOIN tenants t ON t.tenant_uuid = b.tenant_uuid \
         WHERE t.deleted_at IS NULL AND b.day = $2 \
         GROUP BY t.tenant_uuid, t.name, t.bytes_per_day_limit) tenants \
         WHERE used > 0 AND used / $3 >= allowed / 100 \
         ORDER BY used * 1.0 / (allowed + 1) DESC LIMIT $4",
    )
    .bind((allowed, day, percent, limit))
    .all(conn)
    .await
}
