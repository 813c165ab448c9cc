//! `/tenant/external-endpoints`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::Check;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_destinations::checked_auth;
use hub_identity::authz::{Authorized, permission as perm};
use hub_outgoing::{MAX_URL_BYTES, Outgoing};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::store::{self, EndpointRow};
use super::{Given, MAX_ENDPOINTS, MAX_NAME_CHARS, VerifyMethod};
use crate::Parts;

const TAG: &str = "tenant-external-endpoints";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/external-endpoints",
            get_with(
                list,
                operation(
                    "externalEndpoints.list",
                    TAG,
                    "External endpoints, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[409],
                    "externalEndpoints.create",
                    TAG,
                    "Create an external endpoint",
                ),
            ),
        )
        .api_route(
            "/tenant/external-endpoints/{id}",
            get_with(
                get,
                operation("externalEndpoints.get", TAG, "One external endpoint"),
            )
            .put_with(
                update,
                operation(
                    "externalEndpoints.update",
                    TAG,
                    "Replace an external endpoint",
                ),
            )
            .delete_with(
                delete,
                operation_failing(
                    &[409],
                    "externalEndpoints.delete",
                    TAG,
                    "Delete an external endpoint",
                ),
            ),
        )
        .api_route(
            "/tenant/external-endpoints/{id}/verify",
            post_with(
                verify,
                operation_failing(
                    &[409],
                    "externalEndpoints.verify",
                    TAG,
                    "Look for the proof of the domain",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalEndpointPath {
    /// The id of the external endpoint.
    pub id: Uuid,
}

/// A server of the tenant.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalEndpointRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// The URL that paths are appended to: `https://`, a host, and a path or none.
    #[schemars(length(max = MAX_URL_BYTES), extend("format" = "uri"))]
    base_url: String,
    /// The method of proving the domain.
    #[serde(rename = "verify_method")]
    verify_method: VerifyMethod,
    /// The credentials that the endpoint asks for: `{"type": "BEARER", "token"}`,
    /// `{"type": "BASIC", "username", "password"}` or `{"type": "HEADER", "name", "value"}`. Absent
    /// or empty keeps what there is.
    #[schemars(with = "Option<Map<String, Value>>")]
    auth_config: Option<Value>,
}

impl ExternalEndpointRequest {
    fn checked(self, outgoing: &Outgoing) -> Result<Given> {
        let mut check = Check::new();
        check.required("name", &self.name, MAX_NAME_CHARS);
        let schemes: &[&str] = if outgoing.allows_private() {
            &["https", "http"]
        } else {
            &["https"]
        };
        let domain = match outgoing.check_url(&self.base_url, schemes) {
            Ok(url) if url.query().is_some() => {
                check.that(false, "baseUrl", "must have no query");
                None
            }
            Ok(url) => url
                .host_str()
                .map(|host| host.trim_end_matches('.').to_owned()),
            Err(message) => {
                check.that(false, "baseUrl", message);
                None
            }
        };
        let given = self
            .auth_config
            .filter(|auth| auth.as_object().is_none_or(|auth| !auth.is_empty()));
        let auth = match given
            .filter(|auth| !auth.is_null())
            .as_ref()
            .map(checked_auth)
        {
            Some(Ok(auth)) => Some(auth),
            Some(Err(problem)) => {
                let field = problem
                    .pointer
                    .replacen("/auth", "authConfig", 1)
                    .replace('/', ".");
                check.that(false, field, problem.message);
                None
            }
            None => None,
        };
        check.done()?;
        let domain = domain.ok_or_else(|| Error::field("baseUrl", "must name a host"))?;
        let name = self.name.trim().to_owned();
        Ok(Given {
            name,
            base_url: self.base_url,
            domain,
            verify_method: self.verify_method,
            auth,
        })
    }
}

/// An external endpoint.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalEndpointResponse {
    /// The id of the endpoint.
    id: Uuid,
    /// Display name.
    name: String,
    /// The URL that paths are appended to.
    base_url: String,
    /// The host of `baseUrl`.
    domain: String,
    /// Whether the proof was found when it was last looked for. Others are not called.
    #[serde(rename = "domain_verified")]
    domain_verified: bool,
    /// The method of proving the domain.
    #[serde(rename = "verify_method")]
    verify_method: VerifyMethod,
    /// The content that the record or file has to contain.
    #[serde(rename = "verify_token")]
    verify_token: String,
    /// The reason why the proof was not found; null if it was, or was not looked for.
    #[serde(rename = "verify_error")]
    verify_error: Option<String>,
    /// When the proof was found.
    verified_at: Option<Timestamp>,
    /// The kind of credentials it has; null if none.
    auth_config: Option<AuthKind>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed or verified.
    updated_at: Timestamp,
}

/// The public part of credentials.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ExternalEndpointAuth")]
struct AuthKind {
    /// `BEARER`, `BASIC` or `HEADER`.
    #[serde(rename = "type")]
    kind: String,
}

impl From<EndpointRow> for ExternalEndpointResponse {
    fn from(row: EndpointRow) -> Self {
        Self {
            id: row.external_endpoint_uuid,
            name: row.name,
            base_url: row.base_url,
            domain: row.domain,
            domain_verified: row.domain_verified,
            verify_method: row.verify_method,
            verify_token: row.verify_token,
            verify_error: row.verify_error,
            verified_at: row.verified_at,
            auth_config: row.auth_type.map(|kind| AuthKind { kind }),
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// The deleted object.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeletedExternalEndpoint")]
pub struct Deleted {
    /// The id of the endpoint.
    id: String,
    /// `deleted`.
    status: String,
}

async fn list(
    auth: Authorized<perm::ExternalEndpointsRead>,
    State(core): State<Core>,
) -> Result<Answer<Vec<ExternalEndpointResponse>>> {
    let rows = store::list(&mut core.db.read().await?, &auth.scope, MAX_ENDPOINTS).await?;
    Ok(Answer(
        rows.into_iter()
            .map(ExternalEndpointResponse::from)
            .collect(),
    ))
}

async fn create(
    auth: Authorized<perm::ExternalEndpointsManage>,
    State(core): State<Core>,
    Json(request): Json<ExternalEndpointRequest>,
) -> Result<Answer<ExternalEndpointResponse>> {
    let given = request.checked(&core.outgoing)?;
    Ok(Answer(
        super::create(&core, &auth.scope, given).await?.into(),
    ))
}

async fn get(
    auth: Authorized<perm::ExternalEndpointsRead>,
    State(core): State<Core>,
    Path(ExternalEndpointPath { id }): Path<ExternalEndpointPath>,
) -> Result<Answer<ExternalEndpointResponse>> {
    Ok(Answer(
        super::get(&mut core.db.read().await?, &auth.scope, id)
            .await?
            .into(),
    ))
}

/// Another `baseUrl` gets another token and has to be verified again.
async fn update(
    auth: Authorized<perm::ExternalEndpointsManage>,
    State(core): State<Core>,
    Path(ExternalEndpointPath { id }): Path<ExternalEndpointPath>,
    Json(request): Json<ExternalEndpointRequest>,
) -> Result<Answer<ExternalEndpointResponse>> {
    let given = request.checked(&core.outgoing)?;
    Ok(Answer(
        super::update(&core, &auth.scope, id, given).await?.into(),
    ))
}

/// An endpoint that a form or an action uses is not deleted.
async fn delete(
    auth: Authorized<perm::ExternalEndpointsManage>,
    State(core): State<Core>,
    Path(ExternalEndpointPath { id }): Path<ExternalEndpointPath>,
) -> Result<Answer<Deleted>> {
    super::delete(&core, &auth.scope, id).await?;
    Ok(Answer(Deleted {
        id: id.to_string(),
        status: "deleted".to_owned(),
    }))
}

/// A missing proof is no failure: `verify_error` describes what is missing.
async fn verify(
    auth: Authorized<perm::ExternalEndpointsManage>,
    State(core): State<Core>,
    Path(ExternalEndpointPath { id }): Path<ExternalEndpointPath>,
) -> Result<Answer<ExternalEndpointResponse>> {
    Ok(Answer(super::verify(&core, &auth.scope, id).await?.into()))
}
