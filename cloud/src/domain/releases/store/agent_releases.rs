//! SQL of the platform's releases, which belong to no tenant.

use hub_protocol::release::ReleaseManifest;
use hub_protocol::{ReleaseUuid, Timestamp};

use super::super::{AgentReleaseSummary, Category, Existing, Status};
use crate::db::{Conn, Sql, Tx, sql};
use crate::error::Result;
use crate::http::page::{MAX_OFFSET, Page};

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
}

const COLUMNS: &str = "asset_id, release_uuid, category, channel, name, version, architecture, counter, size_bytes, sha256, \
    downgrade, manifest, signature, status, active, created_at, ready_at";
const SUMMARY: &str = "release_uuid, version, architecture, channel";
/// What hubs may be told to become.
const FOR_HUBS: &str = "category = 'HUB_AGENT' AND status = 'READY'";

/// Until the transaction ends, nobody else adds a release.
pub async fn lock(tx: &mut Tx) -> Result<()> {
    if let Some(statement) = tx.dialect().lock_table("agent_releases") {
        sql(&statement).execute(tx).await?;
    }
    Ok(())
}

/// Adds the row, whose asset id is given by the database and answered.
pub async fn insert(tx: &mut Tx, row: &AgentReleaseRow) -> Result<i64> {
    let (asset_id,): (i64,) =
        sql("INSERT INTO agent_releases (release_uuid, category, channel, name, version, architecture, counter, \
         size_bytes, sha256, downgrade, manifest, signature, status, active, created_at, ready_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) RETURNING asset_id")
        .bind(row.release_uuid)
        .bind(row.category.name())
        .bind(row.channel.as_str())
        .bind(row.name.as_str())
        .bind(row.version.as_str())
        .bind(row.architecture.as_str())
        .bind(row.counter)
        .bind(row.size_bytes)
        .bind(row.sha256.as_str())
        .bind(row.downgrade)
        .bind(row.manifest.as_str())
        .bind(row.signature.as_str())
        .bind(row.status.name())
        .bind(row.active)
        .bind(row.created_at)
        .bind(row.ready_at)
        .one(tx)
        .await?;
    Ok(asset_id)
}

/// Those of the name that a new one could be confused with: of the same counter, or of the same version for the same architecture. A version that hubs may go
/// back to is signed once more, as a downgrade.
pub async fn alike(conn: &mut Conn, new: &ReleaseManifest, counter: i64) -> Result<Vec<Existing>> {
    sql("SELECT release_uuid, counter, status, manifest, signature FROM agent_releases \
         WHERE name = $1 AND (counter = $2 OR (version = $3 AND architecture = $4 AND downgrade = $5))")
    .bind(new.name.as_str())
    .bind(counter)
    .bind(new.version.as_str())
    .bind(new.architecture.as_str())
    .bind(new.downgrade)
    .all(conn)
    .await
}

/// The highest counter of the name that a hub which can run the architecture may have seen: a hub counts once for all it runs, so `any` is held against all
/// architectures. 0 when there is none.
pub async fn highest_counter(conn: &mut Conn, name: &str, architecture: &str) -> Result<i64> {
    let (highest,): (i64,) = sql("SELECT COALESCE(MAX(counter), 0) FROM agent_releases \
         WHERE name = $1 AND ($2 = 'any' OR architecture IN ($2, 'any'))")
    .bind(name)
    .bind(architecture)
    .one(conn)
    .await?;
    Ok(highest)
}

/// What a list is narrowed by.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub channel: Option<String>,
    pub only_ready: bool,
    pub only_active: bool,
}

impl Filter {
    fn narrow(&self, statement: Sql) -> Sql {
        let mut statement = statement.push(" FROM agent_releases WHERE 1 = 1");
        if let Some(channel) = &self.channel {
            statement = statement.push(" AND channel = ").push_bind(channel.as_str());
        }
        if self.only_ready {
            statement = statement.push(" AND status = 'READY'");
        }
        if self.only_active {
            statement = statement.push(" AND active");
        }
        statement
    }
}

/// Newest first, and how many there are.
pub async fn list(conn: &mut Conn, filter: &Filter, page: &Page) -> Result<(Vec<AgentReleaseRow>, i64)> {
    let rows = filter
        .narrow(sql("SELECT ").push(COLUMNS))
        .push(" ORDER BY asset_id DESC LIMIT ")
        .push_bind(page.size)
        .push(" OFFSET ")
        .push_bind(page.offset)
        .all(conn)
        .await?;
    let (total,): (i64,) = filter
        .narrow(sql("SELECT COUNT(*) FROM (SELECT 1"))
        .push(" LIMIT ")
        .push_bind(MAX_OFFSET)
        .push(") AS counted")
        .one(conn)
        .await?;
    Ok((rows, total))
}

