//! `/auth/session...`, `/auth/methods` and `/auth/oidc/**`: how people sign in with a browser.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::extract::{FromRef, FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::config::{Config, RegistrationPolicy};
use hub_core::http::answer::{Answer, NoContent, typed_response};
use hub_core::http::browser::{Cookie, SameOrigin, WithCookies};
use hub_core::http::describe::headers;
use hub_core::http::extract::{Json, Query};
use hub_core::http::message_page::{AcceptsHtml, MessagePage};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::oidc::redirect::Parameters;
use hub_identity::authn::user::User;
use hub_identity::authz::Public;
use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LoginRequest;
use super::second_factor::list_sessions;
use crate::accounts::browser::{self, BrowserSession, SignedIn};
use crate::accounts::{Accounts, Origin, issuer};

const TAG: &str = "auth";

/// Continues a login. Requests of other sites never carry it.
const SESSION: Cookie = Cookie {
    name: "hub_session",
    secure_name: "__Host-hub_session",
    follows_links: false,
};
/// Remembers a sign-in while the person is at the issuer, which sends them back with a link.
const SIGN_IN: Cookie = Cookie {
    name: "hub_sign_in",
    secure_name: "__Host-hub_sign_in",
    follows_links: true,
};

pub fn routes() -> ApiRouter<crate::Parts> {
    ApiRouter::new()
        .api_route(
            "/auth/methods",
            get_with(
                methods,
                operation("signIn.getMethods", TAG, "How people can sign in"),
            ),
        )
        .api_route(
            "/auth/session",
            post_with(
                sign_in,
                operation_failing(&[401, 429], "session.create", TAG, "Sign a browser in"),
            )
            .delete_with(
                sign_out,
                operation("session.delete", TAG, "Sign this browser out"),
            ),
        )
        .api_route(
            "/auth/session/refresh",
            post_with(
                refresh,
                operation_failing(
                    &[429],
                    "session.refresh",
                    TAG,
                    "Get an access token with the browser's cookie",
                ),
            ),
        )
        .api_route(
            "/auth/sessions",
            get_with(
                list_sessions,
                operation(
                    "sessions.list",
                    TAG,
                    "The caller's logins in force, the last used one first",
                ),
            )
            .delete_with(
                sign_out_everywhere,
                operation("session.deleteAll", TAG, "End all logins of the caller"),
            ),
        )
        .api_route(
            "/auth/oidc/login",
            get_with(
                begin,
                operation(
                    "signIn.begin",
                    TAG,
                    "Send a browser to the issuer to sign in",
                ),
            ),
        )
        .api_route(
            issuer::CALLBACK_PATH,
            get_with(
                callback,
                operation(
                    "signIn.callback",
                    TAG,
                    "Where the issuer sends a browser back to",
                ),
            ),
        )
}

/// The methods that a sign-in page offers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignInMethods {
    /// Whether sign-in with e-mail and password is on.
    password: bool,
    /// The policy for new accounts with e-mail and password; `CLOSED` also if these are off.
    registration: Registration,
    /// Whether a new password can be requested by mail.
    password_reset: bool,
    /// Whether the service has a mail server, and can send notices by mail.
    mail: bool,
    /// The issuer for sign-in; null if none is configured.
    oidc: Option<SignInIssuer>,
}

/// The policy for new accounts.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Registration {
    /// Registration needs no invitation.
    Open,
    /// Registration needs an invitation to a tenant.
    Invited,
    /// Registration is off.
    Closed,
}

/// An issuer for sign-in.
#[derive(Debug, Serialize, JsonSchema)]
struct SignInIssuer {
    /// A name to show: the issuer's host.
    name: String,
    /// Its URL.
    issuer: String,
}

async fn methods(_: Public, State(accounts): State<Accounts>) -> Answer<SignInMethods> {
    let config = &accounts.core.config;
    let registration = match config.registration {
        _ if !config.builtin_login => Registration::Closed,
        RegistrationPolicy::Open => Registration::Open,
        RegistrationPolicy::Invited => Registration::Invited,
        RegistrationPolicy::Closed => Registration::Closed,
    };
    let oidc = issuer::issuer(&accounts).map(|(oidc, _)| {
        let host = Url::parse(oidc.issuer())
            .ok()
            .and_then(|url| url.host_str().map(str::to_owned));
        SignInIssuer {
            name: host.unwrap_or_else(|| oidc.issuer().to_owned()),
            issuer: oidc.issuer().to_owned(),
        }
    });
    Answer(SignInMethods {
        password: config.builtin_login,
        registration,
        password_reset: config.builtin_login && config.mail.is_some(),
        mail: config.mail.is_some(),
        oidc,
    })
}

