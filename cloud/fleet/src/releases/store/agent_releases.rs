//! SQL of the platform's releases, which belong to no tenant.

use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{ReleaseUuid, Timestamp};

use super::super::{AgentReleaseSummary, Arrived, Category, Status};

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct AgentReleaseRow {
    pub asset_id: i64,
    pub release_uuid: ReleaseUuid,
    #[sqlx(try_from = "String")]
    pub category: Category,
    pub channel: String,
    pub name: String,
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
    pub active: bool,
    pub created_at: Timestamp,
    pub ready_at: Option<Timestamp>,
    pub supported_until: Option<String>,
    #[sqlx(flatten)]
    pub arrived: Arrived,
}

const COLUMNS: &str = "asset_id, release_uuid, category, channel, name, version, architecture, \
    counter, size_bytes, sha256, downgrade, manifest, signature, status, active, created_at, \
    ready_at, sbom_at, vex_at, component_source, component_count, supported_until";
const SUMMARY: &str = "release_uuid, version, architecture, channel";
/// Releases that hubs may be updated to.
const FOR_HUBS: &str = "category = 'HUB_AGENT' AND status = 'READY'";

/// Locks the table: no other transaction adds a release until this one ends.
pub async fn lock(tx: &mut Tx) -> Result<()> {
    if let Some(statement) = tx.dialect().lock_table("agent_releases") {
        statement.run(tx).await?;
    }
    Ok(())
}

/// Inserts the row and returns the asset id that the database assigned.
pub async fn insert(tx: &mut Tx, row: &AgentReleaseRow) -> Result<i64> {
    sql(
        "INSERT INTO agent_releases (release_uuid, category, channel, name, version, architecture, \
         counter, size_bytes, sha256, downgrade, manifest, signature, status, active, created_at, \
         ready_at, supported_until) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, \
         $13, $14, $15, $16, $17) RETURNING asset_id",
    )
    .bind((
        row.release_uuid,
        row.category.name(),
        row.channel.as_str(),
        row.name.as_str(),
        row.version.as_str(),
        row.architecture.as_str(),
        row.counter,
        row.size_bytes,
        row.sha256.as_str(),
        row.downgrade,
        row.manifest.as_str(),
        row.signature.as_str(),
        row.status.name(),
        row.active,
        row.created_at,
        row.ready_at,
    ))
    .bind(row.supported_until.as_deref())
    .scalar(tx)
    .await
}

/// The filters of a list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub channel: Option<String>,
    pub only_ready: bool,
    pub only_active: bool,
    pub support_ends_before: Option<String>,
}

/// One page, newest first, and the total number.
pub async fn list(
    conn: &mut Conn,
    filter: &Filter,
    slice: Slice,
) -> Result<(Vec<AgentReleaseRow>, i64)> {
    let mut from = sql("FROM agent_releases WHERE 1 = 1");
    if let Some(channel) = &filter.channel {
        from = from.push(" AND channel = ").push_bind(channel.as_str());
    }
    if filter.only_ready {
        from = from.push(" AND status = 'READY'");
    }
    if filter.only_active {
        from = from.push(" AND active");
    }
    if let Some(day) = &filter.support_ends_before {
        from = from.push(" AND supported_until < ").push_bind(day.as_str());
    }
    from.page(conn, COLUMNS, &["asset_id DESC"], slice).await
}

pub async fn get(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<Option<AgentReleaseRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM agent_releases WHERE release_uuid = $1")
        .bind(release_uuid)
        .optional(conn)
        .await
}

pub async fn get_asset(conn: &mut Conn, asset_id: i64) -> Result<Option<AgentReleaseRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM agent_releases WHERE asset_id = $1")
        .bind(asset_id)
        .optional(conn)
        .await
}

/// The release, locked until the transaction ends.
pub async fn lock_one(tx: &mut Tx, release_uuid: ReleaseUuid) -> Result<Option<AgentReleaseRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM agent_releases WHERE release_uuid = $1")
        .for_update(tx)
        .bind(release_uuid)
        .optional(tx)
        .await
}

