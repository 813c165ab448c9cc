//! `/auth/**` and `/.well-known/jwks.json`.

use aide::OperationOutput;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Session, fields};
use crate::app::App;
use crate::authn::keys::PublicKey;
use crate::authn::user::User;
use crate::authz::Public;
use crate::error::{Error, Result};
use crate::http::answer::{Answer, Created, NoContent, json_response};
use crate::http::client_address::ClientAddress;
use crate::http::extract::Json;

// The members are read as whatever they are, so that all that are wrong or missing can be named at once.
#[derive(Deserialize, JsonSchema)]
pub struct RegisterRequest {
    /// Read without regard to case.
    #[schemars(with = "String")]
    email: Option<Value>,
    /// 8 to 200 characters.
    #[schemars(with = "String")]
    password: Option<Value>,
    /// Up to 80 characters.
    #[schemars(with = "Option<String>")]
    nickname: Option<Value>,
}

#[derive(Deserialize, JsonSchema)]
pub struct LoginRequest {
    email: String,
    password: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefreshRequest {
    refresh_token: String,
}

pub async fn register(
    _: Public,
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
    Json(request): Json<RegisterRequest>,
) -> Result<Created<Session>> {
    let RegisterRequest { email, password, nickname } = request;
    let registration = super::checked(
        fields::required("email", email).and_then(|email| fields::email(&email)),
        fields::required("password", password).and_then(|password| fields::password("password", password)),
        fields::optional("nickname", nickname).and_then(|nickname| fields::nickname(nickname.as_deref())),
    )?;
    super::register(&app, address, registration).await.map(Created)
}

pub async fn login(
    _: Public,
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
    Json(LoginRequest { email, password }): Json<LoginRequest>,
) -> Result<Answer<Session>> {
    super::login(&app, address, &email, password).await.map(Answer)
}

pub async fn refresh(
    _: Public,
    State(app): State<App>,
    Json(request): Json<RefreshRequest>,
) -> Result<Answer<Session>> {
    super::refresh(&app, &request.refresh_token).await.map(Answer)
}

pub async fn logout(_: Public, State(app): State<App>, Json(request): Json<RefreshRequest>) -> Result<NoContent> {
    super::logout(&app, &request.refresh_token).await.map(|()| NoContent)
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangePasswordRequest {
    current_password: String,
    /// 8 to 200 characters.
    new_password: String,
}

#[derive(Deserialize, JsonSchema)]
pub struct ForgotPasswordRequest {
    /// Read without regard to case.
    email: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResetPasswordRequest {
    /// From the mail.
    token: String,
    /// 8 to 200 characters.
    new_password: String,
}

fn new_password(text: String) -> Result<String> {
    fields::password("newPassword", text).map_err(|error| Error::fields(vec![error]))
}

/// Ends all other logins of the caller.
pub async fn change_password(
    user: User,
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
    Json(request): Json<ChangePasswordRequest>,
) -> Result<NoContent> {
    let new_password = new_password(request.new_password)?;
    if new_password == request.current_password {
        return Err(Error::field("newPassword", "must be another one than the current one"));
    }
    super::change_password(&app, &user, address, request.current_password, new_password).await?;
    Ok(NoContent)
}

/// Sends a mail with a token that sets a new password, if there is such an account. The answer is the same when there is none.
pub async fn forgot_password(
    _: Public,
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
    Json(request): Json<ForgotPasswordRequest>,
) -> Result<NoContent> {
    super::forgot_password(&app, address, &request.email).await.map(|()| NoContent)
}

/// Ends all logins of the account.
pub async fn reset_password(
    _: Public,
    State(app): State<App>,
    Json(request): Json<ResetPasswordRequest>,
) -> Result<NoContent> {
    let new_password = new_password(request.new_password)?;
    super::reset_password(&app, &request.token, new_password).await.map(|()| NoContent)
}

/// A JSON Web Key Set (RFC 7517): what user tokens are checked with.
#[derive(Serialize, JsonSchema)]
pub struct KeySet {
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

pub async fn jwks(_: Public, State(app): State<App>) -> KeySet {
    KeySet { keys: app.keys.public() }
}