/// The cookies of a request from a page of this service.
struct OwnCookies(HeaderMap);

impl<S: Send + Sync> FromRequestParts<S> for OwnCookies
where
    Core: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        SameOrigin::from_request_parts(parts, state).await?;
        Ok(Self(parts.headers.clone()))
    }
}

impl OperationInput for OwnCookies {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        SameOrigin::operation_input(ctx, operation);
    }
}

fn kept(config: &Config, signed_in: SignedIn) -> WithCookies<Answer<BrowserSession>> {
    let cookie = signed_in
        .cookie
        .map(|cookie| SESSION.set(config, &cookie, signed_in.max_age_secs));
    WithCookies {
        answer: Answer(signed_in.session),
        cookies: cookie.into_iter().collect(),
    }
}

/// As `POST /auth/login`, but the refresh token is in a cookie that scripts cannot read.
async fn sign_in(
    _: Public,
    _: SameOrigin,
    State(accounts): State<Accounts>,
    origin: Origin,
    Json(request): Json<LoginRequest>,
) -> Result<WithCookies<Answer<BrowserSession>>> {
    let signed_in = browser::sign_in(&accounts, &origin, request.into()).await?;
    Ok(kept(&accounts.core.config, signed_in))
}

/// The session of a browser, if it has one. That it has none is no failure: a page asks for that.
enum Refreshed {
    Session(WithCookies<Answer<BrowserSession>>),
    SignedOut,
}

impl IntoResponse for Refreshed {
    fn into_response(self) -> Response {
        match self {
            Self::Session(session) => session.into_response(),
            Self::SignedOut => NoContent.into_response(),
        }
    }
}

impl OperationOutput for Refreshed {
    type Inner = BrowserSession;
    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let mut responses =
            WithCookies::<Answer<BrowserSession>>::inferred_responses(ctx, operation);
        let signed_out = ApiResponse {
            description: "This browser is not signed in, or no longer.".to_owned(),
            ..ApiResponse::default()
        };
        responses.push((Some(204), signed_out));
        responses
    }
}

async fn refresh(
    _: Public,
    OwnCookies(cookies): OwnCookies,
    State(accounts): State<Accounts>,
    origin: Origin,
) -> Result<Refreshed> {
    let config = &accounts.core.config;
    let signed_in = browser::refresh(&accounts, &origin, SESSION.read(config, &cookies)).await?;
    Ok(match signed_in {
        Some(signed_in) => Refreshed::Session(kept(config, signed_in)),
        None => Refreshed::SignedOut,
    })
}

async fn sign_out(
    _: Public,
    OwnCookies(cookies): OwnCookies,
    State(accounts): State<Accounts>,
) -> Result<WithCookies<NoContent>> {
    let config = &accounts.core.config;
    browser::sign_out(&accounts, SESSION.read(config, &cookies)).await?;
    Ok(WithCookies {
        answer: NoContent,
        cookies: vec![SESSION.clear(config)],
    })
}

async fn sign_out_everywhere(
    user: User,
    State(accounts): State<Accounts>,
) -> Result<WithCookies<NoContent>> {
    browser::sign_out_everywhere(&accounts, &user).await?;
    Ok(WithCookies {
        answer: NoContent,
        cookies: vec![SESSION.clear(&accounts.core.config)],
    })
}

/// The target of a redirect.
struct Redirect(HeaderValue);

impl Redirect {
    fn to(url: String) -> Result<Self> {
        HeaderValue::try_from(url)
            .map(Self)
            .map_err(Error::internal)
    }
}

impl IntoResponse for Redirect {
    fn into_response(self) -> Response {
        (StatusCode::SEE_OTHER, [(header::LOCATION, self.0)]).into_response()
    }
}

impl OperationOutput for Redirect {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let redirect = ApiResponse {
            description: "Where to go next.".to_owned(),
            headers: headers(&["Location"]),
            ..ApiResponse::default()
        };
        vec![(Some(303), redirect)]
    }
}

