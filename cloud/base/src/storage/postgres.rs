//! The disk of a PostgreSQL server. Nobody but the server can ask how much room it has, so the
//! reserve is a table that is not logged: while it has its size, there was room for it. All
//! replicas share it. Where it is gone, somebody found the disk full. To drop it needs no room at
//! all, and an attempt to create it that fails leaves nothing behind.

use crate::db::{Db, sql};
use crate::error::Result;

/// The reserve is at most this large, since it is written to find out whether there is room.
pub const MOST_BYTES: i64 = 16 << 20;
const PAGE_BYTES: i64 = 8192;
/// The pages are filled by a tenth only, with so many rows.
const ROWS_OF_PAGE: i64 = 8;
/// Free bytes that are required besides the reserve.
const BESIDES_BYTES: i64 = 4 << 20;

/// Whether the reserve of this size is held.
pub async fn holds_reserve(db: &Db, bytes: i64) -> Result<bool> {
    let size: Option<i64> = sql("SELECT pg_relation_size(to_regclass('storage_reserve'))")
        .scalar(&mut db.read().await?)
        .await?;
    Ok(size.is_some_and(|size| size >= bytes.max(1)))
}

/// Takes the reserve, if there is room for it and some besides. Returns false if another replica is
/// at it.
pub async fn hold_reserve(db: &Db, bytes: i64) -> Result<bool> {
    let mut tx = db.begin().await?;
    if !sql("SELECT pg_try_advisory_xact_lock(7310466)")
        .scalar::<bool>(&mut tx)
        .await?
    {
        return Ok(false);
    }
    sql("DROP TABLE IF EXISTS storage_reserve")
        .run(&mut tx)
        .await?;
    // The type NAME is never compressed or stored out of line.
    sql("CREATE UNLOGGED TABLE storage_reserve (filler NAME) WITH (fillfactor = 10)")
        .run(&mut tx)
        .await?;
    sql("INSERT INTO storage_reserve SELECT 'room' FROM generate_series(1, $1)")
        .bind((bytes + BESIDES_BYTES) / PAGE_BYTES * ROWS_OF_PAGE)
        .run(&mut tx)
        .await?;
    tx.commit_unaudited("room on the disk").await?;
    Ok(true)
}

/// Releases the reserve to the writes that go on while the disk is full.
pub async fn release_reserve(db: &Db) -> Result<()> {
    let mut tx = db.begin().await?;
    sql("SET LOCAL lock_timeout = '2s'").run(&mut tx).await?;
    sql("DROP TABLE IF EXISTS storage_reserve")
        .run(&mut tx)
        .await?;
    tx.commit_unaudited("room on the disk").await
}
