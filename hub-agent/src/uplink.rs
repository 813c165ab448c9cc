//! Sends the spool's batches to the service, in order and one at a time. What the service refuses
//! permanently is quarantined and counted, so that it blocks nothing; everything else is sent again
//! until it is delivered. Never changes a batch that may have been sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub_protocol::ble::{BleUploadResult, RejectedEvent};
use hub_protocol::{HubUuid, Timestamp};
use reqwest::header::CONTENT_ENCODING;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::cloud::{Access, Answer, CallError, IDEMPOTENCY_KEY, Request, Service};
use crate::identity::Credentials;
use crate::jobs::JobRecord;
use crate::pulse::Beat;
use crate::spool::{Batch, Kind, PerKind, Spool, SpoolStopped, Verdict};

/// The longest time between two uploads while the service answers "too many".
const LONGEST_INTERVAL: Duration = Duration::from_secs(600);

/// How often the number of refused uploads is logged.
const LOG_REFUSALS_EVERY: Duration = Duration::from_secs(60);

/// The longest rest of the loop: the watchdog expects it to move.
const LONGEST_REST: Duration = Duration::from_secs(20);

/// Far more than any job event of the agent has.
const MAX_JOB_EVENT_BYTES: usize = 256 << 10;

/// The slowest connection on which an upload does not time out.
const SLOWEST_BYTES_PER_SEC: u64 = 4 << 10;

pub struct Uplink {
    service: Arc<Service>,
    spool: Spool,
    clock: Arc<Clock>,
    lanes: [Lane; 5],
    /// For the service as a whole, while it cannot be reached.
    backoff: Backoff,
    uploads: Arc<Uploads>,
}

/// The state of uploading.
#[derive(Debug, Default)]
pub struct Uploads {
    delivered: AtomicU64,
    not_accepted: Mutex<PerKind<Option<NotAccepted>>>,
}

/// Why uploads of one kind are not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAccepted {
    pub reason: String,
    pub since: Timestamp,
}

impl Uploads {
    /// Records delivered since the start.
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    pub fn not_accepted(&self) -> PerKind<Option<NotAccepted>> {
        self.lock().clone()
    }

    fn set_not_accepted(&self, kind: Kind, reason: String, now: Timestamp) {
        let mut kinds = self.lock();
        let not_accepted = kinds.get_mut(kind);
        // The reason may change; the uploads have been blocked since the first one.
        let since = not_accepted.as_ref().map_or(now, |before| before.since);
        *not_accepted = Some(NotAccepted { reason, since });
    }

    fn set_accepted(&self, kind: Kind) {
        *self.lock().get_mut(kind) = None;
    }

    fn lock(&self) -> MutexGuard<'_, PerKind<Option<NotAccepted>>> {
        self.not_accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One kind of upload, with its own pace: the service limits each kind separately.
struct Lane {
    kind: Kind,
    /// Shortest time between two uploads: grows while the service answers "too many", so that each
    /// upload has more records.
    interval: Duration,
    base_interval: Duration,
    due: Instant,
    max_records: u64,
    backoff: Backoff,
    /// The status of the last failure that was logged: it is logged once.
    logged: Option<u16>,
    refusals: Refusals,
}

/// Uploads of one kind that were refused permanently. There may be many in a second, and each log
/// line about one is itself uploaded, so only the first is logged at once.
#[derive(Default)]
struct Refusals {
    logged_at: Option<Instant>,
    /// Since then.
    uploads: u64,
    records: u64,
}

/// What to do after an answer.
enum Next {
    Resolve(Verdict),
    Wait(Duration),
}

impl Uplink {
    pub fn new(service: Arc<Service>, spool: Spool, clock: Arc<Clock>, base_interval: Duration) -> Self {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
        let lanes = Kind::ALL.map(|kind| Lane {
            kind,
            interval: base_interval,
            base_interval,
            due: Instant::now(),
            max_records: kind.max_records(),
            backoff: backoff.clone(),
            logged: None,
            refusals: Refusals::default(),
        });
        Self { service, spool, clock, lanes, backoff, uploads: Arc::default() }
    }

    pub fn uploads(&self) -> Arc<Uploads> {
        self.uploads.clone()
    }

