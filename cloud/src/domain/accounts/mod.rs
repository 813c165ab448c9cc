//! People's accounts: registering, logging in, keeping a login alive, and the keys their tokens are checked with. Passwords and refresh
//! tokens leave here only as hashes.

mod external;
mod fields;
pub mod http;
pub mod password;
mod recovery;
mod store;
mod throttle;

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_protocol::{FieldError, PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::app::App;
use crate::authn::user::{self, User};
use crate::db::{Conn, Db, Tx};
use crate::domain::audit::Audit;
use crate::error::{self, Error, Result};
pub use external::{Vouched, of_issuer, vouched_email, vouched_nickname};
pub use recovery::{FORGOT, change_password, forget_resets, forgot_password, perform_forgot, reset_password};
use store::Account;
use throttle::Subject;

/// A login ends this long after it began, however often it was refreshed.
const LOGIN_LIFETIME_SECS: i64 = 30 * 24 * 3600;

/// A person logged in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub user_uuid: UserUuid,
    /// The default persona; inside a tenant the tenant's own is used.
    pub persona_uuid: PersonaUuid,
    /// Sent as `Authorization: Bearer ...`.
    pub access_token: String,
    /// Works once: each refresh gives a new one. A login ends 30 days after it began.
    pub refresh_token: String,
    /// When the access token expires.
    pub expires_at: Timestamp,
}

/// What an account is made of; [`checked`] alone makes one.
pub struct Registration {
    email: String,
    password: String,
    nickname: Option<String>,
}

/// Refuses whatever belongs to logging in here with e-mail and password, where that is switched off.
pub fn require_builtin_login(app: &App) -> Result<()> {
    match &app.config.oidc {
        Some(oidc) if !app.config.builtin_login => {
            let message = format!("there is no login with e-mail and password here; log in at {}", oidc.issuer);
            Err(Error::forbidden("BUILTIN_LOGIN_OFF", message))
        }
        _ => Ok(()),
    }
}

/// Makes an account and logs it in.
pub async fn register(app: &App, address: Option<IpAddr>, registration: Registration) -> Result<Session> {
    require_builtin_login(app)?;
    let Registration { email, password, nickname } = registration;
    let now = app.clock.now();
    let address: Vec<Subject> = address.map(Subject::address).into_iter().collect();
    {
        let mut conn = app.db.read().await?;
        throttle::check(&mut conn, &address, now).await?;
        if store::account(&mut conn, &email).await?.is_some() {
            drop(conn);
            // Asking which addresses have an account is slowed like guessing a password.
            throttle::count(&app.db, &address, now).await?;
            return Err(email_taken());
        }
    }
    let password_hash = app.passwords.turn().await?.hash(password).await?;
    let account = new_account(password_hash, false);
    let login_uuid = Uuid::now_v7();
    let user = account.user(login_uuid);
    let mut tx = app.db.begin().await?;
    insert(&mut tx, &account, &email, nickname.as_deref(), now).await?;
    let session = begin_login(app, &mut tx, &user, login_uuid, now).await?;
    tx.commit(Audit::by_user(&user, "user.register", user.user_uuid, now)).await?;
    Ok(session)
}

/// All that is wrong is told at once.
fn checked(
    email: Result<String, FieldError>,
    password: Result<String, FieldError>,
    nickname: Result<Option<String>, FieldError>,
) -> Result<Registration> {
    match (email, password, nickname) {
        (Ok(email), Ok(password), Ok(nickname)) => Ok(Registration { email, password, nickname }),
        (email, password, nickname) => {
            let errors: Vec<FieldError> = [email.err(), password.err(), nickname.err()].into_iter().flatten().collect();
            Err(Error::fields(errors))
        }
    }
}

fn new_account(password_hash: String, is_platform_admin: bool) -> Account {
    Account { user_uuid: UserUuid::new(), default_persona_uuid: PersonaUuid::new(), password_hash, is_platform_admin }
}

async fn insert(tx: &mut Tx, account: &Account, email: &str, nickname: Option<&str>, now: Timestamp) -> Result<()> {
    store::insert_account(tx, account, email, nickname, now)
        .await
        .map_err(|error| if error::is_unique_violation(&error) { email_taken() } else { error })
}

