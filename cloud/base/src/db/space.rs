//! The space that deleted rows leave in the file of an SQLite database. It is used again for new
//! rows; what is more than that is given back to the file system, piece by piece.

use std::path::Path;

use sqlx::{ConnectOptions, Connection};
use sqlx_sqlite::{SqliteAutoVacuum, SqliteConnectOptions};

use super::{Conn, Db, sql};
use crate::error::Result;

/// Creates the file of an SQLite database, unless it exists, so that it can return pages to the
/// file system. The first connection decides that for the life of the file.
pub(super) async fn create(options: &SqliteConnectOptions) -> Result<(), sqlx::Error> {
    if std::fs::metadata(options.get_filename()).is_ok_and(|file| file.len() > 0) {
        return Ok(());
    }
    options
        .clone()
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .connect()
        .await?
        .close()
        .await
}

/// The pages that the write-ahead log of a database file may have before a checkpoint: 32 MiB, and
/// less on a small disk.
pub(super) fn log_pages_before_checkpoint(file: &Path) -> u64 {
    let dir = file
        .parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let disk_bytes = rustix::fs::statvfs(dir)
        .map_or(u64::MAX, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
    (disk_bytes / SMALL_PART / PAGE_BYTES).clamp(LEAST_LOG_PAGES, MOST_LOG_PAGES)
}

/// How `PRAGMA auto_vacuum` answers `INCREMENTAL`.
const INCREMENTAL: i64 = 2;
/// SQLite's default.
const PAGE_BYTES: u64 = 4096;
const LEAST_LOG_PAGES: u64 = 128;
const MOST_LOG_PAGES: u64 = 8192;
/// The write-ahead log may use one part in so many of the disk.
const SMALL_PART: u64 = 32;

/// The pages of an SQLite file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    pub all: i64,
    pub free: i64,
    pub bytes_each: i64,
    /// Whether free pages can be given back. An older database has to be rewritten for that, see
    /// [`rewrite`].
    pub can_be_given_back: bool,
}

impl Pages {
    pub const fn free_bytes(self) -> i64 {
        self.free.saturating_mul(self.bytes_each)
    }
}

/// The pages of the database; none on PostgreSQL, which looks after itself.
pub async fn pages(db: &Db) -> Result<Option<Pages>> {
    let Db::Sqlite { .. } = db else {
        return Ok(None);
    };
    let mut conn = db.read().await?;
    Ok(Some(Pages {
        all: pragma(&mut conn, "page_count").await?,
        free: pragma(&mut conn, "freelist_count").await?,
        bytes_each: pragma(&mut conn, "page_size").await?,
        can_be_given_back: pragma(&mut conn, "auto_vacuum").await? == INCREMENTAL,
    }))
}

async fn pragma(conn: &mut Conn, name: &'static str) -> Result<i64> {
    sql("PRAGMA ").push(name).scalar(conn).await
}

/// Returns up to `pages` free pages to the file system. The file shrinks with the next checkpoint.
pub async fn give_back(conn: &mut Conn, pages: i64) -> Result<()> {
    sql("PRAGMA incremental_vacuum(")
        .push_number(pages)
        .push(")")
        .run(conn)
        .await
}

/// The pages in the write-ahead log of an SQLite database that are not in its file yet; 0 on
/// PostgreSQL.
pub async fn log_pages(db: &Db) -> Result<i64> {
    let Db::Sqlite { .. } = db else { return Ok(0) };
    let (_, all, moved): (i64, i64, i64) = sql("PRAGMA wal_checkpoint(NOOP)")
        .one(&mut db.read().await?)
        .await?;
    Ok(all - moved)
}

/// Moves the write-ahead log of an SQLite database into its file, as far as no reader or writer
/// uses it. Blocks neither.
pub async fn checkpoint(db: &Db) -> Result<()> {
    match db {
        Db::Sqlite { .. } => {
            sql("PRAGMA wal_checkpoint(PASSIVE)")
                .run(&mut db.read().await?)
                .await
        }
        Db::Postgres { .. } => Ok(()),
    }
}

/// Rewrites an SQLite database without its free pages, and so that it can return pages later. The
/// rewrite needs as much free space as the database has pages in use, and exclusive use of the
/// database.
pub async fn rewrite(db: &Db) -> Result<()> {
    let Db::Sqlite { writer, .. } = db else {
        return Ok(());
    };
    let mut conn = Conn::Sqlite(writer.acquire().await?);
    sql("PRAGMA auto_vacuum = INCREMENTAL")
        .run(&mut conn)
        .await?;
    sql("VACUUM").run(&mut conn).await
}