    /// Uploads until cancelled, or until the spool has stopped.
    pub async fn run(&mut self, beat: &Beat, cancel: &CancellationToken) -> Result<(), SpoolStopped> {
        let mut access = self.service.access();
        loop {
            beat.beat();
            let granted = match &*access.borrow_and_update() {
                Access::Granted(credentials) => Some(credentials.clone()),
                Access::Unclaimed | Access::Refused { .. } => None,
            };
            let rest = match granted {
                Some(credentials) => {
                    let work = self.send_next(&credentials);
                    tokio::select! {
                        () = cancel.cancelled() => return Ok(()),
                        rest = work => rest?,
                    }
                }
                None => LONGEST_REST,
            };
            tokio::select! {
                () = cancel.cancelled() => return Ok(()),
                () = tokio::time::sleep(rest.min(LONGEST_REST)) => {}
                _ = access.changed() => {}
            }
        }
    }

    /// Sends everything once, until nothing is left or a call fails: the last work before the agent
    /// ends.
    pub async fn drain(&mut self) -> Result<(), SpoolStopped> {
        let Ok(credentials) = self.service.granted() else { return Ok(()) };
        for at in 0..self.lanes.len() {
            while let Some(lane) = self.lanes.get_mut(at) {
                let Some(batch) = self.spool.next(lane.kind, lane.max_records).await? else { break };
                let verdict = match send(&self.service, &credentials, &batch).await {
                    Ok(answer) => match lane.evaluate(&batch, &answer) {
                        Next::Resolve(verdict) => verdict,
                        Next::Wait(_) => break,
                    },
                    Err(NotSent::Unreadable(reason)) => lane.refuse(&batch, &reason),
                    Err(NotSent::Call(_)) => return Ok(()),
                };
                self.spool.resolve(batch.kind, batch.batch, verdict).await?;
            }
        }
        Ok(())
    }

