//! SQL of the releases of apps.

use hub_base::db::{Conn, Slice, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{AppUuid, ReleaseUuid, TenantUuid, Timestamp};

use super::super::{AppReleaseSummary, Arrived, NamedRelease, Status};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct AppReleaseRow {
    pub release_uuid: ReleaseUuid,
    pub tenant_uuid: TenantUuid,
    pub app_uuid: AppUuid,
    pub version: String,
    pub architecture: String,
    pub counter: i64,
    pub size_bytes: i64,
    pub sha256: String,
    pub downgrade: bool,
    pub manifest: String,
    pub signature: String,
    #[sqlx(try_from = "String")]
    pub status: Status,
    pub created_at: Timestamp,
    pub ready_at: Option<Timestamp>,
    pub supported_until: Option<String>,
    #[sqlx(flatten)]
    pub arrived: Arrived,
}

/// Those that a new release has.
const NEW: &str = "release_uuid, tenant_uuid, app_uuid, version, architecture, counter, \
    size_bytes, sha256, downgrade, manifest, signature, status, created_at, ready_at, \
    supported_until";
const COLUMNS: &str = "release_uuid, tenant_uuid, app_uuid, version, architecture, counter, \
    size_bytes, sha256, downgrade, manifest, signature, status, created_at, ready_at, sbom_at, \
    vex_at, component_source, component_count, supported_until";

pub async fn insert(tx: &mut Tx, row: &AppReleaseRow) -> Result<()> {
    sql("INSERT INTO app_releases (")
        .push(NEW)
        .push(") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)")
        .bind((
            row.release_uuid,
            row.tenant_uuid,
            row.app_uuid,
            row.version.as_str(),
            row.architecture.as_str(),
            row.counter,
            row.size_bytes,
            row.sha256.as_str(),
            row.downgrade,
            row.manifest.as_str(),
            row.signature.as_str(),
            row.status.name(),
            row.created_at,
            row.ready_at,
            row.supported_until.as_deref(),
        ))
        .run(tx)
        .await
}

pub async fn count(conn: &mut Conn, scope: &Scope, app_uuid: AppUuid) -> Result<i64> {
    of_app(scope, app_uuid).count(conn).await
}

/// One page, newest first, and the total number.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    app_uuid: AppUuid,
    support_ends_before: Option<&str>,
    slice: Slice,
) -> Result<(Vec<AppReleaseRow>, i64)> {
    let list = of_app(scope, app_uuid);
    let list = match support_ends_before {
        Some(day) => list.push(" AND supported_until < ").push_bind(day),
        None => list,
    };
    list.page(
        conn,
        COLUMNS,
        &["created_at DESC, release_uuid DESC"],
        slice,
    )
    .await
}

pub async fn set_supported_until(
    tx: &mut Tx,
    release_uuid: ReleaseUuid,
    supported_until: Option<&str>,
) -> Result<()> {
    sql("UPDATE app_releases SET supported_until = $2 WHERE release_uuid = $1")
        .bind((release_uuid, supported_until))
        .run(tx)
        .await
}

/// The releases that hubs run and whose support ends between two days, the next first, up to
/// `limit`: the release, the name of its app, its version and the day.
pub async fn support_ending(
    conn: &mut Conn,
    scope: &Scope,
    from: &str,
    to: &str,
    limit: i64,
) -> Result<Vec<(ReleaseUuid, String, String, String)>> {
    sql(
        "SELECT r.release_uuid, a.name, r.version, r.supported_until FROM app_releases r \
         JOIN apps a ON a.app_uuid = r.app_uuid \
         WHERE r.tenant_uuid = $1 AND r.supported_until >= $2 AND r.supported_until <= $3 \
         AND EXISTS (SELECT 1 FROM hub_installed_apps i WHERE i.tenant_uuid = $1 \
         AND i.app_uuid = r.app_uuid AND i.release_uuid = r.release_uuid) \
         ORDER BY r.supported_until, r.release_uuid LIMIT $4",
    )
    .bind((scope.tenant_uuid(), from, to, limit))
    .all(conn)
    .await
}

fn of_app(scope: &Scope, app_uuid: AppUuid) -> Sql {
    sql("FROM app_releases WHERE app_uuid = $1 AND tenant_uuid = $2")
        .bind((app_uuid, scope.tenant_uuid()))
}

/// A release of the tenant's apps, if its file has arrived.
pub async fn ready(
    conn: &mut Conn,
    scope: &Scope,
    release_uuid: ReleaseUuid,
) -> Result<Option<AppReleaseRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM app_releases WHERE release_uuid = $1 AND tenant_uuid = $2 AND status = 'READY'",
        )
        .bind((release_uuid, scope.tenant_uuid()))
        .optional(conn)
        .await
}

