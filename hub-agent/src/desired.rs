//! The desired state and the adapters: operators' roles, jobs and the pauses between uploads come
//! in over a request that waits for changes, and a snapshot of the adapters goes out when one has
//! changed. The roles are stored on disk, so that an adapter that was disabled stays disabled while
//! the hub is offline.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hub_protocol::HubUuid;
use hub_protocol::hub::{Adapter, AdapterRole, AdapterSnapshot, UploadPauses};
use hub_protocol::job::DesiredJob;
use reqwest::header::IF_NONE_MATCH;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::cloud::{Access, Answer, CallError, Request, Service};
use crate::hold::{self, HELD_AT_LEAST, PathHold};
use crate::identity::{Credentials, StateDir};
use crate::jobs::{RequestedJob, RequestedJobs};
use crate::pauses::{self, Pauses};

pub type Roles = BTreeMap<String, AdapterRole>;

const ROLES_FILE: &str = "adapter-roles.json";
const WITHHELD_FILE: &str = "events-withheld.json";

/// A service that answers at once without a change does not hold requests and is polled.
const POLL_EVERY: Duration = Duration::from_secs(30);

/// Adapters change in bursts: a snapshot is sent this long after the first change.
const BURST: Duration = Duration::from_secs(2);

const BACKOFF: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(300));

/// The part of the desired state that is used here. Jobs and roles are parsed one by one: one that
/// only a newer agent understands must not cost the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DesiredState {
    revision: i64,
    jobs: Vec<Value>,
    #[serde(default)]
    scan_config_revision: Value,
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Settings {
    #[serde(default)]
    adapter_roles: BTreeMap<String, Value>,
    #[serde(default)]
    uploads: Value,
    #[serde(default)]
    withhold_events: Value,
}

/// The last known roles, for a start without the service.
pub fn load_roles(state_dir: &StateDir) -> Roles {
    let Ok(bytes) = std::fs::read(state_dir.path().join(ROLES_FILE)) else {
        return Roles::new();
    };
    serde_json::from_slice(&bytes).unwrap_or_else(|error| {
        tracing::warn!(%error, "the file of the adapters' roles is damaged; all adapters scan until the service answers");
        Roles::new()
    })
}

/// Whether events were withheld when the service was last asked.
pub fn load_withheld(state_dir: &StateDir) -> bool {
    state_dir.path().join(WITHHELD_FILE).exists()
}

/// Follows whether events are withheld, and stores it, so that a hub that starts without the
/// service reports nothing that its owner does not want.
async fn follow_withheld(state_dir: &StateDir, withheld: &watch::Sender<bool>, now: bool) {
    let is_changed = withheld.send_if_modified(|before| std::mem::replace(before, now) != now);
    if !is_changed {
        return;
    }
    let stored = match now {
        true => state_dir.replace(WITHHELD_FILE, b"true".to_vec()).await,
        false => state_dir.remove(WITHHELD_FILE).await,
    };
    match (stored, now) {
        (Err(error), _) => {
            tracing::warn!(%error, "whether events are withheld cannot be written; a restart forgets it")
        }
        (Ok(()), true) => tracing::info!("the owner has not consented; no BLE events are reported"),
        (Ok(()), false) => tracing::info!("the owner has consented; BLE events are reported"),
    }
}

/// The parts of the desired state, for those who follow them.
pub struct Parts {
    pub roles: watch::Sender<Roles>,
    pub jobs: watch::Sender<RequestedJobs>,
    pub pauses: watch::Sender<Pauses>,
    pub scan_config_revision: watch::Sender<Option<i64>>,
    /// Whether no BLE events are to be reported.
    pub withheld: watch::Sender<bool>,
}

