//! SQL of supplier links and of authorizations that were begun.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_identity::authz::UserScope;
use hub_protocol::{PersonaUuid, TenantUuid, Timestamp, UserUuid, text_enum};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::oauth::TokenAuth;

/// Whether a link is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LinkStatus {
    /// The link is in force.
    Active,
    /// No usable token can be had any more; the user has to link the account again.
    Expired,
    /// Its user has ended it.
    Revoked,
}

text_enum!(LinkStatus { Active = "ACTIVE", Expired = "EXPIRED", Revoked = "REVOKED" });

/// An authorization that was begun.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Attempt {
    pub attempt_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub user_uuid: UserUuid,
    pub persona_uuid: PersonaUuid,
    pub sealed_verifier: Vec<u8>,
    pub target: String,
    /// The code of the supplier's answer.
    pub sealed_code: Option<Vec<u8>>,
    pub expires_at: Timestamp,
}

const ATTEMPT: &str = "attempt_uuid, tenant_uuid, user_uuid, persona_uuid, sealed_verifier, \
    target, sealed_code, expires_at";

pub async fn insert_attempt(
    tx: &mut Tx,
    state_hash: Vec<u8>,
    attempt: &Attempt,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO supplier_link_attempts (state_hash, attempt_uuid, tenant_uuid, user_uuid, \
         persona_uuid, sealed_verifier, target, created_at, expires_at) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind((
        state_hash,
        attempt.attempt_uuid,
        attempt.tenant_uuid,
        attempt.user_uuid,
        attempt.persona_uuid,
        attempt.sealed_verifier.clone(),
        attempt.target.as_str(),
        now,
        attempt.expires_at,
    ))
    .run(tx)
    .await
}

/// Deletes all attempts of the user but the newest `keep`.
pub async fn forget_attempts_of(tx: &mut Tx, user_uuid: UserUuid, keep: i64) -> Result<()> {
    sql(
        "DELETE FROM supplier_link_attempts WHERE user_uuid = $1 AND attempt_uuid NOT IN \
         (SELECT attempt_uuid FROM supplier_link_attempts WHERE user_uuid = $1 \
         ORDER BY created_at DESC, attempt_uuid DESC LIMIT $2)",
    )
    .bind((user_uuid, keep))
    .run(tx)
    .await
}

/// The attempt of a state that no supplier has answered yet.
pub async fn unanswered(
    conn: &mut Conn,
    state_hash: Vec<u8>,
    now: Timestamp,
) -> Result<Option<Attempt>> {
    sql("SELECT ")
        .push(ATTEMPT)
        .push(
            " FROM supplier_link_attempts \
             WHERE state_hash = $1 AND completion_hash IS NULL AND expires_at > $2",
        )
        .bind((state_hash, now))
        .optional(conn)
        .await
}

/// Stores the answer to an attempt. Of several, the first is stored.
pub async fn keep_answer(
    tx: &mut Tx,
    state_hash: Vec<u8>,
    completion_hash: Vec<u8>,
    sealed_code: Vec<u8>,
    expires_at: Timestamp,
) -> Result<bool> {
    let stored = sql(
        "UPDATE supplier_link_attempts SET completion_hash = $2, sealed_code = $3, \
         expires_at = $4 WHERE state_hash = $1 AND completion_hash IS NULL",
    )
    .bind((state_hash, completion_hash, sealed_code, expires_at))
    .execute(tx)
    .await?;
    Ok(stored > 0)
}

/// Deletes an attempt that has no answer. False if it has one, or is not there.
pub async fn forget_attempt(tx: &mut Tx, state_hash: Vec<u8>) -> Result<bool> {
    let deleted =
        sql("DELETE FROM supplier_link_attempts WHERE state_hash = $1 AND completion_hash IS NULL")
            .bind(state_hash)
            .execute(tx)
            .await?;
    Ok(deleted > 0)
}

pub async fn is_answered(
    conn: &mut Conn,
    state_hash: Vec<u8>,
    completion_hash: Vec<u8>,
) -> Result<bool> {
    sql("SELECT 1 FROM supplier_link_attempts WHERE state_hash = $1 AND completion_hash = $2")
        .bind((state_hash, completion_hash))
        .exists(conn)
        .await
}

