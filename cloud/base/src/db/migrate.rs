//! Migrations, built into the program. Both databases have the same versions. They are applied in
//! order, each in a transaction and under a lock, so that replicas may start together. Released
//! files are never edited.

use hub_protocol::Timestamp;
use sqlx::SqlSafeStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

use super::dialect::Dialect;
use super::{Conn, Db, partitions, space, sql};
use crate::error::{Error, Result};

/// The files in the order of their numbers: a version's number is its place, from 1 on.
const POSTGRES: [&str; 13] = [
    include_str!("../../../../migrations/postgres/0001_foundation.sql"),
    include_str!("../../../../migrations/postgres/0002_people.sql"),
    include_str!("../../../../migrations/postgres/0003_audit.sql"),
    include_str!("../../../../migrations/postgres/0004_hubs.sql"),
    include_str!("../../../../migrations/postgres/0005_jobs.sql"),
    include_str!("../../../../migrations/postgres/0006_uploads.sql"),
    include_str!("../../../../migrations/postgres/0007_devices.sql"),
    include_str!("../../../../migrations/postgres/0008_readings.sql"),
    include_str!("../../../../migrations/postgres/0009_pipelines.sql"),
    include_str!("../../../../migrations/postgres/0010_suppliers.sql"),
    include_str!("../../../../migrations/postgres/0011_notices.sql"),
    include_str!("../../../../migrations/postgres/0012_projects.sql"),
    include_str!("../../../../migrations/postgres/0013_exposure.sql"),
];

const SQLITE: [&str; POSTGRES.len()] = [
    include_str!("../../../../migrations/sqlite/0001_foundation.sql"),
    include_str!("../../../../migrations/sqlite/0002_people.sql"),
    include_str!("../../../../migrations/sqlite/0003_audit.sql"),
    include_str!("../../../../migrations/sqlite/0004_hubs.sql"),
    include_str!("../../../../migrations/sqlite/0005_jobs.sql"),
    include_str!("../../../../migrations/sqlite/0006_uploads.sql"),
    include_str!("../../../../migrations/sqlite/0007_devices.sql"),
    include_str!("../../../../migrations/sqlite/0008_readings.sql"),
    include_str!("../../../../migrations/sqlite/0009_pipelines.sql"),
    include_str!("../../../../migrations/sqlite/0010_suppliers.sql"),
    include_str!("../../../../migrations/sqlite/0011_notices.sql"),
    include_str!("../../../../migrations/sqlite/0012_projects.sql"),
    include_str!("../../../../migrations/sqlite/0013_exposure.sql"),
];

/// The version of this program's schema.
pub const VERSION: i64 = POSTGRES.len() as i64;

fn migrator(db: &Db) -> Migrator {
    let texts = match db {
        Db::Postgres { .. } => POSTGRES,
        Db::Sqlite { .. } => SQLITE,
    };
    let migrations = (1..)
        .zip(texts)
        .map(|(number, text)| {
            // The first line is the subject of the file.
            let about = text.lines().next().unwrap_or_default();
            let about = about.trim_start_matches("-- ").into();
            let text = text.into_sql_str();
            Migration::new(number, about, MigrationType::Simple, text, false)
        })
        .collect();
    Migrator::with_migrations(migrations)
}

/// A table of the target of a move that has not ended; see [`super::moves`].
pub const UNFINISHED_MOVE: &str = "unfinished_move";

/// Brings the schema up to this program's version. Running it again does nothing.
pub async fn run(db: &Db, now: Timestamp) -> std::result::Result<(), MigrateError> {
    create_file(db).await?;
    match schema(db).await.map_err(source)? {
        Schema::UnfinishedMove => Err(MigrateError::Source(Box::new(UnfinishedMove))),
        // The migrator would take versions that only the unreleased numbering had for those of a
        // newer program.
        Schema::Unreleased(version) => Err(MigrateError::VersionMismatch(version)),
        Schema::None | Schema::Current | Schema::Older(_) | Schema::Newer(_) => {
            apply(db, now).await
        }
    }
}

