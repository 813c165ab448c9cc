//! SQL of the paces at which the hubs of a tenant upload.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

/// The pace of a tenant.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct PaceRow {
    pub tenant_uuid: TenantUuid,
    pub live_hubs: i64,
    /// Hubs that were given a place among the turns of the tenant, counted with every claim.
    pub slots: i64,
    pub pause_ms: i64,
    pub changed_at: Timestamp,
}

/// The columns of a [`PaceRow`].
const COLUMNS: &str = "tenant_uuid, live_hubs, slots, pause_ms, changed_at";

/// Counts a hub that was just claimed, and locks the tenant's pace until the transaction ends.
pub async fn count_claim(tx: &mut Tx, tenant_uuid: TenantUuid, now: Timestamp) -> Result<PaceRow> {
    sql(
        "INSERT INTO upload_paces (tenant_uuid, live_hubs, slots, pause_ms, revision, changed_at) \
         VALUES ($1, 1, 1, 0, 0, $2) ON CONFLICT (tenant_uuid) DO UPDATE SET \
         live_hubs = upload_paces.live_hubs + 1, slots = upload_paces.slots + 1 RETURNING ",
    )
    .bind((tenant_uuid, now))
    .push(COLUMNS)
    .one(tx)
    .await
}

pub async fn set_slot(tx: &mut Tx, hub_uuid: HubUuid, slot: i64) -> Result<()> {
    sql("UPDATE hubs SET upload_slot = $2 WHERE hub_uuid = $1")
        .bind((hub_uuid, slot))
        .run(tx)
        .await
}

pub async fn set_pause(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    pause_ms: i64,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE upload_paces SET pause_ms = $2, revision = revision + 1, changed_at = $3 \
         WHERE tenant_uuid = $1",
    )
    .bind((tenant_uuid, pause_ms, now))
    .run(tx)
    .await
}

pub async fn set_live_hubs(tx: &mut Tx, tenant_uuid: TenantUuid, live_hubs: i64) -> Result<()> {
    sql("UPDATE upload_paces SET live_hubs = $2 WHERE tenant_uuid = $1")
        .bind((tenant_uuid, live_hubs))
        .run(tx)
        .await
}

/// How many hubs of each tenant have credentials and were seen since `since`: of up to `limit`
/// tenants that have hubs, in the order of their uuids, after `after`.
pub async fn live_hubs(
    conn: &mut Conn,
    after: TenantUuid,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<(TenantUuid, i64)>> {
    sql(
        "SELECT tenant_uuid, COUNT(CASE WHEN access_token_id IS NOT NULL \
         AND last_seen_at >= $2 THEN 1 END) \
         FROM hubs LEFT JOIN hub_contacts USING (tenant_uuid, hub_uuid) WHERE tenant_uuid > $1 \
         GROUP BY tenant_uuid ORDER BY tenant_uuid LIMIT $3",
    )
    .bind((after, since, limit))
    .all(conn)
    .await
}

/// The paces of these tenants. The list must not be empty.
pub async fn paces(
    conn: &mut Conn,
    tenants: impl IntoIterator<Item = TenantUuid>,
) -> Result<Vec<PaceRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM upload_paces WHERE tenant_uuid IN ")
        .push_list(tenants)
        .all(conn)
        .await
}
