//! Logins of browsers. A page's script never holds more than an access token of 15 minutes: what
//! gets it the next one is a cookie that scripts cannot read and other sites cannot have sent. A
//! refresh replaces the cookie. Two tabs that refresh at once, or an answer that is lost, must not
//! end the login of somebody who did nothing wrong: for a minute the cookie before is as good, and
//! longer if nobody has used the new one. A replaced cookie that comes later was copied, and ends
//! the login. One that was not used for a week ends by itself.

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
use super::origin::Origin;
use super::store::NewLogin;
use super::{
    Accounts, Admitted, LoginCredentials, admit, new_token, require_refresh_allowance, store,
};

/// A login with a password here.
const PASSWORD_LIFETIME_SECS: i64 = super::LOGIN_LIFETIME_SECS;
/// The lifetime of a login through an external issuer, which the service does not ask earlier: the
/// issuer may have removed a role since.
pub const ISSUER_LIFETIME_SECS: i64 = 12 * 3600;
/// The lifetime of an unused cookie.
pub const IDLE_SECS: i64 = 7 * 24 * 3600;
/// The time in which a replaced cookie is as good as the new one.
const OVERLAP_SECS: i64 = 60;
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
    /// None if the browser has, or gets, one by another request.
    pub cookie: Option<String>,
    /// The lifetime of an unused cookie.
    pub max_age_secs: i64,
}

impl BrowserLogin {
    fn is_live(&self, now: Timestamp) -> bool {
        self.login.is_live(now) && self.last_used_at.plus_secs(IDLE_SECS) > now
    }

    /// Whether the cookie was replaced within the last minute.
    fn is_just_replaced(&self, now: Timestamp) -> bool {
        self.cookie_replaced_at
            .is_some_and(|at| at.plus_secs(OVERLAP_SECS) > now)
    }

    /// Whether this is a cookie whose successor was used long ago.
    fn is_copy(&self, now: Timestamp) -> bool {
        let is_successor_used = self
            .cookie_replaced_at
            .is_some_and(|at| self.last_used_at > at);
        !self.is_current && is_successor_used && !self.is_just_replaced(now)
    }

    /// The external issuer at which the person signed in, if not here.
    fn idp(&self) -> Option<&str> {
        Some(self.issuer.as_str()).filter(|issuer| !issuer.is_empty())
    }
}

/// Signs a person in with their password.
pub async fn sign_in(
    accounts: &Accounts,
    origin: &Origin,
    credentials: LoginCredentials,
) -> Result<SignedIn> {
    let Admitted {
        tx,
        user,
        login_uuid,
        now,
    } = admit(accounts, origin, credentials).await?;
    begin(accounts, tx, &user, origin, (login_uuid, None), now).await
}

/// Begins a login and commits it. The user's row is locked, so that concurrent ones count each
/// other.
pub async fn begin(
    accounts: &Accounts,
    mut tx: Tx,
    user: &User,
    origin: &Origin,
    (login_uuid, idp): (Uuid, Option<&str>),
    now: Timestamp,
) -> Result<SignedIn> {
    let lifetime_secs = if idp.is_some() {
        ISSUER_LIFETIME_SECS
    } else {
        PASSWORD_LIFETIME_SECS
    };
    let expires_at = now.plus_secs(lifetime_secs);
    let cookie = new_token();
    let login = NewLogin {
        login_uuid,
        user,
        origin,
        cookie_hash: Some(&sealing::hash(&cookie)),
        now,
        expires_at,
    };
    store::insert_login(&mut tx, &login).await?;
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
        cookie: Some(cookie),
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

/// A new access token for the login that the cookie belongs to; None if there is none, or it has
/// ended.
pub async fn refresh(
    accounts: &Accounts,
    origin: &Origin,
    cookie: Option<String>,
) -> Result<Option<SignedIn>> {
    let Some(presented) = cookie else {
        return Ok(None);
    };
    let core = &accounts.core;
    let hash = sealing::hash(&presented);
    let now = core.clock.now();
    let find = async || {
        let found = browser_store::login_of_cookie(&mut core.db.read().await?, &hash).await?;
        let live =
            found.filter(|found| found.is_live(now) && user::is_way_in(&core.config, found.idp()));
        if let Some(live) = &live {
            require_refresh_allowance(&live.login, REFRESHES_PER_HOUR, now)?;
        }
        Ok::<_, Error>(live)
    };
    // A request without a login takes no turn.
    let Some(first) = find().await? else {
        return Ok(None);
    };
    let _turn = core.turns.logins.take(first.login.login_uuid).await?;
    let Some(live) = find().await? else {
        return Ok(None);
    };
    if live.is_copy(now) {
        end_copied(accounts, &live, now).await?;
        return Ok(None);
    }
    let mut tx = core.db.begin().await?;
    let cookie = match (live.is_just_replaced(now), live.is_current) {
        (true, true) => Some(presented),
        // The browser gets the new cookie by the request that replaced it.
        (true, false) => None,
        (false, _) => {
            let cookie = new_token();
            let new_hash = sealing::hash(&cookie);
            browser_store::replace_cookie(&mut tx, &live, &hash, &new_hash, now)
                .await?
                .then_some(cookie)
        }
    };
    // The use of a cookie that was replaced is none of its successor.
    let used_at = Some(now).filter(|_| cookie.is_some());
    store::count_refresh(&mut tx, live.login.login_uuid, origin, used_at, now).await?;
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
    Ok(Some(SignedIn {
        session,
        cookie,
        max_age_secs: left_secs.clamp(1, IDLE_SECS),
    }))
}

/// Ends a login whose cookie somebody else has, too.
async fn end_copied(accounts: &Accounts, copied: &BrowserLogin, now: Timestamp) -> Result<()> {
    let mut tx = accounts.core.db.begin().await?;
    let login = &copied.login;
    if !store::revoke_login(&mut tx, login.login_uuid, now).await? {
        return Ok(());
    }
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    let detail = json!({"reason": "a cookie was used after it had been replaced"});
    tx.commit(Audit::new(&login.user(), "login.revoke", login.login_uuid, now).with(detail))
        .await
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
