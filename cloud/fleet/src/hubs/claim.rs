//! Claiming: a claim code and a hardware identity become a hub with credentials, or an existing hub
//! gets new ones. Credentials that are in force are replaced only for the hub itself, or by a code
//! that an operator made for it. A refused claim changes nothing and consumes nothing. A claim
//! whose response was lost can be repeated.

use axum::http::StatusCode;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::BoxFuture;
use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::{Check, filled};
use hub_core::outbox::{self, Event};
use hub_identity::authn::hub::{self, Hub};
use hub_identity::authz::Scope;
use hub_people::tenants;
use hub_protocol::claim::{HubClaimRequest, HubCredentials};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::{self, Claim, KnownHub};
use super::{Concerned, Hubs, MAX_IDENTIFIER_CHARS, blocked, pace, refresh, refusals};
use crate::certificates::{self, RevocationReason};
use crate::claim_codes::{self, ClaimCode, Status, StoredCode};

/// Attempts of a claim that passed the checks and then conflicted with a concurrent change.
const ATTEMPTS: usize = 3;

/// Seconds for which a claim can be repeated without consuming another use of the code.
const REPEATABLE_SECS: i64 = 7 * 24 * 3600;

/// The parameters of a claim, for [`AtClaim`].
pub struct Claiming {
    pub tenant_uuid: TenantUuid,
    /// The bundle that the code names.
    pub bundle_uuid: Option<Uuid>,
    /// The architecture as in `uname -m`.
    pub architecture: Option<String>,
}

/// The part that a subject above hubs adds to a claim. A repeated claim does not add it.
pub trait AtClaim: Send + Sync {
    /// Fails with the reason if it could not be added now. It changes nothing.
    fn check<'a>(&'a self, conn: &'a mut Conn, claiming: &'a Claiming)
    -> BoxFuture<'a, Result<()>>;

    /// Adds the part to the hub, which the transaction has locked, and returns its audit details.
    /// An error fails the claim.
    fn add<'a>(
        &'a self,
        tx: &'a mut Tx,
        hub_uuid: HubUuid,
        claiming: &'a Claiming,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Value>>;
}

/// Claims a hub. `key` is the hub's claim key, a secret that it generates once. Repeated with the
/// same key, code and hardware, the claim issues new credentials and consumes no further use of the
/// code, so that a lost response does not cost the hub its code. With another code, the key proves
/// that the hub itself replaces its credentials.
pub async fn claim(
    hubs: &Hubs,
    at_claim: &impl AtClaim,
    request: &HubClaimRequest,
    key: Option<&str>,
) -> Result<HubCredentials> {
    let code = checked(request)?;
    let shown = Shown {
        claim_key: key.map(|key| sealing::hash(&format!("{} {key}", code.spelled()))),
        claim_proof: key.map(sealing::hash),
        refresh_token: filled(request.refresh_token.as_deref()).map(sealing::hash),
    };
    let _permit = hubs.permits.acquire().await?;
    for _ in 0..ATTEMPTS {
        let now = hubs.core.clock.now();
        // A claim that is refused writes nothing, so it does not wait to write.
        let mut conn = hubs.core.db.read().await?;
        let permit =
            match check_claim(&hubs.core, &mut conn, &code, device(request), &shown, now).await {
                Ok(permit) => permit,
                Err(error) => {
                    if !error.status().is_client_error() {
                        return Err(error);
                    }
                    let is_single = hubs.core.surges.refused_claims.is_single();
                    let known = claim_codes::find(&mut conn, &code).await?;
                    drop(conn);
                    if let Some(known) = known {
                        let core = &hubs.core;
                        refusals::note_claim(core, &known, request, &error, is_single, now).await?;
                    }
                    return Err(error);
                }
            };
        if !permit.is_repeated {
            at_claim.check(&mut conn, &permit.claiming(request)).await?;
        }
        drop(conn);
        let tenant_uuid = permit.code.tenant_uuid;
        if let Some(credentials) =
            attempt(hubs, at_claim, request, &code, tenant_uuid, &shown, now).await?
        {
            return Ok(credentials);
        }
    }
    Err(Error::unavailable(
        "CLAIM_RACED",
        "concurrent claims use the same code or hub; try again shortly",
    ))
}