/// Follows the desired state until it is dropped.
pub async fn follow(
    service: Arc<Service>,
    state_dir: Arc<StateDir>,
    parts: Parts,
    request_timeout: Duration,
) {
    let Parts {
        roles,
        jobs,
        pauses,
        scan_config_revision,
        withheld,
    } = parts;
    let mut access = service.access();
    let mut backoff = BACKOFF;
    let mut seen: Option<(HubUuid, String)> = None;
    // False after the service refused to hold a request: it may still answer one at once.
    let mut may_hold = true;
    let mut path = PathHold::new(Instant::now());
    loop {
        let hub_uuid = granted(&mut access).await.hub_uuid;
        let etag = seen
            .as_ref()
            .filter(|(hub, _)| *hub == hub_uuid)
            .map(|(_, etag)| etag.as_str());
        // Only a change is waited for: the first state is requested at once.
        let hold = if etag.is_some() && may_hold {
            path.next(Instant::now())
        } else {
            Duration::ZERO
        };
        let mut request = Request::get(format!(
            "/v1/hubs/{hub_uuid}/desired-state?wait={}",
            hold.as_secs()
        ));
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        request.timeout = Some(hold + request_timeout);
        request.hold = hold;
        let requested_at = Instant::now();
        let answer = service.call(&request).await;
        let (elapsed, now) = (requested_at.elapsed(), Instant::now());
        if let Ok(Answer {
            cut_after: Some(after),
            ..
        }) = &answer
        {
            if path.cut(*after, now) {
                let path_holds_secs = path.limit().unwrap_or_default().as_secs();
                tracing::info!(
                    path_holds_secs,
                    "the path to the service ends requests that wait; they wait for less"
                );
            }
            service.set_path_hold(path.limit());
            continue;
        }
        if let Ok(answer) = &answer
            && (answer.status == 304 || answer.is_success())
            && !hold.is_zero()
        {
            path.held(elapsed, now);
            service.set_path_hold(path.limit());
        }
        if let Ok(answer) = &answer {
            may_hold = answer.status != 429 || hold.is_zero();
            if !answer.is_success() {
                pauses::not_given(&pauses);
            }
        }
        let rest = match answer {
            Ok(answer) if answer.status == 304 => {
                backoff.reset();
                if path.next(now).is_zero() {
                    hold::POLL_EVERY
                } else if elapsed < HELD_AT_LEAST && !hold.is_zero() {
                    POLL_EVERY
                } else {
                    Duration::ZERO
                }
            }
            Ok(answer) if answer.is_success() => match answer.data::<DesiredState>() {
                Ok(state) => {
                    backoff.reset();
                    let received = Some(state.jobs.iter().filter_map(requested_job).collect());
                    jobs.send_if_modified(|requested| {
                        let is_changed = *requested != received;
                        *requested = received;
                        is_changed
                    });
                    scan_config_revision.send_replace(state.scan_config_revision.as_i64());
                    let is_withheld = state.settings.withhold_events.as_bool().unwrap_or(false);
                    follow_withheld(&state_dir, &withheld, is_withheld).await;
                    let given = UploadPauses::deserialize(&state.settings.uploads).ok();
                    pauses::follow(&state_dir, &pauses, given).await;
                    apply(state, &state_dir, &roles).await;
                    seen = answer.etag.map(|etag| (hub_uuid, etag));
                    if seen.is_none() {
                        POLL_EVERY
                    } else {
                        Duration::ZERO
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the desired state is not understood; it is requested again");
                    pauses::not_given(&pauses);
                    backoff.next(None)
                }
            },
            Ok(answer) => refused(&answer, "the desired state", &mut backoff),
            Err(CallError::NoAccess) => Duration::ZERO,
            Err(CallError::Unreachable(_)) => {
                path.away();
                service.set_path_hold(path.limit());
                backoff.next(None)
            }
        };
        tokio::time::sleep(rest).await;
    }
}

/// A job of the desired state; `None` if it does not even have a uuid.
fn requested_job(json: &Value) -> Option<RequestedJob> {
    let error = match DesiredJob::deserialize(json) {
        Ok(job) => return Some(RequestedJob::Known(job)),
        Err(error) => error,
    };
    let job_uuid = json
        .get("hubJobUuid")
        .and_then(Value::as_str)
        .and_then(|uuid| uuid.parse().ok());
    if job_uuid.is_none() {
        tracing::warn!(%error, "the service requests a job that is not understood");
    }
    Some(RequestedJob::NotUnderstood {
        hub_job_uuid: job_uuid?,
        error: error.to_string(),
    })
}

async fn apply(state: DesiredState, state_dir: &StateDir, roles: &watch::Sender<Roles>) {
    let known = state.settings.adapter_roles.into_iter().filter_map(|(address, role)| {
        let role = AdapterRole::deserialize(&role)
            .inspect_err(|error| tracing::warn!(%error, address, "an adapter's role is not understood; it scans"));
        Some((address.to_ascii_uppercase(), role.ok()?))
    });
    let desired: Roles = known.collect();
    if *roles.borrow() == desired {
        return;
    }
    tracing::info!(revision = state.revision, roles = ?desired, "an operator changed the adapters' roles");
    let saved = match serde_json::to_vec(&desired) {
        Ok(json) => state_dir.replace(ROLES_FILE, json).await,
        Err(error) => Err(error.into()),
    };
    if let Err(error) = saved {
        tracing::warn!(%error, "the adapters' roles cannot be written; a restart forgets them");
    }
    roles.send_replace(desired);
}

/// Reports the adapters to the service whenever one changes, until it is dropped.
pub async fn report_adapters(service: Arc<Service>, mut adapters: watch::Receiver<Vec<Adapter>>) {
    let mut access = service.access();
    let mut backoff = BACKOFF;
    let mut reported: Option<(HubUuid, Vec<Adapter>)> = None;
    loop {
        tokio::time::sleep(BURST).await;
        let hub_uuid = granted(&mut access).await.hub_uuid;
        let now = (hub_uuid, adapters.borrow_and_update().clone());
        if reported.as_ref() == Some(&now) {
            tokio::select! {
                changed = adapters.changed() => if changed.is_err() {
                    // The radio has ended: the service keeps the last snapshot.
                    return std::future::pending().await;
                },
                _ = access.changed() => {}
            }
            continue;
        }
        let snapshot = AdapterSnapshot {
            adapters: now.1.clone(),
        };
        let body = match serde_json::to_vec(&snapshot) {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(%error, "the adapters cannot be encoded as JSON");
                reported = Some(now);
                continue;
            }
        };
        let rest = match service
            .call(&Request::post_json("/v1/hubs/adapters", body))
            .await
        {
            // A login page answers 200 to anything.
            Ok(answer) if answer.is_success() && answer.data::<serde_json::Value>().is_ok() => {
                backoff.reset();
                reported = Some(now);
                Duration::ZERO
            }
            Ok(answer) => refused(&answer, "the adapters", &mut backoff),
            Err(CallError::NoAccess) => Duration::ZERO,
            Err(CallError::Unreachable(_)) => backoff.next(None),
        };
        tokio::time::sleep(rest).await;
    }
}

