//! User accounts: registration, login, sessions, and the keys that access tokens are verified with.
//! Passwords and refresh tokens leave this module only as hashes.

mod administrators;
mod browser;
mod browser_store;
pub mod departure;
mod failed;
pub mod http;
mod issuer;
mod new_password;
mod origin;
mod password;
pub mod profile;
mod recovery;
mod second_factor;
mod sessions;
mod store;
mod throttle;

use std::net::IpAddr;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_base::db::{Conn, Db, Tx};
use hub_base::error::{self, Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::config::RegistrationPolicy;
use hub_identity::authn::user::{self, User};
use hub_identity::authn::{Authn, fields};
use hub_protocol::{FieldError, PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

pub use administrators::{
    AdminCreated, AdminRevoked, Locked, check_new_password, create_admin, list_admins,
    remove_second_factor, revoke_admin, set_password, unlock,
};
pub use origin::Origin;
pub use password::{Passwords, Purpose};
pub use recovery::{
    FORGOT, LANE, change_password, forget_resets, forgot_password, perform_forgot, reset_password,
};
pub use store::Administrator;
use store::{Account, LoginAccount, NewLogin};
pub use store::{lock_user, verify_email};
use throttle::{Attempt, Subject};

/// Maximum lifetime of a login, counted from its start. Refreshing does not extend it.
const LOGIN_LIFETIME_SECS: i64 = 30 * 24 * 3600;
/// The time for which a network is known after the last login from it, and the most networks of an
/// account.
const KNOWN_FOR_SECS: i64 = 180 * 24 * 3600;
const MAX_KNOWN_NETWORKS: i64 = 20;

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
    /// The access token, to be sent as `Authorization: Bearer ...`.
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
        let name = nickname.as_ref().ok().and_then(Option::as_deref);
        let names: Vec<&str> = email.iter().map(String::as_str).chain(name).collect();
        let password =
            password.and_then(|password| new_password::checked("password", password, &names));
        match (email, password, nickname) {
            (Ok(email), Ok(password), Ok(nickname)) => Ok(Self {
                email,
                password,
                nickname,
            }),
            (email, password, nickname) => {
                let errors: Vec<FieldError> = [email.err(), password.err(), nickname.err()]
                    .into_iter()
                    .flatten()
                    .collect();
                Err(Error::fields(errors))
            }
        }
    }
}

/// Refuses an operation of built-in login (e-mail and password) when it is switched off.
pub fn require_builtin_login(accounts: &Accounts) -> Result<()> {
    match &accounts.core.config.oidc {
        Some(oidc) if !accounts.core.config.builtin_login => {
            let message = format!(
                "login with e-mail and password is switched off; log in at {}",
                oidc.issuer
            );
            Err(Error::forbidden("BUILTIN_LOGIN_OFF", message))
        }
        _ => Ok(()),
    }
}

/// Creates an account and logs it in.
pub async fn register(
    accounts: &Accounts,
    origin: &Origin,
    registration: Registration,
) -> Result<Session> {
    require_builtin_login(accounts)?;
    let address = origin.address;
    let Registration {
        email,
        password,
        nickname,
    } = registration;
    let policy = accounts.core.config.registration;
    if policy == RegistrationPolicy::Closed {
        let message = "this service creates no accounts; ask its operator for one";
        return Err(Error::forbidden("REGISTRATION_CLOSED", message));
    }
    let now = accounts.core.clock.now();
    let guesses: Vec<Subject> = address.map(Subject::address).into_iter().collect();
    let registrations: Vec<Subject> = address.map(Subject::registrations).into_iter().collect();
    let is_taken = {
        let mut conn = accounts.core.db.read().await?;
        // A throttled client occupies no place.
        throttle::check(&mut conn, &guesses, now).await?;
        throttle::check(&mut conn, &registrations, now).await?;
        if policy == RegistrationPolicy::Invited
            && !store::is_invited(&mut conn, &email, now).await?
        {
            drop(conn);
            throttle::count(&accounts.core.db, &registrations, now).await?;
            let message =
                "this service creates accounts for people with an invitation; this e-mail has none";
            return Err(Error::forbidden("INVITATION_REQUIRED", message));
        }
        store::account(&mut conn, &email).await?.is_some()
    };
    if is_taken {
        // Probing which addresses have an account is slowed down like password guessing.
        throttle::count(&accounts.core.db, &guesses, now).await?;
        throttle::count(&accounts.core.db, &registrations, now).await?;
        return Err(duplicate_email());
    }
    let network = address.map(throttle::network_of).unwrap_or_default();
    let place = accounts.passwords.place(Purpose::Registration, &network)?;
    throttle::count(&accounts.core.db, &registrations, now).await?;
    let password_hash = place.turn().await?.hash(password).await?;
    let account = new_account(password_hash, false);
    let login_uuid = Uuid::now_v7();
    let user = account.user(login_uuid);
    let mut tx = accounts.core.db.begin().await?;
    insert(&mut tx, &account, &email, nickname.as_deref(), now).await?;
    remember_address(&mut tx, user.user_uuid, address, now).await?;
    let session = begin_login(accounts, &mut tx, &user, origin, login_uuid, now).await?;
    tx.commit(Audit::new(&user, "user.register", user.user_uuid, now))
        .await?;
    Ok(session)
}

