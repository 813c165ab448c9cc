//! SQL of claim codes.

use hub_protocol::Timestamp;
use uuid::Uuid;

use super::{Named, StoredCode};
use crate::authz::Scope;
use crate::db::{Conn, Slice, Tx, sql};
use crate::error::Result;

const COLUMNS: &str = "c.code_hash, c.claim_code_uuid, c.tenant_uuid, c.sealed_code, c.max_uses, \
    c.use_count, c.bundle_uuid, c.hub_identifier, c.owner_user_uuid, c.note, c.allow_reclaim, \
    c.expires_at, c.revoked_at, c.created_at";

pub async fn insert(tx: &mut Tx, scope: &Scope, code: &StoredCode) -> Result<()> {
    sql("INSERT INTO claim_codes (code_hash, tenant_uuid, sealed_code, max_uses, use_count, \
         bundle_uuid, hub_identifier, owner_user_uuid, note, expires_at, created_at, \
         claim_code_uuid, allow_reclaim) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)")
    .bind(code.code_hash.clone())
    .bind(scope.tenant_uuid())
    .bind(code.sealed_code.clone())
    .bind(code.max_uses)
    .bind(code.use_count)
    .bind(code.bundle_uuid)
    .bind(code.hub_identifier.clone())
    .bind(code.owner_user_uuid)
    .bind(code.note.clone())
    .bind(code.expires_at)
    .bind(code.created_at)
    .bind(code.claim_code_uuid)
    .bind(code.allow_reclaim)
    .run(tx)
    .await
}

/// Newest first, and how many there are.
pub async fn list(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<(Vec<StoredCode>, i64)> {
    sql("FROM claim_codes c WHERE c.tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .page(conn, COLUMNS, &["c.created_at DESC, c.code_hash DESC"], slice)
        .await
}

/// The tenant's unused codes, counted up to a limit.
pub async fn count_unused(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<i64> {
    sql("SELECT COUNT(*) FROM (SELECT 1 FROM claim_codes \
         WHERE tenant_uuid = $1 AND use_count = 0 LIMIT $2) c")
    .bind(scope.tenant_uuid())
    .bind(limit)
    .scalar(conn)
    .await
}

/// The status of a bundle of the tenant.
pub async fn bundle_status(conn: &mut Conn, scope: &Scope, bundle_uuid: Uuid) -> Result<Option<String>> {
    sql("SELECT status FROM supplier_bundles WHERE bundle_uuid = $1 AND tenant_uuid = $2")
        .bind(bundle_uuid)
        .bind(scope.tenant_uuid())
        .optional_scalar(conn)
        .await
}

/// Of any tenant that is not deleted: the code identifies the tenant.
pub async fn find(conn: &mut Conn, code_hash: &[u8]) -> Result<Option<StoredCode>> {
    sql("SELECT ")
        .push(COLUMNS)
        .push(
            " FROM claim_codes c JOIN tenants t ON t.tenant_uuid = c.tenant_uuid \
         WHERE c.code_hash = $1 AND t.deleted_at IS NULL",
        )
        .bind(code_hash)
        .optional(conn)
        .await
}

/// The tenant's code, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &Scope, named: &Named) -> Result<Option<StoredCode>> {
    let statement =
        sql("SELECT ").push(COLUMNS).push(" FROM claim_codes c WHERE c.tenant_uuid = $1").bind(scope.tenant_uuid());
    let statement = match named {
        Named::Code(code) => statement.push(" AND c.code_hash = ").push_bind(code.hash()),
        Named::Id(claim_code_uuid) => statement.push(" AND c.claim_code_uuid = ").push_bind(*claim_code_uuid),
    };
    statement.for_update(tx).optional(tx).await
}

pub async fn delete(tx: &mut Tx, scope: &Scope, code_hash: &[u8]) -> Result<()> {
    sql("DELETE FROM claim_codes WHERE code_hash = $1 AND tenant_uuid = $2")
        .bind(code_hash)
        .bind(scope.tenant_uuid())
        .run(tx)
        .await
}

pub async fn revoke(tx: &mut Tx, scope: &Scope, code_hash: &[u8], now: Timestamp) -> Result<()> {
    sql("UPDATE claim_codes SET revoked_at = $3 WHERE code_hash = $1 AND tenant_uuid = $2")
        .bind(code_hash)
        .bind(scope.tenant_uuid())
        .bind(now)
        .run(tx)
        .await
}

pub async fn revoke_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    sql("UPDATE claim_codes SET revoked_at = $2 WHERE tenant_uuid = $1 AND revoked_at IS NULL")
        .bind(scope.tenant_uuid())
        .bind(now)
        .execute(tx)
        .await
}

pub async fn consume_use(tx: &mut Tx, code_hash: &[u8], now: Timestamp) -> Result<bool> {
    let updated = sql("UPDATE claim_codes SET use_count = use_count + 1 \
         WHERE code_hash = $1 AND use_count < max_uses AND revoked_at IS NULL AND expires_at > $2")
    .bind(code_hash)
    .bind(now)
    .execute(tx)
    .await?;
    Ok(updated > 0)
}
