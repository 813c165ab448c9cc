//! `DELETE /app/profile`.

use aide::axum::ApiRouter;
use aide::axum::routing::delete_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::NoContent;
use hub_core::http::client_address::ClientAddress;
use hub_core::http::extract::Json;
use hub_core::http::operation::operation_failing;
use hub_identity::authz::EndUser;
use hub_people::accounts::Accounts;
use hub_protocol::UserUuid;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Confirmation;
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
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

/// The confirmation of the request.
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
