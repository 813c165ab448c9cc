//! `/tenant/hubs/claim-codes`.

use aide::axum::ApiRouter;
use aide::axum::routing::{delete_with, get_with};
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, NoContent};
use hub_core::http::check::{Check, filled};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{Timestamp, UserUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{ClaimCode, Named, NewClaimCode, Status, StoredCode, store};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/hubs/claim-codes",
            get_with(
                list,
                operation(
                    "claimCodes.list",
                    "tenant-hubs",
                    "Claim codes, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[409],
                    "claimCodes.create",
                    "tenant-hubs",
                    "Create a claim code",
                ),
            ),
        )
        .api_route(
            "/tenant/hubs/claim-codes/{claimCode}",
            delete_with(
                delete,
                operation(
                    "claimCodes.delete",
                    "tenant-hubs",
                    "Delete an unused claim code, or revoke a used one",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimCodePath {
    /// The claim code, whose case, dashes and blanks are ignored, or its `id`.
    pub claim_code: String,
}

const DEFAULT_VALIDITY_SECS: i64 = 7 * 24 * 3600;
const MAX_VALIDITY_SECS: i64 = 10 * 365 * 24 * 3600;
const MAX_USES: i64 = 100_000;

/// A claim code to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimCodeGenerateRequest {
    /// When the code expires, at most ten years ahead. This or `validForSeconds`, not both; 7 days
    /// from now when neither is given.
    expires_at: Option<Timestamp>,
    /// The lifetime of the code, at most ten years.
    #[schemars(range(min = 1, max = MAX_VALIDITY_SECS))]
    valid_for_seconds: Option<i64>,
    /// The number of hubs that may claim with it; 1 when absent.
    #[schemars(range(min = 1, max = MAX_USES))]
    max_uses: Option<i64>,
    /// The bundle that is applied to hubs at their claim; when absent, those of the tenant that are
    /// marked `autoApply`. A draft has to be published before a hub claims with the code.
    bundle_uuid: Option<Uuid>,
    /// The label that hubs get, in place of their own.
    #[schemars(length(max = 200), regex(pattern = hub_protocol::patterns::LINE))]
    hub_identifier: Option<String>,
    /// The app user that the hubs will belong to.
    owner_user_uuid: Option<UserUuid>,
    /// Free-text note.
    #[schemars(length(max = 1000), regex(pattern = hub_protocol::patterns::LINES))]
    note: Option<String>,
    /// Whether hardware whose credentials are in force may be claimed again with it, without the
    /// hub's own proof. True requires OPERATE. When absent, it is true for a code for one hub whose
    /// creator has OPERATE, else false.
    allow_reclaim: Option<bool>,
}

/// A claim code.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimCodeResponse {
    /// Names the code in a path. Nothing can be claimed with it.
    id: Uuid,
    /// The code; only its first group, as in `7K3M-…`, to callers who may not create codes.
    claim_code: String,
    /// Whether it can be used.
    status: Status,
    /// When it expires.
    expires_at: Timestamp,
    /// The number of hubs that may claim with it.
    #[schemars(range(min = 1))]
    max_uses: i64,
    /// The number of hubs that have claimed with it.
    #[schemars(range(min = 0))]
    use_count: i64,
    /// The bundle that is applied to hubs at their claim.
    bundle_uuid: Option<Uuid>,
    /// The label that hubs get.
    hub_identifier: Option<String>,
    /// The app user that the hubs will belong to.
    owner_user_uuid: Option<UserUuid>,
    /// Free-text note.
    note: Option<String>,
    /// Whether hardware whose credentials are in force may be claimed again with it, without the
    /// hub's own proof.
    allow_reclaim: bool,
    /// When it was created.
    created_at: Timestamp,
    /// The page on which the owner of the code follows the hub; for a QR code. Null where the code
    /// is masked or has no owner, and while the service does not know its public URL.
    pairing_url: Option<String>,
}

impl ClaimCodeResponse {
    /// `code` is the code in clear, of which only the first group is shown unless `is_full`.
    pub fn new(core: &Core, code: &ClaimCode, stored: StoredCode, is_full: bool) -> Self {
        let claim_code = if is_full {
            code.spelled()
        } else {
            code.masked()
        };
        let leads_somewhere = is_full && stored.owner_user_uuid.is_some();
        let base = core.config.public_url.as_ref().filter(|_| leads_somewhere);
        // Browsers do not send the part after `#`, so that it gets into no log.
        let pairing_url = base.map(|base| format!("{base}/app/pair#{claim_code}"));
        let (code, now) = (stored, core.clock.now());
        Self {
            pairing_url,
            id: code.claim_code_uuid,
            claim_code,
            status: code.status(now),
            expires_at: code.expires_at,
            max_uses: code.max_uses,
            use_count: code.use_count,
            bundle_uuid: code.bundle_uuid,
            hub_identifier: code.hub_identifier,
            owner_user_uuid: code.owner_user_uuid,
            note: code.note,
            allow_reclaim: code.allow_reclaim,
            created_at: code.created_at,
        }
    }
}

impl ClaimCodeGenerateRequest {
    /// `may_operate`: whether the caller has OPERATE.
    fn checked(self, may_operate: bool, now: Timestamp) -> Result<NewClaimCode> {
        let mut check = Check::new();
        let latest = now.plus_secs(MAX_VALIDITY_SECS);
        let expires_at = match (self.expires_at, self.valid_for_seconds) {
            (Some(at), None) => {
                check.that(at > now, "expiresAt", "must be in the future");
                check.that(at <= latest, "expiresAt", "must be at most ten years ahead");
                at
            }
            (None, secs) => {
                let secs = secs.unwrap_or(DEFAULT_VALIDITY_SECS);
                let fits = (1..=MAX_VALIDITY_SECS).contains(&secs);
                check.that(
                    fits,
                    "validForSeconds",
                    format!("must be between 1 and {MAX_VALIDITY_SECS}"),
                );
                now.plus_secs(secs)
            }
            (Some(at), Some(_)) => {
                check.that(
                    false,
                    "validForSeconds",
                    "must not be given together with `expiresAt`",
                );
                at
            }
        };
        let max_uses = self.max_uses.unwrap_or(1);
        check.that(
            (1..=MAX_USES).contains(&max_uses),
            "maxUses",
            format!("must be between 1 and {MAX_USES}"),
        );
        check.line("hubIdentifier", self.hub_identifier.as_deref(), 200);
        check.lines("note", self.note.as_deref(), 1000);
        check.done()?;
        if self.allow_reclaim == Some(true) && !may_operate {
            let message = "`allowReclaim` requires the permission OPERATE: it lets a claim end a hub's credentials";
            return Err(Error::forbidden("PERMISSION_DENIED", message));
        }
        Ok(NewClaimCode {
            expires_at,
            max_uses,
            bundle_uuid: self.bundle_uuid,
            hub_identifier: filled(self.hub_identifier.as_deref()).map(str::to_owned),
            owner_user_uuid: self.owner_user_uuid,
            note: filled(self.note.as_deref()).map(str::to_owned),
            allow_reclaim: self.allow_reclaim.unwrap_or(may_operate && max_uses == 1),
        })
    }
}

async fn list(
    auth: Authorized<perm::ClaimCodesRead>,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<ClaimCodeResponse>> {
    let mut conn = core.db.read().await?;
    let (codes, total) = store::list(&mut conn, &auth.scope, page.slice()).await?;
    // A reader of a full code can claim with it.
    let is_full = auth.caller.may::<perm::ClaimCodesWrite>();
    let response = |code: StoredCode| -> Result<ClaimCodeResponse> {
        let opened = code.open(&core)?;
        Ok(ClaimCodeResponse::new(&core, &opened, code, is_full))
    };
    Ok(page.listed(
        codes.into_iter().map(response).collect::<Result<_>>()?,
        total,
    ))
}

async fn create(
    auth: Authorized<perm::ClaimCodesWrite>,
    State(core): State<Core>,
    Json(request): Json<ClaimCodeGenerateRequest>,
) -> Result<Answer<ClaimCodeResponse>> {
    let now = core.clock.now();
    let new = request.checked(auth.caller.may::<perm::HubsOperate>(), now)?;
    let (code, stored) = super::create(&core, &auth.scope, new).await?;
    Ok(Answer(ClaimCodeResponse::new(&core, &code, stored, true)))
}

async fn delete(
    auth: Authorized<perm::ClaimCodesWrite>,
    State(core): State<Core>,
    Path(ClaimCodePath { claim_code }): Path<ClaimCodePath>,
) -> Result<NoContent> {
    // A malformed code is treated as one that does not exist.
    let named = Named::parse(&claim_code).ok_or_else(|| Error::not_found("claim code"))?;
    super::delete(&core, &auth.scope, &named).await?;
    Ok(NoContent)
}
