//! `/tenant/supplier-oauth-config` and `/platform/supplier-oauth-configs`. The names of a
//! configuration's members are snake_case, as OAuth spells them.

use std::collections::BTreeMap;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with, put_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::{Check, filled};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, PlatformAdmin, permission as perm};
use hub_protocol::{TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Approval, ApprovalStatus, Config, Given, Shown, schemes};
use crate::Parts;

const TAG: &str = "tenant-supplier-oauth";
const MAX_URL_CHARS: usize = 2000;
const MAX_NAME_CHARS: usize = 500;
const MAX_SECRET_CHARS: usize = 1000;
const MAX_CONSENT_CHARS: usize = 20_000;
const MAX_RETURN_URLS: usize = 20;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/supplier-oauth-config",
            get_with(
                get,
                operation_failing(
                    &[404],
                    "supplierOauthConfig.get",
                    TAG,
                    "The supplier's OAuth configuration in force",
                ),
            )
            .put_with(
                put,
                operation(
                    "supplierOauthConfig.put",
                    TAG,
                    "Create or replace the supplier's OAuth configuration",
                ),
            )
            .delete_with(
                delete,
                operation(
                    "supplierOauthConfig.delete",
                    TAG,
                    "Delete the supplier's OAuth configuration",
                ),
            ),
        )
        .api_route(
            "/platform/supplier-oauth-configs",
            put_with(
                put_any,
                operation_failing(
                    &[404],
                    "platformSupplierOauthConfigs.put",
                    "platform",
                    "Create or replace the OAuth configuration of a supplier",
                ),
            ),
        )
        .api_route(
            "/platform/supplier-oauth-configs/approvals",
            get_with(
                approvals,
                operation(
                    "supplierOauthApprovals.list",
                    "platform",
                    "Changes of OAuth configurations that wait for approval, oldest first",
                ),
            ),
        )
        .api_route(
            "/platform/supplier-oauth-configs/approvals/{id}/approve",
            post_with(
                approve,
                operation_failing(
                    &[409],
                    "supplierOauthApprovals.approve",
                    "platform",
                    "Put a change in force",
                ),
            ),
        )
        .api_route(
            "/platform/supplier-oauth-configs/approvals/{id}/reject",
            post_with(
                reject,
                operation_failing(
                    &[409],
                    "supplierOauthApprovals.reject",
                    "platform",
                    "Refuse a change",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct SupplierOauthApprovalPath {
    /// The id of the change.
    pub id: i64,
}

/// The configuration of a supplier's authorization server, and of the system that receives
/// registration events. It replaces the previous one as a whole; only an absent secret keeps its
/// value.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SupplierOauthConfigRequest {
    /// The supplier. Required of the platform; of a tenant, its own.
    supplier_uuid: Option<TenantUuid>,
    /// The issuer of the authorization server, a URL.
    #[schemars(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    issuer: Option<String>,
    /// The URL at which a user agrees to the link.
    #[schemars(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    authorize_url: String,
    /// The URL at which codes and refresh tokens are exchanged for tokens.
    #[schemars(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    token_url: String,
    /// The URL at which tokens are revoked (RFC 7009).
    #[schemars(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    revoke_url: Option<String>,
    /// The URL of the user's id at the supplier.
    #[schemars(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    userinfo_url: Option<String>,
    /// The client that this service is at the authorization server.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    client_id: String,
    /// The secret of the client; when absent, it keeps its value.
    #[schemars(length(max = MAX_SECRET_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    client_secret: Option<String>,
    /// The scope that is asked for.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    scope: String,
    /// The text that users read before they agree.
    #[schemars(length(max = MAX_CONSENT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    consent_text: Option<String>,
    /// The URL that registration events are sent to.
    #[schemars(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    registration_url: Option<String>,
    /// The secret that signs registration events, and the webhooks of the supplier; when absent,
    /// it keeps its value.
    #[schemars(length(max = MAX_SECRET_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    registration_shared_secret: Option<String>,
    /// The URLs that users may return to: with `https`, or with a scheme of an app that contains a
    /// dot, such as `com.example.app:/linked`.
    #[schemars(length(max = MAX_RETURN_URLS), inner(length(max = MAX_URL_CHARS), regex(pattern = hub_protocol::patterns::LINE)))]
    return_urls: Option<Vec<String>>,
}

impl SupplierOauthConfigRequest {
    fn checked(self, core: &Core) -> Result<Given> {
        let mut check = Check::new();
        let mut target = |field: &str, url: Option<&str>| {
            let Some(url) = filled(url) else { return };
            check.line(field, Some(url), MAX_URL_CHARS);
            if let Err(message) = core.outgoing.check_url(url, schemes(core)) {
                check.that(false, field, message);
            }
        };
        target("issuer", self.issuer.as_deref());
        target("authorize_url", Some(&self.authorize_url));
        target("token_url", Some(&self.token_url));
        target("revoke_url", self.revoke_url.as_deref());
        target("userinfo_url", self.userinfo_url.as_deref());
        target("registration_url", self.registration_url.as_deref());
        check.required("authorize_url", &self.authorize_url, MAX_URL_CHARS);
        check.required("token_url", &self.token_url, MAX_URL_CHARS);
        check.required("client_id", &self.client_id, MAX_NAME_CHARS);
        check.required("scope", &self.scope, MAX_NAME_CHARS);
        check.lines(
            "consent_text",
            self.consent_text.as_deref(),
            MAX_CONSENT_CHARS,
        );
        let secrets = [
            ("client_secret", &self.client_secret),
            (
                "registration_shared_secret",
                &self.registration_shared_secret,
            ),
        ];
        for (field, secret) in secrets {
            if let Some(secret) = secret {
                check.required(field, secret, MAX_SECRET_CHARS);
            }
        }
        let return_urls = self.return_urls.unwrap_or_default();
        let message = format!("must have at most {MAX_RETURN_URLS} items");
        check.that(return_urls.len() <= MAX_RETURN_URLS, "return_urls", message);
        for (index, url) in return_urls.iter().enumerate().take(MAX_RETURN_URLS) {
            let field = format!("return_urls[{index}]");
            check.line(&field, Some(url), MAX_URL_CHARS);
            let message = "must be a URL with https, or with a scheme that contains a dot, without credentials";
            check.that(is_return_url(core, url), field, message);
        }
        check.done()?;
        let text = |text: Option<String>| filled(text.as_deref()).map(str::to_owned);
        Ok(Given {
            config: Config {
                issuer: text(self.issuer),
                authorize_url: self.authorize_url.trim().to_owned(),
                token_url: self.token_url.trim().to_owned(),
                revoke_url: text(self.revoke_url),
                userinfo_url: text(self.userinfo_url),
                client_id: self.client_id.trim().to_owned(),
                scope: self.scope.trim().to_owned(),
                consent_text: text(self.consent_text),
                registration_url: text(self.registration_url),
                return_urls,
            },
            client_secret: self.client_secret,
            registration_shared_secret: self.registration_shared_secret,
        })
    }
}

/// Whether a browser or an app can be sent there. The service itself never calls it. A scheme with
/// a dot is of an app (RFC 8252, section 7.1); no scheme that runs code has one.
fn is_return_url(core: &Core, url: &str) -> bool {
    let Ok(parsed) = reqwest::Url::parse(url) else {
        return false;
    };
    let has_credentials = !parsed.username().is_empty() || parsed.password().is_some();
    let is_web = match parsed.scheme() {
        "https" => parsed.has_host(),
        "http" => parsed.has_host() && core.outgoing.allows_private(),
        scheme => scheme.contains('.'),
    };
    is_web && !has_credentials && parsed.fragment().is_none()
}

/// A supplier's OAuth configuration, without its secrets.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SupplierOauthConfigResponse {
    /// The supplier.
    supplier_uuid: TenantUuid,
    #[serde(flatten)]
    config: Config,
    /// Whether there is a `client_secret`.
    #[serde(rename = "clientSecretSet")]
    client_secret_set: bool,
    /// Whether there is a `registration_shared_secret`.
    #[serde(rename = "registrationSharedSecretSet")]
    registration_shared_secret_set: bool,
    /// The state of the last change. PENDING in the response of PUT: the change waits for the
    /// platform and is not in force. PENDING in the response of GET: the shown configuration is in
    /// force, and a change waits.
    #[serde(rename = "approvalStatus")]
    approval_status: ApprovalStatus,
    /// When it was last changed.
    #[serde(rename = "updatedAt")]
    updated_at: Timestamp,
}

impl From<Shown> for SupplierOauthConfigResponse {
    fn from(shown: Shown) -> Self {
        Self {
            supplier_uuid: shown.tenant_uuid,
            config: shown.config,
            client_secret_set: shown.has_client_secret,
            registration_shared_secret_set: shown.has_registration_secret,
            approval_status: shown.approval_status,
            updated_at: shown.updated_at,
        }
    }
}

/// A change that waits for approval.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SupplierOauthApprovalResponse {
    /// The id of the change.
    #[schemars(range(min = 1))]
    id: i64,
    /// The configuration as it would be.
    #[serde(flatten)]
    change: SupplierOauthConfigResponse,
    /// Whether the change has another `client_secret`.
    #[serde(rename = "clientSecretChanged")]
    client_secret_changed: bool,
    /// Whether the change has another `registration_shared_secret`.
    #[serde(rename = "registrationSharedSecretChanged")]
    registration_shared_secret_changed: bool,
    /// The configuration in force; null when there is none.
    live: Option<SupplierOauthConfigResponse>,
}