fn checked(request: &HubClaimRequest) -> Result<ClaimCode> {
    let mut check = Check::new();
    let code = ClaimCode::parse(&request.claim_code);
    check.that(
        code.is_some(),
        "claimCode",
        "must be 16 letters and digits such as 7K3M-9QXT-0V4B-HD2R",
    );
    check.required("deviceInstanceId", &request.device_instance_id, 200);
    check.line(
        "hubIdentifier",
        request.hub_identifier.as_deref(),
        MAX_IDENTIFIER_CHARS,
    );
    check.line("agentVersion", request.agent_version.as_deref(), 100);
    check.line("hostname", request.hostname.as_deref(), 255);
    check.line("refreshToken", request.refresh_token.as_deref(), 200);
    if let Some(os) = &request.os {
        check.line("os.name", os.name.as_deref(), 100);
        check.line("os.version", os.version.as_deref(), 100);
        check.line("os.arch", os.arch.as_deref(), 100);
    }
    check.done()?;
    code.ok_or_else(|| Error::field("claimCode", "must be a claim code"))
}

fn device(request: &HubClaimRequest) -> &str {
    request.device_instance_id.trim()
}

/// The hashes of what a claim shows beside the code.
struct Shown {
    /// The hash of the claim key and the code.
    claim_key: Option<Vec<u8>>,
    /// The hash of the claim key alone.
    claim_proof: Option<Vec<u8>>,
    refresh_token: Option<Vec<u8>>,
}

/// The proof that a claim comes from the hub whose credentials it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
enum Proof {
    ClaimKey,
    RefreshToken,
}

impl Shown {
    /// Both sides are hashes, so the duration of the comparisons reveals nothing.
    fn proves(&self, hub: &KnownHub) -> Option<Proof> {
        let same =
            |shown: &Option<Vec<u8>>, stored: &Option<Vec<u8>>| shown.is_some() && shown == stored;
        match () {
            () if same(&self.claim_proof, &hub.claim_proof_hash) => Some(Proof::ClaimKey),
            // A hub that was claimed before its key alone was stored.
            () if same(&self.claim_key, &hub.claim_key_hash) => Some(Proof::ClaimKey),
            () if same(&self.refresh_token, &hub.refresh_token_hash) => Some(Proof::RefreshToken),
            () => None,
        }
    }

    /// Whether the same claim succeeded before.
    fn repeats(&self, hub: &KnownHub, now: Timestamp) -> bool {
        self.claim_key.is_some()
            && self.claim_key == hub.claim_key_hash
            && hub.claimed_at.plus_secs(REPEATABLE_SECS) > now
    }
}

/// Whether the hub can still use or refresh its tokens.
fn is_in_force(core: &Core, hub: &KnownHub, now: Timestamp) -> bool {
    // An access token may be valid for longer than the refresh token of its hub.
    let outlives = core
        .config
        .hub_token_lifetime
        .saturating_sub(core.config.hub_refresh_lifetime);
    let ends_at = refresh::expires_at(&core.config, hub.refreshed_at, hub.readmitted_until)
        .map(|at| at.plus_secs(outlives.as_secs().cast_signed()));
    hub.access_token_id.is_some() && ends_at.is_some_and(|at| at > now)
}

/// The permission to claim.
struct ClaimPermit {
    code: StoredCode,
    /// Whether this claim succeeded before.
    is_repeated: bool,
    /// Whether it replaces credentials that are in force.
    is_in_use: bool,
    proof: Option<Proof>,
}

impl ClaimPermit {
    fn claiming(&self, request: &HubClaimRequest) -> Claiming {
        let architecture = request
            .os
            .as_ref()
            .and_then(|os| filled(os.arch.as_deref()));
        Claiming {
            tenant_uuid: self.code.tenant_uuid,
            bundle_uuid: self.code.bundle_uuid,
            architecture: architecture.map(str::to_owned),
        }
    }
}