/// Deletes an answered attempt and returns it. Of several callers, one gets it.
pub async fn take_answered(
    tx: &mut Tx,
    state_hash: Vec<u8>,
    completion_hash: Vec<u8>,
) -> Result<Option<Attempt>> {
    sql(
        "DELETE FROM supplier_link_attempts WHERE state_hash = $1 AND completion_hash = $2 \
         RETURNING ",
    )
    .push(ATTEMPT)
    .bind((state_hash, completion_hash))
    .optional(tx)
    .await
}

/// Deletes attempts that have expired, up to `limit`, and returns how many.
pub async fn forget_expired(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<u64> {
    sql("DELETE FROM supplier_link_attempts WHERE attempt_uuid IN \
         (SELECT attempt_uuid FROM supplier_link_attempts WHERE expires_at <= $1 LIMIT $2)")
    .bind((now, limit))
    .execute(tx)
    .await
}

/// A link.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct LinkRow {
    pub supplier_link_id: i64,
    pub link_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub user_uuid: UserUuid,
    pub user_sub: Option<String>,
    #[sqlx(try_from = "String")]
    pub status: LinkStatus,
    #[sqlx(try_from = "String")]
    pub token_auth: TokenAuth,
    pub sealed_access_token: Option<Vec<u8>>,
    pub sealed_refresh_token: Option<Vec<u8>>,
    pub version: i64,
    pub expires_at: Option<Timestamp>,
    pub refresh_at: Option<Timestamp>,
    pub refresh_error: Option<String>,
    pub retry_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

const LINK: &str = "supplier_link_id, link_uuid, tenant_uuid, user_uuid, user_sub, status, \
    token_auth, sealed_access_token, sealed_refresh_token, version, expires_at, \
    refresh_at, refresh_error, retry_at, revoked_at";

/// The tokens of a link, sealed.
#[derive(Clone, Debug)]
pub struct SealedTokens {
    pub access_token: Vec<u8>,
    pub refresh_token: Option<Vec<u8>>,
    pub expires_at: Option<Timestamp>,
    pub refresh_at: Option<Timestamp>,
    /// The granted scope; None leaves the stored one unchanged.
    pub scope: Option<String>,
}

/// A link as its user sees it in a list.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Listed {
    pub supplier_link_id: i64,
    pub tenant_uuid: TenantUuid,
    pub supplier_name: String,
    pub user_sub: Option<String>,
    pub scope: String,
    #[sqlx(try_from = "String")]
    pub status: LinkStatus,
    pub linked_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

const LISTED: &str = "SELECT supplier_link_id, supplier_links.tenant_uuid AS tenant_uuid, \
    tenants.name AS supplier_name, user_sub, scope, CASE WHEN expires_at <= $2 \
    AND sealed_refresh_token IS NULL THEN 'EXPIRED' ELSE status END AS status, linked_at, \
    expires_at FROM supplier_links \
    JOIN tenants ON tenants.tenant_uuid = supplier_links.tenant_uuid \
    WHERE user_uuid = $1 AND status = 'ACTIVE'";

/// The user's links that were not revoked, newest first.
pub async fn list(
    conn: &mut Conn,
    scope: &UserScope,
    tenant_uuid: Option<TenantUuid>,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Listed>> {
    let mut list = sql(LISTED).bind((scope.user_uuid(), now));
    if let Some(tenant_uuid) = tenant_uuid {
        list = list
            .push(" AND supplier_links.tenant_uuid = ")
            .push_bind(tenant_uuid);
    }
    list.push(" ORDER BY supplier_link_id DESC LIMIT ")
        .push_bind(limit)
        .all(conn)
        .await
}

/// The number of the user's active links, and of those to one supplier.
pub async fn count(
    conn: &mut Conn,
    user_uuid: UserUuid,
    tenant_uuid: TenantUuid,
) -> Result<(i64, i64)> {
    sql(
        "SELECT COUNT(*), CAST(COALESCE(SUM(CASE WHEN tenant_uuid = $2 THEN 1 ELSE 0 END), 0) \
         AS BIGINT) FROM supplier_links WHERE user_uuid = $1 AND status = 'ACTIVE'",
    )
    .bind((user_uuid, tenant_uuid))
    .one(conn)
    .await
}

const OWN: &str = " FROM supplier_links \
    WHERE supplier_link_id = $1 AND user_uuid = $2 AND status = 'ACTIVE'";

/// The user's active link.
pub async fn get(conn: &mut Conn, scope: &UserScope, id: i64) -> Result<Option<LinkRow>> {
    sql("SELECT ")
        .push(LINK)
        .push(OWN)
        .bind((id, scope.user_uuid()))
        .optional(conn)
        .await
}

/// The user's active link to the supplier that was made last.
pub async fn newest(
    conn: &mut Conn,
    scope: &UserScope,
    supplier: TenantUuid,
) -> Result<Option<LinkRow>> {
    sql("SELECT ")
        .push(LINK)
        .push(
            " FROM supplier_links WHERE tenant_uuid = $1 AND user_uuid = $2 AND status = 'ACTIVE' \
             ORDER BY linked_at DESC, supplier_link_id DESC LIMIT 1",
        )
        .bind((supplier, scope.user_uuid()))
        .optional(conn)
        .await
}

/// The user's active link, locked until the transaction ends.
pub async fn lock(tx: &mut Tx, scope: &UserScope, id: i64) -> Result<Option<LinkRow>> {
    sql("SELECT ")
        .push(LINK)
        .push(OWN)
        .for_update(tx)
        .bind((id, scope.user_uuid()))
        .optional(tx)
        .await
}

/// A link, active or not, for work without a user.
pub async fn find(conn: &mut Conn, id: i64) -> Result<Option<LinkRow>> {
    sql("SELECT ")
        .push(LINK)
        .push(" FROM supplier_links WHERE supplier_link_id = $1")
        .bind(id)
        .optional(conn)
        .await
}

/// The user's active link to one account at the supplier, locked until the transaction ends.
pub async fn lock_by_sub(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    user_uuid: UserUuid,
    user_sub: &str,
) -> Result<Option<LinkRow>> {
    sql("SELECT ")
        .push(LINK)
        .push(
            " FROM supplier_links WHERE tenant_uuid = $1 AND user_uuid = $2 AND user_sub = $3 \
             AND status = 'ACTIVE'",
        )
        .for_update(tx)
        .bind((tenant_uuid, user_uuid, user_sub))
        .optional(tx)
        .await
}

/// A link that is still to be made.
#[derive(Debug)]
pub struct NewLink<'a> {
    pub link_uuid: Uuid,
    pub tenant_uuid: TenantUuid,
    pub user_uuid: UserUuid,
    pub user_sub: Option<&'a str>,
    pub token_auth: TokenAuth,
}

pub async fn insert(
    tx: &mut Tx,
    link: &NewLink<'_>,
    scope: &str,
    tokens: SealedTokens,
    now: Timestamp,
) -> Result<i64> {
    sql(
        "INSERT INTO supplier_links (link_uuid, tenant_uuid, user_uuid, user_sub, scope, status, \
         token_auth, sealed_access_token, sealed_refresh_token, version, linked_at, expires_at, \
         refresh_at) VALUES ($1, $2, $3, $4, $5, 'ACTIVE', $6, $7, $8, 1, $9, $10, $11) \
         RETURNING supplier_link_id",
    )
    .bind((
        link.link_uuid,
        link.tenant_uuid,
        link.user_uuid,
        link.user_sub,
        scope,
        link.token_auth.name(),
        tokens.access_token,
        tokens.refresh_token,
        now,
        tokens.expires_at,
        tokens.refresh_at,
    ))
    .scalar(tx)
    .await
}

/// Renews the link: it gets other tokens, and a running refresh ends.
pub async fn renew(
    tx: &mut Tx,
    id: i64,
    scope: &str,
    token_auth: TokenAuth,
    tokens: SealedTokens,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE supplier_links SET scope = $2, token_auth = $3, sealed_access_token = $4, \
         sealed_refresh_token = $5, version = version + 1, linked_at = $6, expires_at = $7, \
         refresh_at = $8, lease_uuid = NULL, lease_until = NULL, refresh_error = NULL, \
         retry_at = NULL WHERE supplier_link_id = $1",
    )
    .bind((
        id,
        scope,
        token_auth.name(),
        tokens.access_token,
        tokens.refresh_token,
        now,
        tokens.expires_at,
        tokens.refresh_at,
    ))
    .run(tx)
    .await
}