/// Notes that a request was refused. Returns how long to wait before the next.
pub fn refused(answer: &Answer, what: &str, backoff: &mut Backoff) -> Duration {
    tracing::debug!(
        reason = answer.reason(),
        what,
        "the service did not accept a request; it is tried again"
    );
    backoff.next(answer.retry_after)
}

/// Waits until the hub has access.
pub async fn granted(access: &mut watch::Receiver<Access>) -> Credentials {
    loop {
        if let Access::Granted(credentials) = &*access.borrow_and_update() {
            return credentials.clone();
        }
        // The sender lives as long as the service, which the caller holds.
        if access.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn what_a_newer_service_adds_does_not_cost_the_rest() {
        let (known, unknown) = (
            hub_protocol::HubJobUuid::new(),
            hub_protocol::HubJobUuid::new(),
        );
        let deadline = "2026-11-22T00:00:00Z";
        let state: DesiredState = serde_json::from_value(json!({
            "revision": 7, "apps": "another form", "agent": {"channel": 3}, "later": {},
            "jobs": [
                {"hubJobUuid": unknown, "type": "REBOOT", "deadlineAt": deadline},
                {"type": "REBOOT"},
                "a job",
                {"hubJobUuid": known, "type": "APP_REMOVE", "deadlineAt": deadline, "later": [1]}
            ],
            "settings": {"adapterRoles": {"aa:00": "JAMMER", "aa:01": "DISABLED"}, "later": true}
        }))
        .unwrap();
        let jobs: Vec<RequestedJob> = state.jobs.iter().filter_map(requested_job).collect();
        assert_eq!(
            jobs.iter()
                .map(RequestedJob::hub_job_uuid)
                .collect::<Vec<_>>(),
            [unknown, known]
        );
        assert!(
            matches!(&jobs[0], RequestedJob::NotUnderstood { error, .. } if error.contains("REBOOT")),
            "{jobs:?}"
        );
        assert!(matches!(&jobs[1], RequestedJob::Known(_)));
        let dir = tempfile::tempdir().unwrap();
        let roles = watch::Sender::new(Roles::new());
        apply(state, &StateDir::open(dir.path()).unwrap(), &roles).await;
        assert_eq!(
            *roles.borrow(),
            Roles::from([("AA:01".to_owned(), AdapterRole::Disabled)])
        );
    }
}
