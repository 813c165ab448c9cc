//! SQL of accounts, their logins, password resets and failed login attempts.

use hub_base::db::{Conn, Sql, Tx, sql};
use hub_base::error::Result;
use hub_identity::authn::store::insert_default_persona;
use hub_identity::authn::user::{Session, User};
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use uuid::Uuid;

use super::origin::Origin;

use super::throttle::Failures;

/// The issuer of accounts that log in here, with their e-mail as their subject.
const BUILT_IN: &str = "";

/// The part of an account that a login needs.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Account {
    pub user_uuid: UserUuid,
    pub default_persona_uuid: PersonaUuid,
    pub password_hash: String,
    pub is_platform_admin: bool,
}

/// The columns of an [`Account`], of `users u`.
const ACCOUNT: &str = "u.user_uuid, u.default_persona_uuid, u.password_hash, u.is_platform_admin";

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

/// The account of an e-mail, and whether it logged in from the network since `known_since`.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct LoginAccount {
    #[sqlx(flatten)]
    pub account: Account,
    pub is_known: bool,
}

pub async fn login_account(
    conn: &mut Conn,
    email: &str,
    network: &str,
    known_since: Timestamp,
) -> Result<Option<LoginAccount>> {
    sql("SELECT ")
        .push(ACCOUNT)
        .push(
            ", a.network IS NOT NULL AS is_known FROM users u LEFT JOIN login_addresses a \
             ON a.user_uuid = u.user_uuid AND a.network = $3 AND a.last_login_at > $4 \
             WHERE u.issuer = $2 AND u.subject = $1",
        )
        .bind((email, BUILT_IN, network, known_since))
        .optional(conn)
        .await
}

/// Remembers that the account logged in from the network. Of its networks the last `limit` are
/// kept.
pub async fn remember_address(
    conn: &mut Conn,
    user_uuid: UserUuid,
    network: &str,
    limit: i64,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO login_addresses (user_uuid, network, last_login_at) VALUES ($1, $2, $3) \
         ON CONFLICT (user_uuid, network) DO UPDATE SET last_login_at = excluded.last_login_at",
    )
    .bind((user_uuid, network, now))
    .run(conn)
    .await?;
    sql(
        "DELETE FROM login_addresses WHERE user_uuid = $1 AND network NOT IN \
         (SELECT network FROM login_addresses WHERE user_uuid = $1 \
         ORDER BY last_login_at DESC, network LIMIT $2)",
    )
    .bind((user_uuid, limit))
    .run(conn)
    .await
}

/// Deletes the known networks of an account, since its password may have been used by another
/// person.
pub async fn forget_addresses(conn: &mut Conn, user_uuid: UserUuid) -> Result<()> {
    sql("DELETE FROM login_addresses WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(conn)
        .await
}

/// The accounts that fulfil a condition, which follows.
fn accounts() -> Sql {
    sql("SELECT ").push(ACCOUNT).push(" FROM users u WHERE ")
}

pub async fn account(conn: &mut Conn, email: &str) -> Result<Option<Account>> {
    accounts()
        .push("issuer = $2 AND subject = $1")
        .bind((email, BUILT_IN))
        .optional(conn)
        .await
}

/// The credentials of an account.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Credentials {
    pub email: String,
    pub password_hash: String,
    pub issuer: String,
    pub default_persona_uuid: PersonaUuid,
    pub email_verified_at: Option<Timestamp>,
}

impl Credentials {
    /// Accounts of another issuer have no password here.
    pub fn has_password(&self) -> bool {
        self.issuer == BUILT_IN
    }

    /// Whether the e-mail is known to be this person's: another issuer vouches for it, or the
    /// person has shown a token that was mailed there.
    pub fn has_verified_email(&self) -> bool {
        !self.has_password() || self.email_verified_at.is_some()
    }
}

