//! SQL of API keys.

use std::sync::Arc;

use hub_protocol::{TenantUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::{KeyFacts, MAX_KEYS, NewKey};
use crate::authn::api_key::{self, ApiKey};
use crate::authz::{KeyScopes, Scope};
use crate::db::{Conn, Tx, sql};
use crate::error::Result;

#[derive(sqlx::FromRow)]
struct FactsRow {
    api_key_id: i64,
    tenant_uuid: TenantUuid,
    name: String,
    scopes: String,
    rate_limit_per_minute: i64,
    secret_hash: Vec<u8>,
    expires_at: Option<Timestamp>,
}

/// Keys of a deleted tenant went with it.
pub async fn find(conn: &mut Conn, id: &str) -> Result<Option<KeyFacts>> {
    let row: Option<FactsRow> = sql(
        "SELECT k.api_key_id, k.tenant_uuid, k.name, k.scopes, k.rate_limit_per_minute, k.secret_hash, k.expires_at \
             FROM api_keys k JOIN tenants t ON t.tenant_uuid = k.tenant_uuid \
             WHERE k.key_prefix = $1 AND k.deactivated_at IS NULL AND t.deleted_at IS NULL",
    )
    .bind(id)
    .optional(conn)
    .await?;
    Ok(row.map(|row| KeyFacts {
        key: Arc::new(ApiKey {
            api_key_id: row.api_key_id,
            tenant_uuid: row.tenant_uuid,
            key_prefix: api_key::prefix_of(id),
            name: row.name,
            scopes: KeyScopes::from_stored(&row.scopes),
            rate_limit_per_minute: row.rate_limit_per_minute,
            expires_at: row.expires_at,
        }),
        secret_hash: row.secret_hash,
    }))
}

/// A key as its tenant sees it.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct KeyRow {
    pub api_key_id: i64,
    pub key_prefix: String,
    pub name: String,
    pub scopes: String,
    pub rate_limit_per_minute: i64,
    pub created_by_user_uuid: UserUuid,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub deactivated_at: Option<Timestamp>,
    pub last_used_at: Option<Timestamp>,
}

impl KeyRow {
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.deactivated_at.is_none() && self.expires_at.is_none_or(|expires_at| expires_at > now)
    }
}

const COLUMNS: &str = "api_key_id, key_prefix, name, scopes, rate_limit_per_minute, created_by_user_uuid, created_at, expires_at, \
    deactivated_at, last_used_at";
/// Of the tenant `$1`, at `$2`.
const ACTIVE: &str =
    "FROM api_keys WHERE tenant_uuid = $1 AND deactivated_at IS NULL AND (expires_at IS NULL OR expires_at > $2)";

/// The active ones, newest first.
pub async fn list(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<Vec<KeyRow>> {
    sql(&format!("SELECT {COLUMNS} {ACTIVE} ORDER BY api_key_id DESC LIMIT $3"))
        .bind(scope.tenant_uuid())
        .bind(now)
        .bind(MAX_KEYS)
        .all(conn)
        .await
}

pub async fn count(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<i64> {
    let (count,): (i64,) = sql("SELECT COUNT(*) ").push(ACTIVE).bind(scope.tenant_uuid()).bind(now).one(conn).await?;
    Ok(count)
}

/// Nothing when another key has the id.
pub async fn insert(
    tx: &mut Tx,
    scope: &Scope,
    key: &api_key::NewKey,
    new: &NewKey,
    created_by: UserUuid,
    now: Timestamp,
) -> Result<Option<KeyRow>> {
    sql(&format!(
        "INSERT INTO api_keys (tenant_uuid, key_prefix, secret_hash, name, scopes, rate_limit_per_minute, \
         created_by_user_uuid, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
         ON CONFLICT (key_prefix) DO NOTHING RETURNING {COLUMNS}"
    ))
    .bind(scope.tenant_uuid())
    .bind(key.id.as_str())
    .bind(key.secret_hash.as_slice())
    .bind(new.name.as_str())
    .bind(new.scopes.to_stored())
    .bind(new.rate_limit_per_minute)
    .bind(created_by)
    .bind(now)
    .bind(new.expires_at)
    .optional(tx)
    .await
}

/// The key, which nobody else changes until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, api_key_id: i64) -> Result<Option<KeyRow>> {
    let lock = tx.dialect().for_update();
    sql(&format!("SELECT {COLUMNS} FROM api_keys WHERE api_key_id = $1 AND tenant_uuid = $2"))
        .push(lock)
        .bind(api_key_id)
        .bind(scope.tenant_uuid())
        .optional(tx)
        .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, key: &KeyRow) -> Result<()> {
    sql("UPDATE api_keys SET name = $3, scopes = $4, rate_limit_per_minute = $5 WHERE api_key_id = $1 AND tenant_uuid = $2")
        .bind(key.api_key_id)
        .bind(scope.tenant_uuid())
        .bind(key.name.as_str())
        .bind(key.scopes.as_str())
        .bind(key.rate_limit_per_minute)
        .execute(tx)
        .await?;
    Ok(())
}

pub async fn deactivate(tx: &mut Tx, scope: &Scope, api_key_id: i64, now: Timestamp) -> Result<()> {
    sql("UPDATE api_keys SET deactivated_at = $3 WHERE api_key_id = $1 AND tenant_uuid = $2")
        .bind(api_key_id)
        .bind(scope.tenant_uuid())
        .bind(now)
        .execute(tx)
        .await?;
    Ok(())
}

/// The minute a key was used in last, and how much of its limit was handed out.
#[derive(sqlx::FromRow)]
pub struct WindowRow {
    pub rate_limit_per_minute: i64,
    pub window_minute: i64,
    pub window_requests: i64,
    pub window_replica: Option<Uuid>,
}

/// Until the transaction ends, no other one hands out requests of this key.
pub async fn lock_window(tx: &mut Tx, api_key_id: i64) -> Result<Option<WindowRow>> {
    let lock = tx.dialect().for_update();
    sql("SELECT rate_limit_per_minute, window_minute, window_requests, window_replica FROM api_keys WHERE api_key_id = $1")
        .push(lock)
        .bind(api_key_id)
        .optional(tx)
        .await
}

pub async fn set_window(
    tx: &mut Tx,
    api_key_id: i64,
    minute: i64,
    requests: i64,
    only_replica: Option<Uuid>,
    used_at: Timestamp,
) -> Result<()> {
    sql("UPDATE api_keys SET window_minute = $2, window_requests = $3, window_replica = $4, last_used_at = $5 \
         WHERE api_key_id = $1")
    .bind(api_key_id)
    .bind(minute)
    .bind(requests)
    .bind(only_replica)
    .bind(used_at)
    .execute(tx)
    .await?;
    Ok(())
}

pub async fn return_requests(tx: &mut Tx, api_key_id: i64, minute: i64, requests: i64) -> Result<()> {
    sql("UPDATE api_keys SET window_requests = window_requests - $3 WHERE api_key_id = $1 AND window_minute = $2")
        .bind(api_key_id)
        .bind(minute)
        .bind(requests)
        .execute(tx)
        .await?;
    Ok(())
}
