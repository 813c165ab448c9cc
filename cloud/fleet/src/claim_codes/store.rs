//! SQL of claim codes.

use hub_base::db::{Conn, Slice, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::{Named, StoredCode};

const COLUMNS: &str = "c.code_hash, c.claim_code_uuid, c.tenant_uuid, c.sealed_code, c.max_uses, \
    c.use_count, c.bundle_uuid, c.hub_identifier, c.owner_user_uuid, c.note, c.allow_reclaim, \
    c.expires_at, c.revoked_at, c.created_at, c.claimed_hub_uuid, c.is_pairing";

pub async fn insert(tx: &mut Tx, scope: &Scope, code: &StoredCode) -> Result<()> {
    sql(
        "INSERT INTO claim_codes (code_hash, tenant_uuid, sealed_code, max_uses, use_count, \
         bundle_uuid, hub_identifier, owner_user_uuid, note, expires_at, created_at, \
         claim_code_uuid, allow_reclaim, is_pairing) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    )
    .bind((
        code.code_hash.clone(),
        scope.tenant_uuid(),
        code.sealed_code.clone(),
        code.max_uses,
        code.use_count,
        code.bundle_uuid,
        code.hub_identifier.clone(),
        code.owner_user_uuid,
        code.note.clone(),
        code.expires_at,
        code.created_at,
        code.claim_code_uuid,
        code.allow_reclaim,
        code.is_pairing,
    ))
    .run(tx)
    .await
}

/// One page, newest first, and the total number.
pub async fn list(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<(Vec<StoredCode>, i64)> {
    sql("FROM claim_codes c WHERE c.tenant_uuid = $1")
        .bind(scope.tenant_uuid())
        .page(
            conn,
            COLUMNS,
            &["c.created_at DESC, c.code_hash DESC"],
            slice,
        )
        .await
}

/// The tenant's unused codes, counted up to a limit. Codes that people make for themselves have
/// limits of their own.
pub async fn count_unused(conn: &mut Conn, scope: &Scope, limit: i64) -> Result<i64> {
    sql("SELECT COUNT(*) FROM (SELECT 1 FROM claim_codes \
         WHERE tenant_uuid = $1 AND use_count = 0 AND NOT is_pairing LIMIT $2) c")
    .bind((scope.tenant_uuid(), limit))
    .scalar(conn)
    .await
}

/// The status of a bundle of the tenant.
pub async fn bundle_status(
    conn: &mut Conn,
    scope: &Scope,
    bundle_uuid: Uuid,
) -> Result<Option<String>> {
    sql("SELECT status FROM supplier_bundles WHERE bundle_uuid = $1 AND tenant_uuid = $2")
        .bind((bundle_uuid, scope.tenant_uuid()))
        .optional_scalar(conn)
        .await
}

/// The code of any tenant that is not deleted: the code identifies the tenant.
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
    let statement = sql("SELECT ")
        .push(COLUMNS)
        .push(" FROM claim_codes c WHERE c.tenant_uuid = $1")
        .bind(scope.tenant_uuid());
    let statement = match named {
        Named::Code(code) => statement.push(" AND c.code_hash = ").push_bind(code.hash()),
        Named::Id(claim_code_uuid) => statement
            .push(" AND c.claim_code_uuid = ")
            .push_bind(*claim_code_uuid),
    };
    statement.for_update(tx).optional(tx).await
}

pub async fn delete(tx: &mut Tx, scope: &Scope, code_hash: &[u8]) -> Result<()> {
    sql("DELETE FROM claim_codes WHERE code_hash = $1 AND tenant_uuid = $2")
        .bind((code_hash, scope.tenant_uuid()))
        .run(tx)
        .await
}

pub async fn revoke(tx: &mut Tx, scope: &Scope, code_hash: &[u8], now: Timestamp) -> Result<()> {
    sql("UPDATE claim_codes SET revoked_at = $3 WHERE code_hash = $1 AND tenant_uuid = $2")
        .bind((code_hash, scope.tenant_uuid(), now))
        .run(tx)
        .await
}

/// Revokes all codes of a tenant that is being deleted, and returns their number.
pub async fn revoke_all(tx: &mut Tx, scope: &Scope, now: Timestamp) -> Result<u64> {
    sql("UPDATE claim_codes SET revoked_at = $2 WHERE tenant_uuid = $1 AND revoked_at IS NULL")
        .bind((scope.tenant_uuid(), now))
        .execute(tx)
        .await
}

pub async fn consume_use(
    tx: &mut Tx,
    code_hash: &[u8],
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<bool> {
    let updated = sql(
        "UPDATE claim_codes SET use_count = use_count + 1, claimed_hub_uuid = $3 \
         WHERE code_hash = $1 AND use_count < max_uses AND revoked_at IS NULL AND expires_at > $2",
    )
    .bind((code_hash, now, hub_uuid))
    .execute(tx)
    .await?;
    Ok(updated > 0)
}

/// The codes that a person has made for themselves: the number of those that wait for a hub, and of
/// all since a time.
pub async fn count_pairing(
    conn: &mut Conn,
    user_uuid: UserUuid,
    now: Timestamp,
    since: Timestamp,
) -> Result<(i64, i64)> {
    sql(
        "SELECT CAST(COALESCE(SUM(CASE WHEN use_count = 0 AND expires_at > $2 THEN 1 ELSE 0 END), \
         0) AS BIGINT), COUNT(*) FROM claim_codes \
         WHERE owner_user_uuid = $1 AND created_at > $3 AND is_pairing",
    )
    .bind((user_uuid, now, since))
    .one(conn)
    .await
}

/// Deletes codes that people made for themselves and no hub used until `before`; at most `limit`.
pub async fn delete_unused_pairing(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM claim_codes WHERE code_hash IN (SELECT code_hash FROM claim_codes \
         WHERE is_pairing AND use_count = 0 AND expires_at < $1 LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}

/// Removes a person as the owner of codes: deletes the unused ones, and those that the person made
/// for their own use. The others lose their owner.
pub async fn forget_owner(tx: &mut Tx, user_uuid: UserUuid, now: Timestamp) -> Result<()> {
    sql("DELETE FROM claim_codes WHERE owner_user_uuid = $1 AND (use_count = 0 OR is_pairing)")
        .bind(user_uuid)
        .run(tx)
        .await?;
    sql(
        "UPDATE claim_codes SET owner_user_uuid = NULL, note = NULL, hub_identifier = NULL, \
         revoked_at = COALESCE(revoked_at, $2) WHERE owner_user_uuid = $1",
    )
    .bind((user_uuid, now))
    .run(tx)
    .await
}
