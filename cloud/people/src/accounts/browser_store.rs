//! SQL of the logins of browsers.

use hub_base::db::{Conn, sql};
use hub_base::error::Result;
use hub_identity::authn::user::User;
use hub_protocol::Timestamp;

use super::store::Login;

/// The login that a cookie belongs to.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct BrowserLogin {
    #[sqlx(flatten)]
    pub login: Login,
    /// The issuer; empty for an account with a local password.
    pub issuer: String,
    /// Whether it is the cookie in force, and not the one before.
    pub is_current: bool,
    pub cookie_replaced_at: Option<Timestamp>,
    pub last_used_at: Timestamp,
}

/// Deletes the oldest logins of the user's browsers, so that `limit` are left. A deleted login has
/// ended. Returns how many were in force.
pub async fn delete_oldest(
    conn: &mut Conn,
    user: &User,
    limit: i64,
    now: Timestamp,
) -> Result<i64> {
    const OLDEST: &str = "user_uuid = $1 AND cookie_hash IS NOT NULL AND login_uuid NOT IN \
         (SELECT login_uuid FROM logins WHERE user_uuid = $1 AND cookie_hash IS NOT NULL \
         ORDER BY created_at DESC, login_uuid DESC LIMIT $2)";
    let live: i64 = sql("SELECT COUNT(*) FROM logins \
         WHERE revoked_at IS NULL AND expires_at > $3 AND ")
    .push(OLDEST)
    .bind((user.user_uuid, limit, now))
    .scalar(conn)
    .await?;
    sql("DELETE FROM logins WHERE ")
        .push(OLDEST)
        .bind((user.user_uuid, limit))
        .run(conn)
        .await?;
    Ok(live)
}

/// Locks the account, if it belongs to the issuer.
pub async fn lock_of_issuer(conn: &mut Conn, user: &User, issuer: &str) -> Result<bool> {
    sql("SELECT 1 FROM users WHERE user_uuid = $1 AND issuer = $2")
        .for_update(conn)
        .bind((user.user_uuid, issuer))
        .exists(conn)
        .await
}

/// The login that a cookie, or the one that replaced it, belongs to.
pub async fn login_of_cookie(conn: &mut Conn, cookie_hash: &[u8]) -> Result<Option<BrowserLogin>> {
    sql(
        "SELECT l.login_uuid, l.user_uuid, l.persona_uuid, l.expires_at, l.revoked_at, \
         (CASE WHEN u.issuer = '' THEN u.is_platform_admin ELSE l.is_platform_admin END) \
         AS is_platform_admin, l.refresh_hour, l.refresh_count, u.issuer, \
         l.cookie_hash = $1 AS is_current, l.cookie_replaced_at, l.last_used_at \
         FROM logins l JOIN users u ON u.user_uuid = l.user_uuid \
         WHERE l.cookie_hash = $1 OR l.previous_cookie_hash = $1",
    )
    .bind(cookie_hash)
    .optional(conn)
    .await
}

/// Replaces the cookie of a login. `presented` is the cookie that the browser has until it gets the
/// other. False if it was replaced in the meantime.
pub async fn replace_cookie(
    conn: &mut Conn,
    found: &BrowserLogin,
    presented: &[u8],
    cookie_hash: &[u8],
    now: Timestamp,
) -> Result<bool> {
    let changed = sql(
        "UPDATE logins SET cookie_hash = $3, previous_cookie_hash = $2, cookie_replaced_at = $4 \
         WHERE login_uuid = $1 AND (cookie_hash = $2 OR previous_cookie_hash = $2) \
         AND (cookie_replaced_at = $5 OR (cookie_replaced_at IS NULL AND $5 IS NULL))",
    )
    .bind((
        found.login.login_uuid,
        presented,
        cookie_hash,
        now,
        found.cookie_replaced_at,
    ))
    .execute(conn)
    .await?;
    Ok(changed == 1)
}
