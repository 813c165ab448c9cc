//! `/tenant/hubs/{hubUuid}/setup-delegations`.

use axum::extract::State;
use hub_protocol::{HubUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Delegation, MAX_LIVE, Person, store};
use crate::app::App;
use crate::authz::{Authorized, permission as perm};
use crate::domain::{accounts, hubs};
use crate::error::{Error, Result};
use crate::http::answer::Answer;
use crate::http::extract::{Json, Path};

/// Whom to lend a hub to: exactly one of `userUuid` and `email`. They need not have an account yet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupDelegationRequest {
    user_uuid: Option<UserUuid>,
    /// Of the account that the person has, or will make.
    email: Option<String>,
    /// When the hub is taken back by itself; never when absent.
    expires_at: Option<Timestamp>,
}

/// A hub lent to a person.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupDelegationResponse {
    id: i64,
    hub_uuid: HubUuid,
    user_uuid: Option<UserUuid>,
    email: Option<String>,
    expires_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl From<Delegation> for SetupDelegationResponse {
    fn from(delegation: Delegation) -> Self {
        let Delegation { setup_delegation_id: id, hub_uuid, user_uuid, email, expires_at, created_at } = delegation;
        Self { id, hub_uuid, user_uuid, email, expires_at, created_at }
    }
}

/// Those that live, newest first.
pub async fn list(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
) -> Result<Answer<Vec<SetupDelegationResponse>>> {
    let mut conn = app.db.read().await?;
    hubs::require(&mut conn, &auth.scope, hub_uuid).await?;
    let delegations = store::list(&mut conn, &auth.scope, hub_uuid, app.clock.now(), MAX_LIVE).await?;
    Ok(Answer(delegations.into_iter().map(SetupDelegationResponse::from).collect()))
}

/// Naming somebody again sets another end.
pub async fn create(
    auth: Authorized<perm::HubsOperate>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    Json(request): Json<SetupDelegationRequest>,
) -> Result<Answer<SetupDelegationResponse>> {
    let person = match (request.user_uuid, request.email) {
        (Some(user_uuid), None) => Person::User(user_uuid),
        (None, Some(email)) => Person::Email(accounts::checked_email(&email)?),
        (Some(_), Some(_)) => return Err(Error::field("email", "give this or `userUuid`, not both")),
        (None, None) => return Err(Error::field("userUuid", "must be given, or `email` in its place")),
    };
    if request.expires_at.is_some_and(|at| at <= app.clock.now()) {
        return Err(Error::field("expiresAt", "must lie ahead"));
    }
    let delegation = super::create(&app, &auth.scope, hub_uuid, person, request.expires_at).await?;
    Ok(Answer(delegation.into()))
}

pub async fn delete(
    auth: Authorized<perm::HubsOperate>,
    State(app): State<App>,
    Path((hub_uuid, id)): Path<(HubUuid, i64)>,
) -> Result<Answer<()>> {
    super::delete(&app, &auth.scope, hub_uuid, id).await?;
    Ok(Answer(()))
}
