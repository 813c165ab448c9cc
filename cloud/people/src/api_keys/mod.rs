//! A tenant's API keys, used by its back ends. The service returns a key once, when it is created,
//! and stores only its hash. The tenant chooses its permissions and its rate limit.

pub mod http;
mod store;

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_identity::authn::Authn;
use hub_identity::authn::api_key;
use hub_identity::authn::user::User;
use hub_identity::authz::{KeyScopes, Scope};
use hub_protocol::Timestamp;
use serde_json::{Value, json};

use crate::tenants;
use store::KeyRow;
pub use store::{Expiring, forget_creator};

/// The parameters of a new key.
struct NewKey {
    name: String,
    scopes: KeyScopes,
    rate_limit_per_minute: i64,
    expires_at: Option<Timestamp>,
}

/// The changes to a key; absent fields keep their value.
struct KeyUpdate {
    name: Option<String>,
    scopes: Option<KeyScopes>,
    rate_limit_per_minute: Option<i64>,
}

/// The keys that are valid and expire within so many seconds. One that was made for no longer than
/// that is not among them: whoever made it knows.
pub async fn expiring(
    conn: &mut Conn,
    scope: &Scope,
    now: Timestamp,
    ahead_secs: i64,
) -> Result<Vec<Expiring>> {
    let mut keys = store::expiring(conn, scope, now, now.plus_secs(ahead_secs)).await?;
    keys.retain(|key| key.expires_at > key.created_at.plus_secs(ahead_secs));
    Ok(keys)
}

/// Creates a key and returns it in full. Later responses never contain it.
async fn create(
    authn: &Authn,
    scope: &Scope,
    user: &User,
    new: NewKey,
) -> Result<(String, KeyRow)> {
    let now = authn.core.clock.now();
    // The lock makes concurrent creations count each other.
    let mut tx = tenants::locked(&authn.core, scope).await?.tx;
    let limit = tenants::limits::api_keys(&mut tx, scope.tenant_uuid()).await?;
    if store::count(&mut tx, scope, now).await? >= limit {
        let message =
            format!("this tenant may have at most {limit} API keys; deactivate one first");
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

async fn update(
    authn: &Authn,
    scope: &Scope,
    api_key_id: i64,
    update: KeyUpdate,
) -> Result<KeyRow> {
    let now = authn.core.clock.now();
    let mut tx = authn.core.db.begin().await?;
    let before = store::lock(&mut tx, scope, api_key_id)
        .await?
        .ok_or_else(|| Error::not_found("API key"))?;
    if !before.is_active(now) {
        return Err(Error::conflict(
            "API_KEY_INACTIVE",
            "this API key was deactivated or has expired; create a new one",
        ));
    }
    let mut after = before.clone();
    after.name = update.name.unwrap_or(after.name);
    after.scopes = update
        .scopes
        .map_or(after.scopes, |scopes| scopes.to_stored());
    after.rate_limit_per_minute = update
        .rate_limit_per_minute
        .unwrap_or(after.rate_limit_per_minute);
    if after == before {
        return Ok(after);
    }
    store::update(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, "api_key.update", api_key_id, now);
    authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(audit.changed(Some(state(&before)), Some(state(&after))))
        .await?;
    Ok(after)
}

/// Deactivates a key permanently. Repeating it changes nothing.
async fn deactivate(authn: &Authn, scope: &Scope, api_key_id: i64) -> Result<()> {
    let now = authn.core.clock.now();
    let mut tx = authn.core.db.begin().await?;
    let before = store::lock(&mut tx, scope, api_key_id)
        .await?
        .ok_or_else(|| Error::not_found("API key"))?;
    if before.deactivated_at.is_none() {
        store::deactivate(&mut tx, scope, api_key_id, now).await?;
        let audit = Audit::new(scope, "api_key.deactivate", api_key_id, now);
        tx.commit(audit.changed(Some(state(&before)), None)).await?;
    }
    // The wait also applies to an inactive key: the request that deactivated it may still be
    // waiting.
    authn.permissions.wait_out_lease().await;
    Ok(())
}

/// The representation in the audit log.
fn state(key: &KeyRow) -> Value {
    json!({
        "keyPrefix": api_key::prefix_of(&key.key_prefix),
        "name": key.name,
        "scopes": KeyScopes::from_stored(&key.scopes).names(),
        "rateLimitPerMinute": key.rate_limit_per_minute,
        "expiresAt": key.expires_at,
    })
}