/// Begins a refresh, unless another one runs or these tokens were refreshed.
pub async fn lease(
    tx: &mut Tx,
    link: &LinkRow,
    lease_uuid: Uuid,
    now: Timestamp,
    lease_until: Timestamp,
) -> Result<bool> {
    let begun = sql(
        "UPDATE supplier_links SET lease_uuid = $3, lease_until = $4 \
         WHERE supplier_link_id = $1 AND version = $2 AND status = 'ACTIVE' \
         AND (lease_until IS NULL OR lease_until <= $5) AND (retry_at IS NULL OR retry_at <= $5)",
    )
    .bind((
        link.supplier_link_id,
        link.version,
        lease_uuid,
        lease_until,
        now,
    ))
    .execute(tx)
    .await?;
    Ok(begun > 0)
}

/// Ends a refresh with other tokens. False if the refresh was over before.
pub async fn refreshed(
    tx: &mut Tx,
    id: i64,
    lease_uuid: Uuid,
    tokens: SealedTokens,
) -> Result<bool> {
    let stored = sql("UPDATE supplier_links SET sealed_access_token = $3, \
         sealed_refresh_token = COALESCE($4, sealed_refresh_token), scope = COALESCE($5, scope), \
         version = version + 1, expires_at = $6, refresh_at = $7, lease_uuid = NULL, \
         lease_until = NULL, refresh_error = NULL, retry_at = NULL \
         WHERE supplier_link_id = $1 AND lease_uuid = $2 AND status = 'ACTIVE'")
    .bind((
        id,
        lease_uuid,
        tokens.access_token,
        tokens.refresh_token,
        tokens.scope,
        tokens.expires_at,
        tokens.refresh_at,
    ))
    .execute(tx)
    .await?;
    Ok(stored > 0)
}

