//! A tenant's API keys: what its back-ends call with. A key is shown once, when it is made, and kept as a hash; what it may do and how often is the
//! tenant's to say.

mod store;

use hub_protocol::Timestamp;

use crate::app::App;
use crate::authn::api_key::ApiKey;
use crate::db::{Conn, Db};
use crate::error::Result;

/// An active key as a request finds it. Whether it has expired is the caller's to see.
#[derive(Clone, Debug)]
pub struct KeyFacts {
    pub key: ApiKey,
    pub secret_hash: Vec<u8>,
    pub expires_at: Option<Timestamp>,
}

/// The active key with this id.
pub async fn find(conn: &mut Conn, key_prefix: &str) -> Result<Option<KeyFacts>> {
    store::find(conn, key_prefix).await
}

/// Whether the key could still be used now.
pub async fn is_in_force(app: &App, api_key_id: i64) -> Result<bool> {
    store::is_in_force(&mut app.db.read().await?, api_key_id, app.clock.now()).await
}

/// A share is this part of what is left of the minute's limit, so that replicas end up even.
const SHARE: i64 = 16;

/// Hands out some of the minute's requests, and notes that the key is used: 0 when none are left.
pub async fn take_share(db: &Db, api_key_id: i64, minute: i64, now: Timestamp) -> Result<i64> {
    let mut tx = db.begin().await?;
    let Some(window) = store::lock_window(&mut tx, api_key_id).await? else { return Ok(0) };
    let handed_out = if window.window_minute == minute { window.window_requests } else { 0 };
    let left = window.rate_limit_per_minute - handed_out;
    let share = (left / SHARE).max(1).min(left);
    if share <= 0 {
        return Ok(0);
    }
    store::set_window(&mut tx, api_key_id, minute, handed_out + share, now).await?;
    tx.commit_unaudited("counts requests").await?;
    Ok(share)
}
