//! The client certificate of a hub, where the service terminates TLS itself and requests one. It
//! does not replace the hub's token, and it must belong to the same hub. The TLS handshake checks
//! that it was issued below one of the roots. A connection may outlive its certificate, so expiry
//! and revocation are checked for each request.

use std::sync::Arc;

use axum::http::request::Parts;
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::config::ClientCertificates;
use hub_protocol::{HubUuid, Timestamp};

use super::store;

/// What the service reads from a client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateInfo {
    /// In hex, as recorded when the certificate was issued.
    pub serial_number: String,
    /// The hub named by the common name, if any.
    pub hub_uuid: Option<HubUuid>,
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

/// Reads a certificate in DER form. Does not check its signature.
pub fn read(der: &[u8]) -> Option<CertificateInfo> {
    let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
    let hub_uuid = certificate
        .subject()
        .iter_common_name()
        .next()
        .and_then(|name| name.as_str().ok()?.parse().ok());
    let time = |time: x509_parser::time::ASN1Time| {
        Timestamp::from_micros(time.timestamp().saturating_mul(1_000_000))
    };
    let validity = certificate.validity();
    Some(CertificateInfo {
        serial_number: hex::encode(certificate.raw_serial()),
        hub_uuid,
        not_before: time(validity.not_before),
        not_after: time(validity.not_after),
    })
}

/// The client certificate of a connection, attached to each of its requests.
#[derive(Clone, Debug)]
pub struct ClientCertificate(pub Option<Arc<CertificateInfo>>);

/// For how long an expired certificate can still be renewed: as long as a hub's refresh token lives
/// by default.
pub const RENEWABLE_SECS: i64 = 30 * 24 * 3600;

/// The certificate that the request's client presented, if any.
pub fn presented(parts: &Parts) -> Option<Arc<CertificateInfo>> {
    parts
        .extensions
        .get::<ClientCertificate>()
        .and_then(|presented| presented.0.clone())
}

/// Returns 401 unless the hub presents its own certificate and that is in force, or presents none
/// and needs none.
pub async fn check(parts: &Parts, core: &Core, hub_uuid: HubUuid) -> Result<()> {
    let Some(presented) = presented(parts) else {
        return match core.config.client_certificates {
            ClientCertificates::Required => {
                let message = "this service requires a client certificate from hubs; request one, and connect with it";
                Err(Error::unauthorized("CLIENT_CERTIFICATE_REQUIRED", message))
            }
            ClientCertificates::Off | ClientCertificates::Optional => Ok(()),
        };
    };
    check_own(&presented, hub_uuid)?;
    if presented.not_after <= core.clock.now() {
        let message = "the client certificate has expired; request a new one, and connect with it";
        return Err(Error::unauthorized("CLIENT_CERTIFICATE_EXPIRED", message));
    }
    check_unrevoked(&mut core.db.read().await?, &presented, hub_uuid).await
}

/// Returns 401 unless the hub presents a certificate that it may renew: its own, not revoked, and
/// in force or expired lately.
pub async fn check_renewable(
    conn: &mut Conn,
    presented: Option<&CertificateInfo>,
    hub_uuid: HubUuid,
    now: Timestamp,
) -> Result<()> {
    let Some(presented) = presented else {
        let message = "this hub got a client certificate after its last claim; connect with it to get another one; if \
                       its key is lost, have it readmitted (POST /tenant/hubs/{hubUuid}/readmit), or claim the hub again";
        return Err(Error::unauthorized("CLIENT_CERTIFICATE_REQUIRED", message));
    };
    check_own(presented, hub_uuid)?;
    if presented.not_after.plus_secs(RENEWABLE_SECS) <= now {
        let message = "the client certificate expired too long ago to be renewed; have the hub readmitted, or claim it again";
        return Err(Error::unauthorized("CLIENT_CERTIFICATE_EXPIRED", message));
    }
    check_unrevoked(conn, presented, hub_uuid).await
}

fn check_own(presented: &CertificateInfo, hub_uuid: HubUuid) -> Result<()> {
    if presented.hub_uuid != Some(hub_uuid) {
        let message = "the client certificate belongs to another hub than the access token";
        return Err(Error::unauthorized(
            "CLIENT_CERTIFICATE_OF_OTHER_HUB",
            message,
        ));
    }
    Ok(())
}

async fn check_unrevoked(
    conn: &mut Conn,
    presented: &CertificateInfo,
    hub_uuid: HubUuid,
) -> Result<()> {
    match store::is_certificate_in_force(conn, &presented.serial_number, hub_uuid).await? {
        true => Ok(()),
        false => {
            let message =
                "the client certificate has been revoked; request a new one, and connect with it";
            Err(Error::unauthorized("CLIENT_CERTIFICATE_REVOKED", message))
        }
    }
}
