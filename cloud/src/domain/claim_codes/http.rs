//! `/tenant/hubs/claim-codes`.

use axum::extract::State;
use hub_protocol::{Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{ClaimCode, NewClaimCode, Status, StoredCode, store};
use crate::app::App;
use crate::authz::{Authorized, permission as perm};
use crate::error::{Error, Result};
use crate::http::answer::{Answer, NoContent};
use crate::http::check::{Check, filled};
use crate::http::extract::{Json, Path};
use crate::http::page::{Listed, Page};

const DEFAULT_VALIDITY_SECS: i64 = 7 * 24 * 3600;
const MAX_VALIDITY_SECS: i64 = 10 * 365 * 24 * 3600;
const MAX_USES: i64 = 100_000;

/// A claim code to be made.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimCodeGenerateRequest {
    /// When the code ends, at most ten years ahead. This or `validForSeconds`, not both; 7 days from now when neither is given.
    expires_at: Option<Timestamp>,
    /// 1 second to ten years.
    valid_for_seconds: Option<i64>,
    /// How many hubs may claim with it: 1 to 100,000, 1 when absent.
    max_uses: Option<i64>,
    /// The bundle that hubs get at claim; the tenant's bundles marked `autoApply` when absent. It need not exist yet.
    bundle_uuid: Option<Uuid>,
    /// The label hubs get, in place of their own; at most 200 characters.
    hub_identifier: Option<String>,
    /// The app user the hubs will belong to.
    owner_user_uuid: Option<UserUuid>,
    /// For people; at most 1,000 characters.
    note: Option<String>,
}

/// A claim code. Lists hold the same.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimCodeResponse {
    claim_code: String,
    status: Status,
    expires_at: Timestamp,
    max_uses: i64,
    use_count: i64,
    bundle_uuid: Option<Uuid>,
    hub_identifier: Option<String>,
    owner_user_uuid: Option<UserUuid>,
    note: Option<String>,
    created_at: Timestamp,
}

impl ClaimCodeResponse {
    fn new(claim_code: String, code: StoredCode, now: Timestamp) -> Self {
        Self {
            claim_code,
            status: code.status(now),
            expires_at: code.expires_at,
            max_uses: code.max_uses,
            use_count: code.use_count,
            bundle_uuid: code.bundle_uuid,
            hub_identifier: code.hub_identifier,
            owner_user_uuid: code.owner_user_uuid,
            note: code.note,
            created_at: code.created_at,
        }
    }
}

impl ClaimCodeGenerateRequest {
    fn checked(self, now: Timestamp) -> Result<NewClaimCode> {
        let mut check = Check::new();
        let latest = now.plus_secs(MAX_VALIDITY_SECS);
        let expires_at = match (self.expires_at, self.valid_for_seconds) {
            (Some(at), None) => {
                check.that(at > now, "expiresAt", "must lie ahead");
                check.that(at <= latest, "expiresAt", "may be at most ten years ahead");
                at
            }
            (None, secs) => {
                let secs = secs.unwrap_or(DEFAULT_VALIDITY_SECS);
                let fits = (1..=MAX_VALIDITY_SECS).contains(&secs);
                check.that(fits, "validForSeconds", format!("must be between 1 and {MAX_VALIDITY_SECS}"));
                now.plus_secs(secs)
            }
            (Some(at), Some(_)) => {
                check.that(false, "validForSeconds", "give this or `expiresAt`, not both");
                at
            }
        };
        let max_uses = self.max_uses.unwrap_or(1);
        check.that((1..=MAX_USES).contains(&max_uses), "maxUses", format!("must be between 1 and {MAX_USES}"));
        check.line("hubIdentifier", self.hub_identifier.as_deref(), 200);
        check.lines("note", self.note.as_deref(), 1000);
        check.done()?;
        Ok(NewClaimCode {
            expires_at,
            max_uses,
            bundle_uuid: self.bundle_uuid,
            hub_identifier: filled(self.hub_identifier.as_deref()).map(str::to_owned),
            owner_user_uuid: self.owner_user_uuid,
            note: filled(self.note.as_deref()).map(str::to_owned),
        })
    }
}

pub async fn list(
    auth: Authorized<perm::ClaimCodesRead>,
    State(app): State<App>,
    page: Page,
) -> Result<Listed<ClaimCodeResponse>> {
    let mut conn = app.db.read().await?;
    let (codes, total) = store::list(&mut conn, &auth.scope, &page).await?;
    let now = app.clock.now();
    let codes: Result<Vec<_>> =
        codes.into_iter().map(|code| Ok(ClaimCodeResponse::new(code.open(&app)?, code, now))).collect();
    Ok(page.listed(codes?, total))
}

pub async fn create(
    auth: Authorized<perm::ClaimCodesWrite>,
    State(app): State<App>,
    Json(request): Json<ClaimCodeGenerateRequest>,
) -> Result<Answer<ClaimCodeResponse>> {
    let now = app.clock.now();
    let (spelled, code) = super::create(&app, &auth.scope, request.checked(now)?).await?;
    Ok(Answer(ClaimCodeResponse::new(spelled, code, now)))
}

pub async fn delete(
    auth: Authorized<perm::ClaimCodesWrite>,
    State(app): State<App>,
    Path(claim_code): Path<String>,
) -> Result<NoContent> {
    // What is no code at all is one that does not exist.
    let code = ClaimCode::parse(&claim_code).ok_or_else(|| Error::not_found("claim code"))?;
    super::delete(&app, &auth.scope, &code).await?;
    Ok(NoContent)
}
