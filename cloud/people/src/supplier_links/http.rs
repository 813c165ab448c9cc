//! `/app/supplier-link...`, the address that suppliers send users back to, and the webhook that
//! reports changed permissions.

use aide::OperationInput;
use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with, post_with};
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, typed_response};
use hub_core::http::check::filled;
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::message_page::{AcceptsHtml, MessagePage};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::signature::{SignedJson, Verified};
use hub_identity::authn::oidc::redirect::Parameters;
use hub_identity::authz::{EndUser, Public, Signed, UserScope};
use hub_protocol::{TenantUuid, Timestamp};
use reqwest::Url;
use schemars::JsonSchema;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};

use super::access::access_token;
use super::authorize::begin;
use super::callback::{Answered, Outcome, answer, complete};
use super::oauth::MAX_SUB_CHARS;
use super::store::{self, LinkStatus, Listed};
use super::{MAX_LINKS, SupplierLinks, no_config, not_found, unlink, webhook};
use crate::supplier_oauth::{self, Config};

const TAG: &str = "app";
const MAX_URL_CHARS: usize = 2000;

pub fn routes() -> ApiRouter<crate::Parts> {
    ApiRouter::new()
        .api_route(
            "/app/supplier-oauth-configs/{supplierUuid}",
            get_with(
                consent,
                operation(
                    "supplierLinks.getConsent",
                    TAG,
                    "What a link to a supplier would be for",
                ),
            ),
        )
        .api_route(
            "/app/supplier-link/authorize",
            post_with(
                authorize,
                operation_failing(
                    &[404, 409, 429, 502, 504],
                    "supplierLinks.authorize",
                    TAG,
                    "Begin to link the caller's account at a supplier",
                ),
            ),
        )
        .api_route(
            "/app/supplier-links",
            get_with(
                list,
                operation(
                    "supplierLinks.list",
                    TAG,
                    "The caller's links to suppliers, newest first",
                ),
            ),
        )
        .api_route(
            "/app/supplier-links/{id}",
            delete_with(
                delete,
                operation(
                    "supplierLinks.delete",
                    TAG,
                    "End a link, here and at the supplier",
                ),
            ),
        )
        .api_route(
            "/app/supplier-links/{id}/access-token",
            get_with(
                token,
                operation_failing(
                    &[409, 502, 504, 507],
                    "supplierLinks.getAccessToken",
                    TAG,
                    "The supplier's token, refreshed first where 5 minutes or less remain",
                ),
            ),
        )
        .api_route(
            super::authorize::CALLBACK_PATH,
            get_with(
                callback,
                operation(
                    "supplierLinks.callback",
                    "auth",
                    "Where a supplier sends a user back to",
                ),
            ),
        )
        .api_route(
            super::authorize::PENDING_PATH,
            get_with(
                pending,
                operation(
                    "supplierLinks.pending",
                    "auth",
                    "The page that an app without a returnUrl reads the completion from",
                ),
            ),
        )
        .api_route(
            "/app/supplier-link/complete",
            post_with(
                complete_link,
                operation_failing(
                    &[403, 404, 409, 502, 504],
                    "supplierLinks.complete",
                    TAG,
                    "Complete a link that the caller has begun",
                ),
            ),
        )
        .api_route(
            "/webhook/supplier-permission/{supplierUuid}",
            post_with(
                permission,
                operation_failing(
                    &[412],
                    "webhooks.supplierPermission",
                    "webhooks",
                    "The permissions of a user at a supplier changed",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupplierPath {
    /// The supplier.
    pub supplier_uuid: TenantUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SupplierLinkPath {
    /// The id of the link.
    pub id: i64,
}

/// The link that the user is asked to consent to.
#[derive(Debug, Serialize, JsonSchema)]
struct SupplierConsentResponse {
    /// The text to show before the user agrees.
    consent_text: Option<String>,
    /// The scope that is asked for.
    scope: String,
    /// The URL of the user's id at the supplier.
    userinfo_url: Option<String>,
}

impl From<Config> for SupplierConsentResponse {
    fn from(config: Config) -> Self {
        let Config {
            consent_text,
            scope,
            userinfo_url,
            ..
        } = config;
        Self {
            consent_text,
            scope,
            userinfo_url,
        }
    }
}

async fn consent(
    _: EndUser,
    State(core): State<Core>,
    Path(SupplierPath { supplier_uuid }): Path<SupplierPath>,
) -> Result<Answer<SupplierConsentResponse>> {
    let config = supplier_oauth::config(&mut core.db.read().await?, supplier_uuid).await?;
    Ok(Answer(config.ok_or_else(no_config)?.into()))
}

/// The supplier to link, and the page to return to.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AuthorizeRequest {
    /// The supplier.
    supplier_uuid: TenantUuid,
    /// One of the supplier's `return_urls`, to which the browser returns with `state`, and
    /// `status=pending` and a `completion`, or `status=failed`. A page is shown when absent.
    #[schemars(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    return_url: Option<String>,
}

/// An authorization that has begun.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AuthorizeResponse {
    /// The page of the supplier to open in the user's browser.
    authorize_url: String,
    /// The parameter with which the supplier returns the browser. It is valid once, for ten
    /// minutes.
    state: String,
}

/// The completion of a link, by the person who began it.
#[derive(Debug, Deserialize, JsonSchema)]
struct CompleteRequest {
    /// The `state` of the authorization.
    #[schemars(length(min = 1, max = 256))]
    state: String,
    /// The `completion` that the browser came back with. It is valid once, for two minutes.
    #[schemars(length(min = 1, max = 256))]
    completion: String,
}

async fn complete_link(
    EndUser { user, scope }: EndUser,
    State(links): State<SupplierLinks>,
    Json(request): Json<CompleteRequest>,
) -> Result<Answer<SupplierLinkResponse>> {
    let id = complete(&links, &user, &request.state, &request.completion).await?;
    let core = &links.0.core;
    let listed = store::listed(&mut core.db.read().await?, &scope, id, core.clock.now()).await?;
    Ok(Answer(listed.ok_or_else(not_found)?.into()))
}

async fn authorize(
    EndUser { user, .. }: EndUser,
    State(links): State<SupplierLinks>,
    Json(request): Json<AuthorizeRequest>,
) -> Result<Answer<AuthorizeResponse>> {
    let return_url = filled(request.return_url.as_deref()).map(str::to_owned);
    let begun = begin(&links, &user, request.supplier_uuid, return_url).await?;
    Ok(Answer(AuthorizeResponse {
        authorize_url: begun.authorize_url,
        state: begun.state,
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListQuery {
    /// Only links to this supplier.
    supplier_uuid: Option<TenantUuid>,
}

/// A user's link to their account at a supplier.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SupplierLinkResponse {
    /// The id of the link.
    #[schemars(range(min = 1))]
    id: i64,
    /// The supplier.
    supplier_uuid: TenantUuid,
    /// The name of the supplier.
    supplier_name: String,
    /// The user's id at the supplier, if the supplier provides it.
    user_sub: Option<String>,
    /// The scope of the link.
    scope: String,
    /// Whether the link is in force, or has to be made again.
    status: LinkStatus,
    /// When the account was linked, or last renewed.
    linked_at: Timestamp,
    /// When the current token expires; null if the supplier sets no expiry.
    expires_at: Option<Timestamp>,
}

impl From<Listed> for SupplierLinkResponse {
    fn from(listed: Listed) -> Self {
        Self {
            id: listed.supplier_link_id,
            supplier_uuid: listed.tenant_uuid,
            supplier_name: listed.supplier_name,
            user_sub: listed.user_sub,
            scope: listed.scope,
            status: listed.status,
            linked_at: listed.linked_at,
            expires_at: listed.expires_at,
        }
    }
}

/// A user has so few links that the list has no pages.
async fn list(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Query(ListQuery { supplier_uuid }): Query<ListQuery>,
) -> Result<Answer<Vec<SupplierLinkResponse>>> {
    let mut conn = core.db.read().await?;
    let now = core.clock.now();
    let listed = store::list(&mut conn, &scope, supplier_uuid, now, MAX_LINKS).await?;
    Ok(Answer(
        listed.into_iter().map(SupplierLinkResponse::from).collect(),
    ))
}

/// A link that has ended.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SupplierLinkRevoked {
    /// The id of the link.
    id: i64,
    /// The link has ended at the service.
    status: LinkStatus,
    /// Whether the supplier has revoked its tokens already. If not, and the supplier can, the
    /// service repeats the request for a day.
    revoked_at_supplier: bool,
}

async fn delete(
    EndUser { scope, .. }: EndUser,
    State(links): State<SupplierLinks>,
    Path(SupplierLinkPath { id }): Path<SupplierLinkPath>,
) -> Result<Answer<SupplierLinkRevoked>> {
    let revoked_at_supplier = unlink::unlink(&links, &scope, id).await?;
    Ok(Answer(SupplierLinkRevoked {
        id,
        status: LinkStatus::Revoked,
        revoked_at_supplier,
    }))
}

/// The token that the supplier's own URLs are called with. The names are those of OAuth.
#[derive(Serialize, JsonSchema)]
struct SupplierAccessToken {
    /// The token.
    access_token: String,
    /// `Bearer`.
    token_type: &'static str,
    /// When it expires; null if the supplier sets no expiry.
    expires_at: Option<Timestamp>,
}

async fn token(
    EndUser { scope, .. }: EndUser,
    State(links): State<SupplierLinks>,
    Path(SupplierLinkPath { id }): Path<SupplierLinkPath>,
) -> Result<Answer<SupplierAccessToken>> {
    let token = access_token(&links, &scope, id).await?;
    Ok(Answer(SupplierAccessToken {
        access_token: token.access_token.expose_secret().to_owned(),
        token_type: "Bearer",
        expires_at: token.expires_at,
    }))
}

/// The redirect of the browser, or the page to show.
enum Returned {
    To(HeaderValue),
    Page(MessagePage),
}

impl IntoResponse for Returned {
    fn into_response(self) -> Response {
        match self {
            Self::To(url) => (StatusCode::SEE_OTHER, [(header::LOCATION, url)]).into_response(),
            Self::Page(page) => page.into_response(),
        }
    }
}

impl OperationOutput for Returned {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let schema = serde_json::json!({"type": "string"});
        let page = typed_response(
            "text/html",
            "A page that says why the account was not linked.",
            schema,
        );
        let redirect = ApiResponse {
            description: "Back to the `returnUrl`, or to a page of the service, with `state`, and \
                          `status=pending` and a `completion`, or `status=failed`."
                .to_owned(),
            headers: hub_core::http::describe::headers(&["Location"]),
            ..ApiResponse::default()
        };
        vec![(Some(200), page), (Some(303), redirect)]
    }
}

/// The parameters with which the supplier's server returns a browser.
#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code, reason = "describes the query, which is read without it")]
struct CallbackQuery {
    /// The state of the authorization.
    #[schemars(length(max = 256))]
    state: Option<String>,
    /// The authorization code.
    code: Option<String>,
    /// The authorization server (RFC 9207).
    iss: Option<String>,
    /// The reason for having no code.
    error: Option<String>,
}

/// The query as it was sent: repeated members are an error.
struct CallbackParameters(Parameters);

impl<S: Send + Sync> FromRequestParts<S> for CallbackParameters {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let read = Parameters::read(parts.uri.query().unwrap_or_default());
        read.map(Self)
            .map_err(|name| Error::field(name, "must not be repeated"))
    }
}

impl OperationInput for CallbackParameters {
    fn operation_input(ctx: &mut GenContext, operation: &mut Operation) {
        Query::<CallbackQuery>::operation_input(ctx, operation);
    }
}

const PENDING: MessagePage = MessagePage {
    title: "Almost linked",
    text: "The supplier agreed. Go back to the app within two minutes to complete the link.",
};
const REFUSED: MessagePage = MessagePage {
    title: "Account not linked",
    text: "Your account was not linked, because you or the supplier did not agree. You can close this window, or \
           begin again in the app.",
};
const NOT_AWAITED: MessagePage = MessagePage {
    title: "Account not linked",
    text: "Nobody waits for this answer: it was used before, or took too long. Begin again in the app.",
};
const FAILED: MessagePage = MessagePage {
    title: "Account not linked",
    text: "Your account was not linked, because something went wrong between this service and the supplier. Begin \
           again in the app; if that does not help, ask the supplier.",
};

/// A browser without a `returnUrl` gets a page in words, also when something failed; a program gets
/// the failure.
async fn callback(
    _: Public,
    State(links): State<SupplierLinks>,
    AcceptsHtml(wants_page): AcceptsHtml,
    CallbackParameters(parameters): CallbackParameters,
) -> Result<Returned> {
    let answered = match answer(&links, parameters).await {
        Ok(answered) => answered,
        Err(error) if wants_page && error.status().is_client_error() => {
            return Ok(Returned::Page(NOT_AWAITED));
        }
        Err(error) => return Err(error),
    };
    let Answered {
        state,
        return_url,
        outcome,
    } = answered;
    if let Outcome::Failed(error) = &outcome
        && (wants_page || return_url.is_some())
    {
        tracing::info!(%error, code = error.code(), "an account could not be linked");
    }
    match (outcome, return_url) {
        (Outcome::Pending(completion), Some(url)) => {
            let members = [
                ("state", &*state),
                ("status", "pending"),
                ("completion", &*completion),
            ];
            Ok(Returned::To(returned(&url, &members)?))
        }
        (Outcome::Pending(completion), None) => {
            let query = form_urlencoded::Serializer::new(String::new())
                .extend_pairs([("state", &*state), ("status", "pending")])
                .append_pair("completion", &completion)
                .finish();
            let url = format!("{}?{query}", super::authorize::PENDING_PATH);
            Ok(Returned::To(
                HeaderValue::try_from(url).map_err(Error::internal)?,
            ))
        }
        (_, Some(url)) => {
            let members = [("state", &*state), ("status", "failed")];
            Ok(Returned::To(returned(&url, &members)?))
        }
        (Outcome::Refused, None) => Ok(Returned::Page(REFUSED)),
        (Outcome::Failed(_), None) if wants_page => Ok(Returned::Page(FAILED)),
        (Outcome::Failed(error), None) => Err(error),
    }
}

/// The address of this page has the state and the completion, for the app that opened it.
async fn pending(_: Public) -> MessagePage {
    PENDING
}

fn returned(url: &str, members: &[(&str, &str)]) -> Result<HeaderValue> {
    let mut url = Url::parse(url).map_err(Error::internal)?;
    url.query_pairs_mut().extend_pairs(members);
    HeaderValue::try_from(String::from(url)).map_err(Error::internal)
}

/// A change of a user's permissions at the supplier.
#[derive(Debug, Deserialize, JsonSchema)]
struct SupplierPermissionRequest {
    /// The user's id at the supplier.
    #[schemars(length(max = MAX_SUB_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    user_sub: String,
}

/// The links of the user at the service.
#[derive(Debug, Serialize, JsonSchema)]
struct SupplierPermissionResponse {
    /// The user's id at the supplier.
    user_sub: String,
    /// Active links to that account, whose permissions are checked again.
    links: i64,
}

async fn permission(
    _: Signed,
    State(core): State<Core>,
    State(links): State<SupplierLinks>,
    Path(SupplierPath { supplier_uuid }): Path<SupplierPath>,
    body: SignedJson<SupplierPermissionRequest>,
) -> Result<Answer<SupplierPermissionResponse>> {
    let secret = webhook::secret(&links, supplier_uuid).await?;
    let Verified { body, hash } = body.verified(&core, &secret).await?;
    let SupplierPermissionRequest { user_sub } = body;
    let mut check = hub_core::http::check::Check::new();
    check.required("user_sub", &user_sub, MAX_SUB_CHARS);
    check.done()?;
    let links = webhook::permission_changed(&links, supplier_uuid, &user_sub, hash).await?;
    Ok(Answer(SupplierPermissionResponse { user_sub, links }))
}

/// The active links of a person, without tokens.
pub async fn exported(
    conn: &mut Conn,
    scope: &UserScope,
    now: Timestamp,
) -> Result<Vec<impl Serialize + use<>>> {
    let listed = store::list(conn, scope, None, now, MAX_LINKS).await?;
    Ok(listed
        .into_iter()
        .map(SupplierLinkResponse::from)
        .collect::<Vec<_>>())
}
