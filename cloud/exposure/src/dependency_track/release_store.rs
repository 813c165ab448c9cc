//! SQL of the releases that servers were sent: those that hubs of the tenant run, and the newest of
//! each of its apps, as far as it is known of what they consist.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{AppUuid, ReleaseUuid, TenantUuid, Timestamp};

use super::store::Counts;

/// A release that a server was not sent.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct WaitingRelease {
    pub release_uuid: ReleaseUuid,
    /// None of a release of the agent.
    pub app_uuid: Option<AppUuid>,
    /// The list of what it consists of.
    pub list_sha256: Vec<u8>,
}

/// The releases that the server of the tenant `$1` gets.
const WANTED: &str = "FROM release_software s LEFT JOIN app_releases r \
    ON r.release_uuid = s.release_uuid AND r.tenant_uuid = s.tenant_uuid \
    WHERE s.tenant_uuid = $1 AND (EXISTS (SELECT 1 FROM hub_app_periods p \
    WHERE p.release_uuid = s.release_uuid AND p.tenant_uuid = $1 AND p.ended_at IS NULL) \
    OR r.release_uuid = (SELECT n.release_uuid FROM app_releases n \
    WHERE n.app_uuid = r.app_uuid AND n.status = 'READY' AND NOT n.downgrade \
    ORDER BY n.counter DESC LIMIT 1))";

/// It was not sent as it is now.
const UNSENT: &str = " AND NOT EXISTS (SELECT 1 FROM dependency_track_releases u \
    WHERE u.tenant_uuid = s.tenant_uuid AND u.release_uuid = s.release_uuid \
    AND u.list_sha256 = s.list_sha256)";

/// A release that was not sent; None once the server has `most` of them.
pub async fn waiting(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    most: i64,
) -> Result<Option<WaitingRelease>> {
    sql("SELECT s.release_uuid, r.app_uuid, s.list_sha256 ")
        .push(WANTED)
        .push(UNSENT)
        .push(
            " AND (SELECT COUNT(*) FROM dependency_track_releases c WHERE c.tenant_uuid = $1) < $2 \
             ORDER BY s.release_uuid LIMIT 1",
        )
        .bind((tenant_uuid, most))
        .optional(conn)
        .await
}

pub async fn counts(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Counts> {
    let waiting: i64 = sql("SELECT COUNT(*) ")
        .push(WANTED)
        .push(UNSENT)
        .bind(tenant_uuid)
        .scalar(conn)
        .await?;
    Counts::read(conn, tenant_uuid, "FROM dependency_track_releases", waiting).await
}

/// Notes that the server has a release, or refuses it.
pub async fn note(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    release: &WaitingRelease,
    refusal: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO dependency_track_releases (tenant_uuid, release_uuid, list_sha256, sent_at, \
         refusal) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant_uuid, release_uuid) \
         DO UPDATE SET list_sha256 = excluded.list_sha256, sent_at = excluded.sent_at, \
         refusal = excluded.refusal",
    )
    .bind((
        tenant_uuid,
        release.release_uuid,
        release.list_sha256.as_slice(),
        now,
        refusal,
    ))
    .run(tx)
    .await
}

/// Of a release that no hub runs any more and that is not the newest.
const GONE: &str = " FROM dependency_track_releases WHERE tenant_uuid = $1 \
    AND release_uuid NOT IN (SELECT s.release_uuid ";

/// Whether something was sent that is not to be sent any more.
pub async fn has_gone(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<bool> {
    sql("SELECT 1")
        .push(GONE)
        .push(WANTED)
        .push(") LIMIT 1")
        .bind(tenant_uuid)
        .exists(conn)
        .await
}

/// Forgets what is not to be sent any more. The server keeps it.
pub async fn forget_gone(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE")
        .push(GONE)
        .push(WANTED)
        .push(")")
        .bind(tenant_uuid)
        .run(tx)
        .await
}

pub async fn forget_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE FROM dependency_track_releases WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await
}
