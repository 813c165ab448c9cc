//! SQL of the releases of apps that hubs have and had.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authn::hub::Hub;
use hub_protocol::{AppUuid, HubUuid, ReleaseUuid, TenantUuid, Timestamp};

/// A release that a hub has.
#[derive(Debug, sqlx::FromRow)]
pub struct OpenPeriod {
    pub app_uuid: AppUuid,
    pub release_uuid: ReleaseUuid,
    pub began_at: Timestamp,
}

pub async fn open(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Vec<OpenPeriod>> {
    sql(
        "SELECT app_uuid, release_uuid, began_at FROM hub_app_periods \
         WHERE hub_uuid = $1 AND ended_at IS NULL",
    )
    .bind(hub_uuid)
    .all(conn)
    .await
}

/// Ends those of some apps. The list must be short and not empty.
pub async fn end(tx: &mut Tx, hub_uuid: HubUuid, apps: &[AppUuid], at: Timestamp) -> Result<()> {
    sql("UPDATE hub_app_periods SET ended_at = $2 \
         WHERE hub_uuid = $1 AND ended_at IS NULL AND app_uuid IN ")
    .bind((hub_uuid, at))
    .push_list(apps.iter().copied())
    .run(tx)
    .await
}

/// Ends all of a hub that is released.
pub async fn end_all(tx: &mut Tx, hub_uuid: HubUuid, at: Timestamp) -> Result<()> {
    sql("UPDATE hub_app_periods SET ended_at = $2 WHERE hub_uuid = $1 AND ended_at IS NULL")
        .bind((hub_uuid, at))
        .run(tx)
        .await
}

pub async fn begin(
    tx: &mut Tx,
    hub: &Hub,
    app_uuid: AppUuid,
    (release_uuid, version): (ReleaseUuid, &str),
    at: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO hub_app_periods (tenant_uuid, hub_uuid, app_uuid, began_at, release_uuid, \
         version) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind((
        hub.tenant_uuid,
        hub.hub_uuid,
        app_uuid,
        at,
        release_uuid,
        version,
    ))
    .run(tx)
    .await
}

/// Deletes all of a hub that have ended but the last ones.
pub async fn forget_most(tx: &mut Tx, hub: &Hub, kept: i64) -> Result<()> {
    sql(
        "DELETE FROM hub_app_periods WHERE tenant_uuid = $1 AND hub_uuid = $2 \
         AND ended_at IS NOT NULL AND began_at < (SELECT began_at FROM hub_app_periods \
         WHERE tenant_uuid = $1 AND hub_uuid = $2 ORDER BY began_at DESC LIMIT 1 OFFSET $3)",
    )
    .bind((hub.tenant_uuid, hub.hub_uuid, kept))
    .run(tx)
    .await
}

pub async fn has_before(conn: &mut Conn, before: Timestamp) -> Result<bool> {
    sql("SELECT 1 FROM hub_app_periods WHERE ended_at < $1 LIMIT 1")
        .bind(before)
        .exists(conn)
        .await
}

pub async fn forget_before(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM hub_app_periods WHERE (tenant_uuid, hub_uuid, app_uuid, began_at) IN \
         (SELECT tenant_uuid, hub_uuid, app_uuid, began_at FROM hub_app_periods \
         WHERE ended_at < $1 LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}

pub async fn forget_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE FROM hub_app_periods WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await
}
