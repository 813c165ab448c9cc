//! Client certificates of hubs, and the authorities that issue them. A hub's certificate names the
//! hub and nothing else, whatever its request contained. It is valid only together with the hub's
//! token, and ends with the hub's credentials. The service never sees a hub's private key.

mod authority;
mod csr;
pub mod http;
mod store;
pub mod x509;

use hub_base::db::Tx;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::config::ClientCertificates;
use hub_identity::authn::client_certificate::{RENEWABLE_SECS, check_renewable};
use hub_identity::authn::hub::EnrollingHub;
use hub_identity::authn::{self, invalid_token};
use hub_identity::authz::Scope;
use hub_people::tenants;
use hub_protocol::certificate::{CertificateIssueRequest, CertificateIssueResponse};
use hub_protocol::{HubUuid, Timestamp};
use rcgen::PublicKeyData;
use serde_json::json;
use sha2::{Digest, Sha256};

use authority::RenewalReason;
pub use store::expiring;
use store::{Authority, Issued};
use x509::Validity;

const DAY_SECS: i64 = 24 * 3600;
/// Total validity of a hub's certificate.
const HUB_SECS: i64 = 90 * DAY_SECS;
/// Certificates are valid from this long before their creation, to tolerate clock differences.
const BACKDATED_SECS: i64 = 300;
/// A hub renews every two months, and repeats a request whose response was lost.
const MAX_ISSUED_A_DAY: usize = 20;

/// Issues a certificate for the key of the request. Earlier certificates stay valid, because the
/// hub may not receive this one.
pub async fn issue(
    core: &Core,
    enrolling: &EnrollingHub,
    request: &CertificateIssueRequest,
) -> Result<CertificateIssueResponse> {
    let hub = &enrolling.hub;
    let key = csr::requested_key(&request.csr)?;
    let key_hash = Sha256::digest(key.subject_public_key_info()).to_vec();
    let signing = signing(core).await?;
    let now = core.clock.now();
    let not_before = now.plus_secs(-BACKDATED_SECS);
    let validity = Validity::seconds(
        not_before,
        not_before.plus_secs(HUB_SECS).min(signing.not_after),
    );
    let signer = authority::open(core, &signing)?;
    let (serial_number, certificate) =
        x509::issue_hub_certificate(hub.hub_uuid, &key, validity, &signer)?;

    let scope = Scope::of_hub(hub);
    let mut tx = core.db.begin().await?;
    // The tenant is locked before the hub, in the same order as by its deletion.
    if !tenants::lock_shared(&mut tx, hub.tenant_uuid).await? {
        return Err(invalid_token());
    }
    // A concurrent revocation of the hub's credentials either commits before this lock, or finds
    // the certificate and revokes it.
    if authn::store::lock_hub_token(&mut tx, hub.hub_uuid).await? != Some(hub.token_id) {
        return Err(invalid_token());
    }
    enrol(core, &mut tx, enrolling, &key_hash, now).await?;
    check_limit(&mut tx, hub.hub_uuid, now).await?;
    let Validity {
        not_before,
        not_after,
    } = validity;
    let authority_uuid = signing.authority_uuid;
    let issued = Issued {
        serial_number: &serial_number,
        authority_uuid,
        hub_uuid: hub.hub_uuid,
        not_before,
        not_after,
    };
    store::insert_certificate(&mut tx, &scope, &issued, now).await?;
    let detail = json!({"serialNumber": serial_number, "notAfter": not_after});
    tx.commit(Audit::new(&scope, "hub_certificate.issue", hub.hub_uuid, now).with(detail))
        .await?;
    Ok(CertificateIssueResponse {
        certificate,
        chain: signing.certificate,
        serial_number,
        not_before,
        not_after,
    })
}

/// Records that the hub gets a certificate for this key, if it may have one. Where certificates are
/// required, a token is enough for the first one since the last claim only: a later thief of the
/// token gets none. The first one can be requested again for the same key, because its response may
/// be lost, and the thief does not have the key.
async fn enrol(
    core: &Core,
    tx: &mut Tx,
    EnrollingHub { hub, certificate }: &EnrollingHub,
    key_hash: &[u8],
    now: Timestamp,
) -> Result<()> {
    let Some(first_key_hash) = store::first_key_hash(tx, hub.hub_uuid).await? else {
        return store::insert_enrolment(tx, hub.hub_uuid, key_hash).await;
    };
    if first_key_hash.as_deref() == Some(key_hash) {
        return Ok(());
    }
    if core.config.client_certificates == ClientCertificates::Required {
        check_renewable(tx, certificate.as_deref(), hub.hub_uuid, now).await?;
    }
    store::forget_first_key(tx, hub.hub_uuid).await
}

async fn check_limit(tx: &mut Tx, hub_uuid: HubUuid, now: Timestamp) -> Result<()> {
    let limit = i64::try_from(MAX_ISSUED_A_DAY).unwrap_or(i64::MAX);
    let issued = store::issued_since(tx, hub_uuid, now.plus_secs(-DAY_SECS), limit).await?;
    match issued.first() {
        Some(oldest) if issued.len() >= MAX_ISSUED_A_DAY => {
            let message = format!(
                "a hub gets at most {MAX_ISSUED_A_DAY} certificates in 24 hours; use the last one"
            );
            let wait_secs = oldest.as_secs() + DAY_SECS - now.as_secs();
            Err(Error::too_many_requests(message, wait_secs.unsigned_abs()))
        }
        _ => Ok(()),
    }
}

