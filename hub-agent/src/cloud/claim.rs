//! How a hub comes by its credentials: it claims itself with a code, and renews the access token before it expires or when it is refused.
//! Credentials are on disk before they are used.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use hub_protocol::claim::{HubAccess, HubClaimRequest, HubCredentials, HubRefreshRequest, OperatingSystem};
use secrecy::{ExposeSecret, SecretString};

use super::{Access, CallError, IDEMPOTENCY_KEY, Request, Service};
use crate::identity::Credentials;
use crate::spool::Spool;

/// Why a claim came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// This code will never work: it is wrong, used up, revoked or expired.
    #[error("the claim code was refused: {0}. Ask for a new code")]
    Code(String),
    /// Someone has to change something in the service first.
    #[error("this hub cannot be claimed now: {0}")]
    Hub(String),
    /// The service did not answer or is in trouble, or this machine's disk is.
    #[error("this hub cannot be claimed yet: {0}")]
    Later(String),
}

impl Service {
    /// Claims this hub. What `spool` holds is dropped when the hub gets another owner by it.
    pub async fn claim(&self, code: &SecretString, spool: &Spool) -> Result<Credentials, ClaimError> {
        let _renewal = self.renewal.lock().await;
        let result = self.try_claim(code, spool).await;
        let mut contact = self.contact.lock().unwrap_or_else(PoisonError::into_inner);
        contact.claim_refused = result.as_ref().err().map(ToString::to_string);
        result
    }

    async fn try_claim(&self, code: &SecretString, spool: &Spool) -> Result<Credentials, ClaimError> {
        let body = HubClaimRequest {
            claim_code: code.expose_secret().trim().to_owned(),
            device_instance_id: self.device_instance_id.clone(),
            hub_identifier: self.hub_identifier.clone(),
            agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            hostname: Some(rustix::system::uname().nodename().to_string_lossy().into_owned())
                .filter(|name| !name.is_empty()),
            os: Some(operating_system()),
        };
        let later = |error: &dyn std::fmt::Display| ClaimError::Later(error.to_string());
        let body = serde_json::to_vec(&body).map_err(|error| later(&error))?;
        self.state_dir.check_room().map_err(|error| {
            ClaimError::Later(format!("credentials could not be kept in {}: {error}", self.state_dir.path().display()))
        })?;
        let key = self.state_dir.claim_key().map_err(|error| later(&error))?;
        let request = Request::post_json("/v1/hubs/claim", body).header(IDEMPOTENCY_KEY, &key);
        let answer = self.send(&request, None).await.map_err(|error| later(&error))?;
        match answer.status {
            status if (200..300).contains(&status) => {}
            // From a proxy it says nothing about the code.
            400 | 404 if answer.problem().is_some() => return Err(ClaimError::Code(answer.reason())),
            409 | 423 => return Err(ClaimError::Hub(answer.reason())),
            _ => return Err(ClaimError::Later(answer.reason())),
        }
        let credentials = Credentials::from(answer.data::<HubCredentials>().map_err(|error| later(&error))?);
        let before = match &*self.access.borrow() {
            Access::Unclaimed => None,
            Access::Granted(before) | Access::Refused { credentials: before, .. } => Some(before.tenant_uuid),
        };
        if before.is_some_and(|before| before != credentials.tenant_uuid) {
            tracing::warn!("this hub has another owner than before; what was heard for the old one is dropped");
            spool.forget().await.map_err(|error| later(&error))?;
        }
        // What was issued for the claim before is not for this one.
        self.forget_certificate();
        self.accept(credentials.clone()).map_err(|error| later(&error))?;
        tracing::info!(hub_uuid = %credentials.hub_uuid, tenant_uuid = %credentials.tenant_uuid, "this hub is claimed");
        Ok(credentials)
    }

    /// Gets a new access token. `refused` is the one that was not accepted: when it has been replaced meanwhile, nothing is asked.
    ///
    /// An answer that is lost does no harm: the service goes on accepting the token it replaced, for this call alone.
    pub async fn renew(&self, refused: Option<&SecretString>) -> Result<Credentials, CallError> {
        let _renewal = self.renewal.lock().await;
        let credentials = self.granted()?;
        if refused.is_some_and(|refused| refused.expose_secret() != credentials.access_token.expose_secret()) {
            return Ok(credentials);
        }
        let body = HubRefreshRequest { refresh_token: credentials.refresh_token.expose_secret().to_owned() };
        let body = serde_json::to_vec(&body).map_err(|error| CallError::Unreachable(error.to_string()))?;
        let answer = self.send(&Request::post_json("/v1/hubs/refresh", body), Some(&credentials.access_token)).await?;
        match answer.status {
            200 => {
                let access: HubAccess = answer.data()?;
                let renewed = Credentials {
                    access_token: access.access_token.into(),
                    expires_at: access.expires_at,
                    ..credentials
                };
                self.accept(renewed.clone()).map_err(|error| CallError::Unreachable(error.to_string()))?;
                tracing::debug!(expires_at = %renewed.expires_at, "the access token is renewed");
                Ok(renewed)
            }
            // A proxy's own refusal, or one of the certificate, must not cost the hub its credentials.
            401 | 403 if answer.problem().is_some() && answer.certificate_trouble().is_none() => {
                let reason = answer.reason();
                let mut contact = self.contact.lock().unwrap_or_else(PoisonError::into_inner);
                if !std::mem::replace(&mut contact.refusal_said, true) {
                    tracing::error!(
                        hub_uuid = %credentials.hub_uuid, reason,
                        "the service no longer lets this hub in; claim it again (hub-agent claim). What is heard is kept meanwhile"
                    );
                }
                drop(contact);
                self.access.send_replace(Access::Refused { credentials, reason });
                Err(CallError::NoAccess)
            }
            _ => Err(CallError::Unreachable(answer.reason())),
        }
    }

    /// Writes the credentials, or remembers that they have yet to be.
    pub(super) fn save(&self, credentials: &Credentials) -> std::io::Result<()> {
        let saved = self.state_dir.save_credentials(credentials);
        let unsaved_before = self.unsaved.swap(saved.is_err(), Ordering::Relaxed);
        match &saved {
            Err(error) if !unsaved_before => {
                tracing::error!(
                    %error, dir = %self.state_dir.path().display(),
                    "the hub's credentials cannot be written; until they are, a restart would lose them. Make room on the disk"
                );
            }
            Ok(()) if unsaved_before => tracing::info!("the hub's credentials are written"),
            _ => {}
        }
        saved
    }

    /// On disk first: a token that is used and then lost in a crash would strand the hub.
    fn accept(&self, credentials: Credentials) -> std::io::Result<()> {
        let saved = self.save(&credentials);
        self.contact.lock().unwrap_or_else(PoisonError::into_inner).refusal_said = false;
        // In memory all the same: the old ones are refused from now on.
        self.access.send_replace(Access::Granted(credentials));
        saved
    }
}

fn operating_system() -> OperatingSystem {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| {
        release
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .map(|value| value.trim_matches('"').to_owned())
    };
    OperatingSystem {
        name: field("ID").or_else(|| Some("linux".to_owned())),
        version: field("VERSION_ID"),
        // As releases name it: the program itself knows only the family, such as `arm`.
        arch: Some(rustix::system::uname().machine().to_string_lossy().into_owned()),
    }
}
