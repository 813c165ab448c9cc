//! SQL of API keys.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authn::api_key;
use hub_identity::authz::Scope;
use hub_protocol::{Timestamp, UserUuid};

use super::NewKey;
use crate::tenants::limits::MAX_API_KEYS;

/// A key as shown to its tenant.
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

const COLUMNS: &str = "api_key_id, key_prefix, name, scopes, rate_limit_per_minute, \
    created_by_user_uuid, created_at, expires_at, deactivated_at, last_used_at";
/// The active keys of tenant `$1` at time `$2`.
const ACTIVE: &str = "FROM api_keys \
    WHERE tenant_uuid = $1 AND deactivated_at IS NULL AND (expires_at IS NULL OR expires_at > $2)";

/// The active keys, newest first.
pub async fn list(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<Vec<KeyRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" ")
        .push(ACTIVE)
        .push(" ORDER BY api_key_id DESC LIMIT $3")
        .bind((scope.tenant_uuid(), now, MAX_API_KEYS))
        .all(conn)
        .await
}

/// A key that expires.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Expiring {
    pub api_key_id: i64,
    pub key_prefix: String,
    pub name: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
}

/// The active keys that expire before a time.
pub async fn expiring(
    conn: &mut Conn,
    scope: &Scope,
    now: Timestamp,
    before: Timestamp,
) -> Result<Vec<Expiring>> {
    sql("SELECT api_key_id, key_prefix, name, created_at, expires_at ")
        .push(ACTIVE)
        .push(" AND expires_at < $3 ORDER BY api_key_id LIMIT $4")
        .bind((scope.tenant_uuid(), now, before, MAX_API_KEYS))
        .all(conn)
        .await
}

pub async fn count(conn: &mut Conn, scope: &Scope, now: Timestamp) -> Result<i64> {
    sql("SELECT COUNT(*) ")
        .push(ACTIVE)
        .bind((scope.tenant_uuid(), now))
        .scalar(conn)
        .await
}

/// Returns None when another key has the id.
pub async fn insert(
    tx: &mut Tx,
    scope: &Scope,
    key: &api_key::NewKey,
    new: &NewKey,
    created_by: UserUuid,
    now: Timestamp,
) -> Result<Option<KeyRow>> {
    sql(
        "INSERT INTO api_keys (tenant_uuid, key_prefix, secret_hash, name, scopes, \
         rate_limit_per_minute, created_by_user_uuid, created_at, expires_at) VALUES ($1, $2, $3, \
         $4, $5, $6, $7, $8, $9) ON CONFLICT (key_prefix) DO NOTHING RETURNING ",
    )
    .push(COLUMNS)
    .bind((
        scope.tenant_uuid(),
        key.id.as_str(),
        key.secret_hash.as_slice(),
        new.name.as_str(),
        new.scopes.to_stored(),
        new.rate_limit_per_minute,
        created_by,
        now,
        new.expires_at,
    ))
    .optional(tx)
    .await
}

/// The key, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, api_key_id: i64) -> Result<Option<KeyRow>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM api_keys WHERE api_key_id = $1 AND tenant_uuid = $2")
        .for_update(tx)
        .bind((api_key_id, scope.tenant_uuid()))
        .optional(tx)
        .await
}

pub async fn update(tx: &mut Tx, scope: &Scope, key: &KeyRow) -> Result<()> {
    sql(
        "UPDATE api_keys SET name = $3, scopes = $4, rate_limit_per_minute = $5 \
         WHERE api_key_id = $1 AND tenant_uuid = $2",
    )
    .bind((
        key.api_key_id,
        scope.tenant_uuid(),
        key.name.as_str(),
        key.scopes.as_str(),
        key.rate_limit_per_minute,
    ))
    .run(tx)
    .await
}

pub async fn deactivate(tx: &mut Tx, scope: &Scope, api_key_id: i64, now: Timestamp) -> Result<()> {
    sql("UPDATE api_keys SET deactivated_at = $3 WHERE api_key_id = $1 AND tenant_uuid = $2")
        .bind((api_key_id, scope.tenant_uuid(), now))
        .run(tx)
        .await
}

/// Removes a deleted person as the creator of keys. The keys belong to their tenants, and stay.
pub async fn forget_creator(tx: &mut Tx, user_uuid: UserUuid) -> Result<()> {
    sql("UPDATE api_keys SET created_by_user_uuid = $2 WHERE created_by_user_uuid = $1")
        .bind((user_uuid, uuid::Uuid::nil()))
        .run(tx)
        .await
}
