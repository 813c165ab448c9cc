//! User accounts: registration, login, sessions, and the keys that access tokens are verified with.
//! Passwords and refresh tokens leave this module only as hashes.

pub mod http;
mod password;
mod recovery;
mod store;
mod throttle;

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_protocol::{FieldError, PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::audit::Audit;
use crate::authn::user::{self, User};
use crate::authn::{Authn, fields};
use crate::core::Core;
use crate::db::{Conn, Db, Tx};
use crate::error::{self, Error, Result};
pub use password::Passwords;
pub use recovery::{FORGOT, LANE, change_password, forget_resets, forgot_password, perform_forgot, reset_password};
use store::Account;
use throttle::Subject;

/// Maximum lifetime of a login, counted from its start. Refreshing does not extend it.
const LOGIN_LIFETIME_SECS: i64 = 30 * 24 * 3600;

/// State of the account handlers.
#[derive(Clone)]
pub struct Accounts {
    pub core: Core,
    pub authn: Authn,
    pub passwords: Arc<Passwords>,
}

/// A login of a person.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The account.
    pub user_uuid: UserUuid,
    /// The default persona of the account. In a tenant, the persona of that tenant applies.
    pub persona_uuid: PersonaUuid,
    /// Sent as `Authorization: Bearer ...`.
    pub access_token: String,
    /// Works once: each refresh returns a new one. A login ends 30 days after it began.
    pub refresh_token: String,
    /// When the access token expires.
    pub expires_at: Timestamp,
}

/// The validated data of a new account. Only [`Registration::checked`] creates one.
pub struct Registration {
    email: String,
    password: String,
    nickname: Option<String>,
}

impl Registration {
    /// Reports every invalid field at once.
    fn checked(
        email: Result<String, FieldError>,
        password: Result<String, FieldError>,
        nickname: Result<Option<String>, FieldError>,
    ) -> Result<Self> {
        match (email, password, nickname) {
            (Ok(email), Ok(password), Ok(nickname)) => Ok(Self { email, password, nickname }),
            (email, password, nickname) => {
                let errors: Vec<FieldError> =
                    [email.err(), password.err(), nickname.err()].into_iter().flatten().collect();
                Err(Error::fields(errors))
            }
        }
    }
}

/// Refuses an operation of built-in login (e-mail and password) when it is switched off.
pub fn require_builtin_login(accounts: &Accounts) -> Result<()> {
    match &accounts.core.config.oidc {
        Some(oidc) if !accounts.core.config.builtin_login => {
            let message = format!("login with e-mail and password is switched off; log in at {}", oidc.issuer);
            Err(Error::forbidden("BUILTIN_LOGIN_OFF", message))
        }
        _ => Ok(()),
    }
}

/// Creates an account and logs it in.
pub async fn register(accounts: &Accounts, address: Option<IpAddr>, registration: Registration) -> Result<Session> {
    require_builtin_login(accounts)?;
    let Registration { email, password, nickname } = registration;
    let now = accounts.core.clock.now();
    let address: Vec<Subject> = address.map(Subject::address).into_iter().collect();
    {
        let mut conn = accounts.core.db.read().await?;
        throttle::check(&mut conn, &address, now).await?;
        if store::account(&mut conn, &email).await?.is_some() {
            drop(conn);
            // Probing which addresses have an account is slowed down like password guessing.
            throttle::count(&accounts.core.db, &address, now).await?;
            return Err(duplicate_email());
        }
    }
    let password_hash = accounts.passwords.permit().await?.hash(password).await?;
    let account = new_account(password_hash, false);
    let login_uuid = Uuid::now_v7();
    let user = account.user(login_uuid);
    let mut tx = accounts.core.db.begin().await?;
    insert(&mut tx, &account, &email, nickname.as_deref(), now).await?;
    let session = begin_login(accounts, &mut tx, &user, login_uuid, now).await?;
    tx.commit(Audit::new(&user, "user.register", user.user_uuid, now)).await?;
    Ok(session)
}

fn new_account(password_hash: String, is_platform_admin: bool) -> Account {
    Account { user_uuid: UserUuid::new(), default_persona_uuid: PersonaUuid::new(), password_hash, is_platform_admin }
}

async fn insert(tx: &mut Tx, account: &Account, email: &str, nickname: Option<&str>, now: Timestamp) -> Result<()> {
    store::insert_account(tx, account, email, nickname, now)
        .await
        .map_err(|error| if error::is_unique_violation(&error) { duplicate_email() } else { error })
}

fn duplicate_email() -> Error {
    Error::conflict("EMAIL_TAKEN", "an account with this e-mail exists; log in instead")
}

