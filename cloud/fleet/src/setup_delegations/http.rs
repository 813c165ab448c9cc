//! `/tenant/hubs/{hubUuid}/setup-delegations`.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::{Authorized, permission as perm};
use hub_people::accounts;
use hub_protocol::{HubUuid, Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Delegation, MAX_LIVE, Person, store};
use crate::Parts;
use crate::hubs;
use crate::hubs::http::HubPath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/hubs/{hubUuid}/setup-delegations",
            get_with(
                list,
                operation(
                    "setupDelegations.list",
                    "tenant-hubs",
                    "Setup delegations of a hub, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[409],
                    "setupDelegations.create",
                    "tenant-hubs",
                    "Delegate the setup of a hub to a person",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/{hubUuid}/setup-delegations/{id}",
            delete_with(
                delete,
                operation(
                    "setupDelegations.delete",
                    "tenant-hubs",
                    "End a setup delegation",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupDelegationPath {
    /// The hub.
    pub hub_uuid: HubUuid,
    /// The id of the delegation.
    pub id: i64,
}

/// The person to delegate a hub to, who need not have an account yet: exactly one of `userUuid` and
/// `email`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupDelegationRequest {
    /// The account of the person.
    user_uuid: Option<UserUuid>,
    /// The e-mail address of the account that the person has or will create.
    #[schemars(length(max = 254), extend("format" = "email"))]
    email: Option<String>,
    /// When the delegation expires, in the future; never when absent.
    expires_at: Option<Timestamp>,
}

impl SetupDelegationRequest {
    fn checked(self, now: Timestamp) -> Result<(Person, Option<Timestamp>)> {
        let person = match (self.user_uuid, self.email) {
            (Some(user_uuid), None) => Person::User(user_uuid),
            (None, Some(email)) => Person::Email(accounts::checked_email(&email)?),
            (Some(_), Some(_)) => {
                return Err(Error::field(
                    "email",
                    "must not be given together with `userUuid`",
                ));
            }
            (None, None) => {
                return Err(Error::field(
                    "userUuid",
                    "is required unless `email` is given",
                ));
            }
        };
        match self.expires_at {
            Some(at) if at <= now => Err(Error::field("expiresAt", "must be in the future")),
            expires_at => Ok((person, expires_at)),
        }
    }
}

/// A hub that is delegated to a person.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupDelegationResponse {
    /// The id of the delegation.
    #[schemars(range(min = 1))]
    id: i64,
    /// The hub.
    hub_uuid: HubUuid,
    /// The account of the person.
    user_uuid: Option<UserUuid>,
    /// The e-mail address of the person.
    email: Option<String>,
    /// When the delegation expires; null when it does not.
    expires_at: Option<Timestamp>,
    /// When it was created.
    created_at: Timestamp,
}

impl From<Delegation> for SetupDelegationResponse {
    fn from(delegation: Delegation) -> Self {
        let Delegation {
            setup_delegation_id: id,
            hub_uuid,
            user_uuid,
            email,
            expires_at,
            created_at,
        } = delegation;
        Self {
            id,
            hub_uuid,
            user_uuid,
            email,
            expires_at,
            created_at,
        }
    }
}

/// The valid delegations, newest first.
async fn list(
    auth: Authorized<perm::HubsRead>,
    State(core): State<Core>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
) -> Result<Answer<Vec<SetupDelegationResponse>>> {
    let mut conn = core.db.read().await?;
    hubs::require(&mut conn, &auth.scope, hub_uuid).await?;
    let delegations =
        store::list(&mut conn, &auth.scope, hub_uuid, core.clock.now(), MAX_LIVE).await?;
    Ok(Answer(
        delegations
            .into_iter()
            .map(SetupDelegationResponse::from)
            .collect(),
    ))
}

/// A repeated delegation to the same person replaces the expiry time.
async fn create(
    auth: Authorized<perm::HubsOperate>,
    State(core): State<Core>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    Json(request): Json<SetupDelegationRequest>,
) -> Result<Answer<SetupDelegationResponse>> {
    let (person, expires_at) = request.checked(core.clock.now())?;
    let delegation = super::create(&core, &auth.scope, hub_uuid, person, expires_at).await?;
    Ok(Answer(delegation.into()))
}

async fn delete(
    auth: Authorized<perm::HubsOperate>,
    State(core): State<Core>,
    Path(SetupDelegationPath { hub_uuid, id }): Path<SetupDelegationPath>,
) -> Result<Answer<()>> {
    super::delete(&core, &auth.scope, hub_uuid, id).await?;
    Ok(Answer(()))
}
