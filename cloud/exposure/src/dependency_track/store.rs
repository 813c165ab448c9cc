//! SQL of servers, and of what they were sent.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};

/// A server.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Target {
    pub url: String,
    pub project: String,
    pub sealed_api_key: Vec<u8>,
    /// In a row.
    pub failures: i64,
    /// Since when it fails.
    pub failing_since: Option<Timestamp>,
    pub retry_at: Option<Timestamp>,
    pub last_sent_at: Option<Timestamp>,
    pub last_error: Option<String>,
    pub last_error_at: Option<Timestamp>,
    pub updated_at: Timestamp,
}

/// How many of the lists, or of the releases, a server has.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    pub sent: i64,
    pub refused: i64,
    pub waiting: i64,
}

impl Counts {
    /// Beside those that wait, what was sent by the table that `from` names.
    pub async fn read(
        conn: &mut Conn,
        tenant_uuid: TenantUuid,
        from: &'static str,
        waiting: i64,
    ) -> Result<Self> {
        let (sent, refused): (i64, i64) = sql("SELECT COUNT(*) - COUNT(refusal), COUNT(refusal) ")
            .push(from)
            .push(" WHERE tenant_uuid = $1")
            .bind(tenant_uuid)
            .one(conn)
            .await?;
        Ok(Self {
            sent,
            refused,
            waiting,
        })
    }
}

pub async fn target(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<Target>> {
    sql(
        "SELECT url, project, sealed_api_key, failures, failing_since, retry_at, last_sent_at, \
         last_error, last_error_at, updated_at FROM dependency_track_servers \
         WHERE tenant_uuid = $1",
    )
    .bind(tenant_uuid)
    .optional(conn)
    .await
}

/// Stores a server that nothing was sent to yet.
pub async fn set(tx: &mut Tx, tenant_uuid: TenantUuid, target: &Target) -> Result<()> {
    sql(
        "INSERT INTO dependency_track_servers (tenant_uuid, url, project, sealed_api_key, \
         failures, updated_at) VALUES ($1, $2, $3, $4, 0, $5) \
         ON CONFLICT (tenant_uuid) DO UPDATE SET url = excluded.url, project = excluded.project, \
         sealed_api_key = excluded.sealed_api_key, failures = 0, failing_since = NULL, \
         retry_at = NULL, last_sent_at = NULL, last_error = NULL, last_error_at = NULL, \
         updated_at = excluded.updated_at",
    )
    .bind((
        tenant_uuid,
        target.url.as_str(),
        target.project.as_str(),
        target.sealed_api_key.as_slice(),
        target.updated_at,
    ))
    .run(tx)
    .await
}

/// Whether the server is still the one that was set at this time. It stays so until the transaction
/// ends.
pub async fn lock(tx: &mut Tx, tenant_uuid: TenantUuid, updated_at: Timestamp) -> Result<bool> {
    sql("SELECT 1 FROM dependency_track_servers WHERE tenant_uuid = $1 AND updated_at = $2")
        .for_update(tx)
        .bind((tenant_uuid, updated_at))
        .exists(tx)
        .await
}

/// A list that hubs run and that was not sent.
pub async fn waiting(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Option<Vec<u8>>> {
    sql(
        "SELECT h.list_sha256 FROM hub_software h WHERE h.tenant_uuid = $1 \
         AND h.ended_at IS NULL AND NOT EXISTS (SELECT 1 FROM dependency_track_uploads u \
         WHERE u.tenant_uuid = h.tenant_uuid AND u.list_sha256 = h.list_sha256) \
         ORDER BY h.list_sha256 LIMIT 1",
    )
    .bind(tenant_uuid)
    .optional_scalar(conn)
    .await
}

pub async fn counts(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<Counts> {
    let waiting: i64 = sql(
        "SELECT COUNT(DISTINCT h.list_sha256) FROM hub_software h WHERE h.tenant_uuid = $1 \
         AND h.ended_at IS NULL AND NOT EXISTS (SELECT 1 FROM dependency_track_uploads u \
         WHERE u.tenant_uuid = h.tenant_uuid AND u.list_sha256 = h.list_sha256)",
    )
    .bind(tenant_uuid)
    .scalar(conn)
    .await?;
    Counts::read(conn, tenant_uuid, "FROM dependency_track_uploads", waiting).await
}

/// Notes that the server has a list, or refuses it.
pub async fn note(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    list_sha256: &[u8],
    refusal: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO dependency_track_uploads (tenant_uuid, list_sha256, sent_at, refusal) \
         VALUES ($1, $2, $3, $4) ON CONFLICT (tenant_uuid, list_sha256) DO UPDATE SET \
         sent_at = excluded.sent_at, refusal = excluded.refusal",
    )
    .bind((tenant_uuid, list_sha256, now, refusal))
    .run(tx)
    .await
}

/// Notes that the server works.
pub async fn note_answer(tx: &mut Tx, tenant_uuid: TenantUuid, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE dependency_track_servers SET failures = 0, failing_since = NULL, retry_at = NULL, \
         last_sent_at = $2 WHERE tenant_uuid = $1",
    )
    .bind((tenant_uuid, now))
    .run(tx)
    .await
}

/// Notes what went wrong, and when the server is tried again if it is not at once.
pub async fn note_error(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    error: &str,
    failures: i64,
    retry_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE dependency_track_servers SET failures = $2, retry_at = $3, last_error = $4, \
         last_error_at = $5, \
         failing_since = CASE WHEN $2 > 0 THEN COALESCE(failing_since, $5) END \
         WHERE tenant_uuid = $1",
    )
    .bind((tenant_uuid, failures, retry_at, error, now))
    .run(tx)
    .await
}

/// Whether something was sent that no hub runs any more.
pub async fn has_gone(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<bool> {
    sql(
        "SELECT 1 FROM dependency_track_uploads u WHERE u.tenant_uuid = $1 AND NOT EXISTS \
         (SELECT 1 FROM hub_software h WHERE h.tenant_uuid = u.tenant_uuid \
         AND h.list_sha256 = u.list_sha256 AND h.ended_at IS NULL) LIMIT 1",
    )
    .bind(tenant_uuid)
    .exists(conn)
    .await
}

pub async fn forget_gone(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql(
        "DELETE FROM dependency_track_uploads WHERE tenant_uuid = $1 AND NOT EXISTS \
         (SELECT 1 FROM hub_software h WHERE h.tenant_uuid = dependency_track_uploads.tenant_uuid \
         AND h.list_sha256 = dependency_track_uploads.list_sha256 AND h.ended_at IS NULL)",
    )
    .bind(tenant_uuid)
    .run(tx)
    .await
}

/// How many documents the server refuses, of lists and of releases, and why it refuses one of them.
pub async fn refusals(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<(i64, Option<String>)> {
    sql(
        "SELECT COUNT(*) AS documents, MAX(refusal) AS refusal FROM \
         (SELECT refusal FROM dependency_track_uploads \
         WHERE tenant_uuid = $1 AND refusal IS NOT NULL \
         UNION ALL SELECT refusal FROM dependency_track_releases \
         WHERE tenant_uuid = $1 AND refusal IS NOT NULL) AS refused",
    )
    .bind(tenant_uuid)
    .one(conn)
    .await
}

pub async fn forget_uploads(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    sql("DELETE FROM dependency_track_uploads WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await
}

/// Deletes the server, and what is known of it.
pub async fn forget(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    forget_uploads(tx, tenant_uuid).await?;
    sql("DELETE FROM dependency_track_servers WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await
}
