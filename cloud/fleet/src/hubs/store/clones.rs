//! SQL of where hubs refresh from, and of processes that take turns with the same credentials.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

/// From where a hub has refreshed its token. A text is empty where it is not known.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Appearance {
    pub boot_id: String,
    pub address: String,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
}

/// The most appearances that are kept of a hub.
const MAX_APPEARANCES: i64 = 16;

/// The hub's appearances, the last first.
pub async fn appearances(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Vec<Appearance>> {
    sql(
        "SELECT boot_id, address, first_at, last_at FROM hub_appearances \
         WHERE hub_uuid = $1 ORDER BY last_at DESC, boot_id, address LIMIT $2",
    )
    .bind((hub_uuid, MAX_APPEARANCES))
    .all(conn)
    .await
}

/// Notes an appearance, which `is_new` or is known already.
pub async fn appear(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    boot_id: &str,
    address: &str,
    is_new: bool,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO hub_appearances (hub_uuid, boot_id, address, first_at, last_at) \
         VALUES ($1, $2, $3, $4, $4) \
         ON CONFLICT (hub_uuid, boot_id, address) DO UPDATE SET last_at = excluded.last_at",
    )
    .bind((hub_uuid, boot_id, address, now))
    .run(tx)
    .await?;
    if !is_new {
        return Ok(());
    }
    sql(
        "DELETE FROM hub_appearances WHERE hub_uuid = $1 AND last_at < \
         (SELECT MIN(last_at) FROM (SELECT last_at FROM hub_appearances \
         WHERE hub_uuid = $1 ORDER BY last_at DESC LIMIT $2) AS newest)",
    )
    .bind((hub_uuid, MAX_APPEARANCES))
    .run(tx)
    .await
}

/// Deletes the appearances of a hub.
pub async fn forget_appearances(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    sql("DELETE FROM hub_appearances WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .run(tx)
        .await
}

/// Counts turns. Those before `quiet_since` are over.
pub async fn count_turns(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    turns: i64,
    quiet_since: Timestamp,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE hubs SET turns = CASE WHEN turned_at > $3 THEN turns + $2 ELSE $2 END, \
         cloned_at = CASE WHEN turned_at > $3 THEN cloned_at END, turned_at = $4 \
         WHERE hub_uuid = $1",
    )
    .bind((hub_uuid, turns, quiet_since, now))
    .run(tx)
    .await
}

/// A hub whose credentials several processes use.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Cloned {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub turns: i64,
    /// The last two boots that its telemetry named.
    pub boot_id: Option<String>,
    pub previous_boot_id: Option<String>,
}

/// Up to `limit` hubs with suspiciously many turns that were not noted yet, locked.
pub async fn lock_unnoted(tx: &mut Tx, limit: i64) -> Result<Vec<Cloned>> {
    sql(
        "SELECT hub_uuid, tenant_uuid, turns, boot_id, previous_boot_id FROM hubs \
         WHERE turns >= 3 AND cloned_at IS NULL AND released_at IS NULL \
         ORDER BY hub_uuid LIMIT $1",
    )
    .skip_locked(tx)
    .bind(limit)
    .all(tx)
    .await
}

pub async fn note(tx: &mut Tx, hub_uuid: HubUuid, now: Timestamp) -> Result<()> {
    sql("UPDATE hubs SET cloned_at = $2 WHERE hub_uuid = $1")
        .bind((hub_uuid, now))
        .run(tx)
        .await
}

/// A hub of a tenant whose credentials several processes use.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Suspected {
    pub hub_uuid: HubUuid,
    pub hub_identifier: Option<String>,
    pub turned_at: Timestamp,
}

/// The tenant's hubs with suspiciously many turns, the last of them after `since`; up to `limit`.
pub async fn suspected(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Suspected>> {
    sql("SELECT hub_uuid, hub_identifier, turned_at FROM hubs \
         WHERE tenant_uuid = $1 AND released_at IS NULL AND turns >= 3 AND turned_at > $2 \
         ORDER BY hub_uuid LIMIT $3")
    .bind((tenant_uuid, since, limit))
    .all(conn)
    .await
}
