//! `/tenant/api-keys`.

use axum::extract::State;
use hub_protocol::{Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::store::{self, KeyRow};
use super::{KeyUpdate, NewKey};
use crate::app::App;
use crate::authn::api_key;
use crate::authz::permission::{ApiKeysManage, SCOPES};
use crate::authz::{KeyScopes, Member};
use crate::error::Result;
use crate::http::answer::{Answer, Created};
use crate::http::check::Check;
use crate::http::extract::{Json, Path};

const MAX_NAME_CHARS: usize = 100;
const DEFAULT_RATE_LIMIT: i64 = 600;
const MAX_RATE_LIMIT: i64 = 100_000;
const MAX_VALIDITY_SECS: i64 = 10 * 365 * 24 * 3600;

/// A key to be made.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyCreateRequest {
    /// 1 to 100 characters, for people.
    name: String,
    /// One or more of the scopes there are; `catalog:*` and its like stand for both of a kind, `*` for all.
    scopes: Vec<String>,
    /// 1 to 100,000; 600 when absent.
    rate_limit_per_minute: Option<i64>,
    /// When the key ends, at most ten years ahead. This or `validForSeconds`, not both; never when neither is given.
    expires_at: Option<Timestamp>,
    /// 1 second to ten years.
    valid_for_seconds: Option<i64>,
}

/// What to change; absent or null stays.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyUpdateRequest {
    /// 1 to 100 characters, for people.
    name: Option<String>,
    /// One or more, in place of all the key had.
    scopes: Option<Vec<String>>,
    /// 1 to 100,000.
    rate_limit_per_minute: Option<i64>,
}

/// A key, without its secret.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyListResponse {
    api_key_id: i64,
    /// The beginning of the key, which tells it from others.
    key_prefix: String,
    name: String,
    scopes: Vec<String>,
    rate_limit_per_minute: i64,
    active: bool,
    expires_at: Option<Timestamp>,
    /// Right within a minute.
    last_used_at: Option<Timestamp>,
    created_at: Timestamp,
    /// The user who made it.
    created_by: UserUuid,
}

/// A key that was just made.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiKeyCreateResponse {
    #[serde(flatten)]
    key: ApiKeyListResponse,
    /// The key itself. It is shown this once.
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
    check.that(fits, "rateLimitPerMinute", format!("must be between 1 and {MAX_RATE_LIMIT}"));
}

/// The scopes named, when all of them exist and there is one.
fn checked_scopes(check: &mut Check, names: Vec<String>) -> Option<KeyScopes> {
    match KeyScopes::checked(names) {
        Ok(scopes) => {
            check.that(!scopes.names().is_empty(), "scopes", "must name at least one scope");
            Some(scopes)
        }
        Err(unknown) => {
            let unknown: String = unknown.chars().take(40).collect();
            let all = SCOPES.join(", ");
            let message = format!("`{unknown}` is no scope; there are {all}, `<kind>:*` for all of a kind, and `*`");
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
                check.that(at > now, "expiresAt", "must lie ahead");
                let latest = now.plus_secs(MAX_VALIDITY_SECS);
                check.that(
                    at <= latest,
                    "expiresAt",
                    "may be at most ten years ahead; leave it out for a key without end",
                );
                Some(at)
            }
            (None, Some(secs)) => {
                let fits = (1..=MAX_VALIDITY_SECS).contains(&secs);
                check.that(fits, "validForSeconds", format!("must be between 1 and {MAX_VALIDITY_SECS}"));
                // What does not fit is not added up.
                fits.then(|| now.plus_secs(secs))
            }
            (None, None) => None,
            (Some(_), Some(_)) => {
                check.that(false, "validForSeconds", "give this or `expiresAt`, not both");
                None
            }
        };
        check.done()?;
        let scopes = scopes.unwrap_or_else(|| KeyScopes::from_stored(""));
        Ok(NewKey { name: self.name.trim().to_owned(), scopes, rate_limit_per_minute, expires_at })
    }
}

impl ApiKeyUpdateRequest {
    fn checked(self) -> Result<KeyUpdate> {
        let mut check = Check::new();
        if let Some(name) = &self.name {
            check.required("name", name, MAX_NAME_CHARS);
        }
        let scopes = self.scopes.and_then(|names| checked_scopes(&mut check, names));
        if let Some(limit) = self.rate_limit_per_minute {
            check_rate_limit(&mut check, limit);
        }
        check.done()?;
        let name = self.name.map(|name| name.trim().to_owned());
        Ok(KeyUpdate { name, scopes, rate_limit_per_minute: self.rate_limit_per_minute })
    }
}

/// The active ones, newest first; a tenant has at most 200.
pub async fn list(auth: Member<ApiKeysManage>, State(app): State<App>) -> Result<Answer<Vec<ApiKeyListResponse>>> {
    let now = app.clock.now();
    let keys = store::list(&mut app.db.read().await?, &auth.scope, now).await?;
    Ok(Answer(keys.into_iter().map(|key| ApiKeyListResponse::new(key, now)).collect()))
}

pub async fn create(
    auth: Member<ApiKeysManage>,
    State(app): State<App>,
    Json(request): Json<ApiKeyCreateRequest>,
) -> Result<Created<ApiKeyCreateResponse>> {
    let now = app.clock.now();
    let (api_key, key) = super::create(&app, &auth.scope, &auth.user, request.checked(now)?).await?;
    Ok(Created(ApiKeyCreateResponse { key: ApiKeyListResponse::new(key, now), api_key }))
}

pub async fn update(
    auth: Member<ApiKeysManage>,
    State(app): State<App>,
    Path(api_key_id): Path<i64>,
    Json(request): Json<ApiKeyUpdateRequest>,
) -> Result<Answer<ApiKeyListResponse>> {
    let key = super::update(&app, &auth.scope, api_key_id, request.checked()?).await?;
    Ok(Answer(ApiKeyListResponse::new(key, app.clock.now())))
}

pub async fn deactivate(
    auth: Member<ApiKeysManage>,
    State(app): State<App>,
    Path(api_key_id): Path<i64>,
) -> Result<Answer<()>> {
    super::deactivate(&app, &auth.scope, api_key_id).await?;
    Ok(Answer(()))
}
