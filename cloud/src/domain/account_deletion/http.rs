//! `DELETE /app/profile`.

use aide::axum::ApiRouter;
use aide::axum::routing::delete_with;
use axum::extract::{FromRef, State};
use hub_protocol::UserUuid;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Confirmation;
use crate::authn::Authn;
use crate::authz::EndUser;
use crate::core::Core;
use crate::domain::accounts::Accounts;
use crate::error::Result;
use crate::http::answer::NoContent;
use crate::http::client_address::ClientAddress;
use crate::http::extract::Json;
use crate::http::operation::operation_failing;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Accounts: FromRef<S>,
{
    ApiRouter::new().api_route(
        "/app/profile",
        delete_with(
            delete,
            operation_failing(
                &[403, 409, 429],
                "appProfile.delete",
                "app",
                "Delete the caller's account for good",
            ),
        ),
    )
}

/// What confirms that the person means it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccountDeletionRequest {
    /// The password; required for an account that has one.
    current_password: Option<String>,
    /// The uuid of the account; required for an account of another issuer.
    user_uuid: Option<UserUuid>,
}

async fn delete(
    EndUser { user, .. }: EndUser,
    State(accounts): State<Accounts>,
    ClientAddress(address): ClientAddress,
    Json(request): Json<AccountDeletionRequest>,
) -> Result<NoContent> {
    let confirmation = Confirmation {
        password: request.current_password,
        user_uuid: request.user_uuid,
    };
    super::begin(&accounts, &user, address, confirmation).await?;
    Ok(NoContent)
}
