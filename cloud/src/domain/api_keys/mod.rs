//! A tenant's API keys: what its back-ends call with. A key is shown once, when it is made, and kept as a hash; what it may do and how often is the
//! tenant's to say.

pub mod http;
mod store;

use std::sync::Arc;

use hub_protocol::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::App;
use crate::authn::api_key::{self, ApiKey};
use crate::authn::user::User;
use crate::authz::{KeyScopes, Scope};
use crate::db::{Conn, Db};
use crate::domain::audit::Audit;
use crate::domain::tenants;
use crate::error::{Error, Result};
use store::KeyRow;

/// Keys of a tenant in force at a time: their list is given whole.
const MAX_KEYS: i64 = 200;

/// An active key as a request finds it. Whether it has expired is the caller's to see.
#[derive(Clone, Debug)]
pub struct KeyFacts {
    pub key: Arc<ApiKey>,
    pub secret_hash: Vec<u8>,
}

/// The active key with this id.
pub async fn find(conn: &mut Conn, id: &str) -> Result<Option<KeyFacts>> {
    store::find(conn, id).await
}

/// What a key is made with.
struct NewKey {
    name: String,
    scopes: KeyScopes,
    rate_limit_per_minute: i64,
    expires_at: Option<Timestamp>,
}

/// What to change of a key; what is not given stays.
struct KeyUpdate {
    name: Option<String>,
    scopes: Option<KeyScopes>,
    rate_limit_per_minute: Option<i64>,
}

/// Makes a key; answers it whole, which nobody can do again.
async fn create(app: &App, scope: &Scope, user: &User, new: NewKey) -> Result<(String, KeyRow)> {
    let now = app.clock.now();
    // Of two at the same time, the second counts the first.
    let mut tx = tenants::locked(app, scope).await?.tx;
    if store::count(&mut tx, scope, now).await? >= MAX_KEYS {
        let message = format!("a tenant may have {MAX_KEYS} API keys and no more; deactivate one first");
        return Err(Error::conflict("TOO_MANY_API_KEYS", message));
    }
    let (raw, row) = loop {
        let key = api_key::generate();
        if let Some(row) = store::insert(&mut tx, scope, &key, &new, user.user_uuid, now).await? {
            break (key.raw, row);
        }
    };
    let audit = Audit::new(scope, "api_key.create", row.api_key_id, now);
    tx.commit(audit.changed(None, Some(state(&row)))).await?;
    Ok((raw, row))
}

async fn update(app: &App, scope: &Scope, api_key_id: i64, update: KeyUpdate) -> Result<KeyRow> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let before = store::lock(&mut tx, scope, api_key_id).await?.ok_or_else(|| Error::not_found("API key"))?;
    if !before.is_active(now) {
        return Err(Error::conflict("API_KEY_INACTIVE", "this API key was deactivated or has expired; make a new one"));
    }
    let mut after = before.clone();
    after.name = update.name.unwrap_or(after.name);
    after.scopes = update.scopes.map_or(after.scopes, |scopes| scopes.to_stored());
    after.rate_limit_per_minute = update.rate_limit_per_minute.unwrap_or(after.rate_limit_per_minute);
    if after == before {
        return Ok(after);
    }
    store::update(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, "api_key.update", api_key_id, now);
    tx.commit(audit.changed(Some(state(&before)), Some(state(&after)))).await?;
    app.permissions.settle().await;
    Ok(after)
}

/// Ends a key for good; ending it again changes nothing.
async fn deactivate(app: &App, scope: &Scope, api_key_id: i64) -> Result<()> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let before = store::lock(&mut tx, scope, api_key_id).await?.ok_or_else(|| Error::not_found("API key"))?;
    if before.deactivated_at.is_none() {
        store::deactivate(&mut tx, scope, api_key_id, now).await?;
        let audit = Audit::new(scope, "api_key.deactivate", api_key_id, now);
        tx.commit(audit.changed(Some(state(&before)), None)).await?;
    }
    // Also when it was ended before: whoever did may still be waiting for this.
    app.permissions.settle().await;
    Ok(())
}

/// As the audit log shows it.
fn state(key: &KeyRow) -> Value {
    json!({
        "keyPrefix": api_key::prefix_of(&key.key_prefix),
        "name": key.name,
        "scopes": KeyScopes::from_stored(&key.scopes).names(),
        "rateLimitPerMinute": key.rate_limit_per_minute,
        "expiresAt": key.expires_at,
    })
}

/// A share is at most this part of what is left of the minute's limit.
const SHARE: i64 = 16;
/// Up to this limit, replicas that use a key at the same time count every request.
const COUNTED_ONE_BY_ONE: i64 = 600;

/// Requests handed out of a minute; none when the limit is reached.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The minute as all replicas count it: a replica whose clock is behind counts in the one that has begun elsewhere.
    pub minute: i64,
    pub share: i64,
}

/// Hands out some of the minute's requests to a replica that let through `used` of them so far, and notes that the key is used.
pub async fn take_share(
    db: &Db,
    api_key_id: i64,
    replica: Uuid,
    minute: i64,
    used: i64,
    now: Timestamp,
) -> Result<Window> {
    let mut tx = db.begin().await?;
    let Some(row) = store::lock_window(&mut tx, api_key_id).await? else { return Ok(Window { minute, share: 0 }) };
    let has_begun = row.window_minute == minute || row.window_minute == minute + 1;
    let (minute, handed_out, is_alone) = match has_begun {
        true => (row.window_minute, row.window_requests, row.window_replica == Some(replica)),
        false => (minute, 0, true),
    };
    let left = row.rate_limit_per_minute - handed_out;
    let wanted = match is_alone {
        true => used.min(left / SHARE),
        false if row.rate_limit_per_minute <= COUNTED_ONE_BY_ONE => 1,
        false => used.min(left / (SHARE * SHARE)),
    };
    let share = wanted.max(1).min(left);
    if share <= 0 {
        return Ok(Window { minute, share: 0 });
    }
    let only_replica = is_alone.then_some(replica);
    store::set_window(&mut tx, api_key_id, minute, handed_out + share, only_replica, now).await?;
    tx.commit_unaudited("counts requests").await?;
    Ok(Window { minute, share })
}

/// Takes back requests that were handed out and not used, while their minute lasts.
pub async fn return_share(db: &Db, api_key_id: i64, minute: i64, requests: i64) -> Result<()> {
    let mut tx = db.begin().await?;
    store::return_requests(&mut tx, api_key_id, minute, requests).await?;
    tx.commit_unaudited("counts requests").await
}
