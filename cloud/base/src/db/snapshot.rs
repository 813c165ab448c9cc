//! Consistent copies of an SQLite database while others write to it, and the proof that a copy is
//! whole. PostgreSQL has its own programs for that.

use std::collections::BTreeMap;
use std::path::Path;

use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use sqlx_sqlite::{SqliteConnectOptions, SqliteConnection};

use super::Db;
use super::sql::quoted;
use crate::error::{Error, Result};
use crate::paths::with_suffix;

/// The number of rows of each table.
pub type Rows = BTreeMap<String, i64>;

/// Copies the database as of one moment into this file, which must be empty or missing. Readers and
/// writers go on meanwhile; only the write-ahead log does not start over. Does nothing on
/// PostgreSQL.
pub async fn copy(db: &Db, to: &Path) -> Result<()> {
    let Db::Sqlite { reader, .. } = db else {
        return Ok(());
    };
    // A connection of its own: the readers may write to no file at all.
    let options = SqliteConnectOptions::clone(&reader.connect_options())
        .pragma("query_only", "OFF")
        .pragma("cache_size", "-8192");
    let mut conn = options.connect().await?;
    sqlx::query("VACUUM INTO $1")
        .bind(to.display().to_string())
        .execute(&mut conn)
        .await?;
    conn.close().await?;
    Ok(())
}

/// The size of the database's file with its write-ahead log; 0 on PostgreSQL.
pub fn size_bytes(db: &Db) -> u64 {
    let Db::Sqlite { reader, .. } = db else {
        return 0;
    };
    let options = reader.connect_options();
    let file = options.get_filename();
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    length(file).saturating_add(length(&with_suffix(file, "-wal")))
}

/// Counts the rows of each table of a copy, which nobody writes to.
pub async fn count_rows(file: &Path) -> Result<Rows> {
    let mut conn = open(file).await?;
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT name FROM sqlite_schema \
         WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )
    .fetch_all(&mut conn)
    .await?;
    let mut rows = Rows::new();
    for table in tables {
        let count = format!("SELECT COUNT(*) FROM {}", quoted(&table));
        let count = sqlx::query_scalar(AssertSqlSafe(count))
            .fetch_one(&mut conn)
            .await?;
        rows.insert(table, count);
    }
    conn.close().await?;
    Ok(rows)
}

/// Fails if a page or an index of a copy is broken.
pub async fn check(file: &Path) -> Result<()> {
    let mut conn = open(file).await?;
    let found: Vec<String> = sqlx::query_scalar("PRAGMA integrity_check(1)")
        .fetch_all(&mut conn)
        .await?;
    conn.close().await?;
    match found.first().map(String::as_str) {
        Some("ok") => Ok(()),
        found => Err(Error::internal(
            found
                .unwrap_or("no result of the integrity check")
                .to_owned(),
        )),
    }
}

/// Nobody else uses a copy, and looking at it leaves no other file behind.
async fn open(file: &Path) -> Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .read_only(true)
        .immutable(true);
    Ok(options.connect().await?)
}