fn email_taken() -> Error {
    Error::conflict("EMAIL_TAKEN", "there is an account with this e-mail; log in instead")
}

/// Logs a person in. That there is no such account and that the password is wrong take the same steps to the same answer.
pub async fn login(app: &App, address: Option<IpAddr>, email: &str, password: String) -> Result<Session> {
    require_builtin_login(app)?;
    let email = checked_email(email)?;
    let account_subject = Subject::account(&email);
    let address = address.map(Subject::address);
    let subjects: Vec<Subject> = [Some(account_subject.clone()), address.clone()].into_iter().flatten().collect();
    let account = {
        let mut conn = app.db.read().await?;
        // Who has to wait takes up no turn.
        throttle::check(&mut conn, &subjects, app.clock.now()).await?;
        store::account(&mut conn, &email).await?
    };
    let turn = app.passwords.turn().await?;
    let now = app.clock.now();
    throttle::count(&app.db, &subjects, now).await?;
    let password_hash = account.as_ref().map(|account| account.password_hash.clone());
    let matches = turn.verify(password, password_hash).await?;
    let Some(account) = account.filter(|_| matches) else {
        return Err(login_failed());
    };
    let login_uuid = Uuid::now_v7();
    let user = account.user(login_uuid);
    let mut tx = app.db.begin().await?;
    // Whoever changed the password meanwhile has ended all logins that there were, and means this one too.
    if !store::lock_password(&mut tx, user.user_uuid, &account.password_hash).await? {
        return Err(login_failed());
    }
    throttle::forgive(&mut tx, &account_subject, address.as_ref()).await?;
    let session = begin_login(app, &mut tx, &user, login_uuid, now).await?;
    tx.commit(Audit::by_user(&user, "user.login", user.user_uuid, now)).await?;
    Ok(session)
}

fn login_failed() -> Error {
    Error::unauthorized("LOGIN_FAILED", "the e-mail or the password is wrong")
}

async fn begin_login(app: &App, tx: &mut Tx, user: &User, login_uuid: Uuid, now: Timestamp) -> Result<Session> {
    store::insert_login(tx, login_uuid, user, now, now.plus_secs(LOGIN_LIFETIME_SECS)).await?;
    session(app, tx, user, login_uuid, now).await
}

/// 256 random bits.
pub fn new_token() -> String {
    URL_SAFE_NO_PAD.encode(crate::sealing::random::<32>())
}

/// Fresh tokens of a login.
async fn session(app: &App, tx: &mut Tx, user: &User, login_uuid: Uuid, now: Timestamp) -> Result<Session> {
    let refresh_token = new_token();
    store::insert_refresh_token(tx, &crate::sealing::hash(&refresh_token), login_uuid, now).await?;
    let (access_token, expires_at) = user::issue(app, user, login_uuid, now)?;
    Ok(Session { user_uuid: user.user_uuid, persona_uuid: user.persona_uuid, access_token, refresh_token, expires_at })
}

/// Exchanges a refresh token. One that was exchanged before was stolen, or its owner was robbed: the whole login ends, whoever asks.
pub async fn refresh(app: &App, refresh_token: &str) -> Result<Session> {
    require_builtin_login(app)?;
    let hash = crate::sealing::hash(refresh_token);
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    // First, so that of two requests with one token the second sees all that the first did.
    let is_first_use = store::rotate(&mut tx, &hash, now).await?;
    let login = store::login_of_token(&mut tx, &hash).await?.filter(|login| login.is_live(now));
    let login = login.ok_or_else(invalid_refresh_token)?;
    let user = login.user();
    if !is_first_use {
        if store::revoke_login(&mut tx, login.login_uuid, now).await? {
            let detail = json!({"reason": "a refresh token was used twice"});
            tx.commit(Audit::by_user(&user, "login.revoke", login.login_uuid, now).with(detail)).await?;
            app.permissions.settle().await;
        }
        return Err(invalid_refresh_token());
    }
    let session = session(app, &mut tx, &user, login.login_uuid, now).await?;
    tx.commit_unaudited("a login going on is one login").await?;
    Ok(session)
}

