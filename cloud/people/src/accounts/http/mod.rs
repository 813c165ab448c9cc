//! `/auth/**` and `/.well-known/jwks.json`. What browsers sign in with is in `browser`.

mod browser;
mod second_factor;

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_core::http::answer::{Answer, Created, NoContent, json_response};
use hub_core::http::client_address::ClientAddress;
use hub_core::http::extract::Json;
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::keys::PublicKey;
use hub_identity::authn::user::User;
use hub_identity::authz::Public;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LoginCredentials, Origin, Registration, Session, fields};
use crate::Parts;
use crate::accounts::Accounts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .merge(super::profile::routes())
        .merge(browser::routes())
        .merge(second_factor::routes())
        .api_route(
            "/.well-known/jwks.json",
            get_with(
                jwks,
                operation("auth.getJwks", "auth", "Keys that verify user tokens"),
            ),
        )
        .api_route(
            "/auth/register",
            post_with(
                register,
                operation_failing(
                    &[403, 409, 429],
                    "auth.register",
                    "auth",
                    "Create an account and log in",
                ),
            ),
        )
        .api_route(
            "/auth/login",
            post_with(
                login,
                operation_failing(&[401, 403, 429], "auth.login", "auth", "Log in"),
            ),
        )
        .api_route(
            "/auth/refresh",
            post_with(
                refresh,
                operation_failing(
                    &[401, 403, 429],
                    "auth.refresh",
                    "auth",
                    "Exchange a refresh token",
                ),
            ),
        )
        .api_route(
            "/auth/logout",
            post_with(logout, operation("auth.logout", "auth", "End a login")),
        )
        .api_route(
            "/auth/password",
            post_with(
                change_password,
                operation_failing(
                    &[403, 409, 429],
                    "auth.changePassword",
                    "auth",
                    "Change the password",
                ),
            ),
        )
        .api_route(
            "/auth/password/forgot",
            post_with(
                forgot_password,
                operation_failing(
                    &[403, 429],
                    "auth.forgotPassword",
                    "auth",
                    "Request a password-reset mail",
                ),
            ),
        )
        .api_route(
            "/auth/password/reset",
            post_with(
                reset_password,
                operation_failing(
                    &[403],
                    "auth.resetPassword",
                    "auth",
                    "Set a new password with a mailed token",
                ),
            ),
        )
}

// The members are parsed as arbitrary JSON, so that one response can name all invalid and missing
// ones.
/// An account to create.
#[derive(Deserialize, JsonSchema)]
pub struct RegisterRequest {
    /// The e-mail address, read without regard to case.
    #[schemars(with = "String")]
    #[schemars(length(max = 254), extend("format" = "email"))]
    email: Option<Value>,
    /// The password: 8 to 200 characters.
    #[schemars(with = "String")]
    #[schemars(length(min = 8, max = 200))]
    password: Option<Value>,
    /// The name to show to others.
    #[schemars(with = "Option<String>")]
    #[schemars(extend("minLength" = 1, "maxLength" = 80, "pattern" = hub_protocol::patterns::FILLED_LINE))]
    nickname: Option<Value>,
}

impl RegisterRequest {
    fn checked(self) -> Result<Registration> {
        let Self {
            email,
            password,
            nickname,
        } = self;
        Registration::checked(
            fields::required("email", email).and_then(|email| fields::email(&email)),
            fields::required("password", password),
            fields::optional("nickname", nickname)
                .and_then(|nickname| fields::nickname(nickname.as_deref())),
        )
    }
}

/// The credentials of an account.
#[derive(Deserialize, JsonSchema)]
struct LoginRequest {
    /// The e-mail address, read without regard to case.
    #[schemars(length(max = 254), extend("format" = "email"))]
    email: String,
    /// The password.
    password: String,
    /// A code of the second factor, or a recovery code; for an account that has one.
    #[schemars(length(max = 64))]
    otp: Option<String>,
}

impl From<LoginRequest> for LoginCredentials {
    fn from(request: LoginRequest) -> Self {
        Self {
            email: request.email,
            password: request.password,
            otp: request.otp.filter(|otp| !otp.trim().is_empty()),
        }
    }
}

/// The refresh token of a login.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefreshRequest {
    /// The refresh token that was returned last.
    refresh_token: String,
}

