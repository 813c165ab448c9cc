//! Sends the spool's batches to the service, in order and one at a time, at the pace that leaves
//! the other hubs of the tenant their share. A batch that the service refuses permanently is
//! quarantined and counted, so that it blocks nothing; every other batch is repeated until it is
//! delivered. Never changes a batch that may have been sent.

mod sending;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub_protocol::hub::UploadPauses;
use hub_protocol::pace::Pace;
use hub_protocol::{HubUuid, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::clock::Clock;
use crate::cloud::{Access, Answer, CallError, Request, Service};
use crate::heartbeat::Heartbeat;
use crate::identity::Credentials;
use crate::pauses::Pauses;
use crate::spool::{Batch, Kind, PerKind, Spool, SpoolStopped, Verdict};
use sending::{NotSent, send, stored};

/// How long a hub without known pauses waits for them before it uploads anything.
const PAUSES_WITHIN: Duration = Duration::from_secs(5);

/// Kinds with longer pauses are not uploaded when the agent ends: all hubs of a fleet may be
/// stopped at once.
const DRAINED_PAUSE_MS: i64 = 5_000;

/// The number of refusals in a row, because of too frequent uploads, from which the status shows
/// them.
const SHOWN_REFUSALS: u32 = 3;

/// How often the number of refused uploads is logged.
const LOG_REFUSALS_EVERY: Duration = Duration::from_secs(60);

/// How often in an hour a refused upload of a kind is divided, to find the records that are
/// refused: each costs twice as many uploads as the number of records has bits.
const DIVISIONS_AN_HOUR: u32 = 40;
const HOUR: Duration = Duration::from_secs(3_600);

/// The longest rest of the loop: the watchdog expects it to move.
const LONGEST_REST: Duration = Duration::from_secs(20);

pub struct Uplink {
    service: Arc<Service>,
    spool: Spool,
    clock: Arc<Clock>,
    pauses: watch::Receiver<Pauses>,
    /// The hub and the pauses that the paces follow.
    followed: Option<(HubUuid, Pauses)>,
    paces: Paces,
    lanes: [Lane; 5],
    /// The number of uploads so far.
    round: u64,
    /// The backoff of all uploads while the service cannot be reached.
    backoff: Backoff,
    uploads: Arc<Uploads>,
}

/// A pace for each limit of the service: it counts events and windows together.
struct Paces {
    ble: Pace,
    telemetry: Pace,
    logs: Pace,
    job_events: Pace,
}

impl Paces {
    fn of(&mut self, kind: Kind) -> &mut Pace {
        match kind {
            Kind::BleEvents | Kind::BleWindows => &mut self.ble,
            Kind::Telemetry => &mut self.telemetry,
            Kind::Logs => &mut self.logs,
            Kind::JobEvents => &mut self.job_events,
        }
    }
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
        self.not_accepted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The uploads of one kind.
struct Lane {
    kind: Kind,
    due: Instant,
    /// The round in which it was sent last.
    sent_in: u64,
    max_records: u64,
    backoff: Backoff,
    /// The status of the last failure that was logged: it is logged once.
    logged: Option<u16>,
    refusals: Refusals,
    divisions: Divisions,
}

/// How often uploads of a kind were divided in this hour.
struct Divisions {
    since: Instant,
    count: u32,
}

impl Divisions {
    fn is_allowed(&mut self) -> bool {
        if self.since.elapsed() >= HOUR {
            *self = Self {
                since: Instant::now(),
                count: 0,
            };
        }
        self.count += 1;
        self.count <= DIVISIONS_AN_HOUR
    }
}

/// Uploads of one kind that were refused permanently. Refusals may come in rapid succession, and
/// each log line about one is itself uploaded, so only the first is logged at once.
#[derive(Default)]
struct Refusals {
    logged_at: Option<Instant>,
    /// The number of refusals since then.
    uploads: u64,
    records: u64,
}

/// The next action after an answer.
enum Next {
    Resolve(Verdict),
    /// The service limits the rate of uploads.
    Slower,
    Wait(Duration),
}

impl Uplink {
    pub fn new(
        service: Arc<Service>,
        spool: Spool,
        clock: Arc<Clock>,
        pauses: watch::Receiver<Pauses>,
        base_interval: Duration,
    ) -> Self {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(300));
        let lanes = Kind::ALL.map(|kind| Lane {
            kind,
            due: Instant::now(),
            sent_in: 0,
            max_records: kind.max_records(),
            backoff: backoff.clone(),
            logged: None,
            refusals: Refusals::default(),
            divisions: Divisions {
                since: Instant::now(),
                count: 0,
            },
        });
        let pace = || {
            Pace::new(
                i64::try_from(base_interval.as_millis()).unwrap_or(i64::MAX),
                0.0,
            )
        };
        let paces = Paces {
            ble: pace(),
            telemetry: pace(),
            logs: pace(),
            job_events: pace(),
        };
        Self {
            service,
            spool,
            clock,
            pauses,
            followed: None,
            paces,
            lanes,
            round: 0,
            backoff,
            uploads: Arc::default(),
        }
    }

    pub fn uploads(&self) -> Arc<Uploads> {
        self.uploads.clone()
    }

    /// Uploads until cancelled, or until the spool has stopped.
    pub async fn run(
        &mut self,
        beat: &Heartbeat,
        cancel: &CancellationToken,
    ) -> Result<(), SpoolStopped> {
        let mut access = self.service.access();
        let mut pauses = self.pauses.clone();
        let mut pauses_until = None;
        loop {
            beat.beat();
            let known = *pauses.borrow_and_update();
            let granted = match &*access.borrow_and_update() {
                Access::Granted(credentials) => Some(credentials.clone()),
                Access::Unclaimed | Access::Refused { .. } => None,
            };
            let rest = match granted {
                Some(credentials) => {
                    let until = *pauses_until.get_or_insert_with(|| Instant::now() + PAUSES_WITHIN);
                    let left = until.saturating_duration_since(Instant::now());
                    if known == Pauses::Unknown && !left.is_zero() {
                        tokio::select! {
                            () = cancel.cancelled() => return Ok(()),
                            () = tokio::time::sleep(left) => {}
                            _ = pauses.changed() => {}
                        }
                        continue;
                    }
                    self.follow(credentials.hub_uuid, known);
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
                _ = pauses.changed() => {}
            }
        }
    }

    /// Takes turns as the service says, from now on.
    fn follow(&mut self, hub_uuid: HubUuid, pauses: Pauses) {
        if self.followed == Some((hub_uuid, pauses)) {
            return;
        }
        self.followed = Some((hub_uuid, pauses));
        let own_phase = f64::from(hub_uuid.0.as_u128() as u32) / f64::from(u32::MAX);
        let given = match pauses {
            Pauses::Given(given) => given,
            Pauses::Unknown | Pauses::None => UploadPauses {
                telemetry_pause_ms: 0,
                ble_events_pause_ms: 0,
                logs_pause_ms: 0,
                phase: own_phase,
            },
        };
        self.paces
            .telemetry
            .set(given.telemetry_pause_ms, given.phase);
        self.paces.ble.set(given.ble_events_pause_ms, given.phase);
        self.paces.logs.set(given.logs_pause_ms, given.phase);
        let now = Now::of(&self.clock);
        for lane in &mut self.lanes {
            let pace = self.paces.of(lane.kind);
            // A refused upload waits as long as the service requested.
            if pace.refusals() == 0 {
                lane.due = now.instant_of(pace.first(now.millis));
            }
        }
    }

    /// Sends everything once, until nothing is left or a call fails: the last work before the agent
    /// ends.
    pub async fn drain(&mut self) -> Result<(), SpoolStopped> {
        let Ok(credentials) = self.service.granted() else {
            return Ok(());
        };
        for lane in &mut self.lanes {
            if self.paces.of(lane.kind).pause_ms() > DRAINED_PAUSE_MS {
                continue;
            }
            while let Some(batch) = self.spool.next(lane.kind, lane.max_records).await? {
                let verdict = match send(&self.service, &credentials, &batch).await {
                    Ok(answer) => match lane.evaluate(&batch, &answer) {
                        Next::Resolve(verdict) => verdict,
                        Next::Slower | Next::Wait(_) => break,
                    },
                    Err(NotSent::Unreadable(reason)) => lane.refuse(&batch, &reason),
                    Err(NotSent::Call(_)) => return Ok(()),
                };
                self.spool.resolve(batch.kind, batch.batch, verdict).await?;
            }
        }
        Ok(())
    }

    /// Sends one batch, of the lane whose turn it is. Returns the time until there may be more to
    /// do.
    async fn send_next(&mut self, credentials: &Credentials) -> Result<Duration, SpoolStopped> {
        if !self.clock.offset().known {
            // Any answer has the service's time; data that is sent before would have times in 1970.
            return Ok(
                match self
                    .service
                    .call_as(credentials, &Request::get("/v1/test"))
                    .await
                {
                    Ok(_) if self.clock.offset().known => Duration::ZERO,
                    _ => self.backoff.next(None),
                },
            );
        }
        let now = Now::of(&self.clock);
        let Some(lane) = self
            .lanes
            .iter_mut()
            .min_by_key(|lane| lane.order(now.instant))
        else {
            return Ok(LONGEST_REST);
        };
        if lane.due > now.instant {
            return Ok(lane.due - now.instant);
        }
        let (kind, pace) = (lane.kind, self.paces.of(lane.kind));
        lane.refusals.log(kind, now.instant);
        // Forming a batch writes the records in memory to disk, so it is not done without records.
        let waiting = self.spool.stats().usage.get(kind).records;
        let batch = if waiting > 0 {
            self.spool.next(kind, lane.max_records).await?
        } else {
            None
        };
        let Some(batch) = batch else {
            lane.due = now.instant_of(pace.idle(now.millis));
            // An empty queue does not clear the reason if it is empty because everything was
            // refused.
            if lane.refusals.logged_at.is_none() {
                self.uploads.set_accepted(kind);
            }
            return Ok(Duration::ZERO);
        };
        self.round += 1;
        lane.sent_in = self.round;
        let answer = match send(&self.service, credentials, &batch).await {
            Ok(answer) => answer,
            // A claim changes the access, which wakes this loop.
            Err(NotSent::Call(CallError::NoAccess)) => return Ok(LONGEST_REST),
            Err(NotSent::Unreadable(reason)) => {
                let verdict = lane.refuse(&batch, &reason);
                self.uploads
                    .set_not_accepted(kind, quarantined(&reason), self.clock.now());
                self.spool.resolve(kind, batch.batch, verdict).await?;
                return Ok(Duration::ZERO);
            }
            Err(NotSent::Call(CallError::Unreachable(reason))) => {
                // The service may be reachable, and only the token's renewal failed.
                if self.service.contact().unreachable.is_none() {
                    self.uploads
                        .set_not_accepted(kind, reason, self.clock.now());
                }
                // After an outage all hubs return at once: telemetry shows that they are back, all
                // else waits for its turn.
                if kind != Kind::Telemetry {
                    lane.due = now.instant_of(pace.idle(now.millis));
                }
                return Ok(self.backoff.next(None));
            }
        };
        self.backoff.reset();
        let now = Now::of(&self.clock);
        match lane.evaluate(&batch, &answer) {
            Next::Resolve(verdict) => {
                match verdict {
                    Verdict::Refused => {
                        self.uploads.set_not_accepted(
                            kind,
                            quarantined(&answer.reason()),
                            self.clock.now(),
                        );
                    }
                    Verdict::Stored { .. } => self.uploads.set_accepted(kind),
                    Verdict::TooLarge => {}
                }
                if let Verdict::Stored { rejected } = verdict {
                    self.uploads
                        .delivered
                        .fetch_add(batch.records.saturating_sub(rejected), Ordering::Relaxed);
                }
                // A full batch: there are more records, and the service accepts them. Windows do
                // not grow.
                let is_full = match kind {
                    Kind::BleWindows => waiting > batch.records,
                    _ => batch.records > lane.max_records / 2,
                };
                let due = now.instant_of(pace.accepted(now.millis, answer.rate_limit, is_full));
                lane.due = if verdict == Verdict::TooLarge {
                    now.instant
                } else {
                    due
                };
                let has_turns = pace.has_turns();
                self.spool.resolve(kind, batch.batch, verdict).await?;
                if has_turns {
                    self.delay_both(kind);
                }
            }
            Next::Slower => {
                let retry_after_ms = answer
                    .retry_after
                    .and_then(|wait| i64::try_from(wait.as_millis()).ok());
                lane.due = now.instant_of(pace.refused(now.millis, retry_after_ms));
                if pace.refusals() >= SHOWN_REFUSALS {
                    self.uploads
                        .set_not_accepted(kind, answer.reason(), self.clock.now());
                }
                self.delay_both(kind);
            }
            Next::Wait(wait) => {
                self.uploads
                    .set_not_accepted(kind, answer.reason(), self.clock.now());
                lane.due = now.instant + wait;
            }
        }
        Ok(Duration::ZERO)
    }

    /// Both kinds of BLE upload share a limit: a wait of one applies to the other too.
    fn delay_both(&mut self, kind: Kind) {
        let due = self
            .lanes
            .iter()
            .filter(|lane| lane.kind == kind && kind.is_ble())
            .map(|lane| lane.due)
            .max();
        let Some(due) = due else { return };
        for lane in self.lanes.iter_mut().filter(|lane| lane.kind.is_ble()) {
            lane.due = lane.due.max(due);
        }
    }
}

/// The same moment by the machine's monotonic clock and by the service's.
#[derive(Clone, Copy)]
struct Now {
    instant: Instant,
    /// Milliseconds since 1970.
    millis: i64,
}

impl Now {
    fn of(clock: &Clock) -> Self {
        Self {
            instant: Instant::now(),
            millis: clock.now().as_micros().div_euclid(1_000),
        }
    }

    fn instant_of(self, millis: i64) -> Instant {
        let from_now = u64::try_from(millis.saturating_sub(self.millis)).unwrap_or(0);
        self.instant + Duration::from_millis(from_now)
    }
}

fn quarantined(reason: &str) -> String {
    format!("refused for good and quarantined: {reason}")
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
        if self
            .logged_at
            .is_none_or(|at| now.duration_since(at) < LOG_REFUSALS_EVERY)
        {
            return;
        }
        let Self {
            uploads, records, ..
        } = std::mem::take(self);
        if uploads > 0 {
            tracing::error!(
                ?kind,
                uploads,
                records,
                "the service refused more uploads for good in the last minute"
            );
            self.logged_at = Some(now);
        }
    }
}

impl Lane {
    /// The least is next: of the lanes that are due telemetry, without which the hub looks offline,
    /// then the one that was sent longest ago; else the lane that is due first.
    fn order(&self, now: Instant) -> (bool, bool, u64, Instant) {
        match self.due <= now {
            true => (false, self.kind != Kind::Telemetry, self.sent_in, now),
            false => (true, false, 0, self.due),
        }
    }

    fn evaluate(&mut self, batch: &Batch, answer: &Answer) -> Next {
        if let Some(rejected) = stored(batch.kind, answer) {
            if self.logged.take().is_some() {
                tracing::info!(kind = ?self.kind, "uploads are accepted again");
            }
            self.backoff.reset();
            if let Some(first) = rejected.first() {
                tracing::warn!(
                    batch_uuid = %batch.batch, rejected = rejected.len(), index = first.index, reason = first.message,
                    "the service accepted an upload except for some of its records"
                );
            }
            return Next::Resolve(Verdict::Stored {
                rejected: rejected.len() as u64,
            });
        }
        match answer.status {
            // The job is finished or deleted: the service needs no more events of it.
            404 | 409 if batch.kind == Kind::JobEvents && answer.problem().is_some() => {
                tracing::info!(
                    reason = answer.reason(),
                    "the service no longer accepts events of a finished job"
                );
                Next::Resolve(Verdict::Stored { rejected: 1 })
            }
            413 if batch.records > 1 => {
                self.max_records = (batch.records / 2).max(1);
                Next::Resolve(Verdict::TooLarge)
            }
            // One record of it is refused, and must not cost the others.
            400 | 422
                if batch.records > 1
                    && answer.problem().is_some()
                    && self.divisions.is_allowed() =>
            {
                Next::Resolve(Verdict::TooLarge)
            }
            // Only the service itself refuses permanently: a proxy's refusal says nothing about the
            // batch.
            400 | 409 | 413 | 415 | 422 if answer.problem().is_some() => {
                Next::Resolve(self.refuse(batch, &answer.reason()))
            }
            // The refusal is not logged: every hub of a fleet would upload that log entry, and be
            // refused once more.
            429 => Next::Slower,
            _ => {
                self.log(
                    answer,
                    "the service did not accept an upload; it is sent again",
                );
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
            proxy_url: None,
            device_instance_id: None,
            hub_identifier: None,
            connect_timeout: "1s".parse().unwrap(),
            request_timeout: "1s".parse().unwrap(),
        };
        let service = Arc::new(Service::new(&args, state_dir, clock.clone()).unwrap());
        let spool = Spool::start(SpoolConfig::of(dir.path()), clock.clone(), || {}).unwrap();
        assert!(
            spool
                .keep(Kind::JobEvents, &serde_json::json!({"hubJobUuid": 7}))
                .await
                .unwrap()
        );
        let (_pauses, pauses) = watch::channel(Pauses::None);
        let mut uplink = Uplink::new(
            service,
            spool.clone(),
            clock,
            pauses,
            Duration::from_secs(60),
        );
        let credentials = Credentials {
            hub_uuid: HubUuid::new(),
            tenant_uuid: TenantUuid::new(),
            access_token: "access".to_owned().into(),
            refresh_token: "refresh".to_owned().into(),
            expires_at: Timestamp::from_micros(i64::MAX),
            service_url: None,
        };
        for _ in Kind::ALL {
            uplink.send_next(&credentials).await.unwrap();
        }
        assert_eq!(
            spool.next(Kind::JobEvents, 1).await.unwrap(),
            None,
            "it blocks nothing"
        );
        assert!(
            std::fs::read_dir(dir.path().join("refused"))
                .unwrap()
                .count()
                == 1
        );
        let not_accepted = uplink.uploads().not_accepted();
        assert!(
            not_accepted
                .get(Kind::JobEvents)
                .as_ref()
                .unwrap()
                .reason
                .contains("a job's event"),
            "{not_accepted:?}"
        );
    }
}
