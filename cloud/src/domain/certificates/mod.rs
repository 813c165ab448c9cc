//! Client certificates of hubs, and the authorities that issue them. A hub's certificate names the hub and nothing else, whatever its request asked for;
//! it is worth something only together with the hub's token, and ends with the hub's credentials. Private keys of hubs are never here.

mod authority;
mod csr;
pub mod http;
mod store;
pub mod x509;

use hub_protocol::certificate::{CertificateIssueRequest, CertificateIssueResponse};
use hub_protocol::{HubUuid, Timestamp};
use serde_json::json;

use crate::app::App;
use crate::authn::hub::Hub;
use crate::authn::invalid_token;
use crate::authz::Scope;
use crate::db::{Conn, Tx};
use crate::domain::audit::Audit;
use crate::domain::{hubs, tenants};
use crate::error::{Error, Result};
use authority::Wanted;
use store::{Authority, Issued};
use x509::Validity;

const DAY_SECS: i64 = 24 * 3600;
/// How long a hub's certificate is valid, all in all.
const HUB_SECS: i64 = 90 * DAY_SECS;
/// Clocks differ: a certificate begins this long before it is made.
const BACKDATED_SECS: i64 = 300;
/// A hub renews every two months, and asks again when an answer was lost.
const MAX_ISSUED_A_DAY: usize = 20;
/// An expired certificate stays on record this long.
const KEPT_SECS: i64 = 30 * DAY_SECS;

/// Issues a certificate for the key of the request. Those from before stay valid: the hub may not receive this one.
pub async fn issue(app: &App, hub: &Hub, request: &CertificateIssueRequest) -> Result<CertificateIssueResponse> {
    let key = csr::requested_key(&request.csr)?;
    let signing = signing(app).await?;
    let now = app.clock.now();
    let not_before = now.plus_secs(-BACKDATED_SECS);
    let validity = Validity::seconds(not_before, not_before.plus_secs(HUB_SECS).min(signing.not_after));
    let signer = authority::open(app, &signing)?;
    let (serial_number, certificate) = x509::make_hub_certificate(hub.hub_uuid, &key, validity, &signer)?;

    let scope = Scope::of_hub(hub);
    let mut tx = app.db.begin().await?;
    // Before the hub, as whoever deletes a tenant takes the two.
    if !tenants::hold(&mut tx, hub.tenant_uuid).await? {
        return Err(invalid_token());
    }
    // Whoever takes the hub's credentials away meanwhile is before this, or finds the certificate and revokes it.
    if hubs::lock_token(&mut tx, hub.hub_uuid).await? != Some(hub.token_id) {
        return Err(invalid_token());
    }
    check_limit(&mut tx, hub.hub_uuid, now).await?;
    let Validity { not_before, not_after } = validity;
    let authority_uuid = signing.authority_uuid;
    let issued =
        Issued { serial_number: &serial_number, authority_uuid, hub_uuid: hub.hub_uuid, not_before, not_after };
    store::insert_certificate(&mut tx, &scope, &issued, now).await?;
    let detail = json!({"serialNumber": serial_number, "notAfter": not_after});
    tx.commit(Audit::new(&scope, "hub_certificate.issue", hub.hub_uuid, now).with(detail)).await?;
    Ok(CertificateIssueResponse { certificate, chain: signing.certificate, serial_number, not_before, not_after })
}

async fn check_limit(tx: &mut Tx, hub_uuid: HubUuid, now: Timestamp) -> Result<()> {
    let limit = i64::try_from(MAX_ISSUED_A_DAY).unwrap_or(i64::MAX);
    let issued = store::issued_since(tx, hub_uuid, now.plus_secs(-DAY_SECS), limit).await?;
    match issued.first() {
        Some(oldest) if issued.len() >= MAX_ISSUED_A_DAY => {
            let message =
                format!("a hub may have {MAX_ISSUED_A_DAY} certificates issued in 24 hours; use the last one");
            let wait_secs = oldest.as_secs() + DAY_SECS - now.as_secs();
            Err(Error::too_many_requests(message, wait_secs.unsigned_abs()))
        }
        _ => Ok(()),
    }
}

/// The authority that signs now; the first ones are made where there is none.
async fn signing(app: &App) -> Result<Authority> {
    for _ in 0..2 {
        let authorities = store::authorities(&mut app.db.read().await?).await?;
        if let Some(signing) = authority::signing(&authorities, app.clock.now()) {
            return Ok(signing.clone());
        }
        authority::renew(app, Wanted::Living).await?;
    }
    let message = "the authority that issues certificates is being replaced; try again in a minute";
    Err(Error::unavailable("CERTIFICATES_UNAVAILABLE", message))
}