impl From<Approval> for SupplierOauthApprovalResponse {
    fn from(approval: Approval) -> Self {
        Self {
            id: approval.id,
            change: approval.change.into(),
            client_secret_changed: approval.changes_client_secret,
            registration_shared_secret_changed: approval.changes_registration_secret,
            live: approval.live.map(SupplierOauthConfigResponse::from),
        }
    }
}

/// The outcome of the deletion of a configuration: its `status`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "SupplierOauthConfigDeleted")]
pub struct Deleted(BTreeMap<&'static str, &'static str>);

async fn get(
    auth: Authorized<perm::SupplierOauthManage>,
    State(core): State<Core>,
) -> Result<Answer<SupplierOauthConfigResponse>> {
    Ok(Answer(super::get(&core, &auth.scope).await?.into()))
}

async fn put(
    auth: Authorized<perm::SupplierOauthManage>,
    State(core): State<Core>,
    Json(request): Json<SupplierOauthConfigRequest>,
) -> Result<Answer<SupplierOauthConfigResponse>> {
    if request
        .supplier_uuid
        .is_some_and(|supplier| supplier != auth.scope.tenant_uuid())
    {
        return Err(Error::forbidden(
            "OTHER_TENANT",
            "`supplier_uuid` names another tenant than the request",
        ));
    }
    let given = request.checked(&core)?;
    Ok(Answer(
        super::put_by_tenant(&core, &auth.scope, given)
            .await?
            .into(),
    ))
}