/// The database is the target of a move that has not ended.
#[derive(Debug, thiserror::Error)]
#[error("the database is the target of an unfinished move")]
pub struct UnfinishedMove;

pub(super) async fn create_file(db: &Db) -> std::result::Result<(), MigrateError> {
    let Db::Sqlite { writer, .. } = db else {
        return Ok(());
    };
    space::create(&writer.connect_options())
        .await
        .map_err(MigrateError::Execute)
}

/// Applies what is missing, also in the target of a move.
pub(super) async fn apply(db: &Db, now: Timestamp) -> std::result::Result<(), MigrateError> {
    match db {
        Db::Postgres { pool, .. } => {
            let mut conn = pool.acquire().await.map_err(MigrateError::Execute)?;
            // Creating an index on a large table may take long, and so may waiting for the replica
            // that creates it.
            sqlx::query("SET statement_timeout = 0")
                .execute(&mut *conn)
                .await?;
            migrator(db).run(&mut *conn).await?;
            sqlx::query("RESET statement_timeout")
                .execute(&mut *conn)
                .await?;
        }
        Db::Sqlite { writer, .. } => migrator(db).run(writer).await?,
    }
    partitions::ensure(db, now).await.map_err(source)
}

fn source(error: Error) -> MigrateError {
    MigrateError::Source(Box::new(error))
}

/// The database's schema compared with this program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// The database is empty.
    None,
    /// The database is the target of a move that has not ended, whatever its version.
    UnfinishedMove,
    Current,
    /// The number of missing versions.
    Older(usize),
    /// The version of the later program that created it.
    Newer(i64),
    /// A version that was applied with another text than this program's: released files are never
    /// edited, so a program from before the first release created it.
    Unreleased(i64),
}

/// The version of the database's schema; none if it has no tables of this program.
pub async fn version(db: &Db) -> Result<Option<i64>> {
    match schema(db).await? {
        Schema::None => Ok(None),
        _ => {
            let mut conn = db.read().await?;
            sql("SELECT MAX(version) FROM _sqlx_migrations")
                .scalar(&mut conn)
                .await
        }
    }
}

/// Reads the state of the schema and changes nothing.
pub async fn schema(db: &Db) -> Result<Schema> {
    let mut conn = db.read().await?;
    if has_table(&mut conn, UNFINISHED_MOVE).await? {
        return Ok(Schema::UnfinishedMove);
    }
    if !has_table(&mut conn, "_sqlx_migrations").await? {
        return Ok(Schema::None);
    }
    let applied: Vec<(i64, Vec<u8>)> =
        sql("SELECT version, checksum FROM _sqlx_migrations ORDER BY version")
            .all(&mut conn)
            .await?;
    let ours = migrator(db);
    let edited = applied.iter().find(|(version, checksum)| {
        ours.iter()
            .any(|ours| ours.version == *version && *ours.checksum != **checksum)
    });
    let unknown = applied
        .iter()
        .rfind(|(version, _)| !ours.version_exists(*version));
    let missing = ours
        .iter()
        .filter(|ours| applied.iter().all(|(version, _)| *version != ours.version))
        .count();
    Ok(match (edited, unknown) {
        (Some((version, _)), _) => Schema::Unreleased(*version),
        (None, Some((version, _))) => Schema::Newer(*version),
        (None, None) if applied.is_empty() => Schema::None,
        (None, None) if missing > 0 => Schema::Older(missing),
        (None, None) => Schema::Current,
    })
}

async fn has_table(conn: &mut Conn, name: &'static str) -> Result<bool> {
    let table = match conn.dialect() {
        Dialect::Postgres => {
            "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1"
        }
        Dialect::Sqlite => "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = $1",
    };
    sql(table).bind(name).exists(conn).await
}