/// Ends a refresh that failed. The next one runs at `retry_at`.
pub async fn not_refreshed(
    tx: &mut Tx,
    id: i64,
    lease_uuid: Uuid,
    error: &'static str,
    retry_at: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE supplier_links SET lease_uuid = NULL, lease_until = NULL, refresh_error = $3, \
         retry_at = $4 WHERE supplier_link_id = $1 AND lease_uuid = $2",
    )
    .bind((id, lease_uuid, error, retry_at))
    .run(tx)
    .await
}

/// Marks the link as not refreshable: the supplier has ended the refresh token.
pub async fn not_refreshable(tx: &mut Tx, id: i64, lease_uuid: Uuid) -> Result<bool> {
    let stored = sql(
        "UPDATE supplier_links SET lease_uuid = NULL, lease_until = NULL, \
         refresh_error = NULL, retry_at = NULL, sealed_refresh_token = NULL, refresh_at = NULL \
         WHERE supplier_link_id = $1 AND lease_uuid = $2",
    )
    .bind((id, lease_uuid))
    .execute(tx)
    .await?;
    Ok(stored > 0)
}

/// Ends the link. Its tokens stay until they are revoked at the supplier.
pub async fn revoke(tx: &mut Tx, id: i64, now: Timestamp) -> Result<()> {
    sql(
        "UPDATE supplier_links SET status = 'REVOKED', revoked_at = $2, lease_uuid = NULL, \
         lease_until = NULL WHERE supplier_link_id = $1",
    )
    .bind((id, now))
    .run(tx)
    .await
}

pub async fn forget_tokens(tx: &mut Tx, id: i64) -> Result<()> {
    sql(
        "UPDATE supplier_links SET sealed_access_token = NULL, sealed_refresh_token = NULL \
         WHERE supplier_link_id = $1 AND status = 'REVOKED'",
    )
    .bind(id)
    .run(tx)
    .await
}

/// Ends all links of a tenant, with their tokens, and returns how many were active.
pub async fn revoke_all(tx: &mut Tx, tenant_uuid: TenantUuid, now: Timestamp) -> Result<u64> {
    sql("DELETE FROM supplier_link_attempts WHERE tenant_uuid = $1")
        .bind(tenant_uuid)
        .run(tx)
        .await?;
    sql(
        "UPDATE supplier_links SET sealed_access_token = NULL, sealed_refresh_token = NULL \
         WHERE tenant_uuid = $1 AND status = 'REVOKED'",
    )
    .bind(tenant_uuid)
    .run(tx)
    .await?;
    sql(
        "UPDATE supplier_links SET status = 'REVOKED', revoked_at = $2, lease_uuid = NULL, \
         lease_until = NULL, sealed_access_token = NULL, sealed_refresh_token = NULL \
         WHERE tenant_uuid = $1 AND status = 'ACTIVE'",
    )
    .bind((tenant_uuid, now))
    .execute(tx)
    .await
}

