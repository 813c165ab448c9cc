//! `/tenant/api-keys`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, put_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::{Answer, Created};
use hub_core::http::check::Check;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::Authn;
use hub_identity::authn::api_key;
use hub_identity::authz::permission::{ApiKeysManage, SCOPES};
use hub_identity::authz::{KeyScopes, Member};
use hub_protocol::{Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{self, KeyRow};
use super::{KeyUpdate, NewKey};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/api-keys",
            get_with(
                list,
                operation(
                    "apiKeys.list",
                    "tenant-keys",
                    "Active API keys, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[409],
                    "apiKeys.create",
                    "tenant-keys",
                    "Create an API key, which is returned only once",
                ),
            ),
        )
        .api_route(
            "/tenant/api-keys/{apiKeyId}",
            put_with(
                update,
                operation_failing(
                    &[409],
                    "apiKeys.update",
                    "tenant-keys",
                    "Rename an API key, change its scopes or its limit",
                ),
            )
            .delete_with(
                deactivate,
                operation(
                    "apiKeys.deactivate",
                    "tenant-keys",
                    "Deactivate an API key permanently",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyPath {
    /// The id of the API key.
    pub api_key_id: i64,
}

const MAX_NAME_CHARS: usize = 100;
const DEFAULT_RATE_LIMIT: i64 = 600;
const MAX_RATE_LIMIT: i64 = 100_000;
const MAX_VALIDITY_SECS: i64 = 10 * 365 * 24 * 3600;

/// An API key to create.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyCreateRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// One or more scopes, such as `hubs:read`; `catalog:*` stands for all scopes of a kind, `*`
    /// for all.
    #[schemars(
        length(min = 1),
        inner(regex(pattern = r"^(\*|[a-z]+:(\*|read|write))$"))
    )]
    scopes: Vec<String>,
    /// Requests allowed a minute; 600 when absent.
    #[schemars(range(min = 1, max = MAX_RATE_LIMIT))]
    rate_limit_per_minute: Option<i64>,
    /// When the key expires, at most ten years ahead. This or `validForSeconds`, not both; the key
    /// does not expire when neither is given.
    expires_at: Option<Timestamp>,
    /// The lifetime of the key, at most ten years.
    #[schemars(range(min = 1, max = MAX_VALIDITY_SECS))]
    valid_for_seconds: Option<i64>,
}

/// Changes to make. An absent or null member leaves the stored value unchanged.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyUpdateRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// One or more scopes, which replace those of the key.
    #[schemars(
        length(min = 1),
        inner(regex(pattern = r"^(\*|[a-z]+:(\*|read|write))$"))
    )]
    scopes: Option<Vec<String>>,
    /// Requests allowed a minute.
    #[schemars(range(min = 1, max = MAX_RATE_LIMIT))]
    rate_limit_per_minute: Option<i64>,
}

/// An API key, without its secret.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyListResponse {
    /// The id of the key.
    #[schemars(range(min = 1))]
    api_key_id: i64,
    /// The beginning of the key, which identifies it.
    key_prefix: String,
    /// The name of the key.
    name: String,
    /// The scopes of the key.
    scopes: Vec<String>,
    /// Requests allowed a minute.
    #[schemars(range(min = 1))]
    rate_limit_per_minute: i64,
    /// Whether the key can be used now.
    active: bool,
    /// When the key expires; null when it does not.
    expires_at: Option<Timestamp>,
    /// The last request with the key, accurate to a minute.
    last_used_at: Option<Timestamp>,
    /// When the key was created.
    created_at: Timestamp,
    /// The user who created it.
    created_by: UserUuid,
}

/// An API key that was just created.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyCreateResponse {
    #[serde(flatten)]
    key: ApiKeyListResponse,
    /// The key itself, which only this response contains.
    api_key: String,
}

impl ApiKeyListResponse {
    fn new(key: KeyRow, now: Timestamp) -> Self {
        Self {
            active: key.is_active(now),
            api_key_id: key.api_key_id,
            key_prefix: api_key::prefix_of(&key.key_prefix),
            name: key.name,
            scopes: KeyScopes::from_stored(&key.scopes).names(),
            rate_limit_per_minute: key.rate_limit_per_minute,
            expires_at: key.expires_at,
            last_used_at: key.last_used_at,
            created_at: key.created_at,
            created_by: key.created_by_user_uuid,
        }
    }
}

fn check_rate_limit(check: &mut Check, limit: i64) {
    let fits = (1..=MAX_RATE_LIMIT).contains(&limit);
    check.that(
        fits,
        "rateLimitPerMinute",
        format!("must be between 1 and {MAX_RATE_LIMIT}"),
    );
}

