//! SQL that is the same for both tables of releases.

use hub_base::db::{Conn, Sql, Tx, sql};
use hub_base::error::Result;
use hub_protocol::release::ReleaseManifest;
use hub_protocol::{AppUuid, ReleaseUuid, Timestamp};

use super::super::Existing;
use super::super::contents::{ComponentSource, ReleaseDocument};

#[derive(Clone, Copy)]
pub enum Table {
    AgentReleases,
    AppReleases,
}

impl Table {
    const fn name(self) -> &'static str {
        match self {
            Self::AgentReleases => "agent_releases",
            Self::AppReleases => "app_releases",
        }
    }
}

/// The releases that share one sequence of counters.
#[derive(Clone, Copy)]
pub enum Series<'a> {
    /// The platform's releases with this name in their manifest.
    Agent(&'a str),
    App(AppUuid),
}

impl Series<'_> {
    fn select(self, columns: &'static str) -> Sql {
        let select = sql("SELECT ").push(columns);
        match self {
            Self::Agent(name) => select
                .push(" FROM agent_releases WHERE name = $1")
                .bind(name),
            Self::App(app_uuid) => select
                .push(" FROM app_releases WHERE app_uuid = $1")
                .bind(app_uuid),
        }
    }
}

/// The releases that conflict with a new one: same counter, or same version for the same
/// architecture. A version that hubs may return to is signed a second time, as a downgrade.
pub async fn similar(
    conn: &mut Conn,
    series: Series<'_>,
    new: &ReleaseManifest,
    counter: i64,
) -> Result<Vec<Existing>> {
    series
        .select("release_uuid, counter, status, manifest, signature")
        .push(" AND (counter = $2 OR (version = $3 AND architecture = $4 AND downgrade = $5))")
        .bind((
            counter,
            new.version.as_str(),
            new.architecture.as_str(),
            new.downgrade,
        ))
        .all(conn)
        .await
}

/// The highest counter that a hub of this architecture may have seen; 0 when there is none. A hub
/// keeps one counter for all architectures it runs, so `any` is compared with all.
pub async fn highest_counter(
    conn: &mut Conn,
    series: Series<'_>,
    architecture: &str,
) -> Result<i64> {
    series
        .select("COALESCE(MAX(counter), 0)")
        .push(" AND ($2 = 'any' OR architecture IN ($2, 'any'))")
        .bind(architecture)
        .scalar(conn)
        .await
}

/// Marks the release as ready; returns false when it was not awaiting its file.
pub async fn mark_ready(
    tx: &mut Tx,
    table: Table,
    release_uuid: ReleaseUuid,
    now: Timestamp,
) -> Result<bool> {
    let marked = sql("UPDATE ")
        .push(table.name())
        .push(" SET status = 'READY', ready_at = $2 WHERE release_uuid = $1 AND status = 'AWAITING_FILE'")
        .bind((release_uuid, now))
        .execute(tx)
        .await?;
    Ok(marked > 0)
}

/// Notes when a document of the release arrived. The column is that of the document.
pub async fn note_document(
    tx: &mut Tx,
    table: Table,
    release_uuid: ReleaseUuid,
    document: ReleaseDocument,
    at: Timestamp,
) -> Result<()> {
    let column = match document {
        ReleaseDocument::Sbom => " SET sbom_at = $2 WHERE release_uuid = $1",
        ReleaseDocument::Vex => " SET vex_at = $2 WHERE release_uuid = $1",
    };
    sql("UPDATE ")
        .push(table.name())
        .push(column)
        .bind((release_uuid, at))
        .run(tx)
        .await
}

/// Notes of how many components the release consists of, and how that is known.
pub async fn note_components(
    tx: &mut Tx,
    table: Table,
    release_uuid: ReleaseUuid,
    source: ComponentSource,
    count: i64,
) -> Result<()> {
    sql("UPDATE ")
        .push(table.name())
        .push(" SET component_source = $2, component_count = $3 WHERE release_uuid = $1")
        .bind((release_uuid, source.name(), count))
        .run(tx)
        .await
}

/// Up to `limit` releases created before `before` whose file never arrived.
pub async fn abandoned(
    conn: &mut Conn,
    table: Table,
    before: Timestamp,
    limit: i64,
) -> Result<Vec<ReleaseUuid>> {
    sql("SELECT release_uuid FROM ")
        .push(table.name())
        .push(" WHERE status = 'AWAITING_FILE' AND created_at < $1 LIMIT $2")
        .bind((before, limit))
        .scalars(conn)
        .await
}

/// Deletes the release; returns false when it does not exist, is ready, or was renewed meanwhile.
pub async fn forget(
    tx: &mut Tx,
    table: Table,
    release_uuid: ReleaseUuid,
    before: Timestamp,
) -> Result<bool> {
    let deleted = sql("DELETE FROM ")
        .push(table.name())
        .push(" WHERE release_uuid = $1 AND status = 'AWAITING_FILE' AND created_at < $2")
        .bind((release_uuid, before))
        .execute(tx)
        .await?;
    Ok(deleted > 0)
}
