//! Keeps a client certificate in force: the key is generated here and never leaves the hub, the
//! service issues the certificate, and it is renewed in time. A hub gets a new one with each claim.
//! A service that requires certificates issues another one only to a hub that shows its last one,
//! or that repeats the request for its first one with the same key.

use std::io;
use std::time::Duration;

use hub_agent::durable;
use hub_protocol::Timestamp;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::certificate::{self, Certificate, CertificateFile};
use super::http::{Answer, CallError, Request, http_client};
use super::service::{Access, Service};
use crate::backoff::Backoff;
use crate::identity::{Credentials, StateDir};

/// The time between two requests to a service that issues no certificates.
const ASK_EVERY: Duration = Duration::from_secs(86_400);

/// How often the time is compared with the certificate's: this also finds a clock that was set.
const CHECK_EVERY: Duration = Duration::from_secs(3_600);

/// The clock of a machine without a battery is known soon, or never.
const CLOCK_EVERY: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct IssueRequest {
    csr: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IssueResponse {
    certificate: String,
    chain: String,
    serial_number: String,
    not_before: Timestamp,
    not_after: Timestamp,
}

/// Keeps a certificate in force while the hub has access. Never ends.
pub async fn keep_certificate(service: &Service) {
    let mut access = service.access();
    let mut certificate = service.certificate();
    let mut backoff = Backoff::new(Duration::from_secs(30), Duration::from_secs(6 * 3_600));
    let mut not_before = Instant::now();
    loop {
        let now = access.borrow_and_update().clone();
        let known = certificate.borrow_and_update().clone();
        let rest = match &now {
            Access::Granted(_) if known.is_none() && Instant::now() < not_before => {
                not_before.saturating_duration_since(Instant::now())
            }
            Access::Granted(credentials) => {
                let replaces_refused = service.take_certificate_refused();
                let rest =
                    renew_if_due(service, credentials, known, &mut backoff, replaces_refused).await;
                if replaces_refused {
                    // A service may refuse every certificate.
                    not_before = Instant::now() + backoff.next(None);
                }
                rest
            }
            Access::Unclaimed | Access::Refused { .. } => CHECK_EVERY,
        };
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            () = owner_changed(&mut access, &now) => not_before = Instant::now(),
            // A claim, or a refused certificate, removes it.
            _ = certificate.changed() => {}
        }
    }
}

async fn renew_if_due(
    service: &Service,
    credentials: &Credentials,
    known: Option<Certificate>,
    backoff: &mut Backoff,
    replaces_refused: bool,
) -> Duration {
    if !service.clock.offset().known {
        return CLOCK_EVERY;
    }
    let now = service.clock.now();
    if let Some(known) = known.filter(|known| known.is_of(credentials) && known.renew_at() > now) {
        let left_secs = u64::try_from(known.renew_at().as_secs() - now.as_secs()).unwrap_or(0);
        return Duration::from_secs(left_secs.max(1)).min(CHECK_EVERY);
    }
    match enrol(service, credentials).await {
        Ok(Some(certificate)) => {
            if !replaces_refused {
                backoff.reset();
            }
            tracing::info!(not_after = %certificate.not_after, "this hub has a new client certificate");
            service.use_certificate(certificate);
            Duration::ZERO
        }
        Ok(None) => ASK_EVERY,
        Err(reason) => {
            tracing::debug!(
                reason,
                "no client certificate was issued; it is requested again"
            );
            backoff.next(None)
        }
    }
}

/// The key of the next certificate. It is on disk before it is used: should the answer be lost, the
/// request is repeated with the same key.
async fn next_key(state_dir: &StateDir) -> io::Result<KeyPair> {
    state_dir
        .on_disk(|path| {
            let stored = std::fs::read_to_string(path.join(certificate::NEXT_KEY_FILE));
            if let Some(key) = stored.ok().and_then(|text| KeyPair::from_pem(&text).ok()) {
                return Ok(key);
            }
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(io::Error::other)?;
            durable::replace(
                path,
                certificate::NEXT_KEY_FILE,
                key.serialize_pem().as_bytes(),
            )?;
            Ok(key)
        })
        .await
}

