//! From the spool to the service, in order and one upload at a time. What the service refuses for good is set aside and counted, so that
//! it blocks nothing; everything else is tried again until it is delivered. Never changes a batch that may have been sent.

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

/// The longest that the service's answer "too many" makes the time between two uploads.
const LONGEST_INTERVAL: Duration = Duration::from_secs(600);

/// How often it is said how many uploads were refused.
const SAY_REFUSALS_EVERY: Duration = Duration::from_secs(60);

/// How long the loop rests at most: the watchdog wants to see it move.
const LONGEST_REST: Duration = Duration::from_secs(20);

/// Far more than the agent writes into one.
const MAX_JOB_EVENT_BYTES: usize = 256 << 10;

/// The slowest line that is waited for.
const SLOWEST_BYTES_PER_SEC: u64 = 4 << 10;

pub struct Uplink {
    service: Arc<Service>,
    spool: Spool,
    clock: Arc<Clock>,
    lanes: [Lane; 5],
    /// Of the service as a whole, when it cannot be reached.
    backoff: Backoff,
    uploads: Arc<Uploads>,
}

/// How uploading goes.
#[derive(Debug, Default)]
pub struct Uploads {
    delivered: AtomicU64,
    not_taken: Mutex<PerKind<Option<NotTaken>>>,
}

/// What is in the way of the uploads of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTaken {
    pub reason: String,
    pub since: Timestamp,
}

impl Uploads {
    /// Records delivered since the start.
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    pub fn not_taken(&self) -> PerKind<Option<NotTaken>> {
        self.lock().clone()
    }

    fn is_not_taken(&self, kind: Kind, reason: String, now: Timestamp) {
        let mut kinds = self.lock();
        let not_taken = kinds.get_mut(kind);
        // The reason may change; it has been in the way all the while.
        let since = not_taken.as_ref().map_or(now, |before| before.since);
        *not_taken = Some(NotTaken { reason, since });
    }

    fn is_taken(&self, kind: Kind) {
        *self.lock().get_mut(kind) = None;
    }

    fn lock(&self) -> MutexGuard<'_, PerKind<Option<NotTaken>>> {
        self.not_taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One kind's endpoint, with its own pace: each has its own limit at the service.
struct Lane {
    kind: Kind,
    /// Shortest time between two uploads: grows while the service says "too many", so that more goes into each.
    interval: Duration,
    base_interval: Duration,
    due: Instant,
    max_records: u64,
    backoff: Backoff,
    /// What went wrong last, so that it is said once.
    said: Option<u16>,
    refusals: Refusals,
}

/// Uploads refused for good, one kind's: there may be many in a second, and each line about one is itself uploaded.
#[derive(Default)]
struct Refusals {
    said_at: Option<Instant>,
    /// Since then.
    uploads: u64,
    records: u64,
}

/// What to do after an answer.
enum Next {
    Settle(Verdict),
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
            said: None,
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
                    let work = self.turn(&credentials);
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

    /// Sends what there is, once through, until nothing is left or something fails: the last thing before the end.
    pub async fn drain(&mut self) -> Result<(), SpoolStopped> {
        let Ok(credentials) = self.service.granted() else { return Ok(()) };
        for at in 0..self.lanes.len() {
            while let Some(lane) = self.lanes.get_mut(at) {
                let Some(batch) = self.spool.next(lane.kind, lane.max_records).await? else { break };
                let verdict = match send(&self.service, &credentials, &batch).await {
                    Ok(answer) => match lane.judge(&batch, &answer) {
                        Next::Settle(verdict) => verdict,
                        Next::Wait(_) => break,
                    },
                    Err(NotSent::Unreadable(reason)) => lane.refuse(&batch, &reason),
                    Err(NotSent::Call(_)) => return Ok(()),
                };
                self.spool.settle(batch.kind, batch.batch, verdict).await?;
            }
        }
        Ok(())
    }