async fn register(
    _: Public,
    State(accounts): State<Accounts>,
    origin: Origin,
    Json(request): Json<RegisterRequest>,
) -> Result<Created<Session>> {
    super::register(&accounts, &origin, request.checked()?)
        .await
        .map(Created)
}

async fn login(
    _: Public,
    State(accounts): State<Accounts>,
    origin: Origin,
    Json(request): Json<LoginRequest>,
) -> Result<Answer<Session>> {
    super::login(&accounts, &origin, request.into())
        .await
        .map(Answer)
}

async fn refresh(
    _: Public,
    State(accounts): State<Accounts>,
    origin: Origin,
    Json(request): Json<RefreshRequest>,
) -> Result<Answer<Session>> {
    super::refresh(&accounts, &origin, &request.refresh_token)
        .await
        .map(Answer)
}

async fn logout(
    _: Public,
    State(accounts): State<Accounts>,
    Json(request): Json<RefreshRequest>,
) -> Result<NoContent> {
    super::logout(&accounts, &request.refresh_token)
        .await
        .map(|()| NoContent)
}

/// A new password for the caller.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangePasswordRequest {
    /// The password that is valid now.
    current_password: String,
    /// The password to set: 8 to 200 characters.
    #[schemars(length(min = 8, max = 200))]
    new_password: String,
}

/// The account whose password is to be reset.
#[derive(Deserialize, JsonSchema)]
pub struct ForgotPasswordRequest {
    /// The e-mail address of the account, read without regard to case.
    #[schemars(length(max = 254), extend("format" = "email"))]
    email: String,
}

/// A new password, and the token that allows it.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResetPasswordRequest {
    /// The token from the mail.
    token: String,
    /// The password to set: 8 to 200 characters.
    #[schemars(length(min = 8, max = 200))]
    new_password: String,
}

/// Refuses at once what no account could have.
fn new_password(text: String) -> Result<String> {
    fields::password("newPassword", text).map_err(|error| Error::fields(vec![error]))
}

/// Ends all other logins of the caller.
async fn change_password(
    user: User,
    State(accounts): State<Accounts>,
    ClientAddress(address): ClientAddress,
    Json(request): Json<ChangePasswordRequest>,
) -> Result<NoContent> {
    let new_password = new_password(request.new_password)?;
    if new_password == request.current_password {
        return Err(Error::field(
            "newPassword",
            "must differ from the current password",
        ));
    }
    super::change_password(
        &accounts,
        &user,
        address,
        request.current_password,
        new_password,
    )
    .await?;
    Ok(NoContent)
}

/// Sends a mail with a token to set a new password, if the account exists. The response is the same
/// if it does not.
async fn forgot_password(
    _: Public,
    State(accounts): State<Accounts>,
    ClientAddress(address): ClientAddress,
    Json(request): Json<ForgotPasswordRequest>,
) -> Result<NoContent> {
    super::forgot_password(&accounts, address, &request.email)
        .await
        .map(|()| NoContent)
}

/// Ends all logins of the account.
async fn reset_password(
    _: Public,
    State(accounts): State<Accounts>,
    ClientAddress(address): ClientAddress,
    Json(request): Json<ResetPasswordRequest>,
) -> Result<NoContent> {
    let new_password = new_password(request.new_password)?;
    super::reset_password(&accounts, address, &request.token, new_password)
        .await
        .map(|()| NoContent)
}

/// A JSON Web Key Set (RFC 7517): what access tokens are checked with.
#[derive(Serialize, JsonSchema)]
pub struct KeySet {
    /// The keys in use.
    keys: Vec<PublicKey>,
}

impl IntoResponse for KeySet {
    fn into_response(self) -> Response {
        ([("cache-control", "public, max-age=300")], axum::Json(self)).into_response()
    }
}

impl OperationOutput for KeySet {
    type Inner = Self;
    fn inferred_responses(
        ctx: &mut aide::generate::GenContext,
        _: &mut aide::openapi::Operation,
    ) -> Vec<(Option<u16>, aide::openapi::Response)> {
        vec![(Some(200), json_response::<Self>(ctx, "The keys in use."))]
    }
}

async fn jwks(_: Public, State(accounts): State<Accounts>) -> KeySet {
    KeySet {
        keys: accounts.authn.keys.public(accounts.core.clock.now()),
    }
}
