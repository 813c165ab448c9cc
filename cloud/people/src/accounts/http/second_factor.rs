//! `/auth/second-factor` and `/auth/sessions`: how people protect their account, and see who uses
//! it.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::{Answer, NoContent};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::user::{Enrolling, User};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::accounts::sessions::{self, SessionResponse};
use crate::accounts::{Accounts, second_factor};
use crate::audit_logs::FailedLogin;

const TAG: &str = "auth";

pub fn routes() -> ApiRouter<crate::Parts> {
    ApiRouter::new()
        .api_route(
            "/auth/second-factor",
            post_with(
                begin,
                operation_failing(
                    &[409],
                    "secondFactor.create",
                    TAG,
                    "Begin to set up a second factor",
                ),
            )
            .delete_with(
                remove,
                operation_failing(
                    &[403, 404, 429],
                    "secondFactor.delete",
                    TAG,
                    "Remove the caller's second factor",
                ),
            ),
        )
        .api_route(
            "/auth/second-factor/confirm",
            post_with(
                confirm,
                operation_failing(
                    &[403, 409, 429],
                    "secondFactor.confirm",
                    TAG,
                    "Put a second factor into force, and get recovery codes",
                ),
            ),
        )
        .api_route(
            "/auth/sessions/{sessionUuid}",
            delete_with(
                end_session,
                operation_failing(
                    &[404],
                    "sessions.delete",
                    TAG,
                    "End one login of the caller",
                ),
            ),
        )
        .api_route(
            "/auth/failed-logins",
            get_with(
                failed_logins,
                operation(
                    "sessions.listFailed",
                    TAG,
                    "The latest failed logins at the caller's account",
                ),
            ),
        )
}

/// The data that an authenticator app is set up with.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SecondFactorResponse {
    /// The secret in base32, to be typed.
    secret: String,
    /// The same with all parameters, to be shown as a QR code.
    otpauth_url: String,
}

/// A code of the caller's second factor.
#[derive(Deserialize, JsonSchema)]
struct OtpRequest {
    /// A code of the authenticator app, or, to remove it, a recovery code.
    #[schemars(length(min = 1, max = 64))]
    otp: String,
}

/// The codes that log in once each without the authenticator app. They are shown this once.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RecoveryCodesResponse {
    /// The codes.
    recovery_codes: Vec<String>,
}

async fn begin(
    Enrolling(user): Enrolling,
    State(accounts): State<Accounts>,
) -> Result<Answer<SecondFactorResponse>> {
    let begun = second_factor::enrol(&accounts, &user).await?;
    Ok(Answer(SecondFactorResponse {
        secret: begun.secret,
        otpauth_url: begun.otpauth_url,
    }))
}

async fn confirm(
    Enrolling(user): Enrolling,
    State(accounts): State<Accounts>,
    Json(OtpRequest { otp }): Json<OtpRequest>,
) -> Result<Answer<RecoveryCodesResponse>> {
    let recovery_codes = second_factor::confirm(&accounts, &user, &otp).await?;
    Ok(Answer(RecoveryCodesResponse { recovery_codes }))
}

async fn remove(
    user: User,
    State(accounts): State<Accounts>,
    Json(OtpRequest { otp }): Json<OtpRequest>,
) -> Result<NoContent> {
    second_factor::remove(&accounts, &user, &otp).await?;
    Ok(NoContent)
}

pub async fn list_sessions(
    user: User,
    State(accounts): State<Accounts>,
) -> Result<Answer<Vec<SessionResponse>>> {
    sessions::list(&accounts, &user).await.map(Answer)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SessionPath {
    /// The login.
    session_uuid: Uuid,
}

async fn end_session(
    user: User,
    State(accounts): State<Accounts>,
    Path(SessionPath { session_uuid }): Path<SessionPath>,
) -> Result<NoContent> {
    sessions::end(&accounts, &user, session_uuid).await?;
    Ok(NoContent)
}

async fn failed_logins(
    user: User,
    State(accounts): State<Accounts>,
) -> Result<Answer<Vec<FailedLogin>>> {
    sessions::failed(&accounts, &user).await.map(Answer)
}