/// Whom hubs' certificates are checked against, in PEM form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The newest first; at least one.
    pub roots: Vec<String>,
    /// Those below the roots that sign hubs' certificates, or have signed some.
    pub issuers: Vec<String>,
}

/// The roots that count: the one that signs, the one that is about to, and those with a certificate below them that has not expired.
pub async fn trust(app: &App) -> Result<Trust> {
    // There is to be one.
    signing(app).await?;
    let now = app.clock.now();
    let mut conn = app.db.read().await?;
    let authorities = store::authorities(&mut conn).await?;
    let in_use = store::roots_in_use(&mut conn, now).await?;
    let (roots, issuers) = authority::trusted(&authorities, &in_use, now);
    let certificates = |authorities: Vec<Authority>| authorities.into_iter().map(|one| one.certificate).collect();
    Ok(Trust { roots: certificates(roots), issuers: certificates(issuers) })
}

/// Whether the certificate was issued to this hub and not revoked since.
pub async fn is_in_force(conn: &mut Conn, serial_number: &str, hub_uuid: HubUuid) -> Result<bool> {
    store::is_in_force(conn, serial_number, hub_uuid).await
}

/// Why certificates are revoked.
#[derive(Clone, Copy, Debug)]
pub enum Because {
    Blocked,
    ClaimedAgain,
    TenantDeleted,
}

impl Because {
    const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "BLOCKED",
            Self::ClaimedAgain => "CLAIMED_AGAIN",
            Self::TenantDeleted => "TENANT_DELETED",
        }
    }
}

/// Revokes all certificates of a hub whose credentials end; answers how many. The caller holds the hub's row.
pub async fn revoke(tx: &mut Tx, hub_uuid: HubUuid, because: Because, now: Timestamp) -> Result<u64> {
    store::revoke(tx, hub_uuid, because.name(), now).await
}

/// Revokes all certificates of a tenant's hubs; answers how many. The caller has revoked the hubs' tokens.
pub async fn revoke_all(tx: &mut Tx, scope: &Scope, because: Because, now: Timestamp) -> Result<u64> {
    store::revoke_all(tx, scope, because.name(), now).await
}

/// An authority, for whoever runs the service.
pub struct Listed {
    pub name: String,
    pub is_root: bool,
    pub signs_from: Timestamp,
    pub not_after: Timestamp,
    /// Whether it is the one that issues now, or the root above that.
    pub is_signing: bool,
    /// Certificates of hubs that it issued and that have not expired.
    pub certificates: i64,
}

/// All authorities there are, the newest first.
pub async fn list_authorities(app: &App) -> Result<Vec<Listed>> {
    let now = app.clock.now();
    let mut conn = app.db.read().await?;
    let authorities = store::authorities(&mut conn).await?;
    let issued = store::issued_by(&mut conn, now).await?;
    let signing = authority::signing(&authorities, now);
    let signs = |one: &Authority| {
        signing.is_some_and(|signing| {
            [Some(signing.authority_uuid), signing.root_uuid].contains(&Some(one.authority_uuid))
        })
    };
    let count =
        |one: &Authority| issued.iter().find(|(uuid, _)| *uuid == one.authority_uuid).map_or(0, |(_, count)| *count);
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

/// Makes a new root, which takes over a minute later; answers false when one is waiting to already.
pub async fn rotate_root(app: &App) -> Result<bool> {
    authority::renew(app, Wanted::NewRoot).await
}

/// Renews authorities before they end, if there are any, and forgets what ended long ago. Answers whether there is more to forget.
pub async fn upkeep(app: &App, limit: i64) -> Result<bool> {
    let now = app.clock.now();
    let is_used = !store::authorities(&mut app.db.read().await?).await?.is_empty();
    if !is_used {
        return Ok(false);
    }
    authority::renew(app, Wanted::Living).await?;
    let mut tx = app.db.begin().await?;
    let forgotten = store::forget_certificates(&mut tx, now.plus_secs(-KEPT_SECS), limit).await?;
    // A request that is under way may still sign with one that has just been replaced.
    store::forget_authorities(&mut tx, now.plus_secs(-DAY_SECS)).await?;
    tx.commit_unaudited("what has expired is worth nothing to anybody").await?;
    Ok(forgotten >= limit.unsigned_abs())
}