pub async fn credentials(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<Credentials>> {
    sql(
        "SELECT email, password_hash, issuer, default_persona_uuid, email_verified_at FROM users \
         WHERE user_uuid = $1",
    )
    .bind(user_uuid)
    .optional(conn)
    .await
}

/// Records that the user has shown a token that was mailed to their e-mail. The time of the first
/// proof is kept.
pub async fn verify_email(tx: &mut Tx, user_uuid: UserUuid, now: Timestamp) -> Result<()> {
    sql("UPDATE users SET email_verified_at = $2 \
         WHERE user_uuid = $1 AND email_verified_at IS NULL")
    .bind((user_uuid, now))
    .run(tx)
    .await
}

/// The e-mail, empty if there is none, and the nickname.
pub async fn profile(
    conn: &mut Conn,
    user_uuid: UserUuid,
) -> Result<Option<(String, Option<String>)>> {
    sql("SELECT email, nickname FROM users WHERE user_uuid = $1")
        .bind(user_uuid)
        .optional(conn)
        .await
}

pub async fn exists(conn: &mut Conn, user_uuid: UserUuid) -> Result<bool> {
    let found: Option<UserUuid> =
        sql("SELECT user_uuid FROM users WHERE user_uuid = $1 AND deleted_at IS NULL")
            .bind(user_uuid)
            .optional_scalar(conn)
            .await?;
    Ok(found.is_some())
}

/// The profile that a person has set; the e-mail is empty if there is none.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Profile {
    pub email: String,
    pub nickname: Option<String>,
    pub locale: Option<String>,
    pub time_zone: Option<String>,
    pub phone: Option<String>,
    pub avatar_url: Option<String>,
    pub created_at: Timestamp,
}