/// Sends the request, showing a certificate that was set aside: one that has expired may still get
/// the hub another one. If the service does not accept it, the request is sent without it.
async fn request_certificate(
    service: &Service,
    credentials: &Credentials,
    request: &Request,
) -> Result<Answer, CallError> {
    if let Some(set_aside) = service.set_aside_certificate()
        && let Ok(answer) = service
            .call_showing(Some(&set_aside), credentials, request)
            .await
        && answer.certificate_error().is_none()
    {
        return Ok(answer);
    }
    service.call_showing(None, credentials, request).await
}

/// Requests a certificate for a new key and writes both to disk. `None` if this service issues
/// none.
async fn enrol(
    service: &Service,
    credentials: &Credentials,
) -> Result<Option<Certificate>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let key = next_key(&service.state_dir)
        .await
        .map_err(|error| text(&error))?;
    // The service decides the subject.
    let csr = CertificateParams::new(vec![credentials.hub_uuid.to_string()])
        .and_then(|params| params.serialize_request(&key)?.pem())
        .map_err(|error| text(&error))?;
    let body = serde_json::to_vec(&IssueRequest { csr }).map_err(|error| text(&error))?;
    let request = Request::post_json(
        format!("/v1/hubs/{}/certificates", credentials.hub_uuid),
        body,
    );
    let answer = match request_certificate(service, credentials, &request).await {
        Ok(answer) if matches!(answer.status, 404 | 405 | 501) => return Ok(None),
        Ok(answer) if answer.is_success() => answer,
        Ok(answer) => {
            if answer.certificate_error().is_some() {
                service.set_certificate_refused(Some(answer.reason()));
            }
            return Err(answer.reason());
        }
        Err(error @ (CallError::NoAccess | CallError::Unreachable(_))) => return Err(text(&error)),
    };
    let issued: IssueResponse = answer.data().map_err(|error| text(&error))?;
    let pem = [key.serialize_pem(), issued.certificate, issued.chain]
        .map(|part| part.trim().to_owned())
        .join("\n");
    let file = CertificateFile {
        hub_uuid: credentials.hub_uuid,
        tenant_uuid: credentials.tenant_uuid,
        serial_number: issued.serial_number,
        not_before: issued.not_before,
        not_after: issued.not_after,
        pem: format!("{pem}\n"),
    };
    let json = serde_json::to_vec_pretty(&file).map_err(|error| text(&error))?;
    let certificate = Certificate::from(file);
    let unusable = |why: &str| {
        Err(format!(
            "the service issued a certificate that cannot be used: {why}"
        ))
    };
    if certificate.renew_at() <= service.clock.now() {
        return unusable("it expires too soon");
    }
    let Some(identity) = certificate.identity() else {
        return unusable("it is not PEM");
    };
    if service.url().scheme() == "https"
        && let Err(error) =
            http_client(&service.args, service.url(), Some(identity), &service.clock)
    {
        // The certificate may be of another key.
        return unusable(&error.to_string());
    }
    service
        .state_dir
        .replace(certificate::FILE, json)
        .await
        .map_err(|error| text(&error))?;
    if let Err(error) = service.state_dir.remove(certificate::NEXT_KEY_FILE).await {
        tracing::warn!(%error, "the next client certificate will have the same key");
    }
    Ok(Some(certificate))
}

/// Waits until the access changes in any other way than by a renewed token.
async fn owner_changed(access: &mut watch::Receiver<Access>, before: &Access) {
    let owner = |access: &Access| match access {
        Access::Granted(credentials) => Some((
            credentials.hub_uuid,
            credentials.refresh_token.expose_secret().to_owned(),
        )),
        Access::Unclaimed | Access::Refused { .. } => None,
    };
    let before = owner(before);
    // The sender lives as long as the service.
    let _ = access.wait_for(|now| owner(now) != before).await;
}
