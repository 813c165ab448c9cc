//! The number of requests of the current minute that the database has granted to replicas, for each
//! API key. It is stored in the rows of `api_keys`; replicas keep their shares in
//! [`super::key_shares`].

use hub_base::db::{Db, Tx, sql};
use hub_base::error::Result;
use hub_protocol::Timestamp;
use uuid::Uuid;

/// A share is at most this fraction of what is left of the minute's limit.
const SHARE: i64 = 16;
/// Up to this limit, replicas that use a key at the same time count every request in the database.
const COUNTED_ONE_BY_ONE: i64 = 600;

/// Requests granted of a minute; 0 when the limit is reached.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The minute that all replicas count in. A replica whose clock is behind counts in the minute
    /// that has already begun elsewhere.
    pub minute: i64,
    pub share: i64,
}

/// Grants some of the minute's requests to a replica that has allowed `used` of them so far, and
/// records that the key is in use.
pub async fn grant_share(
    db: &Db,
    api_key_id: i64,
    replica: Uuid,
    minute: i64,
    used: i64,
    now: Timestamp,
) -> Result<Window> {
    let mut tx = db.begin().await?;
    let Some(row) = lock_window(&mut tx, api_key_id).await? else {
        return Ok(Window { minute, share: 0 });
    };
    let has_begun = row.window_minute == minute || row.window_minute == minute + 1;
    let (minute, granted, is_alone) = match has_begun {
        true => (
            row.window_minute,
            row.window_requests,
            row.window_replica == Some(replica),
        ),
        false => (minute, 0, true),
    };
    let left = row.rate_limit_per_minute - granted;
    let requested = match is_alone {
        true => used.min(left / SHARE),
        false if row.rate_limit_per_minute <= COUNTED_ONE_BY_ONE => 1,
        false => used.min(left / (SHARE * SHARE)),
    };
    let share = requested.max(1).min(left);
    if share <= 0 {
        return Ok(Window { minute, share: 0 });
    }
    let only_replica = is_alone.then_some(replica);
    set_window(
        &mut tx,
        api_key_id,
        minute,
        granted + share,
        only_replica,
        now,
    )
    .await?;
    tx.commit_unaudited("counts requests").await?;
    Ok(Window { minute, share })
}

/// Returns granted requests that were not used, if their minute is not over.
pub async fn return_share(db: &Db, api_key_id: i64, minute: i64, requests: i64) -> Result<()> {
    let mut tx = db.begin().await?;
    return_requests(&mut tx, api_key_id, minute, requests).await?;
    tx.commit_unaudited("counts requests").await
}

/// The minute in which a key was last used, and how much of its limit was granted in it.
#[derive(sqlx::FromRow)]
struct WindowRow {
    rate_limit_per_minute: i64,
    window_minute: i64,
    window_requests: i64,
    window_replica: Option<Uuid>,
}

/// Locks the key's counter: no other transaction grants requests of this key until this one ends.
async fn lock_window(tx: &mut Tx, api_key_id: i64) -> Result<Option<WindowRow>> {
    sql(
        "SELECT rate_limit_per_minute, window_minute, window_requests, window_replica \
         FROM api_keys WHERE api_key_id = $1",
    )
    .for_update(tx)
    .bind(api_key_id)
    .optional(tx)
    .await
}

async fn set_window(
    tx: &mut Tx,
    api_key_id: i64,
    minute: i64,
    requests: i64,
    only_replica: Option<Uuid>,
    used_at: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE api_keys SET window_minute = $2, window_requests = $3, window_replica = $4, \
         last_used_at = $5 WHERE api_key_id = $1",
    )
    .bind((api_key_id, minute, requests, only_replica, used_at))
    .run(tx)
    .await
}

async fn return_requests(tx: &mut Tx, api_key_id: i64, minute: i64, requests: i64) -> Result<()> {
    sql(
        "UPDATE api_keys SET window_requests = window_requests - $3 \
         WHERE api_key_id = $1 AND window_minute = $2",
    )
    .bind((api_key_id, minute, requests))
    .run(tx)
    .await
}
