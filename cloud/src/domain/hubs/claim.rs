//! Claiming: a claim code and a hardware identity become a hub with credentials, or a known hub gets new ones. Whoever is refused has changed
//! nothing, and used nothing up; and a claim whose answer was lost can be sent again.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hub_protocol::claim::{HubClaimRequest, HubCredentials};
use hub_protocol::{HubUuid, Timestamp};
use serde_json::json;
use uuid::Uuid;

use super::store::{self, Claim};
use super::{MAX_IDENTIFIER_CHARS, blocked, desired};
use crate::app::App;
use crate::authn::hub::{self, Hub};
use crate::authz::Scope;
use crate::db::Conn;
use crate::domain::audit::Audit;
use crate::domain::certificates::{self, Because};
use crate::domain::claim_codes::{self, ClaimCode, Status, StoredCode};
use crate::domain::tenants;
use crate::error::{Error, Result};
use crate::http::check::{Check, filled};
use crate::sealing;

/// How often a claim is tried that passed the checks and then met another that changed what was checked.
const ATTEMPTS: usize = 3;

/// Seconds for which a claim can be sent again without using the code again.
const REPEATABLE_SECS: i64 = 7 * 24 * 3600;

/// Claims. `key` is a secret of the hub's own choosing that tells this claim from every other: sent again with the same key, code and hardware, the
/// claim issues new credentials and uses nothing more up, so that an answer lost on the way does not cost the hub its code.
pub async fn claim(app: &App, request: &HubClaimRequest, key: Option<&str>) -> Result<HubCredentials> {
    let code = checked(request)?;
    let key_hash = key.map(|key| sealing::hash(&format!("{} {key}", code.spelled())));
    let _turn = app.credential_turns.next().await?;
    for _ in 0..ATTEMPTS {
        let now = app.clock.now();
        let mut conn = app.db.read().await?;
        let permit = permitted(&mut conn, &code, request.device_instance_id.trim(), key_hash.as_deref(), now).await?;
        drop(conn);
        if let Some(credentials) = attempt(app, request, &code, &permit, key_hash.clone(), now).await? {
            desired::changed(app, credentials.hub_uuid).await;
            return Ok(credentials);
        }
    }
    Err(Error::unavailable("CLAIM_RACED", "others claim with the same code or hub just now; try again shortly"))
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

/// Leave to claim.
struct Permit {
    code: StoredCode,
    /// The claim was answered before.
    repeated: bool,
}

/// Whether this hardware may claim with this code now. That a hub is blocked is said before what is wrong with the code: no other code would help.
/// But only to its own tenant, and to no one without a code of theirs.
async fn permitted(
    conn: &mut Conn,
    code: &ClaimCode,
    device_instance_id: &str,
    key_hash: Option<&[u8]>,
    now: Timestamp,
) -> Result<Permit> {
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
        _ if repeated => Ok(Permit { code, repeated }),
        Status::Used => {
            refused("CLAIM_CODE_USED_UP", "this claim code has been used as often as it may be; ask for a new one")
        }
        Status::Expired => refused("CLAIM_CODE_EXPIRED", "this claim code has expired; ask for a new one"),
        Status::Pending if hub.is_some() && own.is_none() => {
            Err(Error::conflict("HUB_OF_OTHER_TENANT", "this hub already belongs to a different unit"))
        }
        Status::Pending => Ok(Permit { code, repeated }),
    }
}

/// Writes the claim; nothing when the hub or the code is no longer as it was found. The statements themselves hold the rules, so that claims
/// that race need no locks beyond those of the rows they write. All take the hub's row first, then the code's; before either they hold the tenant, since
/// one that is deleted in this moment must be left without a hub that has tokens.
async fn attempt(
    app: &App,
    request: &HubClaimRequest,
    code: &ClaimCode,
    permit: &Permit,
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
        refresh_expires_at: now.plus_secs(app.config.hub_refresh_lifetime.as_secs().cast_signed()),
        claim_key_hash,
        now,
    };
    let mut tx = app.db.begin().await?;
    if !tenants::hold(&mut tx, tenant_uuid).await? {
        return Ok(None);
    }
    let Some(hub_uuid) = store::claim(&mut tx, claim).await? else { return Ok(None) };
    if !permit.repeated && !claim_codes::take_use(&mut tx, stored, now).await? {
        return Ok(None);
    }
    // What was issued under the credentials from before ends with them.
    let certificates = certificates::revoke(&mut tx, hub_uuid, Because::ClaimedAgain, now).await?;
    let (access_token, expires_at) = hub::issue(app, hub_uuid, tenant_uuid, token_id, now)?;
    let scope = Scope::of_hub(&Hub { hub_uuid, tenant_uuid, token_id });
    let detail = json!({"claimCode": code.masked(), "deviceInstanceId": request.device_instance_id.trim(), "again": hub_uuid != new_uuid,
        "repeated": permit.repeated, "certificates": certificates});
    tx.commit(Audit::new(&scope, "hub.claim", hub_uuid, now).with(detail)).await?;
    Ok(Some(HubCredentials { hub_uuid, tenant_uuid, access_token, refresh_token, expires_at }))
}