    /// Sends one batch, of the lane that has waited longest. Returns the time until there may be
    /// more to do.
    async fn send_next(&mut self, credentials: &Credentials) -> Result<Duration, SpoolStopped> {
        if !self.clock.offset().known {
            // Any answer has the service's time; data that is sent before would have times in 1970.
            return Ok(match self.service.call_as(credentials, &Request::get("/v1/test")).await {
                Ok(_) if self.clock.offset().known => Duration::ZERO,
                _ => self.backoff.next(None),
            });
        }
        let Some(lane) = self.lanes.iter_mut().min_by_key(|lane| lane.due) else { return Ok(LONGEST_REST) };
        let now = Instant::now();
        if lane.due > now {
            return Ok(lane.due - now);
        }
        lane.refusals.log(lane.kind, now);
        // Forming a batch writes the records in memory to disk, so it is not done without records.
        let waiting = self.spool.stats().usage.get(lane.kind).records;
        let batch = if waiting > 0 { self.spool.next(lane.kind, lane.max_records).await? } else { None };
        let Some(batch) = batch else {
            lane.due = now + lane.interval;
            // An empty queue does not clear the reason if it is empty because everything was
            // refused.
            if lane.refusals.logged_at.is_none() {
                self.uploads.set_accepted(lane.kind);
            }
            return Ok(Duration::ZERO);
        };
        let answer = match send(&self.service, credentials, &batch).await {
            Ok(answer) => answer,
            // A claim changes the access, which wakes this loop.
            Err(NotSent::Call(CallError::NoAccess)) => return Ok(LONGEST_REST),
            Err(NotSent::Unreadable(reason)) => {
                let verdict = lane.refuse(&batch, &reason);
                self.uploads.set_not_accepted(lane.kind, quarantined(&reason), self.clock.now());
                self.spool.resolve(batch.kind, batch.batch, verdict).await?;
                return Ok(Duration::ZERO);
            }
            Err(NotSent::Call(CallError::Unreachable(reason))) => {
                // The service may be reachable, and only the token's renewal failed.
                if self.service.contact().unreachable.is_none() {
                    self.uploads.set_not_accepted(lane.kind, reason, self.clock.now());
                }
                return Ok(self.backoff.next(None));
            }
        };
        self.backoff.reset();
        match lane.evaluate(&batch, &answer) {
            Next::Resolve(verdict) => {
                match verdict {
                    Verdict::Refused => {
                        self.uploads.set_not_accepted(lane.kind, quarantined(&answer.reason()), self.clock.now());
                    }
                    Verdict::Stored { .. } => self.uploads.set_accepted(lane.kind),
                    Verdict::TooLarge => {}
                }
                if let Verdict::Stored { rejected } = verdict {
                    self.uploads.delivered.fetch_add(batch.records.saturating_sub(rejected), Ordering::Relaxed);
                }
                // A full batch: there are more records, and the service accepts them. Windows do
                // not grow.
                let is_full = match lane.kind {
                    Kind::BleWindows => waiting > batch.records,
                    _ => batch.records > lane.max_records / 2,
                };
                let more = is_full && lane.interval == lane.base_interval;
                lane.due = if more || verdict == Verdict::TooLarge { now } else { now + lane.interval };
                self.spool.resolve(batch.kind, batch.batch, verdict).await?;
            }
            Next::Wait(wait) => {
                self.uploads.set_not_accepted(lane.kind, answer.reason(), self.clock.now());
                lane.due = Instant::now() + wait;
            }
        }
        Ok(Duration::ZERO)
    }
}

/// Why a batch has no answer.
enum NotSent {
    Call(CallError),
    /// It is malformed, and always will be.
    Unreadable(String),
}

impl From<CallError> for NotSent {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

fn quarantined(reason: &str) -> String {
    format!("refused for good and quarantined: {reason}")
}

async fn send(service: &Service, credentials: &Credentials, batch: &Batch) -> Result<Answer, NotSent> {
    if batch.kind == Kind::JobEvents {
        return send_job_event(service, credentials, batch).await;
    }
    let mut request = Request::post_json(path(batch.kind, credentials.hub_uuid), batch.body.clone())
        .header(CONTENT_ENCODING, "zstd")
        .header(IDEMPOTENCY_KEY, &batch.batch.to_string());
    // A batch keeps its size: on a slow connection it needs its time, or it would never arrive.
    request.timeout =
        Some(service.request_timeout + Duration::from_secs(batch.body.len() as u64 / SLOWEST_BYTES_PER_SEC));
    Ok(service.call_as(credentials, &request).await?)
}

fn path(kind: Kind, hub_uuid: HubUuid) -> String {
    match kind {
        Kind::BleEvents => "/v1/ble/events".to_owned(),
        Kind::BleWindows => "/v1/ble/events/windowed".to_owned(),
        Kind::Telemetry => format!("/v1/hubs/{hub_uuid}/telemetry"),
        Kind::Logs => format!("/v1/hubs/{hub_uuid}/logs"),
        // Not the path of an upload: each event has its job's.
        Kind::JobEvents => format!("/v1/hubs/{hub_uuid}/jobs"),
    }
}

/// An event of one job. The path contains the job, and the idempotency key is the event's uuid:
/// sent again, it is stored once.
async fn send_job_event(service: &Service, credentials: &Credentials, batch: &Batch) -> Result<Answer, NotSent> {
    let unreadable = |error: &dyn std::fmt::Display| NotSent::Unreadable(format!("a job's event: {error}"));
    let json = zstd::bulk::decompress(&batch.body, MAX_JOB_EVENT_BYTES).map_err(|error| unreadable(&error))?;
    let JobRecord { hub_job_uuid, event } = serde_json::from_slice(&json).map_err(|error| unreadable(&error))?;
    let path = format!("{}/{hub_job_uuid}/events", path(batch.kind, credentials.hub_uuid));
    let body = serde_json::to_vec(&event).map_err(|error| unreadable(&error))?;
    let request = Request::post_json(path, body).header(IDEMPOTENCY_KEY, &event.event_uuid.to_string());
    Ok(service.call_as(credentials, &request).await?)
}

impl Refusals {
    /// Logs the first refusal and counts the others.
    fn count(&mut self, batch: &Batch, reason: &str) {
        if self.logged_at.is_some() {
            self.uploads += 1;
            self.records += batch.records;
            return;
        }
        self.logged_at = Some(Instant::now());
        tracing::error!(
            kind = ?batch.kind, batch_uuid = %batch.batch, records = batch.records, reason,
            "the service refuses an upload for good; it is quarantined and counted"
        );
    }