    /// Sends one batch, of the lane that has waited longest. Gives the time until there may be more to do.
    async fn turn(&mut self, credentials: &Credentials) -> Result<Duration, SpoolStopped> {
        if !self.clock.offset().known {
            // Whatever the answer, it carries the time; data that is sent before would carry 1970.
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
        lane.refusals.say(lane.kind, now);
        // Asking for a batch writes what is in memory to disk: not done for nothing.
        let waiting = self.spool.stats().usage.get(lane.kind).records;
        let batch = if waiting > 0 { self.spool.next(lane.kind, lane.max_records).await? } else { None };
        let Some(batch) = batch else {
            lane.due = now + lane.interval;
            // That nothing waits because all of it was refused is worth knowing for a while.
            if lane.refusals.said_at.is_none() {
                self.uploads.is_taken(lane.kind);
            }
            return Ok(Duration::ZERO);
        };
        let answer = match send(&self.service, credentials, &batch).await {
            Ok(answer) => answer,
            // A claim changes the access, which wakes the loop.
            Err(NotSent::Call(CallError::NoAccess)) => return Ok(LONGEST_REST),
            Err(NotSent::Unreadable(reason)) => {
                let verdict = lane.refuse(&batch, &reason);
                self.uploads.is_not_taken(lane.kind, set_aside(&reason), self.clock.now());
                self.spool.settle(batch.kind, batch.batch, verdict).await?;
                return Ok(Duration::ZERO);
            }
            Err(NotSent::Call(CallError::Unreachable(reason))) => {
                // It may well be reached, and only the token not be renewed.
                if self.service.contact().unreachable.is_none() {
                    self.uploads.is_not_taken(lane.kind, reason, self.clock.now());
                }
                return Ok(self.backoff.next(None));
            }
        };
        self.backoff.reset();
        match lane.judge(&batch, &answer) {
            Next::Settle(verdict) => {
                match verdict {
                    Verdict::Refused => {
                        self.uploads.is_not_taken(lane.kind, set_aside(&answer.reason()), self.clock.now());
                    }
                    Verdict::Stored { .. } => self.uploads.is_taken(lane.kind),
                    Verdict::TooLarge => {}
                }
                if let Verdict::Stored { rejected } = verdict {
                    self.uploads.delivered.fetch_add(batch.records.saturating_sub(rejected), Ordering::Relaxed);
                }
                // A batch as large as they get: there is more, and the service does not mind. Windows do not become larger.
                let is_full = match lane.kind {
                    Kind::BleWindows => waiting > batch.records,
                    _ => batch.records > lane.max_records / 2,
                };
                let more = is_full && lane.interval == lane.base_interval;
                lane.due = if more || verdict == Verdict::TooLarge { now } else { now + lane.interval };
                self.spool.settle(batch.kind, batch.batch, verdict).await?;
            }
            Next::Wait(wait) => {
                self.uploads.is_not_taken(lane.kind, answer.reason(), self.clock.now());
                lane.due = Instant::now() + wait;
            }
        }
        Ok(Duration::ZERO)
    }
}

/// Why a batch has no answer.
enum NotSent {
    Call(CallError),
    /// It makes no sense, and never will.
    Unreadable(String),
}

impl From<CallError> for NotSent {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

fn set_aside(reason: &str) -> String {
    format!("refused for good and set aside: {reason}")
}

async fn send(service: &Service, credentials: &Credentials, batch: &Batch) -> Result<Answer, NotSent> {
    if batch.kind == Kind::JobEvents {
        return send_job_event(service, credentials, batch).await;
    }
    let mut request = Request::post_json(path(batch.kind, credentials.hub_uuid), batch.body.clone())
        .header(CONTENT_ENCODING, "zstd")
        .header(IDEMPOTENCY_KEY, &batch.batch.to_string());
    // A batch keeps its size: on a slow line it needs its time, or it would never arrive.
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
        // Never the place of an upload: each has its job's.
        Kind::JobEvents => format!("/v1/hubs/{hub_uuid}/jobs"),
    }
}

/// What happened to one job. Its path has the job, and its key is the event's own: sent again it is stored once.
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
    /// Says the first, and leaves the others to be told by their number.
    fn count(&mut self, batch: &Batch, reason: &str) {
        if self.said_at.is_some() {
            self.uploads += 1;
            self.records += batch.records;
            return;
        }
        self.said_at = Some(Instant::now());
        tracing::error!(
            kind = ?batch.kind, batch_uuid = %batch.batch, records = batch.records, reason,
            "the service refuses an upload for good; it is set aside and counted"
        );
    }