/// The authority that signs now. Creates the first ones if there are none.
async fn signing(core: &Core) -> Result<Authority> {
    for _ in 0..2 {
        let authorities = store::authorities(&mut core.db.read().await?).await?;
        if let Some(signing) = authority::signing(&authorities, core.clock.now()) {
            return Ok(signing.clone());
        }
        authority::renew(core, RenewalReason::Expiry).await?;
    }
    let message = "the authority that issues certificates is being replaced; try again in a minute";
    Err(Error::unavailable("CERTIFICATES_UNAVAILABLE", message))
}

/// The authorities that hubs' certificates are verified against, in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The roots, newest first; at least one.
    pub roots: Vec<String>,
    /// The issuing authorities below the roots that sign, or have signed, hubs' certificates.
    pub issuers: Vec<String>,
}

/// The trusted roots: the one that signs, the one that will sign next, and those above a
/// certificate that has not expired.
pub async fn trust(core: &Core) -> Result<Trust> {
    trust_since(core, core.clock.now()).await
}

/// As [`trust`], with the roots above certificates that can still be renewed.
pub async fn trust_for_renewal(core: &Core) -> Result<Trust> {
    trust_since(core, core.clock.now().plus_secs(-RENEWABLE_SECS)).await
}

/// Certificates that expired at `since` or later count as in use.
async fn trust_since(core: &Core, since: Timestamp) -> Result<Trust> {
    // Creates the first authority if there is none.
    signing(core).await?;
    let now = core.clock.now();
    let mut conn = core.db.read().await?;
    let authorities = store::authorities(&mut conn).await?;
    let in_use = store::roots_in_use(&mut conn, since).await?;
    let (roots, issuers) = authority::trusted(&authorities, &in_use, now);
    let certificates =
        |authorities: Vec<Authority>| authorities.into_iter().map(|one| one.certificate).collect();
    Ok(Trust {
        roots: certificates(roots),
        issuers: certificates(issuers),
    })
}

/// The reason for a revocation.
#[derive(Clone, Copy, Debug)]
pub enum RevocationReason {
    Blocked,
    ClaimedAgain,
    Released,
    TenantDeleted,
}

impl RevocationReason {
    const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "BLOCKED",
            Self::ClaimedAgain => "CLAIMED_AGAIN",
            Self::Released => "RELEASED",
            Self::TenantDeleted => "TENANT_DELETED",
        }
    }
}

/// Lets a hub that was readmitted get a first certificate again, beside those that it had: they may
/// be lost, or have expired too long ago.
pub async fn allow_first(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    store::delete_enrolment(tx, hub_uuid).await
}

/// Revokes all certificates of a hub whose credentials end, and returns their number. The hub may
/// get a first one again. The caller has locked the hub's row.
pub async fn revoke(
    tx: &mut Tx,
    hub_uuid: HubUuid,
    reason: RevocationReason,
    now: Timestamp,
) -> Result<u64> {
    store::delete_enrolment(tx, hub_uuid).await?;
    store::revoke(tx, hub_uuid, reason.name(), now).await
}

/// Revokes all certificates of a tenant's hubs, and returns their number. The caller has revoked
/// the hubs' tokens.
pub async fn revoke_all(
    tx: &mut Tx,
    scope: &Scope,
    reason: RevocationReason,
    now: Timestamp,
) -> Result<u64> {
    store::revoke_all(tx, scope, reason.name(), now).await
}

/// An authority as the command line lists it.
pub struct Listed {
    pub name: String,
    pub is_root: bool,
    pub signs_from: Timestamp,
    pub not_after: Timestamp,
    /// Whether it is the authority that issues now, or the root above it.
    pub is_signing: bool,
    /// Certificates that it issued to hubs and that have not expired.
    pub certificates: i64,
}

/// All authorities, newest first.
pub async fn list_authorities(core: &Core) -> Result<Vec<Listed>> {
    let now = core.clock.now();
    let mut conn = core.db.read().await?;
    let authorities = store::authorities(&mut conn).await?;
    let issued = store::issued_by(&mut conn, now).await?;
    let signing = authority::signing(&authorities, now);
    let signs = |one: &Authority| {
        signing.is_some_and(|signing| {
            [Some(signing.authority_uuid), signing.root_uuid].contains(&Some(one.authority_uuid))
        })
    };
    let count = |one: &Authority| {
        issued
            .iter()
            .find(|(uuid, _)| *uuid == one.authority_uuid)
            .map_or(0, |(_, count)| *count)
    };
    let listed = authorities.iter().map(|one| Listed {
        name: one.authority_uuid.to_string(),
        is_root: one.root_uuid.is_none(),
        signs_from: one.signs_from,
        not_after: one.not_after,
        is_signing: signs(one),
        certificates: count(one),
    });
    Ok(listed.collect())
}

/// Creates a new root, which starts to sign a minute later. Returns false if one already waits to
/// sign.
pub async fn rotate_root(core: &Core) -> Result<bool> {
    authority::renew(core, RenewalReason::RootRotation).await
}

/// Renews authorities before they expire, if there are any, and deletes what expired long ago.
/// Returns whether more is left to delete.
pub async fn upkeep(core: &Core, limit: i64) -> Result<bool> {
    let now = core.clock.now();
    let is_used = !store::authorities(&mut core.db.read().await?)
        .await?
        .is_empty();
    if !is_used {
        return Ok(false);
    }
    authority::renew(core, RenewalReason::Expiry).await?;
    let mut tx = core.db.begin().await?;
    let forgotten =
        store::forget_certificates(&mut tx, now.plus_secs(-RENEWABLE_SECS), limit).await?;
    // A request in progress may still sign with an authority that was just replaced.
    store::forget_authorities(&mut tx, now.plus_secs(-DAY_SECS)).await?;
    tx.commit_unaudited("expired certificates have no effect")
        .await?;
    Ok(forgotten >= limit.unsigned_abs())
}
