//! Logins of browsers. A page's script never holds more than an access token of 15 minutes: what
//! gets it the next one is a cookie that scripts cannot read and other sites cannot have sent. The
//! cookie stays the same for as long as the login lasts. If it changed with each refresh, two tabs
//! that refresh at once, or an answer that is lost, would end the login of somebody who did nothing
//! wrong. In exchange it ends when it was not used for a week.

use std::net::IpAddr;

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::audit::Audit;
use hub_identity::authn::user::{self, User};
use hub_protocol::{PersonaUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, json};
use uuid::Uuid;

use super::browser_store::{self, BrowserLogin};
use super::{Accounts, Admitted, HOUR_SECS, admit, new_token, require_refresh_allowance, store};

/// A login with a password here.
const PASSWORD_LIFETIME_SECS: i64 = super::LOGIN_LIFETIME_SECS;
/// The lifetime of a login through an external issuer, which the service does not ask earlier: the
/// issuer may have removed a role since.
pub const ISSUER_LIFETIME_SECS: i64 = 12 * 3600;
/// The lifetime of an unused cookie.
const IDLE_SECS: i64 = 7 * 24 * 3600;
/// Browsers that one person is signed in with; beyond that the oldest are signed out.
const MAX_PER_USER: i64 = 20;
/// Every loaded page requests an access token.
const REFRESHES_PER_HOUR: i64 = 600;

/// A login of a person in a browser. What continues it is in a cookie.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrowserSession {
    /// The account.
    pub user_uuid: UserUuid,
    /// The default persona of the account. In a tenant, the persona of that tenant applies.
    pub persona_uuid: PersonaUuid,
    /// The access token, to be sent as `Authorization: Bearer ...`.
    pub access_token: String,
    /// When the access token expires.
    pub expires_at: Timestamp,
}

/// A session with its cookie.
pub struct SignedIn {
    pub session: BrowserSession,
    pub cookie: String,
    /// The lifetime of an unused cookie.
    pub max_age_secs: i64,
}

impl BrowserLogin {
    /// The end of the hour in which the login was last used.
    fn last_used(&self) -> Timestamp {
        let refreshed =
            Timestamp::from_micros((self.login.refresh_hour + 1) * HOUR_SECS * 1_000_000);
        refreshed.max(self.created_at)
    }

    fn is_live(&self, now: Timestamp) -> bool {
        self.login.is_live(now) && self.last_used().plus_secs(IDLE_SECS) > now
    }

    /// The external issuer at which the person signed in, if not here.
    fn idp(&self) -> Option<&str> {
        Some(self.issuer.as_str()).filter(|issuer| !issuer.is_empty())
    }
}

/// Signs a person in with their password.
pub async fn sign_in(
    accounts: &Accounts,
    address: Option<IpAddr>,
    email: &str,
    password: String,
) -> Result<SignedIn> {
    let Admitted {
        tx,
        user,
        login_uuid,
        now,
    } = admit(accounts, address, email, password).await?;
    begin(accounts, tx, &user, login_uuid, None, now).await
}

/// Begins a login and commits it. The user's row is locked, so that concurrent ones count each
/// other.
pub async fn begin(
    accounts: &Accounts,
    mut tx: Tx,
    user: &User,
    login_uuid: Uuid,
    idp: Option<&str>,
    now: Timestamp,
) -> Result<SignedIn> {
    let lifetime_secs = if idp.is_some() {
        ISSUER_LIFETIME_SECS
    } else {
        PASSWORD_LIFETIME_SECS
    };
    let expires_at = now.plus_secs(lifetime_secs);
    let cookie = new_token();
    browser_store::insert(
        &mut tx,
        login_uuid,
        user,
        &sealing::hash(&cookie),
        now,
        expires_at,
    )
    .await?;
    let ended = browser_store::delete_oldest(&mut tx, user, MAX_PER_USER, now).await?;
    if ended > 0 {
        accounts.authn.permissions.wait_out_lease_after(&mut tx);
    }
    let session = session(accounts, user, login_uuid, idp, now)?;
    let mut detail = Map::from_iter([("browser".to_owned(), true.into())]);
    if let Some(idp) = idp {
        detail.insert("issuer".to_owned(), idp.into());
    }
    if ended > 0 {
        detail.insert("endedLogins".to_owned(), ended.into());
    }
    tx.commit(Audit::new(user, "user.login", user.user_uuid, now).with(detail.into()))
        .await?;
    Ok(SignedIn {
        session,
        cookie,
        max_age_secs: lifetime_secs.min(IDLE_SECS),
    })
}