    fn say(&mut self, kind: Kind, now: Instant) {
        if self.said_at.is_none_or(|at| now.duration_since(at) < SAY_REFUSALS_EVERY) {
            return;
        }
        let Self { uploads, records, .. } = std::mem::take(self);
        if uploads > 0 {
            tracing::error!(?kind, uploads, records, "the service refused more uploads for good in the last minute");
            self.said_at = Some(now);
        }
    }
}

/// The records the service would not take out of an upload that it has stored. `None` when it did not say, in the one way it does, that the
/// upload is stored: a login page or a proxy answers 200 to anything, and what is taken for delivered is gone.
fn stored(kind: Kind, answer: &Answer) -> Option<Vec<RejectedEvent>> {
    match (kind.is_ble(), answer.status) {
        (true, 201) => answer.data::<BleUploadResult>().ok().map(|result| result.rejected),
        (false, 204) => Some(Vec::new()),
        _ => None,
    }
}

impl Lane {
    fn judge(&mut self, batch: &Batch, answer: &Answer) -> Next {
        if let Some(rejected) = stored(batch.kind, answer) {
            if self.said.take().is_some() {
                tracing::info!(kind = ?self.kind, "uploads are taken again");
            }
            self.backoff.reset();
            // Slowly back to the usual pace.
            self.interval = self.interval.mul_f64(0.9).max(self.base_interval);
            if let Some(first) = rejected.first() {
                tracing::warn!(
                    batch_uuid = %batch.batch, rejected = rejected.len(), index = first.index, reason = first.message,
                    "the service took an upload but for some of its records"
                );
            }
            return Next::Settle(Verdict::Stored { rejected: rejected.len() as u64 });
        }
        match answer.status {
            // The job is over or gone: nobody waits for the event any more.
            404 | 409 if batch.kind == Kind::JobEvents && answer.problem().is_some() => {
                tracing::info!(reason = answer.reason(), "the service has no use for an event of a job that is over");
                Next::Settle(Verdict::Stored { rejected: 1 })
            }
            413 if batch.records > 1 => {
                self.max_records = (batch.records / 2).max(1);
                Next::Settle(Verdict::TooLarge)
            }
            // Only the service itself can refuse for good: a proxy that does says nothing about the batch.
            400 | 409 | 413 | 415 | 422 if answer.problem().is_some() => {
                Next::Settle(self.refuse(batch, &answer.reason()))
            }
            429 => {
                self.interval = (self.interval * 2).clamp(Duration::from_secs(1), LONGEST_INTERVAL);
                self.say(answer, "the service asks for fewer uploads; they become larger instead");
                Next::Wait(self.backoff.next(answer.retry_after).max(self.interval))
            }
            _ => {
                self.say(answer, "the service does not take an upload; it is tried again");
                Next::Wait(self.backoff.next(answer.retry_after))
            }
        }
    }

    fn refuse(&mut self, batch: &Batch, reason: &str) -> Verdict {
        self.refusals.count(batch, reason);
        Verdict::Refused
    }

    /// Says a trouble once.
    fn say(&mut self, answer: &Answer, what: &str) {
        if self.said != Some(answer.status) {
            self.said = Some(answer.status);
            tracing::warn!(kind = ?self.kind, reason = answer.reason(), "{what}");
        }
    }
}

#[cfg(test)]
mod tests {
    use hub_protocol::TenantUuid;

    use super::*;
    use crate::config::{ServiceArgs, Span};
    use crate::identity::StateDir;
    use crate::spool::SpoolConfig;

    #[tokio::test]
    async fn an_event_that_nobody_can_read_is_set_aside() {
        crate::cloud::install_crypto();
        let dir = tempfile::tempdir().unwrap();
        let state_dir = Arc::new(StateDir::open(dir.path()).unwrap());
        let clock = Arc::new(Clock::new());
        let args = ServiceArgs {
            service_url: Some("http://127.0.0.1:1".into()),
            ca_file: None,
            device_instance_id: None,
            hub_identifier: None,
            connect_timeout: Span(Duration::from_secs(1)),
            request_timeout: Span(Duration::from_secs(1)),
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
            uplink.turn(&credentials).await.unwrap();
        }
        assert_eq!(spool.next(Kind::JobEvents, 1).await.unwrap(), None, "it is in nobody's way");
        assert!(std::fs::read_dir(dir.path().join("refused")).unwrap().count() == 1);
        let not_taken = uplink.uploads().not_taken();
        assert!(not_taken.get(Kind::JobEvents).as_ref().unwrap().reason.contains("a job's event"), "{not_taken:?}");
    }
}