/// Deletes links that were revoked before `before`, up to `limit`, and returns how many.
pub async fn forget_revoked(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql("DELETE FROM supplier_links WHERE supplier_link_id IN \
         (SELECT supplier_link_id FROM supplier_links WHERE revoked_at < $1 \
         ORDER BY revoked_at LIMIT $2)")
    .bind((before, limit))
    .execute(tx)
    .await
}

/// The number of active links to one account at the supplier, counted up to a bound.
pub async fn count_by_sub(conn: &mut Conn, tenant_uuid: TenantUuid, user_sub: &str) -> Result<i64> {
    sql("FROM supplier_links WHERE tenant_uuid = $1 AND user_sub = $2 AND status = 'ACTIVE'")
        .bind((tenant_uuid, user_sub))
        .count(conn)
        .await
}

/// The tenants, of the given ones, with which the user is linked. The list must be short and not
/// empty.
pub async fn suppliers(
    conn: &mut Conn,
    scope: &UserScope,
    tenants: &[TenantUuid],
) -> Result<Vec<TenantUuid>> {
    sql(
        "SELECT DISTINCT tenant_uuid FROM supplier_links WHERE user_uuid = $1 \
         AND status = 'ACTIVE' AND tenant_uuid IN ",
    )
    .bind(scope.user_uuid())
    .push_list(tenants.iter().copied())
    .scalars(conn)
    .await
}

/// Ends all links of a user, and deletes what was begun of others. Returns the ended ones.
pub async fn end_all_of(tx: &mut Tx, user_uuid: UserUuid, now: Timestamp) -> Result<Vec<LinkRow>> {
    sql("DELETE FROM supplier_link_attempts WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(tx)
        .await?;
    sql(
        "UPDATE supplier_links SET status = 'REVOKED', revoked_at = $2, lease_uuid = NULL, \
         lease_until = NULL WHERE user_uuid = $1 AND status = 'ACTIVE' RETURNING ",
    )
    .push(LINK)
    .bind((user_uuid, now))
    .all(tx)
    .await
}

/// The suppliers that a user was ever linked to, each with the user's id there if it is known.
pub async fn subs_of(
    conn: &mut Conn,
    user_uuid: UserUuid,
) -> Result<Vec<(TenantUuid, Option<String>)>> {
    sql("SELECT DISTINCT tenant_uuid, user_sub FROM supplier_links WHERE user_uuid = $1")
        .bind(user_uuid)
        .all(conn)
        .await
}

/// Whether tokens of a user whose links have ended are still to be revoked at suppliers.
pub async fn has_tokens(conn: &mut Conn, user_uuid: UserUuid) -> Result<bool> {
    sql("SELECT 1 FROM supplier_links \
         WHERE user_uuid = $1 AND sealed_access_token IS NOT NULL LIMIT 1")
    .bind(user_uuid)
    .exists(conn)
    .await
}

pub async fn delete_all_of(tx: &mut Tx, user_uuid: UserUuid) -> Result<()> {
    sql("DELETE FROM supplier_link_attempts WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(tx)
        .await?;
    sql("DELETE FROM supplier_links WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(tx)
        .await
}

/// The user's link as the list shows it.
pub async fn listed(
    conn: &mut Conn,
    scope: &UserScope,
    id: i64,
    now: Timestamp,
) -> Result<Option<Listed>> {
    sql(LISTED)
        .push(" AND supplier_link_id = $3")
        .bind((scope.user_uuid(), now, id))
        .optional(conn)
        .await
}

/// Remembers a message of a supplier. False for one that is remembered since a time.
pub async fn is_new_message(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    body_hash: Vec<u8>,
    now: Timestamp,
    since: Timestamp,
) -> Result<bool> {
    let stored = sql(
        "INSERT INTO supplier_messages (tenant_uuid, body_hash, received_at) \
         VALUES ($1, $2, $3) ON CONFLICT (tenant_uuid, body_hash) DO UPDATE \
         SET received_at = excluded.received_at WHERE supplier_messages.received_at <= $4",
    )
    .bind((tenant_uuid, body_hash, now, since))
    .execute(tx)
    .await?;
    Ok(stored > 0)
}

/// Forgets messages that came before a time, up to `limit`, and returns how many.
pub async fn forget_messages(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    sql(
        "DELETE FROM supplier_messages WHERE (tenant_uuid, body_hash) IN \
         (SELECT tenant_uuid, body_hash FROM supplier_messages WHERE received_at <= $1 \
         ORDER BY received_at LIMIT $2)",
    )
    .bind((before, limit))
    .execute(tx)
    .await
}