pub async fn get(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<Option<AgentReleaseRow>> {
    sql(&format!("SELECT {COLUMNS} FROM agent_releases WHERE release_uuid = $1"))
        .bind(release_uuid)
        .optional(conn)
        .await
}

pub async fn get_asset(conn: &mut Conn, asset_id: i64) -> Result<Option<AgentReleaseRow>> {
    sql(&format!("SELECT {COLUMNS} FROM agent_releases WHERE asset_id = $1")).bind(asset_id).optional(conn).await
}

/// The release, which nobody else changes until the transaction ends.
pub async fn lock_one(tx: &mut Tx, release_uuid: ReleaseUuid) -> Result<Option<AgentReleaseRow>> {
    let lock = tx.dialect().for_update();
    sql(&format!("SELECT {COLUMNS} FROM agent_releases WHERE release_uuid = $1"))
        .push(lock)
        .bind(release_uuid)
        .optional(tx)
        .await
}

/// The newest `limit` of a channel that are offered.
pub async fn offered(conn: &mut Conn, channel: &str, limit: i64) -> Result<Vec<AgentReleaseRow>> {
    sql(&format!(
        "SELECT {COLUMNS} FROM agent_releases WHERE channel = $1 AND status = 'READY' AND active ORDER BY asset_id DESC LIMIT $2"
    ))
    .bind(channel)
    .bind(limit)
    .all(conn)
    .await
}

/// What hubs may be told to become by a channel that run one of these architectures, the highest counters first. The list must not be empty.
pub async fn candidates(
    conn: &mut Conn,
    channel: &str,
    architectures: &[&str],
    limit: i64,
) -> Result<Vec<AgentReleaseSummary>> {
    sql(&format!(
        "SELECT {SUMMARY} FROM agent_releases WHERE {FOR_HUBS} AND active AND channel = $1 AND architecture IN "
    ))
    .bind(channel)
    .push_list(architectures.iter().copied())
    .push(" ORDER BY counter DESC LIMIT ")
    .push_bind(limit)
    .all(conn)
    .await
}

/// The releases of a version for one of these architectures, at most two for each, and whether hubs may go back to them; the highest counters first. The list
/// must not be empty.
pub async fn of_version(
    conn: &mut Conn,
    version: &str,
    architectures: &[&str],
) -> Result<Vec<(AgentReleaseSummary, bool)>> {
    let rows: Vec<AgentReleaseRow> =
        sql(&format!("SELECT {COLUMNS} FROM agent_releases WHERE {FOR_HUBS} AND version = $1 AND architecture IN "))
            .bind(version)
            .push_list(architectures.iter().copied())
            .push(" ORDER BY counter DESC")
            .all(conn)
            .await?;
    let summary = |row: AgentReleaseRow| {
        let AgentReleaseRow { release_uuid, version, architecture, channel, downgrade, .. } = row;
        (AgentReleaseSummary { release_uuid, version, architecture, channel }, downgrade)
    };
    Ok(rows.into_iter().map(summary).collect())
}

/// Whether it is active or not.
pub async fn summary(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<Option<AgentReleaseSummary>> {
    sql(&format!("SELECT {SUMMARY} FROM agent_releases WHERE release_uuid = $1 AND {FOR_HUBS}"))
        .bind(release_uuid)
        .optional(conn)
        .await
}

pub async fn update(tx: &mut Tx, release_uuid: ReleaseUuid, active: bool, channel: &str) -> Result<()> {
    sql("UPDATE agent_releases SET active = $2, channel = $3 WHERE release_uuid = $1")
        .bind(release_uuid)
        .bind(active)
        .bind(channel)
        .execute(tx)
        .await?;
    Ok(())
}

/// Whether a release that awaited its file was there to be marked.
pub async fn mark_ready(tx: &mut Tx, release_uuid: ReleaseUuid, now: Timestamp) -> Result<bool> {
    let marked = sql(
        "UPDATE agent_releases SET status = 'READY', ready_at = $2 WHERE release_uuid = $1 AND status = 'AWAITING_FILE'",
    )
    .bind(release_uuid)
    .bind(now)
    .execute(tx)
    .await?;
    Ok(marked > 0)
}

/// Begins the time anew that its file is awaited for. What is offered later is as the row says now.
pub async fn renew(tx: &mut Tx, row: &AgentReleaseRow) -> Result<()> {
    sql("UPDATE agent_releases SET created_at = $2, category = $3, channel = $4, active = $5 \
         WHERE release_uuid = $1 AND status = 'AWAITING_FILE'")
    .bind(row.release_uuid)
    .bind(row.created_at)
    .bind(row.category.name())
    .bind(row.channel.as_str())
    .bind(row.active)
    .execute(tx)
    .await?;
    Ok(())
}

/// Up to `limit` of those that nobody brought a file for since then.
pub async fn abandoned(conn: &mut Conn, before: Timestamp, limit: i64) -> Result<Vec<(ReleaseUuid,)>> {
    sql("SELECT release_uuid FROM agent_releases WHERE status = 'AWAITING_FILE' AND created_at < $1 LIMIT $2")
        .bind(before)
        .bind(limit)
        .all(conn)
        .await
}

/// Whether it was there and nobody has asked anew for a place to upload its file to.
pub async fn forget(tx: &mut Tx, release_uuid: ReleaseUuid, before: Timestamp) -> Result<bool> {
    let deleted =
        sql("DELETE FROM agent_releases WHERE release_uuid = $1 AND status = 'AWAITING_FILE' AND created_at < $2")
            .bind(release_uuid)
            .bind(before)
            .execute(tx)
            .await?;
    Ok(deleted > 0)
}