/// The page to return to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SignInQuery {
    /// The path of a page below `/console` or `/app/pair`, without a fragment.
    #[schemars(length(max = 500))]
    return_to: String,
}

async fn begin(
    _: Public,
    State(accounts): State<Accounts>,
    Query(SignInQuery { return_to }): Query<SignInQuery>,
) -> Result<WithCookies<Redirect>> {
    let begun = issuer::begin(&accounts, return_to).await?;
    let cookie = SIGN_IN.set(&accounts.core.config, &begun.cookie, issuer::VALID_SECS);
    Ok(WithCookies {
        answer: Redirect::to(begun.page)?,
        cookies: vec![cookie],
    })
}

/// The page to return to, or a text if it is unknown.
enum Returned {
    To(Redirect),
    Page(MessagePage),
}

impl IntoResponse for Returned {
    fn into_response(self) -> Response {
        match self {
            Self::To(redirect) => redirect.into_response(),
            Self::Page(page) => page.into_response(),
        }
    }
}

impl OperationOutput for Returned {
    type Inner = ();
    fn inferred_responses(
        ctx: &mut GenContext,
        operation: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let schema = serde_json::json!({"type": "string"});
        let page = typed_response(
            "text/html",
            "A page that says that this browser does not wait for it.",
            schema,
        );
        let mut responses = Redirect::inferred_responses(ctx, operation);
        responses.push((Some(200), page));
        responses
    }
}

/// The parameters with which the issuer returns the browser.
#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "describes the query, which is read without it")]
struct CallbackQuery {
    /// The state of the sign-in.
    state: Option<String>,
    /// The authorization code.
    code: Option<String>,
    /// The issuer (RFC 9207).
    iss: Option<String>,
    /// The reason for having no code.
    error: Option<String>,
    /// The error as a sentence.
    error_description: Option<String>,
}

/// The parameters with which the issuer returns the browser, and the cookie of the pending sign-in.
struct IssuerAnswer {
    parameters: Parameters,
    headers: HeaderMap,
}

impl<S: Send + Sync> FromRequestParts<S> for IssuerAnswer {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let read = Parameters::read(parts.uri.query().unwrap_or_default());
        let parameters = read.map_err(|name| Error::field(name, "must not be repeated"))?;
        Ok(Self {
            parameters,
            headers: parts.headers.clone(),
        })
    }
}

impl OperationInput for IssuerAnswer {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Query::<CallbackQuery>::operation_input(ctx, operation);
    }
}

const NOT_AWAITED: MessagePage = MessagePage {
    title: "Not signed in",
    text: "This browser does not wait for this answer: it took longer than ten minutes, or another sign-in was begun \
           since. Go back to the page you came from, and sign in again.",
};

/// The returned page shows a failure: its code is in `signInError`.
async fn callback(
    _: Public,
    State(accounts): State<Accounts>,
    origin: Origin,
    AcceptsHtml(wants_page): AcceptsHtml,
    IssuerAnswer {
        parameters,
        headers,
    }: IssuerAnswer,
) -> Result<WithCookies<Returned>> {
    let config = &accounts.core.config;
    let finished = match issuer::finish(
        &accounts,
        &origin,
        SIGN_IN.read(config, &headers),
        parameters,
    )
    .await
    {
        Ok(finished) => finished,
        Err(_) if wants_page => {
            return Ok(WithCookies {
                answer: Returned::Page(NOT_AWAITED),
                cookies: Vec::new(),
            });
        }
        Err(error) => return Err(error),
    };
    let mut cookies = vec![SIGN_IN.clear(config)];
    let back = match finished.outcome {
        Ok(SignedIn {
            cookie,
            max_age_secs,
            ..
        }) => {
            cookies.extend(cookie.map(|cookie| SESSION.set(config, &cookie, max_age_secs)));
            finished.return_to
        }
        Err(error) => {
            let separator = if finished.return_to.contains('?') {
                '&'
            } else {
                '?'
            };
            format!(
                "{}{separator}signInError={}",
                finished.return_to,
                error.code()
            )
        }
    };
    Ok(WithCookies {
        answer: Returned::To(Redirect::to(back)?),
        cookies,
    })
}