/// Whether this hardware may claim with this code now. HUB_BLOCKED takes precedence over errors of
/// the code, because no other code would help. It is reported only to holders of a code of the
/// hub's own tenant, or of a valid code if the hub was released.
async fn check_claim(
    core: &Core,
    conn: &mut Conn,
    code: &ClaimCode,
    device_instance_id: &str,
    shown: &Shown,
    now: Timestamp,
) -> Result<ClaimPermit> {
    let refused = |code, message| Err(Error::bad_request(code, message));
    let Some(code) = claim_codes::find(conn, code).await? else {
        return refused(
            "CLAIM_CODE_UNKNOWN",
            "this claim code is not valid; check how it is spelled",
        );
    };
    let hub = store::by_device_instance(conn, device_instance_id).await?;
    let own = hub
        .as_ref()
        .filter(|hub| hub.tenant_uuid == code.tenant_uuid);
    if own.is_some_and(|hub| hub.blocked_at.is_some()) {
        return Err(blocked(StatusCode::LOCKED));
    }
    let is_repeated = own.is_some_and(|own| shown.repeats(own, now));
    match code.status(now) {
        Status::Revoked => {
            return refused(
                "CLAIM_CODE_REVOKED",
                "this claim code has been revoked; ask for a new one",
            );
        }
        Status::Used if !is_repeated => {
            return refused(
                "CLAIM_CODE_USED_UP",
                "this claim code has no uses left; ask for a new one",
            );
        }
        Status::Expired if !is_repeated => {
            return refused(
                "CLAIM_CODE_EXPIRED",
                "this claim code has expired; ask for a new one",
            );
        }
        Status::Used | Status::Expired | Status::Pending => {}
    }
    let (is_in_use, proof) = match (own, &hub) {
        (Some(own), _) => (is_in_force(core, own, now), shown.proves(own)),
        (None, Some(_)) => {
            return Err(Error::conflict(
                "HUB_OF_OTHER_TENANT",
                "this hub already belongs to a different unit",
            ));
        }
        (None, None) => {
            check_new_hub(core, conn, &code, device_instance_id).await?;
            (false, None)
        }
    };
    if is_in_use && proof.is_none() && !code.allow_reclaim {
        let message = "this hardware is a hub of this tenant already, and its credentials are in force; claim it from \
                       the hub itself, which shows its claim key or its refresh token, use a claim code with \
                       `allowReclaim`, or release the hub first";
        return Err(Error::conflict("HUB_IN_USE", message));
    }
    Ok(ClaimPermit {
        code,
        is_repeated,
        is_in_use,
        proof,
    })
}

/// Whether hardware that is no hub now may become one of the code's tenant.
async fn check_new_hub(
    core: &Core,
    conn: &mut Conn,
    code: &StoredCode,
    device_instance_id: &str,
) -> Result<()> {
    if store::is_hardware_blocked(conn, device_instance_id).await? {
        return Err(blocked(StatusCode::LOCKED));
    }
    let quota = tenants::limits::hubs(core, conn, code.tenant_uuid).await?;
    if store::count(conn, code.tenant_uuid, quota).await? >= quota {
        let message = format!(
            "this tenant has reached its quota of hubs, {quota} (`hubs-per-tenant`); release a hub, or have the quota \
             raised"
        );
        return Err(Error::conflict("TOO_MANY_HUBS", message));
    }
    Ok(())
}