fn session(
    accounts: &Accounts,
    user: &User,
    login_uuid: Uuid,
    idp: Option<&str>,
    now: Timestamp,
) -> Result<BrowserSession> {
    let (access_token, expires_at) = user::issue(&accounts.authn, user, login_uuid, idp, now)?;
    Ok(BrowserSession {
        user_uuid: user.user_uuid,
        persona_uuid: user.persona_uuid,
        access_token,
        expires_at,
    })
}

/// A new access token for the login that the cookie belongs to.
pub async fn refresh(accounts: &Accounts, cookie: Option<String>) -> Result<SignedIn> {
    let cookie = cookie.ok_or_else(not_signed_in)?;
    let core = &accounts.core;
    let hash = sealing::hash(&cookie);
    let now = core.clock.now();
    let find = async || {
        let found = browser_store::login_of_cookie(&mut core.db.read().await?, &hash).await?;
        let live =
            found.filter(|found| found.is_live(now) && user::is_way_in(&core.config, found.idp()));
        let live = live.ok_or_else(not_signed_in)?;
        require_refresh_allowance(&live.login, REFRESHES_PER_HOUR, now)?;
        Ok::<_, Error>(live)
    };
    // A request that will be refused takes no turn.
    let _turn = core
        .turns
        .logins
        .take(find().await?.login.login_uuid)
        .await?;
    let live = find().await?;
    let mut tx = core.db.begin().await?;
    store::count_refresh(
        &mut tx,
        live.login.login_uuid,
        now.as_secs().div_euclid(HOUR_SECS),
    )
    .await?;
    tx.commit_unaudited("a refresh continues an audited login")
        .await?;
    // If the login ended meanwhile, its token is refused like all others of it.
    let session = session(
        accounts,
        &live.login.user(),
        live.login.login_uuid,
        live.idp(),
        now,
    )?;
    let left_secs = live.login.expires_at.as_secs() - now.as_secs();
    Ok(SignedIn {
        session,
        cookie,
        max_age_secs: left_secs.clamp(1, IDLE_SECS),
    })
}

fn not_signed_in() -> Error {
    Error::unauthorized(
        "NOT_SIGNED_IN",
        "this browser is not signed in, or no longer; sign in",
    )
}

/// Ends the login that the cookie belongs to, if any: the requested result may hold already.
pub async fn sign_out(accounts: &Accounts, cookie: Option<String>) -> Result<()> {
    let Some(cookie) = cookie else { return Ok(()) };
    let now = accounts.core.clock.now();
    let mut conn = accounts.core.db.read().await?;
    let found = browser_store::login_of_cookie(&mut conn, &sealing::hash(&cookie)).await?;
    drop(conn);
    match found {
        Some(found) => super::end_login(accounts, &found.login, now).await,
        None => Ok(()),
    }
}

/// Ends all logins of a person, of browsers and others.
pub async fn sign_out_everywhere(accounts: &Accounts, user: &User) -> Result<()> {
    let now = accounts.core.clock.now();
    let mut tx = accounts.core.db.begin().await?;
    store::lock_user(&mut tx, user.user_uuid).await?;
    let ended = store::revoke_logins(&mut tx, user.user_uuid, None::<Uuid>, now).await?;
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    let audit = Audit::new(user, "user.logout_everywhere", user.user_uuid, now);
    tx.commit(audit.with(json!({"endedLogins": ended}))).await
}
