//! The hub's client certificate: a key that is made here and never leaves, a certificate of the service for it, renewed in time.
//! Both are one file that only its owner reads, bound to the hub and owner they were issued to. A hub that is claimed anew gets new ones.

use std::io::ErrorKind;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{Access, Answer, CallError, Request, Service, http_client};
use crate::backoff::Backoff;
use crate::identity::{Credentials, StateDir};

const FILE: &str = "client-certificate.json";

/// The service's word where it was shown none.
const NONE_SHOWN: &str = "CLIENT_CERTIFICATE_REQUIRED";

/// A service that issues none is asked again after this; when one it refused is tried again.
const ASK_EVERY: Duration = Duration::from_secs(86_400);

/// How often time is compared with the certificate's: also finds a clock that was set.
const LOOK_EVERY: Duration = Duration::from_secs(3_600);

/// The clock of a machine without a battery is soon known, or never.
const CLOCK_EVERY: Duration = Duration::from_secs(10);

/// A certificate and its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    hub_uuid: HubUuid,
    tenant_uuid: TenantUuid,
    not_before: Timestamp,
    not_after: Timestamp,
    /// Key, certificate and chain, as TLS takes them.
    pem: SecretString,
}

/// The file's content.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CertificateFile {
    hub_uuid: HubUuid,
    tenant_uuid: TenantUuid,
    serial_number: String,
    not_before: Timestamp,
    not_after: Timestamp,
    pem: String,
}

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

impl Certificate {
    /// The one on disk, if it is of these credentials. One that is damaged is as good as none.
    pub(super) fn load(state_dir: &StateDir, credentials: &Credentials) -> Option<Self> {
        let bytes = std::fs::read(state_dir.path().join(FILE)).ok()?;
        let Ok(file) = serde_json::from_slice::<CertificateFile>(&bytes) else {
            tracing::warn!("the file of the client certificate is damaged; another one is asked for");
            return None;
        };
        let certificate = Self {
            hub_uuid: file.hub_uuid,
            tenant_uuid: file.tenant_uuid,
            not_before: file.not_before,
            not_after: file.not_after,
            pem: file.pem.into(),
        };
        certificate.is_of(credentials).then_some(certificate)
    }

    fn is_of(&self, credentials: &Credentials) -> bool {
        (self.hub_uuid, self.tenant_uuid) == (credentials.hub_uuid, credentials.tenant_uuid)
    }

    /// When two thirds of its life are over.
    fn renew_at(&self) -> Timestamp {
        let life_micros = self.not_after.as_micros().saturating_sub(self.not_before.as_micros());
        self.not_before.plus_micros(life_micros / 3 * 2)
    }

    pub(super) fn identity(&self) -> Option<reqwest::Identity> {
        reqwest::Identity::from_pem(self.pem.expose_secret().as_bytes())
            .inspect_err(|error| tracing::warn!(%error, "the client certificate cannot be used"))
            .ok()
    }
}