/// Writes the claim. Returns None if the tenant or the code has changed since the checks, or the
/// device became another tenant's hub. The checks are made again while the tenant and the hub are
/// locked, in this order, then the code and the tenant's pace; a tenant that is being deleted must
/// be left without a hub that has tokens, and two claims must not both become its last hub.
async fn attempt(
    hubs: &Hubs,
    at_claim: &impl AtClaim,
    request: &HubClaimRequest,
    code: &ClaimCode,
    tenant_uuid: TenantUuid,
    shown: &Shown,
    now: Timestamp,
) -> Result<Option<HubCredentials>> {
    let mut tx = hubs.core.db.begin().await?;
    if !tenants::lock_exclusively(&mut tx, tenant_uuid).await? {
        return Ok(None);
    }
    store::lock_device_instance(&mut tx, device(request)).await?;
    let permit = check_claim(&hubs.core, &mut tx, code, device(request), shown, now).await?;
    let stored = &permit.code;
    let token_id = Uuid::now_v7();
    let refresh_token = URL_SAFE_NO_PAD.encode(sealing::random::<32>());
    let new_uuid = HubUuid::new();
    let claim = Claim {
        hub_uuid: new_uuid,
        tenant_uuid,
        device_instance_id: device(request),
        code_identifier: stored.hub_identifier.as_deref(),
        own_identifier: filled(request.hub_identifier.as_deref()),
        agent_version: filled(request.agent_version.as_deref()),
        hostname: filled(request.hostname.as_deref()),
        os: request
            .os
            .as_ref()
            .and_then(|os| serde_json::to_value(os).ok()),
        owner_user_uuid: stored.owner_user_uuid,
        token_id,
        refresh_token_hash: sealing::hash(&refresh_token),
        claim_key_hash: shown.claim_key.clone(),
        claim_proof_hash: shown.claim_proof.clone(),
        now,
    };
    let Some(hub_uuid) = store::claim(&mut tx, claim).await? else {
        return Ok(None);
    };
    if !permit.is_repeated && !claim_codes::consume_use(&mut tx, stored, hub_uuid, now).await? {
        return Ok(None);
    }
    store::note_contact(&mut tx, tenant_uuid, hub_uuid, now).await?;
    // Whoever had the credentials before has none now.
    store::clones::forget_appearances(&mut tx, hub_uuid).await?;
    let concerned = Concerned::Hub(hub_uuid);
    super::settle_consent(&mut tx, &hubs.changes, tenant_uuid, concerned).await?;
    pace::make_room(&mut tx, &hubs.core.config, tenant_uuid, hub_uuid, now).await?;
    // Certificates issued under the earlier credentials end with them.
    let certificates =
        certificates::revoke(&mut tx, hub_uuid, RevocationReason::ClaimedAgain, now).await?;
    let mut added = Value::Null;
    // The event of a repeated claim was sent for the first one.
    if !permit.is_repeated {
        added = at_claim
            .add(&mut tx, hub_uuid, &permit.claiming(request), now)
            .await?;
        let event = Event::hub_claimed(hub_uuid, stored.owner_user_uuid, hub_uuid != new_uuid);
        outbox::insert(&hubs.core, &mut tx, tenant_uuid, &[event], now).await?;
    }
    let (access_token, expires_at) = hub::issue(&hubs.authn, hub_uuid, tenant_uuid, token_id, now)?;
    let scope = Scope::of_hub(&Hub {
        hub_uuid,
        tenant_uuid,
        token_id,
    });
    let detail = json!({
        "claimCode": code.masked(),
        "claimCodeId": stored.claim_code_uuid,
        "deviceInstanceId": device(request),
        "again": hub_uuid != new_uuid,
        "repeated": permit.is_repeated,
        "inUse": permit.is_in_use,
        "proof": permit.proof,
        "certificates": certificates,
        "bundles": added,
    });
    hubs.changes.notify_after(&mut tx, hub_uuid);
    tx.commit(Audit::new(&scope, "hub.claim", hub_uuid, now).with(detail))
        .await?;
    if hubs.core.surges.claims.is_single() {
        let is_new = hub_uuid == new_uuid;
        tracing::info!(%hub_uuid, %tenant_uuid, is_new, "a hub is claimed");
    }
    Ok(Some(HubCredentials {
        hub_uuid,
        tenant_uuid,
        access_token,
        refresh_token,
        expires_at,
    }))
}