/// A release of one of the tenant's apps.
pub async fn get(
    conn: &mut Conn,
    scope: &Scope,
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
) -> Result<Option<AppReleaseRow>> {
    one(scope, app_uuid, release_uuid).optional(conn).await
}

/// As [`get`]. The release does not change until the transaction ends.
pub async fn lock(
    tx: &mut Tx,
    scope: &Scope,
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
) -> Result<Option<AppReleaseRow>> {
    let one = one(scope, app_uuid, release_uuid);
    one.for_update(tx).optional(tx).await
}

fn one(scope: &Scope, app_uuid: AppUuid, release_uuid: ReleaseUuid) -> Sql {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM app_releases WHERE release_uuid = $1 AND app_uuid = $2 AND tenant_uuid = $3")
        .bind((release_uuid, app_uuid, scope.tenant_uuid()))
}

/// The columns of an [`AppReleaseSummary`], of `app_releases r`.
const SUMMARY: &str = "r.release_uuid, r.app_uuid, r.version, r.architecture";

/// The READY releases of the tenant; a condition on their uuids follows.
fn ready_summaries(scope: &Scope) -> Sql {
    sql("SELECT ")
        .push(SUMMARY)
        .push(
            " FROM app_releases r WHERE r.tenant_uuid = $1 AND r.status = 'READY' \
             AND r.release_uuid ",
        )
        .bind(scope.tenant_uuid())
}

/// As [`ready`], the part that a job needs.
pub async fn summary(
    conn: &mut Conn,
    scope: &Scope,
    release_uuid: ReleaseUuid,
) -> Result<Option<AppReleaseSummary>> {
    ready_summaries(scope)
        .push("= $2")
        .bind(release_uuid)
        .optional(conn)
        .await
}

/// As [`summary`], for some releases. The list must be short and not empty.
pub async fn summaries(
    conn: &mut Conn,
    scope: &Scope,
    releases: &[ReleaseUuid],
) -> Result<Vec<AppReleaseSummary>> {
    ready_summaries(scope)
        .push("IN ")
        .push_list(releases.iter().copied())
        .all(conn)
        .await
}

/// The app's name and the version of each of these releases. The list must not be empty.
pub async fn named(
    conn: &mut Conn,
    scope: &Scope,
    releases: &[ReleaseUuid],
) -> Result<Vec<NamedRelease>> {
    sql(
        "SELECT r.release_uuid, a.app_uuid, a.name AS app_name, r.version FROM app_releases r \
         JOIN apps a ON a.app_uuid = r.app_uuid WHERE r.tenant_uuid = $1 AND r.release_uuid IN ",
    )
    .bind(scope.tenant_uuid())
    .push_list(releases.iter().copied())
    .all(conn)
    .await
}

/// The READY release with the highest counter of each app, in a channel. The list of apps must be
/// short and not empty.
pub async fn newest(
    conn: &mut Conn,
    scope: &Scope,
    apps: &[AppUuid],
    channel: &str,
    architectures: Option<&[&str]>,
) -> Result<Vec<AppReleaseSummary>> {
    let mut statement = sql("SELECT ")
        .push(SUMMARY)
        .push(
            " FROM apps a JOIN app_releases r ON r.release_uuid = \
             (SELECT n.release_uuid FROM app_releases n \
             WHERE n.app_uuid = a.app_uuid AND n.status = 'READY' AND NOT n.downgrade \
             AND (REPLACE(n.version, '-', '') = n.version \
             OR REPLACE(n.version || '.', $2, '') <> n.version || '.')",
        )
        .bind((scope.tenant_uuid(), format!("-{channel}.")));
    if let Some(architectures) = architectures {
        statement = statement
            .push(" AND n.architecture IN ")
            .push_list(architectures.iter().copied());
    }
    statement
        .push(" ORDER BY n.counter DESC LIMIT 1) WHERE a.tenant_uuid = $1 AND a.app_uuid IN ")
        .push_list(apps.iter().copied())
        .all(conn)
        .await
}

/// Restarts the time in which the file must arrive.
pub async fn renew(tx: &mut Tx, release_uuid: ReleaseUuid, now: Timestamp) -> Result<()> {
    sql("UPDATE app_releases SET created_at = $2 \
         WHERE release_uuid = $1 AND status = 'AWAITING_FILE'")
    .bind((release_uuid, now))
    .run(tx)
    .await
}

/// The release of any tenant that is not deleted: the signed URL of the file is its own credential.
pub async fn of_any_tenant(
    conn: &mut Conn,
    release_uuid: ReleaseUuid,
) -> Result<Option<AppReleaseRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM app_releases WHERE release_uuid = $1 \
         AND tenant_uuid IN (SELECT tenant_uuid FROM tenants WHERE deleted_at IS NULL)",
        )
        .bind(release_uuid)
        .optional(conn)
        .await
}