/// The deletion also succeeds without a configuration.
async fn delete(
    auth: Authorized<perm::SupplierOauthManage>,
    State(core): State<Core>,
) -> Result<Answer<Deleted>> {
    super::delete(&core, &auth.scope).await?;
    Ok(Answer(Deleted(BTreeMap::from([("status", "deleted")]))))
}

async fn put_any(
    PlatformAdmin(admin): PlatformAdmin,
    State(core): State<Core>,
    Json(request): Json<SupplierOauthConfigRequest>,
) -> Result<Answer<SupplierOauthConfigResponse>> {
    let Some(supplier_uuid) = request.supplier_uuid else {
        return Err(Error::field("supplier_uuid", "is required"));
    };
    let given = request.checked(&core)?;
    Ok(Answer(
        super::put_by_platform(&core, &admin, supplier_uuid, given)
            .await?
            .into(),
    ))
}

async fn approvals(
    _: PlatformAdmin,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<SupplierOauthApprovalResponse>> {
    let (approvals, total) = super::approvals(&core, page.slice()).await?;
    Ok(page.listed(
        approvals
            .into_iter()
            .map(SupplierOauthApprovalResponse::from)
            .collect(),
        total,
    ))
}

async fn approve(
    PlatformAdmin(admin): PlatformAdmin,
    State(core): State<Core>,
    Path(SupplierOauthApprovalPath { id }): Path<SupplierOauthApprovalPath>,
) -> Result<Answer<SupplierOauthConfigResponse>> {
    Ok(Answer(super::approve(&core, &admin, id).await?.into()))
}

async fn reject(
    PlatformAdmin(admin): PlatformAdmin,
    State(core): State<Core>,
    Path(SupplierOauthApprovalPath { id }): Path<SupplierOauthApprovalPath>,
) -> Result<Answer<SupplierOauthConfigResponse>> {
    Ok(Answer(super::reject(&core, &admin, id).await?.into()))
}