/// Logs a user in. An unknown account and a wrong password take the same steps and give the same
/// error, so that neither content nor timing reveals which it was.
pub async fn login(accounts: &Accounts, address: Option<IpAddr>, email: &str, password: String) -> Result<Session> {
    require_builtin_login(accounts)?;
    let email = checked_email(email)?;
    let account_subject = Subject::account(&email);
    let address = address.map(Subject::address);
    let subjects: Vec<Subject> = [Some(account_subject.clone()), address.clone()].into_iter().flatten().collect();
    let account = {
        let mut conn = accounts.core.db.read().await?;
        // A throttled client occupies no permit.
        throttle::check(&mut conn, &subjects, accounts.core.clock.now()).await?;
        store::account(&mut conn, &email).await?
    };
    let permit = accounts.passwords.permit().await?;
    let now = accounts.core.clock.now();
    throttle::count(&accounts.core.db, &subjects, now).await?;
    let password_hash = account.as_ref().map(|account| account.password_hash.clone());
    let matches = permit.verify(password, password_hash).await?;
    let Some(account) = account.filter(|_| matches) else {
        return Err(login_failed());
    };
    let login_uuid = Uuid::now_v7();
    let user = account.user(login_uuid);
    let mut tx = accounts.core.db.begin().await?;
    // A password change in the meantime has ended all logins, and has to end this one too.
    if !store::lock_password(&mut tx, user.user_uuid, &account.password_hash).await? {
        return Err(login_failed());
    }
    throttle::record_success(&mut tx, &account_subject, address.as_ref()).await?;
    let session = begin_login(accounts, &mut tx, &user, login_uuid, now).await?;
    tx.commit(Audit::new(&user, "user.login", user.user_uuid, now)).await?;
    Ok(session)
}

fn login_failed() -> Error {
    Error::unauthorized("LOGIN_FAILED", "the e-mail or the password is wrong")
}

async fn begin_login(
    accounts: &Accounts,
    tx: &mut Tx,
    user: &User,
    login_uuid: Uuid,
    now: Timestamp,
) -> Result<Session> {
    store::insert_login(tx, login_uuid, user, now, now.plus_secs(LOGIN_LIFETIME_SECS)).await?;
    session(accounts, tx, user, login_uuid, now).await
}

/// 256 random bits.
pub fn new_token() -> String {
    URL_SAFE_NO_PAD.encode(crate::sealing::random::<32>())
}

/// Issues new tokens for a login.
async fn session(accounts: &Accounts, tx: &mut Tx, user: &User, login_uuid: Uuid, now: Timestamp) -> Result<Session> {
    let refresh_token = new_token();
    store::insert_refresh_token(tx, &crate::sealing::hash(&refresh_token), login_uuid, now).await?;
    let (access_token, expires_at) = user::issue(&accounts.authn, user, login_uuid, now)?;
    Ok(Session { user_uuid: user.user_uuid, persona_uuid: user.persona_uuid, access_token, refresh_token, expires_at })
}

/// Exchanges a refresh token. A second use means that the token was stolen, from its owner or by
/// the caller, so the whole login is revoked.
pub async fn refresh(accounts: &Accounts, refresh_token: &str) -> Result<Session> {
    require_builtin_login(accounts)?;
    let hash = crate::sealing::hash(refresh_token);
    let now = accounts.core.clock.now();
    let mut tx = accounts.core.db.begin().await?;
    // Rotate first: of two concurrent requests with one token, the second sees what the first did.
    let is_first_use = store::rotate(&mut tx, &hash, now).await?;
    let login = store::login_of_token(&mut tx, &hash).await?.filter(|login| login.is_live(now));
    let login = login.ok_or_else(invalid_refresh_token)?;
    let user = login.user();
    if !is_first_use {
        if store::revoke_login(&mut tx, login.login_uuid, now).await? {
            let detail = json!({"reason": "a refresh token was used twice"});
            accounts.authn.permissions.wait_out_lease_after(&mut tx);
            tx.commit(Audit::new(&user, "login.revoke", login.login_uuid, now).with(detail)).await?;
        }
        return Err(invalid_refresh_token());
    }
    let session = session(accounts, &mut tx, &user, login.login_uuid, now).await?;
    tx.commit_unaudited("a refresh continues an audited login").await?;
    Ok(session)
}

fn invalid_refresh_token() -> Error {
    Error::unauthorized("INVALID_REFRESH_TOKEN", "the refresh token is invalid or expired; log in again")
}