/// The requested scopes, if there is at least one and all exist.
fn checked_scopes(check: &mut Check, names: Vec<String>) -> Option<KeyScopes> {
    match KeyScopes::checked(names) {
        Ok(scopes) => {
            check.that(
                !scopes.names().is_empty(),
                "scopes",
                "must name at least one scope",
            );
            Some(scopes)
        }
        Err(unknown) => {
            let unknown: String = unknown.chars().take(40).collect();
            let all = SCOPES.join(", ");
            let message = format!(
                "`{unknown}` is not a scope; valid are {all}, `<kind>:*` for all of a kind, and `*`"
            );
            check.that(false, "scopes", message);
            None
        }
    }
}

impl ApiKeyCreateRequest {
    fn checked(self, now: Timestamp) -> Result<NewKey> {
        let mut check = Check::new();
        check.required("name", &self.name, MAX_NAME_CHARS);
        let scopes = checked_scopes(&mut check, self.scopes);
        let rate_limit_per_minute = self.rate_limit_per_minute.unwrap_or(DEFAULT_RATE_LIMIT);
        check_rate_limit(&mut check, rate_limit_per_minute);
        let expires_at = match (self.expires_at, self.valid_for_seconds) {
            (Some(at), None) => {
                check.that(at > now, "expiresAt", "must be in the future");
                let latest = now.plus_secs(MAX_VALIDITY_SECS);
                check.that(
                    at <= latest,
                    "expiresAt",
                    "must be at most ten years ahead; omit it for a key that does not expire",
                );
                Some(at)
            }
            (None, Some(secs)) => {
                let fits = (1..=MAX_VALIDITY_SECS).contains(&secs);
                check.that(
                    fits,
                    "validForSeconds",
                    format!("must be between 1 and {MAX_VALIDITY_SECS}"),
                );
                // An invalid duration is not added, as it could overflow.
                fits.then(|| now.plus_secs(secs))
            }
            (None, None) => None,
            (Some(_), Some(_)) => {
                check.that(
                    false,
                    "validForSeconds",
                    "must not be given together with `expiresAt`",
                );
                None
            }
        };
        check.done()?;
        let scopes = scopes.unwrap_or_else(|| KeyScopes::from_stored(""));
        Ok(NewKey {
            name: self.name.trim().to_owned(),
            scopes,
            rate_limit_per_minute,
            expires_at,
        })
    }
}

impl ApiKeyUpdateRequest {
    fn checked(self) -> Result<KeyUpdate> {
        let mut check = Check::new();
        if let Some(name) = &self.name {
            check.required("name", name, MAX_NAME_CHARS);
        }
        let scopes = self
            .scopes
            .and_then(|names| checked_scopes(&mut check, names));
        if let Some(limit) = self.rate_limit_per_minute {
            check_rate_limit(&mut check, limit);
        }
        check.done()?;
        let name = self.name.map(|name| name.trim().to_owned());
        Ok(KeyUpdate {
            name,
            scopes,
            rate_limit_per_minute: self.rate_limit_per_minute,
        })
    }
}

/// The active keys, newest first; a tenant has at most 200.
async fn list(
    auth: Member<ApiKeysManage>,
    State(authn): State<Authn>,
) -> Result<Answer<Vec<ApiKeyListResponse>>> {
    let now = authn.core.clock.now();
    let keys = store::list(&mut authn.core.db.read().await?, &auth.scope, now).await?;
    Ok(Answer(
        keys.into_iter()
            .map(|key| ApiKeyListResponse::new(key, now))
            .collect(),
    ))
}

async fn create(
    auth: Member<ApiKeysManage>,
    State(authn): State<Authn>,
    Json(request): Json<ApiKeyCreateRequest>,
) -> Result<Created<ApiKeyCreateResponse>> {
    let now = authn.core.clock.now();
    let (api_key, key) =
        super::create(&authn, &auth.scope, &auth.user, request.checked(now)?).await?;
    Ok(Created(ApiKeyCreateResponse {
        key: ApiKeyListResponse::new(key, now),
        api_key,
    }))
}

async fn update(
    auth: Member<ApiKeysManage>,
    State(authn): State<Authn>,
    Path(ApiKeyPath { api_key_id }): Path<ApiKeyPath>,
    Json(request): Json<ApiKeyUpdateRequest>,
) -> Result<Answer<ApiKeyListResponse>> {
    let key = super::update(&authn, &auth.scope, api_key_id, request.checked()?).await?;
    Ok(Answer(ApiKeyListResponse::new(key, authn.core.clock.now())))
}

async fn deactivate(
    auth: Member<ApiKeysManage>,
    State(authn): State<Authn>,
    Path(ApiKeyPath { api_key_id }): Path<ApiKeyPath>,
) -> Result<Answer<()>> {
    super::deactivate(&authn, &auth.scope, api_key_id).await?;
    Ok(Answer(()))
}
