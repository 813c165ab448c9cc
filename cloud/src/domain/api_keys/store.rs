//! SQL of API keys.

use hub_protocol::{TenantUuid, Timestamp};

use super::KeyFacts;
use crate::authn::api_key::ApiKey;
use crate::authz::KeyScopes;
use crate::db::{Conn, sql};
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
pub async fn find(conn: &mut Conn, key_prefix: &str) -> Result<Option<KeyFacts>> {
    let row: Option<FactsRow> = sql(
        "SELECT k.api_key_id, k.tenant_uuid, k.name, k.scopes, k.rate_limit_per_minute, k.secret_hash, k.expires_at \
             FROM api_keys k JOIN tenants t ON t.tenant_uuid = k.tenant_uuid \
             WHERE k.key_prefix = $1 AND k.deactivated_at IS NULL AND t.deleted_at IS NULL",
    )
    .bind(key_prefix)
    .optional(conn)
    .await?;
    Ok(row.map(|row| KeyFacts {
        key: ApiKey {
            api_key_id: row.api_key_id,
            tenant_uuid: row.tenant_uuid,
            name: row.name,
            scopes: KeyScopes::from_stored(&row.scopes),
            rate_limit_per_minute: row.rate_limit_per_minute,
        },
        secret_hash: row.secret_hash,
        expires_at: row.expires_at,
    }))
}

pub async fn is_in_force(conn: &mut Conn, api_key_id: i64, now: Timestamp) -> Result<bool> {
    let row: Option<(i64,)> =
        sql("SELECT k.api_key_id FROM api_keys k JOIN tenants t ON t.tenant_uuid = k.tenant_uuid \
             WHERE k.api_key_id = $1 AND k.deactivated_at IS NULL AND t.deleted_at IS NULL \
             AND (k.expires_at IS NULL OR k.expires_at > $2)")
        .bind(api_key_id)
        .bind(now)
        .optional(conn)
        .await?;
    Ok(row.is_some())
}

/// The minute a key was used in last, and how much of its limit was handed out.
#[derive(sqlx::FromRow)]
pub struct Window {
    pub rate_limit_per_minute: i64,
    pub window_minute: i64,
    pub window_requests: i64,
}

/// Until the transaction ends, no other one hands out requests of this key.
pub async fn lock_window(conn: &mut Conn, api_key_id: i64) -> Result<Option<Window>> {
    let lock = conn.dialect().for_update();
    sql("SELECT rate_limit_per_minute, window_minute, window_requests FROM api_keys WHERE api_key_id = $1")
        .push(lock)
        .bind(api_key_id)
        .optional(conn)
        .await
}

pub async fn set_window(
    conn: &mut Conn,
    api_key_id: i64,
    minute: i64,
    requests: i64,
    used_at: Timestamp,
) -> Result<()> {
    sql("UPDATE api_keys SET window_minute = $2, window_requests = $3, last_used_at = $4 WHERE api_key_id = $1")
        .bind(api_key_id)
        .bind(minute)
        .bind(requests)
        .bind(used_at)
        .execute(conn)
        .await?;
    Ok(())
}