fn new_account(password_hash: String, is_platform_admin: bool) -> Account {
    Account {
        user_uuid: UserUuid::new(),
        default_persona_uuid: PersonaUuid::new(),
        password_hash,
        is_platform_admin,
    }
}

async fn insert(
    tx: &mut Tx,
    account: &Account,
    email: &str,
    nickname: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    store::insert_account(tx, account, email, nickname, now)
        .await
        .map_err(|error| {
            if error::is_unique_violation(&error) {
                duplicate_email()
            } else {
                error
            }
        })
}

fn duplicate_email() -> Error {
    Error::conflict(
        "EMAIL_TAKEN",
        "an account with this e-mail exists; log in instead",
    )
}

/// What a person logs in with.
pub struct LoginCredentials {
    pub email: String,
    pub password: String,
    /// A code of the second factor, or a recovery code.
    pub otp: Option<String>,
}

/// Logs a user in.
pub async fn login(
    accounts: &Accounts,
    origin: &Origin,
    credentials: LoginCredentials,
) -> Result<Session> {
    let Admitted {
        mut tx,
        user,
        login_uuid,
        now,
    } = admit(accounts, origin, credentials).await?;
    let session = begin_login(accounts, &mut tx, &user, origin, login_uuid, now).await?;
    tx.commit(Audit::new(&user, "user.login", user.user_uuid, now))
        .await?;
    Ok(session)
}

/// A person who showed who they are, and the transaction that is to begin their login.
struct Admitted {
    tx: Tx,
    user: User,
    login_uuid: Uuid,
    now: Timestamp,
}

/// Checks a password, and the second factor of an account that has one. An unknown account and a
/// wrong password take the same steps and give the same error, so that neither content nor timing
/// reveals which it was.
async fn admit(
    accounts: &Accounts,
    origin: &Origin,
    credentials: LoginCredentials,
) -> Result<Admitted> {
    require_builtin_login(accounts)?;
    let email = checked_email(&credentials.email)?;
    let address = origin.address;
    let network = address.map(throttle::network_of).unwrap_or_default();
    let db = &accounts.core.db;
    let (attempt, account) = {
        let now = accounts.core.clock.now();
        let mut conn = db.read().await?;
        let found =
            store::login_account(&mut conn, &email, &network, now.plus_secs(-KNOWN_FOR_SECS))
                .await?;
        let attempt = Attempt::new(
            &email,
            address,
            found.as_ref().is_some_and(|found| found.is_known),
        );
        // A throttled client occupies no place.
        attempt.check(&mut conn, now).await?;
        (attempt, found.map(|LoginAccount { account, .. }| account))
    };
    let purpose = if attempt.is_known() {
        Purpose::Known
    } else {
        Purpose::Login
    };
    let place = accounts.passwords.place(purpose, &network)?;
    let now = accounts.core.clock.now();
    let slowed = attempt.count(db, now).await?;
    let password_hash = account
        .as_ref()
        .map(|account| account.password_hash.clone());
    let user_uuid = account.as_ref().map(|account| account.user_uuid);
    let matches = place
        .turn()
        .await?
        .verify(credentials.password, password_hash)
        .await?;
    let Some(account) = account.filter(|_| matches) else {
        let tx = db.begin().await?;
        let who = (email.as_str(), user_uuid);
        failed::note(accounts, tx, who, origin, failed::Cause::Password, now).await?;
        return Err(slowed.unwrap_or_else(login_failed));
    };
    let factor = store::second_factor(&mut db.read().await?, account.user_uuid)
        .await?
        .filter(|factor| factor.confirmed_at.is_some());
    if factor.is_some() && credentials.otp.is_some() {
        second_factor::count_guess(accounts, account.user_uuid, now).await?;
    }
    let login_uuid = Uuid::now_v7();
    let mut tx = db.begin().await?;
    // A password change in the meantime has ended all logins, and has to end this one too.
    let Some(account) =
        store::lock_password(&mut tx, account.user_uuid, &account.password_hash).await?
    else {
        return Err(login_failed());
    };
    let user = account.user(login_uuid);
    attempt.succeeded(&mut tx).await?;
    if let Some(factor) = factor {
        let Some(otp) = credentials.otp.as_deref() else {
            tx.commit_unaudited("the password was right, the code is to come")
                .await?;
            return Err(second_factor::otp_required());
        };
        if !second_factor::is_accepted(&accounts.core, &mut tx, &factor, otp, now).await? {
            let who = (email.as_str(), Some(user.user_uuid));
            failed::note(accounts, tx, who, origin, failed::Cause::Otp, now).await?;
            return Err(second_factor::invalid_otp());
        }
    }
    remember_address(&mut tx, user.user_uuid, address, now).await?;
    Ok(Admitted {
        tx,
        user,
        login_uuid,
        now,
    })
}