/// Ends the login that the token belongs to. An unknown token, or one of an ended login, is no
/// error: the requested result already holds.
pub async fn logout(accounts: &Accounts, refresh_token: &str) -> Result<()> {
    let now = accounts.core.clock.now();
    let mut tx = accounts.core.db.begin().await?;
    let Some(login) = store::login_of_token(&mut tx, &crate::sealing::hash(refresh_token)).await? else {
        return Ok(());
    };
    if store::revoke_login(&mut tx, login.login_uuid, now).await? {
        accounts.authn.permissions.wait_out_lease_after(&mut tx);
        tx.commit(Audit::new(&login.user(), "user.logout", login.login_uuid, now)).await?;
    }
    Ok(())
}

/// The e-mail of a request in the normalized form that accounts use.
pub fn checked_email(email: &str) -> Result<String> {
    fields::email(email).map_err(|error| Error::fields(vec![error]))
}

/// Locks the user, so that concurrent transactions count what belongs to them one after the other.
/// Returns false when there is no such user.
pub async fn lock_user(conn: &mut Conn, user_uuid: UserUuid) -> Result<bool> {
    store::lock_user(conn, user_uuid).await
}

/// The user's e-mail and nickname.
pub async fn profile(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<(String, Option<String>)>> {
    store::profile(conn, user_uuid).await
}

/// The user's e-mail, if it is verified.
pub async fn email_of(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<String>> {
    let credentials = store::credentials(conn, user_uuid).await?;
    Ok(credentials.map(|credentials| credentials.email.to_lowercase()).filter(|email| !email.is_empty()))
}

/// Counts an invitation against its sender and its recipient, or refuses it with 429, so that the
/// service cannot be used to flood a mailbox.
pub async fn count_invitation(core: &Core, inviter: UserUuid, email: &str) -> Result<()> {
    throttle::count(&core.db, &[Subject::inviter(inviter), Subject::invited(email)], core.clock.now()).await
}

/// Deletes at most `limit` expired logins. A lower count means that none is left.
pub async fn forget_logins(db: &Db, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = store::delete_expired_logins(&mut tx, now, limit).await?;
    tx.commit_unaudited("expired rows have no effect").await?;
    Ok(deleted)
}

/// Deletes at most `limit` failure counters that no longer cause a delay.
pub async fn forget_failures(db: &Db, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = store::delete_failures(&mut tx, now.plus_secs(-throttle::RESET_AFTER_SECS), limit).await?;
    tx.commit_unaudited("expired counters have no effect").await?;
    Ok(deleted)
}

/// The outcome of [`create_admin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCreated {
    New,
    /// The account existed, with this password, and is now an administrator.
    Promoted,
    /// The account was already an administrator, with this password.
    Already,
}

/// Creates a platform administrator. Only the command line calls it: access to the database and its
/// keys is the authorization. An existing account must have the same password, because somebody
/// else may have registered the address in advance.
pub async fn create_admin(accounts: &Accounts, email: &str, password: String) -> Result<AdminCreated> {
    if !accounts.core.config.builtin_login {
        let message = "builtin-login is false, so nobody can log in with a password; assign the role PLATFORM_ADMIN at the issuer";
        return Err(Error::forbidden("BUILTIN_LOGIN_OFF", message));
    }
    let Registration { email, password, .. } =
        Registration::checked(fields::email(email), fields::password("password", password), Ok(None))?;
    let now = accounts.core.clock.now();
    let audit = |action, user_uuid: UserUuid| Audit::by_system("COMMAND_LINE", action, user_uuid, now);
    let existing = store::account(&mut accounts.core.db.read().await?, &email).await?;
    let permit = accounts.passwords.permit().await?;
    let Some(account) = existing else {
        let account = new_account(permit.hash(password).await?, true);
        let mut tx = accounts.core.db.begin().await?;
        insert(&mut tx, &account, &email, None, now).await?;
        tx.commit(audit("user.create_admin", account.user_uuid)).await?;
        return Ok(AdminCreated::New);
    };
    // This applies to an administrator too: a caller who gives another password wants to set it,
    // and must not believe that it was set.
    if !permit.verify(password, Some(account.password_hash)).await? {
        let message = "the account with this e-mail has another password; nothing was changed: use its password or another e-mail";
        return Err(Error::conflict("OTHER_PASSWORD", message));
    }
    if account.is_platform_admin {
        return Ok(AdminCreated::Already);
    }
    let mut tx = accounts.core.db.begin().await?;
    store::make_admin(&mut tx, account.user_uuid).await?;
    tx.commit(audit("user.promote", account.user_uuid)).await?;
    Ok(AdminCreated::Promoted)
}
