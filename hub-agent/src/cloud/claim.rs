//! Claims the hub: exchanges a claim code for the hub's credentials.

use std::time::Duration;

use hub_protocol::claim::{HubClaimRequest, HubCredentials, OperatingSystem};
use secrecy::{ExposeSecret, SecretString};

use super::http::{IDEMPOTENCY_KEY, Request};
use super::service::{Access, Service};
use crate::identity::Credentials;
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
    // Credentials that are in force are replaced for the hub that has them only.
    let held = match &*service.access().borrow() {
        Access::Unclaimed => None,
        Access::Granted(credentials) | Access::Refused { credentials, .. } => {
            Some(credentials.clone())
        }
    };
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
        refresh_token: held
            .as_ref()
            .map(|credentials| credentials.refresh_token.expose_secret().to_owned()),
    };
    let later = |error: &dyn std::fmt::Display| ClaimError::Later {
        reason: error.to_string(),
        retry_after: None,
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
    let request = Request::post_json("/v1/hubs/claim", body).header(IDEMPOTENCY_KEY, &key);
    let answer = service
        .send(&request, None)
        .await
        .map_err(|error| later(&error))?;
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
    let credentials = Credentials::from(
        answer
            .data::<HubCredentials>()
            .map_err(|error| later(&error))?,
    );
    if held.is_some_and(|before| before.tenant_uuid != credentials.tenant_uuid) {
        tracing::warn!("this hub has a new owner; the records of the previous owner are dropped");
        spool.forget().await.map_err(|error| later(&error))?;
    }
    // The certificate of the previous claim is not valid for this one.
    service.remove_certificate().await;
    service
        .accept(credentials.clone())
        .await
        .map_err(|error| later(&error))?;
    tracing::info!(hub_uuid = %credentials.hub_uuid, tenant_uuid = %credentials.tenant_uuid, "this hub is claimed");
    Ok(credentials)
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