/// After this, failures of others do not affect the account's logins from this network.
async fn remember_address(
    tx: &mut Tx,
    user_uuid: UserUuid,
    address: Option<IpAddr>,
    now: Timestamp,
) -> Result<()> {
    match address.map(throttle::network_of) {
        Some(network) => {
            store::remember_address(tx, user_uuid, &network, MAX_KNOWN_NETWORKS, now).await
        }
        None => Ok(()),
    }
}

fn no_password(issuer: &str) -> Error {
    let message = format!("this account has no password; it logs in at {issuer}");
    Error::conflict("NO_PASSWORD", message)
}

fn login_failed() -> Error {
    Error::unauthorized("LOGIN_FAILED", "the e-mail or the password is wrong")
}

async fn begin_login(
    accounts: &Accounts,
    tx: &mut Tx,
    user: &User,
    origin: &Origin,
    login_uuid: Uuid,
    now: Timestamp,
) -> Result<Session> {
    let login = NewLogin {
        login_uuid,
        user,
        origin,
        cookie_hash: None,
        now,
        expires_at: now.plus_secs(LOGIN_LIFETIME_SECS),
    };
    store::insert_login(tx, &login).await?;
    session(accounts, tx, user, login_uuid, now).await
}

/// A token of 256 random bits.
pub fn new_token() -> String {
    URL_SAFE_NO_PAD.encode(hub_base::sealing::random::<32>())
}

/// Issues new tokens for a login.
async fn session(
    accounts: &Accounts,
    tx: &mut Tx,
    user: &User,
    login_uuid: Uuid,
    now: Timestamp,
) -> Result<Session> {
    let refresh_token = new_token();
    store::insert_refresh_token(
        tx,
        &hub_base::sealing::hash(&refresh_token),
        login_uuid,
        now,
    )
    .await?;
    let (access_token, expires_at) = user::issue(&accounts.authn, user, login_uuid, None, now)?;
    Ok(Session {
        user_uuid: user.user_uuid,
        persona_uuid: user.persona_uuid,
        access_token,
        refresh_token,
        expires_at,
    })
}

/// Refreshes of a login in an hour. An access token lives for a quarter of it.
const REFRESHES_PER_HOUR: i64 = 60;
const HOUR_SECS: i64 = 3600;

/// Refuses with 429 a login that has used up the hour.
fn require_refresh_allowance(login: &store::Login, per_hour: i64, now: Timestamp) -> Result<()> {
    let secs = now.as_secs();
    if login.refresh_hour != secs.div_euclid(HOUR_SECS) || login.refresh_count < per_hour {
        return Ok(());
    }
    let message =
        format!("a login may be refreshed {per_hour} times an hour; wait for the next hour");
    Err(Error::too_many_requests(
        message,
        (HOUR_SECS - secs.rem_euclid(HOUR_SECS)).unsigned_abs(),
    ))
}

/// Exchanges a refresh token. A second use means that the token was stolen, from its owner or by
/// the caller, so the whole login is revoked.
pub async fn refresh(accounts: &Accounts, origin: &Origin, refresh_token: &str) -> Result<Session> {
    require_builtin_login(accounts)?;
    let hash = hub_base::sealing::hash(refresh_token);
    let now = accounts.core.clock.now();
    // A request that will be refused neither counts nor begins a transaction.
    let mut conn = accounts.core.db.read().await?;
    let known = store::login_of_token(&mut conn, &hash)
        .await?
        .filter(|login| login.is_live(now));
    drop(conn);
    let login = known.ok_or_else(invalid_refresh_token)?;
    require_refresh_allowance(&login, REFRESHES_PER_HOUR, now)?;
    let _turn = accounts.core.turns.logins.take(login.login_uuid).await?;
    let mut tx = accounts.core.db.begin().await?;
    // Rotate first: of two concurrent requests with one token, the second sees what the first did.
    let is_first_use = store::rotate(&mut tx, &hash, now).await?;
    let login = store::login_of_token(&mut tx, &hash)
        .await?
        .filter(|login| login.is_live(now));
    let login = login.ok_or_else(invalid_refresh_token)?;
    let user = login.user();
    if !is_first_use {
        if store::revoke_login(&mut tx, login.login_uuid, now).await? {
            let detail = json!({"reason": "a refresh token was used twice"});
            accounts.authn.permissions.wait_out_lease_after(&mut tx);
            tx.commit(Audit::new(&user, "login.revoke", login.login_uuid, now).with(detail))
                .await?;
        }
        return Err(invalid_refresh_token());
    }
    require_refresh_allowance(&login, REFRESHES_PER_HOUR, now)?;
    store::count_refresh(&mut tx, login.login_uuid, origin, Some(now), now).await?;
    let session = session(accounts, &mut tx, &user, login.login_uuid, now).await?;
    tx.commit_unaudited("a refresh continues an audited login")
        .await?;
    Ok(session)
}

