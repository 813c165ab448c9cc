//! SQL of people, their logins, and failed attempts.

use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::external::Known;
use super::throttle::Failures;
use crate::authn::user::{Session, User};
use crate::db::{Conn, sql};
use crate::error::Result;

/// The issuer of accounts that log in here, with their e-mail as their subject.
const BUILT_IN: &str = "";

/// What a login needs to know of an account.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Account {
    pub user_uuid: UserUuid,
    pub default_persona_uuid: PersonaUuid,
    pub password_hash: String,
    pub is_platform_admin: bool,
}

impl Account {
    pub fn user(&self, login_uuid: Uuid) -> User {
        User {
            user_uuid: self.user_uuid,
            persona_uuid: self.default_persona_uuid,
            is_platform_admin: self.is_platform_admin,
            session: Session::Login(login_uuid),
        }
    }
}

pub async fn account(conn: &mut Conn, email: &str) -> Result<Option<Account>> {
    sql("SELECT user_uuid, default_persona_uuid, password_hash, is_platform_admin FROM users WHERE issuer = $2 AND subject = $1")
        .bind(email)
        .bind(BUILT_IN)
        .optional(conn)
        .await
}

/// An account as its owner's login finds it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Credentials {
    pub email: String,
    pub password_hash: String,
    pub issuer: String,
    pub default_persona_uuid: PersonaUuid,
}

impl Credentials {
    /// Those of another issuer have none.
    pub fn has_password(&self) -> bool {
        self.issuer == BUILT_IN
    }
}