    fn log(&mut self, kind: Kind, now: Instant) {
        if self.logged_at.is_none_or(|at| now.duration_since(at) < LOG_REFUSALS_EVERY) {
            return;
        }
        let Self { uploads, records, .. } = std::mem::take(self);
        if uploads > 0 {
            tracing::error!(?kind, uploads, records, "the service refused more uploads for good in the last minute");
            self.logged_at = Some(now);
        }
    }
}

/// The records that the service refused in an upload that it has stored. `None` if the answer is
/// not the service's own confirmation: a login page or a proxy answers 200 to anything, and a batch
/// that counts as delivered is deleted.
fn stored(kind: Kind, answer: &Answer) -> Option<Vec<RejectedEvent>> {
    match (kind.is_ble(), answer.status) {
        (true, 201) => answer.data::<BleUploadResult>().ok().map(|result| result.rejected),
        (false, 204) => Some(Vec::new()),
        _ => None,
    }
}

impl Lane {
    fn evaluate(&mut self, batch: &Batch, answer: &Answer) -> Next {
        if let Some(rejected) = stored(batch.kind, answer) {
            if self.logged.take().is_some() {
                tracing::info!(kind = ?self.kind, "uploads are accepted again");
            }
            self.backoff.reset();
            // Slowly back to the configured pace.
            self.interval = self.interval.mul_f64(0.9).max(self.base_interval);
            if let Some(first) = rejected.first() {
                tracing::warn!(
                    batch_uuid = %batch.batch, rejected = rejected.len(), index = first.index, reason = first.message,
                    "the service accepted an upload except for some of its records"
                );
            }
            return Next::Resolve(Verdict::Stored { rejected: rejected.len() as u64 });
        }
        match answer.status {
            // The job is finished or deleted: the service needs no more events of it.
            404 | 409 if batch.kind == Kind::JobEvents && answer.problem().is_some() => {
                tracing::info!(reason = answer.reason(), "the service no longer accepts events of a finished job");
                Next::Resolve(Verdict::Stored { rejected: 1 })
            }
            413 if batch.records > 1 => {
                self.max_records = (batch.records / 2).max(1);
                Next::Resolve(Verdict::TooLarge)
            }
            // Only the service itself refuses permanently: a proxy's refusal says nothing about the
            // batch.
            400 | 409 | 413 | 415 | 422 if answer.problem().is_some() => {
                Next::Resolve(self.refuse(batch, &answer.reason()))
            }
            429 => {
                self.interval = (self.interval * 2).clamp(Duration::from_secs(1), LONGEST_INTERVAL);
                self.log(answer, "the service accepts fewer uploads; each becomes larger instead");
                Next::Wait(self.backoff.next(answer.retry_after).max(self.interval))
            }
            _ => {
                self.log(answer, "the service did not accept an upload; it is sent again");
                Next::Wait(self.backoff.next(answer.retry_after))
            }
        }
    }

    fn refuse(&mut self, batch: &Batch, reason: &str) -> Verdict {
        self.refusals.count(batch, reason);
        Verdict::Refused
    }

    /// Logs a failure once.
    fn log(&mut self, answer: &Answer, what: &str) {
        if self.logged != Some(answer.status) {
            self.logged = Some(answer.status);
            tracing::warn!(kind = ?self.kind, reason = answer.reason(), "{what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use hub_protocol::TenantUuid;

    use super::*;
    use crate::config::ServiceArgs;
    use crate::identity::StateDir;
    use crate::spool::SpoolConfig;

    #[tokio::test]
    async fn a_malformed_job_event_is_quarantined() {
        crate::cloud::install_crypto();
        let dir = tempfile::tempdir().unwrap();
        let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
        let clock = Arc::new(Clock::new());
        let args = ServiceArgs {
            service_url: Some("http://127.0.0.1:1".into()),
            ca_file: None,
            device_instance_id: None,
            hub_identifier: None,
            connect_timeout: "1s".parse().unwrap(),
            request_timeout: "1s".parse().unwrap(),
        };
        let service = Arc::new(Service::new(&args, state_dir, clock.clone()).unwrap());
        let spool = Spool::start(SpoolConfig::of(dir.path()), clock.clone(), || {}).unwrap();
        assert!(spool.keep(Kind::JobEvents, &serde_json::json!({"hubJobUuid": 7})).await.unwrap());
        let mut uplink = Uplink::new(service, spool.clone(), clock, Duration::from_secs(60));
        let credentials = Credentials {
            hub_uuid: HubUuid::new(),
            tenant_uuid: TenantUuid::new(),
            access_token: "access".to_owned().into(),
            refresh_token: "refresh".to_owned().into(),
            expires_at: Timestamp::from_micros(i64::MAX),
        };
        for _ in Kind::ALL {
            uplink.send_next(&credentials).await.unwrap();
        }
        assert_eq!(spool.next(Kind::JobEvents, 1).await.unwrap(), None, "it blocks nothing");
        assert!(std::fs::read_dir(dir.path().join("refused")).unwrap().count() == 1);
        let not_accepted = uplink.uploads().not_accepted();
        assert!(
            not_accepted.get(Kind::JobEvents).as_ref().unwrap().reason.contains("a job's event"),
            "{not_accepted:?}"
        );
    }
}
