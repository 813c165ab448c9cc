//! Claiming: a claim code and a hardware identity become a hub with credentials, or an existing hub
//! gets new ones. A refused claim changes nothing and consumes nothing. A claim whose response was
//! lost can be repeated.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_protocol::claim::{HubClaimRequest, HubCredentials};
use hub_protocol::{HubUuid, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::store::{self, Claim};
use super::{Hubs, MAX_IDENTIFIER_CHARS, blocked};
use crate::audit::Audit;
use crate::authn::hub::{self, Hub};
use crate::authz::Scope;
use crate::db::Conn;
use crate::domain::certificates::{self, RevocationReason};
use crate::domain::claim_codes::{self, ClaimCode, Status, StoredCode};
use crate::domain::tenants;
use crate::error::{Error, Result};
use crate::http::check::{Check, filled};
use crate::sealing;

/// Attempts of a claim that passed the checks and then conflicted with a concurrent change.
const ATTEMPTS: usize = 3;

/// Seconds for which a claim can be repeated without consuming another use of the code.
const REPEATABLE_SECS: i64 = 7 * 24 * 3600;

/// Claims a hub. `key` is a secret idempotency key that the hub generates for one claim. Repeated
/// with the same key, code and hardware, the claim issues new credentials and consumes no further
/// use of the code, so that a lost response does not cost the hub its code.
pub async fn claim(hubs: &Hubs, request: &HubClaimRequest, key: Option<&str>) -> Result<HubCredentials> {
    let code = checked(request)?;
    let key_hash = key.map(|key| sealing::hash(&format!("{} {key}", code.spelled())));
    let _permit = hubs.permits.acquire().await?;
    for _ in 0..ATTEMPTS {
        let now = hubs.core.clock.now();
        let mut conn = hubs.core.db.read().await?;
        let permit = check_claim(&mut conn, &code, request.device_instance_id.trim(), key_hash.as_deref(), now).await?;
        drop(conn);
        if let Some(credentials) = attempt(hubs, request, &code, &permit, key_hash.clone(), now).await? {
            return Ok(credentials);
        }
    }
    Err(Error::unavailable("CLAIM_RACED", "concurrent claims use the same code or hub; try again shortly"))
}

fn checked(request: &HubClaimRequest) -> Result<ClaimCode> {
    let mut check = Check::new();
    let code = ClaimCode::parse(&request.claim_code);
    check.that(code.is_some(), "claimCode", "must be 16 letters and digits such as 7K3M-9QXT-0V4B-HD2R");
    check.required("deviceInstanceId", &request.device_instance_id, 200);
    check.line("hubIdentifier", request.hub_identifier.as_deref(), MAX_IDENTIFIER_CHARS);
    check.line("agentVersion", request.agent_version.as_deref(), 100);
    check.line("hostname", request.hostname.as_deref(), 255);
    if let Some(os) = &request.os {
        check.line("os.name", os.name.as_deref(), 100);
        check.line("os.version", os.version.as_deref(), 100);
        check.line("os.arch", os.arch.as_deref(), 100);
    }
    check.done()?;
    code.ok_or_else(|| Error::field("claimCode", "must be a claim code"))
}

/// The permission to claim.
struct ClaimPermit {
    code: StoredCode,
    /// Whether this claim succeeded before.
    repeated: bool,
}

/// Whether this hardware may claim with this code now. HUB_BLOCKED takes precedence over errors of
/// the code, because no other code would help. It is reported only to holders of a code of the
/// hub's own tenant.
async fn check_claim(
    conn: &mut Conn,
    code: &ClaimCode,
    device_instance_id: &str,
    key_hash: Option<&[u8]>,
    now: Timestamp,
) -> Result<ClaimPermit> {
    let refused = |code, message| Err(Error::bad_request(code, message));
    let Some(code) = claim_codes::find(conn, code).await? else {
        return refused("CLAIM_CODE_UNKNOWN", "this claim code is not valid; check how it is spelled");
    };
    let hub = store::by_device_instance(conn, device_instance_id).await?;
    let own = hub.as_ref().filter(|hub| hub.tenant_uuid == code.tenant_uuid);
    if own.is_some_and(|hub| hub.blocked_at.is_some()) {
        return Err(blocked(axum::http::StatusCode::LOCKED));
    }
    let repeated = own.is_some_and(|own| {
        key_hash.is_some()
            && key_hash == own.claim_key_hash.as_deref()
            && own.claimed_at.plus_secs(REPEATABLE_SECS) > now
    });
    match code.status(now) {
        Status::Revoked => refused("CLAIM_CODE_REVOKED", "this claim code has been revoked; ask for a new one"),
        _ if repeated => Ok(ClaimPermit { code, repeated }),
        Status::Used => refused("CLAIM_CODE_USED_UP", "this claim code has no uses left; ask for a new one"),
        Status::Expired => refused("CLAIM_CODE_EXPIRED", "this claim code has expired; ask for a new one"),
        Status::Pending if hub.is_some() && own.is_none() => {
            Err(Error::conflict("HUB_OF_OTHER_TENANT", "this hub already belongs to a different unit"))
        }
        Status::Pending => Ok(ClaimPermit { code, repeated }),
    }
}

/// Writes the claim. Returns None if the hub or the code has changed since the checks. The
/// statements themselves enforce the rules, so that concurrent claims need no locks beyond the rows
/// they write. All lock the hub's row first, then the code's. Before both they lock the tenant,
/// since a tenant that is being deleted must be left without a hub that has tokens.
async fn attempt(
    hubs: &Hubs,
    request: &HubClaimRequest,
    code: &ClaimCode,
    permit: &ClaimPermit,
    claim_key_hash: Option<Vec<u8>>,
    now: Timestamp,
) -> Result<Option<HubCredentials>> {
    let stored = &permit.code;
    let tenant_uuid = stored.tenant_uuid;
    let token_id = Uuid::now_v7();
    let refresh_token = URL_SAFE_NO_PAD.encode(sealing::random::<32>());
    let new_uuid = HubUuid::new();
    let claim = Claim {
        hub_uuid: new_uuid,
        tenant_uuid,
        device_instance_id: request.device_instance_id.trim(),
        code_identifier: stored.hub_identifier.as_deref(),
        own_identifier: filled(request.hub_identifier.as_deref()),
        agent_version: filled(request.agent_version.as_deref()),
        hostname: filled(request.hostname.as_deref()),
        os: request.os.as_ref().and_then(|os| serde_json::to_value(os).ok()),
        owner_user_uuid: stored.owner_user_uuid,
        token_id,
        refresh_token_hash: sealing::hash(&refresh_token),
        refresh_expires_at: now.plus_secs(hubs.core.config.hub_refresh_lifetime.as_secs().cast_signed()),
        claim_key_hash,
        now,
    };
    let mut tx = hubs.core.db.begin().await?;
    if !tenants::lock_shared(&mut tx, tenant_uuid).await? {
        return Ok(None);
    }
    let Some(hub_uuid) = store::claim(&mut tx, claim).await? else { return Ok(None) };
    if !permit.repeated && !claim_codes::consume_use(&mut tx, stored, now).await? {
        return Ok(None);
    }
    // Certificates issued under the earlier credentials end with them.
    let certificates = certificates::revoke(&mut tx, hub_uuid, RevocationReason::ClaimedAgain, now).await?;
    let (access_token, expires_at) = hub::issue(&hubs.authn, hub_uuid, tenant_uuid, token_id, now)?;
    let scope = Scope::of_hub(&Hub { hub_uuid, tenant_uuid, token_id });
    let detail = json!({"claimCode": code.masked(), "deviceInstanceId": request.device_instance_id.trim(), "again": hub_uuid != new_uuid,
        "repeated": permit.repeated, "certificates": certificates});
    hubs.changes.notify_after(&mut tx, hub_uuid);
    tx.commit(Audit::new(&scope, "hub.claim", hub_uuid, now).with(detail)).await?;
    Ok(Some(HubCredentials { hub_uuid, tenant_uuid, access_token, refresh_token, expires_at }))
}
