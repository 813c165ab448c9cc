//! Claims the hub: exchanges a claim code for the hub's credentials.

use std::path::Path;
use std::time::Duration;

use hub_protocol::claim::{HubClaimRequest, HubCredentials, OperatingSystem};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};

use super::http::{Answer, CallError, IDEMPOTENCY_KEY, Request};
use super::service::{Access, Service};
use crate::identity::Credentials;
use crate::moved;
use crate::os_release::OsRelease;
use crate::spool::Spool;

/// Why a claim failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The code will never work: it is wrong, used, revoked or expired.
    #[error("the claim code was refused: {0}. Ask for a new code")]
    Code(String),
    /// An operator has to change something in the service first.
    #[error("this hub cannot be claimed now: {0}")]
    Hub(String),
    /// The service did not answer or failed, or this machine's disk did.
    #[error("this hub cannot be claimed yet: {reason}")]
    Later {
        reason: String,
        /// How long the service accepts no further claim.
        retry_after: Option<Duration>,
    },
}

/// Claims this hub. The request proves that the hub is the one that was claimed before, if it was:
/// with its claim key, which lasts as long as its state directory, and its refresh token. If the
/// hub's owner changes, the content of `spool` is dropped.
pub async fn claim(
    service: &Service,
    code: &SecretString,
    spool: &Spool,
) -> Result<Credentials, ClaimError> {
    let _renewal = service.renewal.lock().await;
    let result = try_claim(service, code, spool).await;
    service.set_claim_refused(result.as_ref().err().map(ToString::to_string));
    result
}

async fn try_claim(
    service: &Service,
    code: &SecretString,
    spool: &Spool,
) -> Result<Credentials, ClaimError> {
    // Credentials that are in force are replaced for the hub that has them only. Those of another
    // service are not among them: they are shown to nobody else.
    let held = match &*service.access().borrow() {
        Access::Unclaimed => None,
        Access::Granted(credentials) | Access::Refused { credentials, .. } => {
            Some(credentials.clone())
        }
    };
    let refresh_token = held.as_ref().map(|held| &held.refresh_token);
    let request = request(service, code, refresh_token).await?;
    let answer = service
        .send(&request, None)
        .await
        .map_err(|error| later(&error))?;
    let credentials = issued(&answer, service.url())?;
    let has_new_owner = held.is_some_and(|before| before.tenant_uuid != credentials.tenant_uuid);
    if has_new_owner || service.has_foreign_credentials() {
        tracing::warn!("this hub has a new owner; the records of the previous owner are dropped");
        spool.forget().await.map_err(|error| later(&error))?;
    }
    // The certificate of the previous claim is not valid for this one.
    service.remove_certificate().await;
    service
        .accept(credentials.clone())
        .await
        .map_err(|error| later(&error))?;
    // The hub belongs to the configured service now, wherever a job had moved it before.
    if service.moved_from().is_none()
        && let Err(error) = service.state_dir.remove(moved::FILE).await
    {
        tracing::warn!(%error, "the file of an earlier move cannot be removed");
    }
    tracing::info!(hub_uuid = %credentials.hub_uuid, tenant_uuid = %credentials.tenant_uuid, "this hub is claimed");
    Ok(credentials)
}

/// Whether the service at `to` answers, over TLS that this hub trusts where it is not near. Nothing
/// of the hub is sent.
pub async fn reach_elsewhere(service: &Service, to: &Url) -> Result<(), String> {
    // Refused without credentials, in the service's format: a proxy may forward only what hubs
    // need.
    match service.send_elsewhere(to, &Request::get("/v1/test")).await {
        Ok(answer) if answer.problem().is_some() && answer.status < 500 => Ok(()),
        Ok(answer) => Err(answer.reason()),
        Err(error @ (CallError::NoAccess | CallError::Unreachable(_))) => Err(error.to_string()),
    }
}

/// Claims this hub at another service, with its claim key, and nothing of the service in force.
/// Stores nothing: the same claim can be repeated.
pub async fn claim_elsewhere(
    service: &Service,
    to: &Url,
    code: &SecretString,
) -> Result<Credentials, ClaimError> {
    let request = request(service, code, None).await?;
    let answer = service
        .send_elsewhere(to, &request)
        .await
        .map_err(|error| later(&error))?;
    issued(&answer, to)
}

fn later(error: &dyn std::fmt::Display) -> ClaimError {
    ClaimError::Later {
        reason: error.to_string(),
        retry_after: None,
    }
}

/// The request for a claim. A service that accepts it uses the code up, so it is sent only while
/// its answer could be written.
async fn request(
    service: &Service,
    code: &SecretString,
    refresh_token: Option<&SecretString>,
) -> Result<Request, ClaimError> {
    let body = HubClaimRequest {
        claim_code: code.expose_secret().trim().to_owned(),
        device_instance_id: service.device_instance_id().to_owned(),
        hub_identifier: service.hub_identifier.clone(),
        agent_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        hostname: Some(
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
        )
        .filter(|name| !name.is_empty()),
        os: Some(operating_system()),
        refresh_token: refresh_token.map(|token| token.expose_secret().to_owned()),
    };
    let body = serde_json::to_vec(&body).map_err(|error| later(&error))?;
    service.state_dir.check_space().await.map_err(|error| {
        later(&format_args!(
            "credentials could not be written to {}: {error}",
            service.state_dir.path().display()
        ))
    })?;
    let key = service
        .state_dir
        .claim_key()
        .await
        .map_err(|error| later(&error))?;
    Ok(Request::post_json("/v1/hubs/claim", body).header(IDEMPOTENCY_KEY, &key))
}

/// The credentials in an answer of the service at `url`.
fn issued(answer: &Answer, url: &Url) -> Result<Credentials, ClaimError> {
    match answer.status {
        status if (200..300).contains(&status) => {}
        // A proxy's answer says nothing about the code.
        400 | 404 if answer.problem().is_some() => return Err(ClaimError::Code(answer.reason())),
        409 | 423 => return Err(ClaimError::Hub(answer.reason())),
        _ => {
            return Err(ClaimError::Later {
                reason: answer.reason(),
                retry_after: answer.retry_after,
            });
        }
    }
    let issued = answer
        .data::<HubCredentials>()
        .map_err(|error| later(&error))?;
    Ok(Credentials::issued(issued, url))
}

fn operating_system() -> OperatingSystem {
    let release = OsRelease::read(Path::new("/"));
    OperatingSystem {
        name: Some(release.id),
        version: release.version_id,
        // The kernel's name, which releases use too: the program itself knows only the family, such
        // as `arm`.
        arch: Some(
            rustix::system::uname()
                .machine()
                .to_string_lossy()
                .into_owned(),
        ),
    }
}