impl Service {
    /// Keeps a certificate in force for as long as the hub has access. Never ends.
    pub async fn keep_certificate(&self) {
        let mut access = self.access();
        let mut certificate = self.certificate.subscribe();
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
                    let instead_of_refused = self.certificate_refused.swap(false, Ordering::Relaxed);
                    let rest = self.look_after_certificate(credentials, known, &mut backoff, instead_of_refused).await;
                    if instead_of_refused {
                        // Of a service that refuses every one, no more than now and then.
                        not_before = Instant::now() + backoff.next(None);
                    }
                    rest
                }
                Access::Unclaimed | Access::Refused { .. } => LOOK_EVERY,
            };
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = changed_owner(&mut access, &now) => not_before = Instant::now(),
                // A claim, or a certificate that is not accepted, throws it away.
                _ = certificate.changed() => {}
            }
        }
    }

    async fn look_after_certificate(
        &self,
        credentials: &Credentials,
        known: Option<Certificate>,
        backoff: &mut Backoff,
        instead_of_refused: bool,
    ) -> Duration {
        if !self.clock.offset().known {
            return CLOCK_EVERY;
        }
        let now = self.clock.now();
        if let Some(known) = known.filter(|known| known.is_of(credentials) && known.renew_at() > now) {
            let left_secs = u64::try_from(known.renew_at().as_secs() - now.as_secs()).unwrap_or(0);
            return Duration::from_secs(left_secs.max(1)).min(LOOK_EVERY);
        }
        match self.enrol(credentials).await {
            Ok(Some(certificate)) => {
                if !instead_of_refused {
                    backoff.reset();
                }
                tracing::info!(not_after = %certificate.not_after, "this hub has a client certificate");
                self.use_certificate(Some(certificate));
                Duration::ZERO
            }
            Ok(None) => ASK_EVERY,
            Err(reason) => {
                tracing::debug!(reason, "no client certificate was issued; it is asked for again");
                backoff.next(None)
            }
        }
    }

    /// Asks for a certificate for a new key, and puts both on disk. `None` when this service issues none.
    async fn enrol(&self, credentials: &Credentials) -> Result<Option<Certificate>, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| said(&error))?;
        // The service says what the subject is.
        let csr = CertificateParams::new(vec![credentials.hub_uuid.to_string()])
            .and_then(|params| params.serialize_request(&key)?.pem())
            .map_err(|error| said(&error))?;
        let body = serde_json::to_vec(&IssueRequest { csr }).map_err(|error| said(&error))?;
        let request = Request::post_json(format!("/v1/hubs/{}/certificates", credentials.hub_uuid), body);
        let answer = match self.call_as(credentials, &request).await {
            Ok(answer) if matches!(answer.status, 404 | 405 | 501) => return Ok(None),
            Ok(answer) if answer.is_success() => answer,
            Ok(answer) => return Err(answer.reason()),
            Err(error @ (CallError::NoAccess | CallError::Unreachable(_))) => return Err(said(&error)),
        };
        let issued: IssueResponse = answer.data().map_err(|error| said(&error))?;
        let pem = [key.serialize_pem(), issued.certificate, issued.chain].map(|part| part.trim().to_owned()).join("\n");
        let file = CertificateFile {
            hub_uuid: credentials.hub_uuid,
            tenant_uuid: credentials.tenant_uuid,
            serial_number: issued.serial_number,
            not_before: issued.not_before,
            not_after: issued.not_after,
            pem: format!("{pem}\n"),
        };
        let certificate = Certificate {
            hub_uuid: file.hub_uuid,
            tenant_uuid: file.tenant_uuid,
            not_before: file.not_before,
            not_after: file.not_after,
            pem: file.pem.clone().into(),
        };
        let unusable = |why: &str| Err(format!("the service issued a certificate that cannot be used: {why}"));
        if certificate.renew_at() <= self.clock.now() {
            return unusable("it is as good as over");
        }
        let Some(identity) = certificate.identity() else { return unusable("it is not PEM") };
        if self.base.scheme() == "https"
            && let Err(error) = http_client(&self.args, &self.base, Some(identity))
        {
            // It may be of another key.
            return unusable(&error.to_string());
        }
        let json = serde_json::to_vec_pretty(&file).map_err(|error| said(&error))?;
        self.state_dir.replace(FILE, &json).map_err(|error| said(&error))?;
        Ok(Some(certificate))
    }

    /// Connects with this certificate from now on, or without one.
    fn use_certificate(&self, certificate: Option<Certificate>) {
        let identity = certificate.as_ref().and_then(Certificate::identity);
        if self.base.scheme() == "https" {
            match http_client(&self.args, &self.base, identity) {
                Ok(http) => *self.http.lock().unwrap_or_else(PoisonError::into_inner) = http,
                Err(error) => tracing::warn!(%error, "the client certificate cannot be used"),
            }
        }
        self.certificate.send_replace(certificate);
        self.certificates.fetch_add(1, Ordering::Release);
    }

    /// Drops the certificate that the service refused with this word, while `number` counted those in use, and has another one asked for.
    /// Whether it is worth asking the service again: another one, or none, is in use by now.
    pub(super) fn drop_refused_certificate(&self, number: u32, code: &str) -> bool {
        let is_in_use = self.certificates.load(Ordering::Acquire) == number && self.certificate_not_after().is_some();
        if is_in_use && code != NONE_SHOWN {
            tracing::warn!(code, "the service refuses this hub's client certificate; another one is asked for");
            self.certificate_refused.store(true, Ordering::Relaxed);
            self.forget_certificate();
        }
        self.certificates.load(Ordering::Acquire) != number
    }

    /// An answer to the same request without the certificate, where there is one: it is then the certificate that is not accepted, and
    /// another one is asked for.
    pub(super) async fn try_without_certificate(
        &self,
        request: &Request,
        token: Option<&SecretString>,
    ) -> Option<Answer> {
        if self.base.scheme() != "https" || self.certificate_not_after().is_none() {
            return None;
        }
        let http = http_client(&self.args, &self.base, None).ok()?;
        let answer = self.exchange(&http, request, token).await.ok()?;
        tracing::warn!("the service does not accept this hub's client certificate; another one is asked for");
        self.certificate_refused.store(true, Ordering::Relaxed);
        self.forget_certificate();
        Some(answer)
    }

    /// Throws the certificate away.
    pub(super) fn forget_certificate(&self) {
        self.use_certificate(None);
        match std::fs::remove_file(self.state_dir.path().join(FILE)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(%error, "an old client certificate cannot be removed");
            }
            _ => {}
        }
    }

    /// Until when the certificate in use is good.
    pub fn certificate_not_after(&self) -> Option<Timestamp> {
        self.certificate.borrow().as_ref().map(|certificate| certificate.not_after)
    }
}

/// Waits until the access is not what it was, but for a token that was renewed.
async fn changed_owner(access: &mut watch::Receiver<Access>, before: &Access) {
    let owner = |access: &Access| match access {
        Access::Granted(credentials) => {
            Some((credentials.hub_uuid, credentials.refresh_token.expose_secret().to_owned()))
        }
        Access::Unclaimed | Access::Refused { .. } => None,
    };
    let before = owner(before);
    // The sender lives as long as the service.
    let _ = access.wait_for(|now| owner(now) != before).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_renewed_at_two_thirds_of_its_life() {
        let certificate = Certificate {
            hub_uuid: HubUuid::new(),
            tenant_uuid: TenantUuid::new(),
            not_before: "2026-11-01T00:00:00Z".parse().unwrap(),
            not_after: "2027-01-30T00:00:00Z".parse().unwrap(),
            pem: "secret".to_owned().into(),
        };
        assert_eq!(certificate.renew_at(), "2026-12-31T00:00:00Z".parse().unwrap());
        assert!(!format!("{certificate:?}").contains("secret"));
    }
}