fn invalid_refresh_token() -> Error {
    Error::unauthorized(
        "INVALID_REFRESH_TOKEN",
        "the refresh token is invalid or expired; log in again",
    )
}

/// Ends the login that the token belongs to. An unknown token, or one of an ended login, is no
/// error: the requested result already holds.
pub async fn logout(accounts: &Accounts, refresh_token: &str) -> Result<()> {
    let now = accounts.core.clock.now();
    let mut conn = accounts.core.db.read().await?;
    let login = store::login_of_token(&mut conn, &hub_base::sealing::hash(refresh_token)).await?;
    drop(conn);
    match login {
        Some(login) => end_login(accounts, &login, now).await,
        None => Ok(()),
    }
}

async fn end_login(accounts: &Accounts, login: &store::Login, now: Timestamp) -> Result<()> {
    if login.revoked_at.is_some() {
        return Ok(());
    }
    let mut tx = accounts.core.db.begin().await?;
    if store::revoke_login(&mut tx, login.login_uuid, now).await? {
        accounts.authn.permissions.wait_out_lease_after(&mut tx);
        tx.commit(Audit::new(
            &login.user(),
            "user.logout",
            login.login_uuid,
            now,
        ))
        .await?;
    }
    Ok(())
}

/// The e-mail of a request in the normalized form that accounts use.
pub fn checked_email(email: &str) -> Result<String> {
    fields::email(email).map_err(|error| Error::fields(vec![error]))
}

/// Whether there is such an account, which is not being deleted.
pub async fn exists(conn: &mut Conn, user_uuid: UserUuid) -> Result<bool> {
    store::exists(conn, user_uuid).await
}

/// The user's e-mail, if it has one, and nickname.
pub async fn profile(
    conn: &mut Conn,
    user_uuid: UserUuid,
) -> Result<Option<(Option<String>, Option<String>)>> {
    let profile = store::profile(conn, user_uuid).await?;
    Ok(profile.map(|(email, nickname)| (Some(email).filter(|email| !email.is_empty()), nickname)))
}

/// The e-mail of an account.
#[derive(Clone, Debug)]
pub struct Email {
    /// The address in lower case.
    pub address: String,
    /// Whether it is known to be this person's. Registering here does not prove that.
    pub is_verified: bool,
}

/// The user's e-mail, if it has one.
pub async fn email_of(conn: &mut Conn, user_uuid: UserUuid) -> Result<Option<Email>> {
    let credentials = store::credentials(conn, user_uuid)
        .await?
        .filter(|credentials| !credentials.email.is_empty());
    Ok(credentials.map(|credentials| Email {
        address: credentials.email.to_lowercase(),
        is_verified: credentials.has_verified_email(),
    }))
}

/// Counts an invitation against its sender and its recipient, or refuses it with 429, so that the
/// service cannot be used to flood a mailbox.
pub async fn count_invitation(core: &Core, inviter: UserUuid, email: &str) -> Result<()> {
    throttle::count(
        &core.db,
        &[Subject::inviter(inviter), Subject::invited(email)],
        core.clock.now(),
    )
    .await
}

fn code_guesses(user_uuid: UserUuid, address: Option<IpAddr>) -> Vec<Subject> {
    address
        .map(Subject::codes_from)
        .into_iter()
        .chain([Subject::codes(user_uuid)])
        .collect()
}

/// Refuses with 429 a caller that has named too many claim codes of others.
pub async fn check_code_guesses(
    conn: &mut Conn,
    user_uuid: UserUuid,
    address: Option<IpAddr>,
    now: Timestamp,
) -> Result<()> {
    throttle::check(conn, &code_guesses(user_uuid, address), now).await
}

/// Counts that somebody has named a claim code that is not theirs, or refuses it with 429.
pub async fn count_code_guess(
    core: &Core,
    user_uuid: UserUuid,
    address: Option<IpAddr>,
) -> Result<()> {
    throttle::count(
        &core.db,
        &code_guesses(user_uuid, address),
        core.clock.now(),
    )
    .await
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
    let deleted =
        store::delete_failures(&mut tx, now.plus_secs(-throttle::RESET_AFTER_SECS), limit).await?;
    tx.commit_unaudited("expired counters have no effect")
        .await?;
    Ok(deleted)
}
