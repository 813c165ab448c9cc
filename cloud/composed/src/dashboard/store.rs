//! SQL of the counts of BLE events by minute.

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_devices::ble::MinuteCount;
use hub_ingest::Kind;
use hub_protocol::TenantUuid;
use uuid::Uuid;

/// A tenant with events that may not be counted.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Behind {
    pub tenant_uuid: TenantUuid,
    pub counted_to: i64,
}

/// Tenants after this one that have events of minutes that are not counted, and whose minutes
/// before `to` are not all counted.
pub async fn behind(conn: &mut Conn, after: Uuid, to: i64, limit: i64) -> Result<Vec<Behind>> {
    sql(
        "SELECT u.tenant_uuid, COALESCE(c.counted_to, 0) AS counted_to FROM upload_clocks u \
         LEFT JOIN ble_minute_cursors c ON c.tenant_uuid = u.tenant_uuid \
         WHERE u.kind = $1 AND u.tenant_uuid > $2 AND COALESCE(c.counted_to, 0) < $3 \
         AND u.last_id >= COALESCE(c.counted_to, 0) * 60000000 ORDER BY u.tenant_uuid LIMIT $4",
    )
    .bind((Kind::BleEvents.name(), after, to, limit))
    .all(conn)
    .await
}

pub async fn counted_to(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<i64>> {
    sql("SELECT counted_to FROM ble_minute_cursors WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .optional_scalar(conn)
        .await
}

/// The counted minutes from `from` to `last`.
pub async fn minutes(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    from: i64,
    last: i64,
) -> Result<Vec<MinuteCount>> {
    sql("SELECT minute, events, decoded FROM ble_minutes \
         WHERE tenant_uuid = $1 AND minute >= $2 AND minute <= $3")
    .bind((tenant_uuid, from, last))
    .all(conn)
    .await
}

/// The events of all tenants in these minutes; the last one is not included.
pub async fn events_of_all(conn: &mut Conn, (from, to): (i64, i64)) -> Result<i64> {
    sql(
        "SELECT CAST(COALESCE(SUM(events), 0) AS BIGINT) FROM ble_minutes \
         WHERE minute >= $1 AND minute < $2",
    )
    .bind((from, to))
    .scalar(conn)
    .await
}

/// Stores counts. A minute that was counted before gets the same count again.
pub async fn put_minutes(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    minutes: &[MinuteCount],
) -> Result<()> {
    Bulk {
        head: "INSERT INTO ble_minutes (tenant_uuid, minute, events, decoded)",
        columns: vec![
            Column::Uuid(vec![tenant_uuid.0; minutes.len()]),
            Column::Int(minutes.iter().map(|count| count.minute).collect()),
            Column::Int(minutes.iter().map(|count| count.events).collect()),
            Column::Int(minutes.iter().map(|count| count.decoded).collect()),
        ],
        tail: "ON CONFLICT (tenant_uuid, minute) DO UPDATE SET events = excluded.events, \
               decoded = excluded.decoded",
    }
    .execute(tx)
    .await
    .map(|_| ())
}

pub async fn set_counted_to(tx: &mut Tx, tenant_uuid: TenantUuid, counted_to: i64) -> Result<()> {
    sql(
        "INSERT INTO ble_minute_cursors (tenant_uuid, counted_to) VALUES ($1, $2) \
         ON CONFLICT (tenant_uuid) DO UPDATE SET counted_to = excluded.counted_to \
         WHERE ble_minute_cursors.counted_to < excluded.counted_to",
    )
    .bind((tenant_uuid, counted_to))
    .run(tx)
    .await
}

pub async fn delete_before(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    before: i64,
    limit: i64,
) -> Result<u64> {
    sql(
        "DELETE FROM ble_minutes WHERE tenant_uuid = $1 AND minute IN \
         (SELECT minute FROM ble_minutes WHERE tenant_uuid = $1 AND minute < $2 LIMIT $3)",
    )
    .bind((tenant_uuid, before, limit))
    .execute(tx)
    .await
}
