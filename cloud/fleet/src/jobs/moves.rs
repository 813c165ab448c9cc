//! Jobs that send a hub to another service of this software. The claim code of that service is a
//! secret: it is sealed while the job is open, shown to the hub alone, and deleted when the job is
//! finished. Nothing here connects to the other service.

use hub_base::error::{Error, Result};
use hub_base::sealing::stored::MOVE_CLAIM_CODE;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::Check;
use hub_identity::authz::Scope;
use hub_protocol::job::{DesiredJob, HubJobType, ServiceMove, is_near};
use hub_protocol::{HubJobUuid, HubUuid};
use reqwest::Url;

use super::{CREATE, Created, HubJob, Jobs, NewJob, Refusal, Terms, insert_job, store};
use crate::claim_codes::ClaimCode;
use crate::hubs;

pub const MAX_URL_CHARS: usize = 500;

/// The service to which a hub is to move.
pub struct Destination {
    service_url: String,
    code: ClaimCode,
}

/// The destination that a request names. Fails with 400 if it is malformed, or this service itself.
pub fn checked(core: &Core, service_url: &str, claim_code: &str) -> Result<Destination> {
    let mut check = Check::new();
    check.required("serviceUrl", service_url, MAX_URL_CHARS);
    let url = parsed(service_url, core.config.is_https());
    if let Err(reason) = &url {
        check.that(false, "serviceUrl", *reason);
    }
    let own = core.config.own_url().and_then(|own| Url::parse(&own).ok());
    if let (Ok(url), Some(own)) = (&url, &own) {
        check.that(
            !is_same(url, own),
            "serviceUrl",
            "is this service itself; name the one to which the hub moves",
        );
    }
    let code = ClaimCode::parse(claim_code);
    check.that(
        code.is_some(),
        "claimCode",
        "must be 16 letters and digits such as 7K3M-9QXT-0V4B-HD2R",
    );
    check.done()?;
    match (url, code) {
        (Ok(url), Some(code)) => Ok(Destination {
            service_url: url.as_str().trim_end_matches('/').to_owned(),
            code,
        }),
        _ => Err(Error::field("serviceUrl", "must be a URL")),
    }
}

/// Hubs themselves accept no other URLs: one that is connected over TLS does not move to a service
/// without it.
fn parsed(text: &str, needs_tls: bool) -> Result<Url, &'static str> {
    let url = Url::parse(text.trim())
        .map_err(|_| "must be the URL of a service, such as https://hubs.example.com")?;
    match () {
        () if !url.has_host() || !matches!(url.scheme(), "https" | "http") => {
            Err("must begin with https:// and name a host")
        }
        () if url.scheme() == "http" && needs_tls => {
            Err("must begin with https://, as the URL of this service does")
        }
        () if url.scheme() == "http" && !is_near(url.host_str().unwrap_or_default()) => {
            Err("must begin with https://: the host is not in a private network")
        }
        () if !url.username().is_empty() || url.password().is_some() => {
            Err("must not contain a user name or password")
        }
        () if url.query().is_some() || url.fragment().is_some() => Err("must end with the path"),
        () => Ok(url),
    }
}

fn is_same(one: &Url, other: &Url) -> bool {
    let place = |url: &Url| {
        let host = url.host_str().unwrap_or_default().trim_end_matches('.');
        let path = url.path().trim_end_matches('/');
        (
            host.to_owned(),
            url.port_or_known_default(),
            path.to_owned(),
        )
    };
    place(one) == place(other)
}

/// Creates a job that sends a hub of the tenant to another service.
pub async fn create(
    jobs: &Jobs,
    scope: &Scope,
    hub_uuid: HubUuid,
    to: &Destination,
    terms: Terms,
) -> Result<HubJobUuid> {
    let now = jobs.core.clock.now();
    let mut tx = jobs.core.db.begin().await?;
    let hub = hubs::lock(&mut tx, scope, hub_uuid).await?;
    if hub.blocked_at.is_some() {
        return Err(Refusal::HubBlocked.into());
    }
    if store::count_open_of(&mut tx, hub_uuid, HubJobType::Move).await? > 0 {
        return Err(Refusal::MoveOpen.into());
    }
    let new = NewJob {
        job_type: HubJobType::Move,
        app_uuid: None,
        release_uuid: None,
        version: None,
        policy_uuid: None,
        window: None,
        command: None,
        terms,
    };
    let hub_job_uuid = HubJobUuid::new();
    insert_job(&mut tx, &jobs.changes, &hub, hub_job_uuid, new, now).await??;
    let sealed = jobs.core.sealer.seal(
        MOVE_CLAIM_CODE,
        &hub_job_uuid.to_string(),
        to.code.spelled().as_bytes(),
    );
    let job = store::set_destination(&mut tx, hub_job_uuid, &to.service_url, sealed).await?;
    let created = Created {
        job,
        superseded: Vec::new(),
    };
    tx.commit(created.audited(Audit::new(scope, CREATE, hub_job_uuid, now)))
        .await?;
    Ok(hub_job_uuid)
}

/// The job as its hub gets it.
pub fn dispatched(core: &Core, job: &HubJob) -> Result<DesiredJob> {
    let desired = job.desired()?;
    let (Some(service_url), Some(sealed)) = (&job.service_url, &job.sealed_claim_code) else {
        return Ok(desired);
    };
    let row = job.hub_job_uuid.to_string();
    let code = core
        .sealer
        .open(MOVE_CLAIM_CODE, &row, sealed)
        .map_err(Error::internal)?;
    let move_to = ServiceMove {
        service_url: service_url.clone(),
        claim_code: String::from_utf8(code).map_err(Error::internal)?,
    };
    Ok(DesiredJob {
        move_to: Some(move_to),
        ..desired
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_that_hubs_accept_are_accepted() {
        for good in [
            "https://hubs.example.com",
            "https://hubs.example.com:8443/base/",
            "http://127.0.0.1:8080",
            "http://192.168.1.7",
            "http://[fd00::1]:8080",
            "http://localhost:8080",
        ] {
            assert!(parsed(good, false).is_ok(), "{good}");
            let is_https = good.starts_with("https");
            assert_eq!(parsed(good, true).is_ok(), is_https, "{good}");
        }
        for wrong in [
            "",
            "hubs.example.com",
            "ftp://hubs.example.com",
            "http://hubs.example.com",
            "http://8.8.8.8",
            "https://ben@hubs.example.com",
            "https://ben:secret@hubs.example.com",
            "https://hubs.example.com/?a=b",
            "https://hubs.example.com/#a",
        ] {
            assert!(parsed(wrong, false).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_same_service_is_recognised_in_other_spellings() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        let own = url("https://hubs.example.com");
        for same in [
            "https://HUBS.example.com/",
            "https://hubs.example.com:443",
            "https://hubs.example.com./",
        ] {
            assert!(is_same(&own, &url(same)), "{same}");
        }
        for other in [
            "https://hubs.example.com:8443",
            "https://hubs.example.com/eu",
            "https://hubs.example.org",
        ] {
            assert!(!is_same(&own, &url(other)), "{other}");
        }
    }
}