fn invalid_refresh_token() -> Error {
    Error::unauthorized("INVALID_REFRESH_TOKEN", "the refresh token is not valid, or no longer; log in again")
}

/// Ends the login the token belongs to. A token nobody knows, or of a login that has ended, is no error: what was wanted is so.
pub async fn logout(app: &App, refresh_token: &str) -> Result<()> {
    let now = app.clock.now();
    let mut tx = app.db.begin().await?;
    let Some(login) = store::login_of_token(&mut tx, &crate::sealing::hash(refresh_token)).await? else {
        return Ok(());
    };
    if store::revoke_login(&mut tx, login.login_uuid, now).await? {
        tx.commit(Audit::by_user(&login.user(), "user.logout", login.login_uuid, now)).await?;
        app.permissions.settle().await;
    }
    Ok(())
}

/// An e-mail of a request as accounts spell it.
pub fn checked_email(email: &str) -> Result<String> {
    fields::email(email).map_err(|error| Error::fields(vec![error]))
}

/// The person's e-mail, as far as it is vouched for.
pub async fn email_of(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<String>> {
    let credentials = store::credentials(conn, user_uuid).await?;
    Ok(credentials.map(|credentials| credentials.email.to_lowercase()).filter(|email| !email.is_empty()))
}

/// Counts an invitation against its sender and its recipient, or refuses it with 429: the service is nobody's means to fill a mailbox.
pub async fn count_invitation(app: &App, inviter: UserUuid, email: &str) -> Result<()> {
    throttle::count(&app.db, &[Subject::inviter(inviter), Subject::invited(email)], app.clock.now()).await
}

/// Deletes logins that have expired, `limit` rows at most. Fewer mean that there are no more.
pub async fn forget_logins(db: &Db, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = store::delete_expired_logins(&mut tx, now, limit).await?;
    tx.commit_unaudited("they had ended by themselves").await?;
    Ok(deleted)
}

/// Deletes failures that no longer slow anybody down, `limit` rows at most.
pub async fn forget_failures(db: &Db, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = store::delete_failures(&mut tx, now.plus_secs(-throttle::FORGET_AFTER_SECS), limit).await?;
    tx.commit_unaudited("they no longer count").await?;
    Ok(deleted)
}

/// What [`create_admin`] found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdminCreated {
    New,
    /// There was such an account, with this password.
    Promoted,
    /// An administrator's, with this password.
    Already,
}

/// Makes a platform administrator, from the command line alone: whoever holds the database and its keys may do so. An account that is there
/// has to have the same password: it may have been registered, in expectation of this moment, by somebody else.
pub async fn create_admin(app: &App, email: &str, password: String) -> Result<AdminCreated> {
    if !app.config.builtin_login {
        let message = "nobody can log in with a password while builtin-login is false; give somebody the role PLATFORM_ADMIN at the issuer";
        return Err(Error::forbidden("BUILTIN_LOGIN_OFF", message));
    }
    let Registration { email, password, .. } =
        checked(fields::email(email), fields::password("password", password), Ok(None))?;
    let now = app.clock.now();
    let audit = |action, user_uuid: UserUuid| Audit::by_system("COMMAND_LINE", action, user_uuid, now);
    let existing = store::account(&mut app.db.read().await?, &email).await?;
    let turn = app.passwords.turn().await?;
    let Some(account) = existing else {
        let account = new_account(turn.hash(password).await?, true);
        let mut tx = app.db.begin().await?;
        insert(&mut tx, &account, &email, None, now).await?;
        tx.commit(audit("user.create_admin", account.user_uuid)).await?;
        return Ok(AdminCreated::New);
    };
    // Of an administrator too: who gives another password means to set it, and must not take it for done.
    if !turn.verify(password, Some(account.password_hash)).await? {
        let message = "there is an account with this e-mail and another password; nothing was changed: give its password, or another e-mail";
        return Err(Error::conflict("OTHER_PASSWORD", message));
    }
    if account.is_platform_admin {
        return Ok(AdminCreated::Already);
    }
    let mut tx = app.db.begin().await?;
    store::make_admin(&mut tx, account.user_uuid).await?;
    tx.commit(audit("user.promote", account.user_uuid)).await?;
    Ok(AdminCreated::Promoted)
}
