//! The logins of a person, for them to see and to end.

use hub_base::error::{Error, Result};
use hub_core::audit::Audit;
use hub_identity::authn::user::{Session, User};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::browser::IDLE_SECS;
use super::{Accounts, store};
use crate::audit_logs::{self, FailedLogin};

/// The most logins that are shown.
const MAX_LISTED: i64 = 100;
/// The most failed logins that are shown.
const MAX_FAILED: i64 = 50;

/// A login of the caller that is in force.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionResponse {
    /// The login.
    session_uuid: Uuid,
    /// When it began.
    created_at: Timestamp,
    /// When it got its last access token.
    last_used_at: Timestamp,
    /// The address of its last use; null if it is not known.
    address: Option<String>,
    /// The program that logged in, in its own words; null if it did not say.
    user_agent: Option<String>,
    /// Whether the request belongs to it.
    current: bool,
}

/// The logins of the user, the last used one first; at most a hundred.
pub async fn list(accounts: &Accounts, user: &User) -> Result<Vec<SessionResponse>> {
    let now = accounts.core.clock.now();
    let mut conn = accounts.core.db.read().await?;
    let idle_since = now.plus_secs(-IDLE_SECS);
    let logins = store::live_logins(&mut conn, user.user_uuid, now, idle_since, MAX_LISTED).await?;
    let shown = logins.into_iter().map(|login| SessionResponse {
        session_uuid: login.login_uuid,
        created_at: login.created_at,
        last_used_at: login.last_used_at,
        address: login.address,
        user_agent: login.user_agent,
        current: user.session == Session::Login(login.login_uuid),
    });
    Ok(shown.collect())
}

/// Ends a login of the user, in effect on every replica when this returns.
pub async fn end(accounts: &Accounts, user: &User, session_uuid: Uuid) -> Result<()> {
    let now = accounts.core.clock.now();
    let mut tx = accounts.core.db.begin().await?;
    if !store::revoke_own_login(&mut tx, user.user_uuid, session_uuid, now).await? {
        return Err(Error::not_found("session"));
    }
    accounts.authn.permissions.wait_out_lease_after(&mut tx);
    tx.commit(Audit::new(user, "user.logout", session_uuid, now))
        .await
}

/// The latest failed logins at the account of the user, latest first; at most fifty.
pub async fn failed(accounts: &Accounts, user: &User) -> Result<Vec<FailedLogin>> {
    let mut conn = accounts.core.db.read().await?;
    audit_logs::failed_logins(&mut conn, user.user_uuid, super::failed::ACTION, MAX_FAILED).await
}