pub async fn full_profile(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<Profile>> {
    sql(
        "SELECT email, nickname, locale, time_zone, phone, avatar_url, created_at FROM users \
         WHERE user_uuid = $1",
    )
    .bind(user_uuid)
    .optional(conn)
    .await
}

pub async fn set_profile(conn: &mut Conn, user_uuid: UserUuid, profile: &Profile) -> Result<()> {
    sql(
        "UPDATE users SET nickname = $2, locale = $3, time_zone = $4, phone = $5, \
         avatar_url = $6 WHERE user_uuid = $1",
    )
    .bind((
        user_uuid,
        profile.nickname.as_deref(),
        profile.locale.as_deref(),
        profile.time_zone.as_deref(),
        profile.phone.as_deref(),
        profile.avatar_url.as_deref(),
    ))
    .run(conn)
    .await
}

/// The account, locked until the transaction ends.
pub async fn lock_account(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<Account>> {
    accounts()
        .push("user_uuid = $1")
        .for_update(conn)
        .bind(user_uuid)
        .optional(conn)
        .await
}

/// The account, if it still has this password. The row is locked, so that neither password nor role
/// can change until the transaction ends.
pub async fn lock_password(
    conn: &mut Conn,
    user_uuid: UserUuid,
    password_hash: &str,
) -> Result<Option<Account>> {
    accounts()
        .push("user_uuid = $1 AND password_hash = $2")
        .for_update(conn)
        .bind((user_uuid, password_hash))
        .optional(conn)
        .await
}

pub async fn set_password(conn: &mut Conn, user_uuid: UserUuid, password_hash: &str) -> Result<()> {
    sql("UPDATE users SET password_hash = $2 WHERE user_uuid = $1")
        .bind((user_uuid, password_hash))
        .run(conn)
        .await
}

pub async fn insert_reset(
    conn: &mut Conn,
    hash: &[u8],
    user_uuid: UserUuid,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO password_resets (token_hash, user_uuid, created_at, expires_at) \
         VALUES ($1, $2, $3, $4)",
    )
    .bind((hash, user_uuid, now, expires_at))
    .run(conn)
    .await
}

/// Locks the user, so that concurrent transactions count what belongs to them one after the other.
/// Returns false when there is no such user.
pub async fn lock_user(conn: &mut Conn, user_uuid: UserUuid) -> Result<bool> {
    sql("SELECT 1 FROM users WHERE user_uuid = $1")
        .for_update(conn)
        .bind(user_uuid)
        .exists(conn)
        .await
}

pub async fn count_resets(conn: &mut Conn, user_uuid: UserUuid, now: Timestamp) -> Result<i64> {
    sql("SELECT COUNT(*) FROM password_resets WHERE user_uuid = $1 AND expires_at > $2")
        .bind((user_uuid, now))
        .scalar(conn)
        .await
}

/// The user whose password the token may set.
pub async fn user_of_reset(
    conn: &mut Conn,
    hash: &[u8],
    now: Timestamp,
) -> Result<Option<UserUuid>> {
    sql("SELECT user_uuid FROM password_resets WHERE token_hash = $1 AND expires_at > $2")
        .bind((hash, now))
        .optional_scalar(conn)
        .await
}

/// Deletes all resets of the user: after a login none is needed, and a used one works only once.
pub async fn delete_resets(conn: &mut Conn, user_uuid: UserUuid) -> Result<()> {
    sql("DELETE FROM password_resets WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(conn)
        .await
}

pub async fn delete_expired_resets(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<u64> {
    sql("DELETE FROM password_resets WHERE token_hash IN \
         (SELECT token_hash FROM password_resets WHERE expires_at <= $1 LIMIT $2)")
    .bind((now, limit))
    .execute(conn)
    .await
}

/// Revokes all logins of the user, except one if given.
pub async fn revoke_logins(
    conn: &mut Conn,
    user_uuid: UserUuid,
    except: Option<Uuid>,
    now: Timestamp,
) -> Result<u64> {
    sql("UPDATE logins SET revoked_at = $3 \
         WHERE user_uuid = $1 AND revoked_at IS NULL AND ($2 IS NULL OR login_uuid <> $2)")
    .bind((user_uuid, except, now))
    .execute(conn)
    .await
}

/// Inserts the account and its default persona. An e-mail that is taken is a unique violation.
pub async fn insert_account(
    conn: &mut Conn,
    account: &Account,
    email: &str,
    nickname: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    sql(
        "INSERT INTO users (user_uuid, email, password_hash, nickname, is_platform_admin, \
         default_persona_uuid, created_at, issuer, subject) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $2)",
    )
    .bind((
        account.user_uuid,
        email,
        account.password_hash.as_str(),
        nickname.map(str::to_owned),
        account.is_platform_admin,
        account.default_persona_uuid,
        now,
        BUILT_IN,
    ))
    .execute(conn)
    .await?;
    insert_default_persona(conn, account.user_uuid, account.default_persona_uuid, now).await
}

pub async fn set_admin(
    conn: &mut Conn,
    user_uuid: UserUuid,
    is_platform_admin: bool,
) -> Result<()> {
    sql("UPDATE users SET is_platform_admin = $2 WHERE user_uuid = $1")
        .bind((user_uuid, is_platform_admin))
        .run(conn)
        .await
}

/// A platform administrator with a password here.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Administrator {
    pub user_uuid: UserUuid,
    pub email: String,
    pub nickname: Option<String>,
    pub created_at: Timestamp,
    /// Logins that have not ended.
    pub logins: i64,
    /// When the last of all stored logins began.
    pub last_login_at: Option<Timestamp>,
}

/// The administrators, ordered by e-mail.
pub async fn administrators(
    conn: &mut Conn,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Administrator>> {
    sql("SELECT u.user_uuid, u.email, u.nickname, u.created_at, \
         (SELECT COUNT(*) FROM logins l WHERE l.user_uuid = u.user_uuid \
         AND l.revoked_at IS NULL AND l.expires_at > $3) AS logins, \
         (SELECT MAX(l.created_at) FROM logins l WHERE l.user_uuid = u.user_uuid) \
         AS last_login_at FROM users u WHERE u.issuer = $1 AND u.is_platform_admin = $2 \
         ORDER BY u.email LIMIT $4")
    .bind((BUILT_IN, true, now, limit))
    .all(conn)
    .await
}

/// Whether a tenant waits for somebody with this e-mail.
pub async fn is_invited(conn: &mut Conn, email: &str, now: Timestamp) -> Result<bool> {
    sql(
        "SELECT 1 FROM invitations i JOIN tenants t ON t.tenant_uuid = i.tenant_uuid \
         WHERE i.email = $1 AND i.accepted_at IS NULL AND i.revoked_at IS NULL \
         AND i.expires_at > $2 AND t.deleted_at IS NULL LIMIT 1",
    )
    .bind((email, now))
    .exists(conn)
    .await
}

/// A login that begins.
pub struct NewLogin<'a> {
    pub login_uuid: Uuid,
    pub user: &'a User,
    pub origin: &'a Origin,
    /// Of the login of a browser; other logins have refresh tokens instead.
    pub cookie_hash: Option<&'a [u8]>,
    pub now: Timestamp,
    pub expires_at: Timestamp,
}

pub async fn insert_login(conn: &mut Conn, login: &NewLogin<'_>) -> Result<()> {
    let is_browser = login.cookie_hash.is_some();
    sql(
        "INSERT INTO logins (login_uuid, user_uuid, persona_uuid, created_at, last_used_at, \
         expires_at, cookie_hash, is_platform_admin, address, user_agent) \
         VALUES ($1, $2, $3, $4, $4, $5, $6, $7, $8, $9)",
    )
    .bind((
        login.login_uuid,
        login.user.user_uuid,
        login.user.persona_uuid,
        login.now,
        login.expires_at,
        login.cookie_hash,
        is_browser && login.user.is_platform_admin,
        login.origin.address_text(),
        login.origin.user_agent.as_deref(),
    ))
    .run(conn)
    .await
}

pub async fn insert_refresh_token(
    conn: &mut Conn,
    hash: &[u8],
    login_uuid: Uuid,
    now: Timestamp,
) -> Result<()> {
    sql("INSERT INTO refresh_tokens (token_hash, login_uuid, created_at) VALUES ($1, $2, $3)")
        .bind((hash, login_uuid, now))
        .run(conn)
        .await
}

/// The login that a refresh token belongs to.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Login {
    pub login_uuid: Uuid,
    pub user_uuid: UserUuid,
    pub persona_uuid: PersonaUuid,
    pub expires_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
    pub is_platform_admin: bool,
    /// The hour of the last refresh, counted from 1970, and the refreshes in it.
    pub refresh_hour: i64,
    pub refresh_count: i64,
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
    sql(
        "SELECT l.login_uuid, l.user_uuid, l.persona_uuid, l.expires_at, l.revoked_at, \
         u.is_platform_admin, l.refresh_hour, l.refresh_count FROM refresh_tokens r \
         JOIN logins l ON l.login_uuid = r.login_uuid \
         JOIN users u ON u.user_uuid = l.user_uuid WHERE r.token_hash = $1",
    )
    .bind(hash)
    .optional(conn)
    .await
}

/// Marks the token as used and returns whether this call did it. Of two concurrent calls the second
/// waits for the first and returns false.
pub async fn rotate(conn: &mut Conn, hash: &[u8], now: Timestamp) -> Result<bool> {
    let changed = sql("UPDATE refresh_tokens SET rotated_at = $2 \
         WHERE token_hash = $1 AND rotated_at IS NULL")
    .bind((hash, now))
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// Counts a refresh of the login in this hour.
/// Counts a refresh of a login, and notes from where it was.
pub async fn count_refresh(
    conn: &mut Conn,
    login_uuid: Uuid,
    origin: &Origin,
    used_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<()> {
    let hour = now.as_secs().div_euclid(super::HOUR_SECS);
    sql("UPDATE logins SET refresh_hour = $2, address = $3, \
         last_used_at = COALESCE($4, last_used_at), \
         refresh_count = CASE WHEN refresh_hour = $2 THEN refresh_count + 1 ELSE 1 END \
         WHERE login_uuid = $1")
    .bind((login_uuid, hour, origin.address_text(), used_at))
    .run(conn)
    .await
}

/// A login that is in force, as its owner sees it.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct ListedLogin {
    pub login_uuid: Uuid,
    pub created_at: Timestamp,
    pub last_used_at: Timestamp,
    pub address: Option<String>,
    pub user_agent: Option<String>,
}

/// The user's logins that are in force, the last used one first. A browser's ends when it was not
/// used since `idle_since`.
pub async fn live_logins(
    conn: &mut Conn,
    user_uuid: UserUuid,
    now: Timestamp,
    idle_since: Timestamp,
    limit: i64,
) -> Result<Vec<ListedLogin>> {
    sql(
        "SELECT login_uuid, created_at, last_used_at, address, user_agent FROM logins \
         WHERE user_uuid = $1 AND revoked_at IS NULL AND expires_at > $2 \
         AND (cookie_hash IS NULL OR last_used_at > $3) \
         ORDER BY last_used_at DESC, login_uuid DESC LIMIT $4",
    )
    .bind((user_uuid, now, idle_since, limit))
    .all(conn)
    .await
}

/// Ends a login of the user. Returns whether it was in force.
pub async fn revoke_own_login(
    conn: &mut Conn,
    user_uuid: UserUuid,
    login_uuid: Uuid,
    now: Timestamp,
) -> Result<bool> {
    let changed = sql("UPDATE logins SET revoked_at = $3 WHERE login_uuid = $1 \
         AND user_uuid = $2 AND revoked_at IS NULL AND expires_at > $3")
    .bind((login_uuid, user_uuid, now))
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

/// Returns whether the login was live.
pub async fn revoke_login(conn: &mut Conn, login_uuid: Uuid, now: Timestamp) -> Result<bool> {
    let changed = sql("UPDATE logins SET revoked_at = $2 \
         WHERE login_uuid = $1 AND revoked_at IS NULL")
    .bind((login_uuid, now))
    .execute(conn)
    .await?;
    Ok(changed == 1)
}

pub async fn failures(conn: &mut Conn, subject: &str) -> Result<Option<Failures>> {
    sql("SELECT failures, last_failed_at FROM login_failures WHERE subject = $1")
        .bind(subject)
        .optional(conn)
        .await
}

/// Creates the row if there is none, and locks it against concurrent counting.
pub async fn lock_failures(conn: &mut Conn, subject: &str, now: Timestamp) -> Result<()> {
    sql(
        "INSERT INTO login_failures (subject, failures, last_failed_at) VALUES ($1, 0, $2) \
         ON CONFLICT (subject) DO UPDATE SET failures = login_failures.failures",
    )
    .bind((subject, now))
    .run(conn)
    .await
}

/// Counts one more failure. The count restarts at 1 when the last failure was before
/// `forget_before`.
pub async fn add_failure(
    conn: &mut Conn,
    subject: &str,
    now: Timestamp,
    forget_before: Timestamp,
) -> Result<()> {
    sql("UPDATE login_failures SET last_failed_at = $2, \
         failures = CASE WHEN last_failed_at < $3 THEN 1 ELSE failures + 1 END WHERE subject = $1")
    .bind((subject, now, forget_before))
    .run(conn)
    .await
}

/// Returns how many counters were removed.
pub async fn clear_failures(conn: &mut Conn, subject: &str) -> Result<u64> {
    sql("DELETE FROM login_failures WHERE subject = $1")
        .bind(subject)
        .execute(conn)
        .await
}

/// As [`clear_failures`], for a pattern of LIKE. Reads the whole table.
pub async fn clear_failures_like(conn: &mut Conn, pattern: &str) -> Result<u64> {
    sql("DELETE FROM login_failures WHERE subject LIKE $1")
        .bind(pattern)
        .execute(conn)
        .await
}

pub async fn remove_failure(conn: &mut Conn, subject: &str) -> Result<()> {
    sql("UPDATE login_failures SET failures = failures - 1 WHERE subject = $1 AND failures > 0")
        .bind(subject)
        .run(conn)
        .await
}

/// Deletes up to `limit` refresh tokens of expired logins, then up to `limit` expired logins
/// without tokens. A revoked login stays until it expires, so that its tokens are still recognised.
/// Returns the larger of the two counts.
pub async fn delete_expired_logins(conn: &mut Conn, now: Timestamp, limit: i64) -> Result<u64> {
    let tokens = sql("DELETE FROM refresh_tokens \
         WHERE token_hash IN (SELECT r.token_hash FROM refresh_tokens r \
         JOIN logins l ON l.login_uuid = r.login_uuid WHERE l.expires_at <= $1 LIMIT $2)")
    .bind((now, limit))
    .execute(conn)
    .await?;
    let logins = sql(
        "DELETE FROM logins WHERE login_uuid IN (SELECT l.login_uuid FROM logins l \
         WHERE l.expires_at <= $1 AND NOT EXISTS (SELECT 1 FROM refresh_tokens r \
         WHERE r.login_uuid = l.login_uuid) LIMIT $2)",
    )
    .bind((now, limit))
    .execute(conn)
    .await?;
    Ok(tokens.max(logins))
}

pub async fn delete_failures(conn: &mut Conn, before: Timestamp, limit: i64) -> Result<u64> {
    sql("DELETE FROM login_failures WHERE subject IN \
         (SELECT subject FROM login_failures WHERE last_failed_at < $1 LIMIT $2)")
    .bind((before, limit))
    .execute(conn)
    .await
}

/// An account that is about to be deleted.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Leaving {
    pub email: String,
    pub issuer: String,
    pub subject: String,
    pub is_platform_admin: bool,
}

/// The account, if it still has this password. It is locked until the transaction ends.
pub async fn lock_leaving(
    conn: &mut Conn,
    user_uuid: UserUuid,
    password_hash: &str,
) -> Result<Option<Leaving>> {
    sql(
        "SELECT email, issuer, subject, is_platform_admin FROM users \
         WHERE user_uuid = $1 AND password_hash = $2 AND deleted_at IS NULL",
    )
    .for_update(conn)
    .bind((user_uuid, password_hash))
    .optional(conn)
    .await
}

/// Deletes all credentials of the user.
pub async fn delete_logins(conn: &mut Conn, user_uuid: UserUuid) -> Result<()> {
    sql("DELETE FROM refresh_tokens WHERE login_uuid IN \
         (SELECT login_uuid FROM logins WHERE user_uuid = $1)")
    .bind(user_uuid)
    .run(conn)
    .await?;
    sql("DELETE FROM logins WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(conn)
        .await?;
    delete_resets(conn, user_uuid).await?;
    delete_second_factor(conn, user_uuid).await?;
    forget_addresses(conn, user_uuid).await
}

/// The second factor of an account.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct SecondFactor {
    pub user_uuid: UserUuid,
    pub sealed_secret: Vec<u8>,
    /// None until a code of it was shown.
    pub confirmed_at: Option<Timestamp>,
}

pub async fn second_factor(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<SecondFactor>> {
    sql(
        "SELECT user_uuid, sealed_secret, confirmed_at FROM second_factors \
         WHERE user_uuid = $1",
    )
    .bind(user_uuid)
    .optional(conn)
    .await
}

/// Stores a second factor that is still to be confirmed. False if one is in force.
pub async fn begin_second_factor(
    conn: &mut Conn,
    user_uuid: UserUuid,
    sealed_secret: Vec<u8>,
    now: Timestamp,
) -> Result<bool> {
    let stored = sql(
        "INSERT INTO second_factors (user_uuid, sealed_secret, created_at) VALUES ($1, $2, $3) \
         ON CONFLICT (user_uuid) DO UPDATE SET sealed_secret = excluded.sealed_secret, \
         created_at = excluded.created_at WHERE second_factors.confirmed_at IS NULL",
    )
    .bind((user_uuid, sealed_secret, now))
    .execute(conn)
    .await?;
    Ok(stored == 1)
}

pub async fn confirm_second_factor(
    conn: &mut Conn,
    user_uuid: UserUuid,
    recovery_hashes: Vec<Vec<u8>>,
    now: Timestamp,
) -> Result<()> {
    sql("UPDATE second_factors SET confirmed_at = $2 WHERE user_uuid = $1")
        .bind((user_uuid, now))
        .run(conn)
        .await?;
    for hash in recovery_hashes {
        sql("INSERT INTO recovery_codes (user_uuid, code_hash) VALUES ($1, $2)")
            .bind((user_uuid, hash))
            .run(conn)
            .await?;
    }
    Ok(())
}

pub async fn delete_second_factor(conn: &mut Conn, user_uuid: UserUuid) -> Result<()> {
    sql("DELETE FROM recovery_codes WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(conn)
        .await?;
    sql("DELETE FROM second_factors WHERE user_uuid = $1")
        .bind(user_uuid)
        .run(conn)
        .await
}

/// Uses up the code of a step. False if it, or a later one, was used.
pub async fn use_step(conn: &mut Conn, user_uuid: UserUuid, step: i64) -> Result<bool> {
    let changed =
        sql("UPDATE second_factors SET last_step = $2 WHERE user_uuid = $1 AND last_step < $2")
            .bind((user_uuid, step))
            .execute(conn)
            .await?;
    Ok(changed == 1)
}

/// Uses up a recovery code. False if there is none.
pub async fn use_recovery_code(
    conn: &mut Conn,
    user_uuid: UserUuid,
    code_hash: Vec<u8>,
) -> Result<bool> {
    let deleted = sql("DELETE FROM recovery_codes WHERE user_uuid = $1 AND code_hash = $2")
        .bind((user_uuid, code_hash))
        .execute(conn)
        .await?;
    Ok(deleted == 1)
}

/// Empties the account: it has no login, and its e-mail or subject is free.
pub async fn empty_account(
    conn: &mut Conn,
    user_uuid: UserUuid,
    deletion_uuid: Uuid,
    now: Timestamp,
) -> Result<()> {
    sql(
        "UPDATE users SET email = '', password_hash = '', nickname = NULL, locale = NULL, \
         time_zone = NULL, phone = NULL, avatar_url = NULL, issuer = 'deleted', subject = $2, \
         email_verified_at = NULL, deleted_at = $3 WHERE user_uuid = $1",
    )
    .bind((user_uuid, deletion_uuid.to_string(), now))
    .run(conn)
    .await
}

pub async fn delete_account(conn: &mut Conn, user_uuid: UserUuid) -> Result<()> {
    sql("DELETE FROM users WHERE user_uuid = $1 AND deleted_at IS NOT NULL")
        .bind(user_uuid)
        .run(conn)
        .await
}