pub async fn credentials(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<Credentials>> {
    sql("SELECT email, password_hash, issuer, default_persona_uuid FROM users WHERE user_uuid = $1")
        .bind(user_uuid)
        .optional(conn)
        .await
}

/// Whether the account still has this password; until the transaction ends nobody gives it another.
pub async fn lock_password(conn: &mut Conn, user_uuid: UserUuid, password_hash: &str) -> Result<bool> {
    let lock = conn.dialect().for_update();
    let locked: Option<(UserUuid,)> = sql("SELECT user_uuid FROM users WHERE user_uuid = $1 AND password_hash = $2")
        .push(lock)
        .bind(user_uuid)
        .bind(password_hash)
        .optional(conn)
        .await?;
    Ok(locked.is_some())
}

pub async fn set_password(conn: &mut Conn, user_uuid: UserUuid, password_hash: &str) -> Result<()> {
    sql("UPDATE users SET password_hash = $2 WHERE user_uuid = $1")
        .bind(user_uuid)
        .bind(password_hash)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn insert_reset(
    conn: &mut Conn,
    hash: &[u8],
    user_uuid: UserUuid,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    sql("INSERT INTO password_resets (token_hash, user_uuid, created_at, expires_at) VALUES ($1, $2, $3, $4)")
        .bind(hash)
        .bind(user_uuid)
        .bind(now)
        .bind(expires_at)
        .execute(conn)
        .await?;
    Ok(())
}

/// Until the transaction ends, no other one counts this user's resets.
pub async fn lock_user(conn: &mut Conn, user_uuid: UserUuid) -> Result<()> {
    let lock = conn.dialect().for_update();
    let _: Option<(UserUuid,)> =
        sql("SELECT user_uuid FROM users WHERE user_uuid = $1").push(lock).bind(user_uuid).optional(conn).await?;
    Ok(())
}

pub async fn count_resets(conn: &mut Conn, user_uuid: UserUuid, now: Timestamp) -> Result<i64> {
    let (count,): (i64,) = sql("SELECT COUNT(*) FROM password_resets WHERE user_uuid = $1 AND expires_at > $2")
        .bind(user_uuid)
        .bind(now)
        .one(conn)
        .await?;
    Ok(count)
}

/// Whose password the token may set.
pub async fn user_of_reset(conn: &mut Conn, hash: &[u8], now: Timestamp) -> Result<Option<UserUuid>> {
    let row: Option<(UserUuid,)> =
        sql("SELECT user_uuid FROM password_resets WHERE token_hash = $1 AND expires_at > $2")
            .bind(hash)
            .bind(now)
            .optional(conn)
            .await?;
    Ok(row.map(|(user_uuid,)| user_uuid))
}

/// Whoever knows the password needs none, and the one that was used works once.
pub async fn delete_resets(conn: &mut Conn, user_uuid: UserUuid) -> Result<()> {
    sql("DELETE FROM password_resets WHERE user_uuid = $1").bind(user_uuid).execute(conn).await?;
    Ok(())
}

pub async fn delete_expired_resets(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<u64> {
    sql("DELETE FROM password_resets WHERE token_hash IN \
         (SELECT token_hash FROM password_resets WHERE expires_at <= $1 LIMIT $2)")
    .bind(now)
    .bind(limit)
    .execute(conn)
    .await
}

/// Ends all logins of the user but one, if one is to stay.
pub async fn revoke_logins(conn: &mut Conn, user_uuid: UserUuid, except: Option<Uuid>, now: Timestamp) -> Result<u64> {
    sql("UPDATE logins SET revoked_at = $3 WHERE user_uuid = $1 AND revoked_at IS NULL AND ($2 IS NULL OR login_uuid <> $2)")
        .bind(user_uuid)
        .bind(except)
        .bind(now)
        .execute(conn)
        .await
}

/// The account with its default persona. A taken e-mail is a unique violation.
pub async fn insert_account(
    conn: &mut Conn,
    account: &Account,
    email: &str,
    nickname: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    sql("INSERT INTO users (user_uuid, email, password_hash, nickname, is_platform_admin, default_persona_uuid, created_at, issuer, subject) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $2)")
    .bind(account.user_uuid)
    .bind(email)
    .bind(account.password_hash.as_str())
    .bind(nickname.map(str::to_owned))
    .bind(account.is_platform_admin)
    .bind(account.default_persona_uuid)
    .bind(now)
    .bind(BUILT_IN)
    .execute(conn)
    .await?;
    insert_default_persona(conn, account.user_uuid, account.default_persona_uuid, now).await
}

async fn insert_default_persona(
    conn: &mut Conn,
    user_uuid: UserUuid,
    persona_uuid: PersonaUuid,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO personas (persona_uuid, user_uuid, tenant_uuid, role, created_at) VALUES ($1, $2, NULL, NULL, $3)",
    )
    .bind(persona_uuid)
    .bind(user_uuid)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// The account of another issuer's subject.
pub async fn known(conn: &mut Conn, issuer: &str, subject: &str) -> Result<Option<Known>> {
    sql("SELECT user_uuid, default_persona_uuid, email FROM users WHERE issuer = $1 AND subject = $2")
        .bind(issuer)
        .bind(subject)
        .optional(conn)
        .await
}

/// The account with its default persona, unless the subject has one. Whoever is second waits for the first.
pub async fn insert_known(
    conn: &mut Conn,
    known: &Known,
    issuer: &str,
    subject: &str,
    nickname: Option<&str>,
    now: Timestamp,
) -> Result<bool> {
    let inserted = sql(
        "INSERT INTO users (user_uuid, email, password_hash, nickname, is_platform_admin, default_persona_uuid, created_at, issuer, subject) \
         VALUES ($1, $2, '', $3, $4, $5, $6, $7, $8) ON CONFLICT (issuer, subject) DO NOTHING",
    )
    .bind(known.user_uuid)
    .bind(known.email.as_str())
    .bind(nickname.map(str::to_owned))
    .bind(false)
    .bind(known.persona_uuid)
    .bind(now)
    .bind(issuer)
    .bind(subject)
    .execute(conn)
    .await?;
    if inserted == 1 {
        insert_default_persona(conn, known.user_uuid, known.persona_uuid, now).await?;
    }
    Ok(inserted == 1)
}

/// Whether the e-mail was still `before`.
pub async fn change_email(conn: &mut Conn, user_uuid: UserUuid, before: &str, after: &str) -> Result<bool> {
    let changed = sql("UPDATE users SET email = $3 WHERE user_uuid = $1 AND email = $2")
        .bind(user_uuid)
        .bind(before)
        .bind(after)
        .execute(conn)
        .await?;
    Ok(changed == 1)
}

pub async fn make_admin(conn: &mut Conn, user_uuid: UserUuid) -> Result<()> {
    sql("UPDATE users SET is_platform_admin = $2 WHERE user_uuid = $1")
        .bind(user_uuid)
        .bind(true)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn insert_login(
    conn: &mut Conn,
    login_uuid: Uuid,
    user: &User,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    sql("INSERT INTO logins (login_uuid, user_uuid, persona_uuid, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)")
        .bind(login_uuid)
        .bind(user.user_uuid)
        .bind(user.persona_uuid)
        .bind(now)
        .bind(expires_at)
        .execute(conn)
        .await?;
    Ok(())
}

pub async fn insert_refresh_token(conn: &mut Conn, hash: &[u8], login_uuid: Uuid, now: Timestamp) -> Result<()> {
    sql("INSERT INTO refresh_tokens (token_hash, login_uuid, created_at) VALUES ($1, $2, $3)")
        .bind(hash)
        .bind(login_uuid)
        .bind(now)
        .execute(conn)
        .await?;
    Ok(())
}

/// A login as one of its refresh tokens finds it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Login {
    pub login_uuid: Uuid,
    pub user_uuid: UserUuid,
    pub persona_uuid: PersonaUuid,
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    pub is_platform_admin: bool,
}

impl Login {
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at > now
    }

    pub fn user(&self) -> User {
        User {
            user_uuid: self.user_uuid,
            persona_uuid: self.persona_uuid,
            is_platform_admin: self.is_platform_admin,
            session: Session::Login(self.login_uuid),
        }
    }
}

pub async fn login_of_token(conn: &mut Conn, hash: &[u8]) -> Result<Option<Login>> {
    sql("SELECT l.login_uuid, l.user_uuid, l.persona_uuid, l.expires_at, l.revoked_at, u.is_platform_admin \
         FROM refresh_tokens r JOIN logins l ON l.login_uuid = r.login_uuid JOIN users u ON u.user_uuid = l.user_uuid \
         WHERE r.token_hash = $1")
    .bind(hash)
    .optional(conn)
    .await
}

/// Marks the token as exchanged. Of two that try, the second waits for the first and is told that it came too late.
pub async fn rotate(conn: &mut Conn, hash: &[u8], now: Timestamp) -> Result<bool> {
    let changed = sql("UPDATE refresh_tokens SET rotated_at = $2 WHERE token_hash = $1 AND rotated_at IS NULL")
        .bind(hash)
        .bind(now)
        .execute(conn)
        .await?;
    Ok(changed == 1)
}

/// Whether it was live until now.
pub async fn revoke_login(conn: &mut Conn, login_uuid: Uuid, now: Timestamp) -> Result<bool> {
    let changed = sql("UPDATE logins SET revoked_at = $2 WHERE login_uuid = $1 AND revoked_at IS NULL")
        .bind(login_uuid)
        .bind(now)
        .execute(conn)
        .await?;
    Ok(changed == 1)
}

pub async fn failures(conn: &mut Conn, subject: &str) -> Result<Option<Failures>> {
    sql("SELECT failures, last_failed_at FROM login_failures WHERE subject = $1").bind(subject).optional(conn).await
}

/// Makes sure that there is a row and that no other transaction counts on it meanwhile.
pub async fn lock_failures(conn: &mut Conn, subject: &str, now: Timestamp) -> Result<()> {
    sql("INSERT INTO login_failures (subject, failures, last_failed_at) VALUES ($1, 0, $2) \
         ON CONFLICT (subject) DO UPDATE SET failures = login_failures.failures")
    .bind(subject)
    .bind(now)
    .execute(conn)
    .await?;
    Ok(())
}

/// One more; the first again when the last was before `forget_before`.
pub async fn add_failure(conn: &mut Conn, subject: &str, now: Timestamp, forget_before: Timestamp) -> Result<()> {
    sql("UPDATE login_failures SET last_failed_at = $2, \
         failures = CASE WHEN last_failed_at < $3 THEN 1 ELSE failures + 1 END WHERE subject = $1")
    .bind(subject)
    .bind(now)
    .bind(forget_before)
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn clear_failures(conn: &mut Conn, subject: &str) -> Result<()> {
    sql("DELETE FROM login_failures WHERE subject = $1").bind(subject).execute(conn).await?;
    Ok(())
}

pub async fn take_failure_back(conn: &mut Conn, subject: &str) -> Result<()> {
    sql("UPDATE login_failures SET failures = failures - 1 WHERE subject = $1 AND failures > 0")
        .bind(subject)
        .execute(conn)
        .await?;
    Ok(())
}

/// Deletes up to `limit` refresh tokens of logins that have expired, and as many expired logins that have none left. Until then a revoked
/// login stays: its tokens have to be recognised. Answers the larger of the two counts.
pub async fn delete_expired_logins(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<u64> {
    let tokens = sql("DELETE FROM refresh_tokens WHERE token_hash IN (SELECT r.token_hash FROM refresh_tokens r \
         JOIN logins l ON l.login_uuid = r.login_uuid WHERE l.expires_at <= $1 LIMIT $2)")
    .bind(now)
    .bind(limit)
    .execute(conn)
    .await?;
    let logins =
        sql("DELETE FROM logins WHERE login_uuid IN (SELECT l.login_uuid FROM logins l WHERE l.expires_at <= $1 \
         AND NOT EXISTS (SELECT 1 FROM refresh_tokens r WHERE r.login_uuid = l.login_uuid) LIMIT $2)")
        .bind(now)
        .bind(limit)
        .execute(conn)
        .await?;
    Ok(tokens.max(logins))
}

pub async fn delete_failures(conn: &mut Conn, before: Timestamp, limit: i64) -> Result<u64> {
    sql("DELETE FROM login_failures WHERE subject IN \
         (SELECT subject FROM login_failures WHERE last_failed_at < $1 LIMIT $2)")
    .bind(before)
    .bind(limit)
    .execute(conn)
    .await
}