/// The newest `limit` offered releases of a channel.
pub async fn offered(conn: &mut Conn, channel: &str, limit: i64) -> Result<Vec<AgentReleaseRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM agent_releases WHERE channel = $1 AND status = 'READY' AND active \
             ORDER BY asset_id DESC LIMIT $2",
        )
        .bind((channel, limit))
        .all(conn)
        .await
}

/// The releases of a channel that hubs of these architectures may be updated to, highest counter
/// first. The list must not be empty.
pub async fn candidates(
    conn: &mut Conn,
    channel: &str,
    architectures: &[&str],
    limit: i64,
) -> Result<Vec<AgentReleaseSummary>> {
    sql("SELECT ")
        .push(SUMMARY)
        .push(" FROM agent_releases WHERE ")
        .push(FOR_HUBS)
        .push(" AND active AND channel = $1 AND architecture IN ")
        .bind(channel)
        .push_list(architectures.iter().copied())
        .push(" ORDER BY counter DESC LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}

/// The releases of a version for these architectures, at most two for each, and whether hubs may
/// return to them; highest counter first. The list must not be empty.
pub async fn of_version(
    conn: &mut Conn,
    version: &str,
    architectures: &[&str],
) -> Result<Vec<(AgentReleaseSummary, bool)>> {
    let rows: Vec<AgentReleaseRow> = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM agent_releases WHERE ")
        .push(FOR_HUBS)
        .push(" AND version = $1 AND architecture IN ")
        .bind(version)
        .push_list(architectures.iter().copied())
        .push(" ORDER BY counter DESC")
        .all(conn)
        .await?;
    let summary = |row: AgentReleaseRow| {
        let AgentReleaseRow {
            release_uuid,
            version,
            architecture,
            channel,
            downgrade,
            ..
        } = row;
        (
            AgentReleaseSummary {
                release_uuid,
                version,
                architecture,
                channel,
            },
            downgrade,
        )
    };
    Ok(rows.into_iter().map(summary).collect())
}

/// The release, whether active or not.
pub async fn summary(
    conn: &mut Conn,
    release_uuid: ReleaseUuid,
) -> Result<Option<AgentReleaseSummary>> {
    sql("SELECT ")
        .push(SUMMARY)
        .push(" FROM agent_releases WHERE release_uuid = $1 AND ")
        .push(FOR_HUBS)
        .bind(release_uuid)
        .optional(conn)
        .await
}

pub async fn update(
    tx: &mut Tx,
    release_uuid: ReleaseUuid,
    active: bool,
    channel: &str,
    supported_until: Option<&str>,
) -> Result<()> {
    sql(
        "UPDATE agent_releases SET active = $2, channel = $3, supported_until = $4 \
         WHERE release_uuid = $1",
    )
    .bind((release_uuid, active, channel, supported_until))
    .run(tx)
    .await
}

/// The releases that hubs of the tenant run and whose support ends between two days, the next
/// first, up to `limit`: the release, its name, its version and the day.
pub async fn support_ending(
    conn: &mut Conn,
    scope: &Scope,
    from: &str,
    to: &str,
    limit: i64,
) -> Result<Vec<(ReleaseUuid, String, String, String)>> {
    sql(
        "SELECT r.release_uuid, r.name, r.version, r.supported_until FROM agent_releases r \
         WHERE r.supported_until >= $2 AND r.supported_until <= $3 \
         AND EXISTS (SELECT 1 FROM hub_app_periods p WHERE p.release_uuid = r.release_uuid \
         AND p.tenant_uuid = $1 AND p.ended_at IS NULL) \
         ORDER BY r.supported_until, r.release_uuid LIMIT $4",
    )
    .bind((scope.tenant_uuid(), from, to, limit))
    .all(conn)
    .await
}

/// Restarts the time in which the file must arrive, and stores what of the row can be changed.
pub async fn renew(tx: &mut Tx, row: &AgentReleaseRow) -> Result<()> {
    sql(
        "UPDATE agent_releases SET created_at = $2, category = $3, channel = $4, active = $5, \
         supported_until = $6 WHERE release_uuid = $1 AND status = 'AWAITING_FILE'",
    )
    .bind((
        row.release_uuid,
        row.created_at,
        row.category.name(),
        row.channel.as_str(),
        row.active,
        row.supported_until.as_deref(),
    ))
    .run(tx)
    .await
}
