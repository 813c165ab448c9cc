//! Carries out runs. What a batch changes and how far the run is are one transaction, so that a run
//! is continued where it was by whoever comes next. Rollups follow when all events are read: their
//! hours are noted in that transaction too.

use std::time::{Duration, Instant};

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::pace::{Held, Pace};
use hub_core::tasks::{Done, Task};
use hub_identity::authz::Scope;
use hub_ingest::batches::Rewritten;
use hub_ingest::{history, log};
use hub_protocol::Timestamp;
use serde_json::Value;

use super::batch::Batches;
use super::store::{self, Hours};
use super::{Cause, Payload, Run};
use crate::ble::{self, Change, ReprocessedEvent};
use crate::device_history::{self, Changed, hour_of};
use crate::device_instances::heard::{self, Changes};
use crate::device_instances::{ActivationKind, BindKeyStatus};
use crate::recognition::{LateStates, Recognition, Unread};

/// Changes of devices that follow from what was read are audited as this one's.
const NAME: &str = "reprocessing";
/// The time after which the next tenant is served.
const RUN_TIME: Duration = Duration::from_secs(20);
/// The longest time between two writes of a run's progress, also without changes.
const SAVE_EVERY: Duration = Duration::from_secs(2);
/// Changes of events in files that are kept in memory at most.
const MAX_KEPT: i64 = 65_536;
/// The rest after a batch while no upload runs, as a multiple of the batch's duration.
const IDLE_REST: f64 = 0.05;
/// Hours of devices whose rollups are rebuilt at once.
const HOURS: i64 = 100;
/// A run that fails so often in a row is given up.
const MAX_ATTEMPTS: i64 = 10;
/// The wait after there was no time for a script once more.
const UNREAD_AGAIN_SECS: i64 = 60;
/// The wait for room on the disk.
const FULL_PAUSE_SECS: i64 = 30;

/// Carries on the oldest run of a tenant, for a while.
pub async fn perform(core: &Core, recognition: &Recognition, task: &Task) -> Result<Done> {
    let Payload { tenant_uuid } = Payload::of(&task.payload)?;
    let run = store::next(&mut core.db.read().await?, tenant_uuid).await?;
    let Some(run) = run else {
        return Ok(Done::Finished);
    };
    if core.storage.is_full() {
        return Ok(Done::RunAt(core.clock.now().plus_secs(FULL_PAUSE_SECS)));
    }
    match carry_on(core, recognition, run.clone()).await {
        Err(error) if task.attempts >= MAX_ATTEMPTS && !error.is_storage_full() => {
            tracing::error!(task = %run.task_uuid, %error, "reprocessing was given up");
            end(
                core,
                &run,
                Some("it failed repeatedly and was given up; the log of the service says why"),
            )
            .await?;
        }
        carried_on => carried_on?,
    }
    // The run continues, or another one does, or none is left.
    Ok(Done::RunAt(core.clock.now()))
}

impl Payload {
    fn of(payload: &Value) -> Result<Self> {
        serde_json::from_value(payload.clone()).map_err(Error::internal)
    }
}

async fn carry_on(core: &Core, recognition: &Recognition, mut run: Run) -> Result<()> {
    if run.started_at.is_none() {
        start(core, &mut run).await?;
    }
    recognition.latest_catalog(run.tenant_uuid).await?;
    let batches = Batches::new(core, recognition, run.tenant_uuid, run.selection());
    let now = Instant::now();
    let mut work = Work {
        core,
        recognition,
        batches,
        pace: Pace::new(
            core,
            IDLE_REST,
            core.metrics.reprocess_batch_duration.clone(),
        ),
        part: Part::new(&run),
        ends_at: now + RUN_TIME,
        saved_id: run.next_id,
        saved_at: now,
        run,
    };
    if work.read_all().await? && work.recount().await? {
        end(core, &work.run, None).await?;
    }
    Ok(())
}

async fn start(core: &Core, run: &mut Run) -> Result<()> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    store::start(&mut tx, run.task_uuid, now).await?;
    tx.commit_unaudited("the request for it has an entry")
        .await?;
    run.started_at = Some(now);
    tracing::info!(
        task = %run.task_uuid, tenant = %run.tenant_uuid, cause = run.cause.name(),
        from = %Timestamp::from_micros(run.range.from_id), to = %Timestamp::from_micros(run.range.to_id),
        "stored events are read again",
    );
    Ok(())
}

async fn end(core: &Core, run: &Run, error: Option<&str>) -> Result<()> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    let is_ours = store::finish(&mut tx, run.task_uuid, error, now).await?;
    tx.commit_unaudited("the request for it has an entry")
        .await?;
    if is_ours {
        let counts = run.counts;
        tracing::info!(
            task = %run.task_uuid, tenant = %run.tenant_uuid, events = counts.events, changed = counts.changed,
            newly_decoded = counts.newly_decoded, no_longer_decoded = counts.no_longer_decoded, error,
            "stored events were read again",
        );
    }
    Ok(())
}

/// The writes of one transaction.
struct Part {
    rewritten: Vec<Rewritten>,
    hours: Hours,
    late: LateStates,
}

impl Part {
    fn new(run: &Run) -> Self {
        Self {
            rewritten: Vec::new(),
            hours: Hours::new(),
            late: LateStates::new(run.tenant_uuid),
        }
    }

    fn len(&self) -> i64 {
        i64::try_from(self.rewritten.len()).unwrap_or(i64::MAX)
    }

    fn add(&mut self, ble_event_id: i64, change: Change) {
        let Change {
            observed_at,
            before,
            after,
            heard,
            ..
        } = change;
        let received_at = Timestamp::from_micros(ble_event_id);
        let hour = hour_of(observed_at.min(received_at));
        for device_instance_id in [before.device_instance_id, after.device_instance_id]
            .into_iter()
            .flatten()
        {
            let ids = self
                .hours
                .entry((device_instance_id, hour))
                .or_insert((ble_event_id, ble_event_id));
            *ids = (ids.0.min(ble_event_id), ids.1.max(ble_event_id));
        }
        if let Some(heard) = heard {
            self.late.hear(&heard, received_at);
        }
        let bytes =
            |text: Option<&str>| text.map_or(0, |text| i64::try_from(text.len()).unwrap_or(0));
        self.rewritten.push(Rewritten {
            ble_event_id,
            device_instance_id: after.device_instance_id,
            processing_status: after.status,
            more_bytes: bytes(after.reading.as_deref()) - bytes(before.reading.as_deref()),
            reading: after.reading,
        });
    }
}

struct Work<'a> {
    core: &'a Core,
    recognition: &'a Recognition,
    batches: Batches<'a>,
    pace: Pace,
    /// Changes that are not stored yet.
    part: Part,
    run: Run,
    ends_at: Instant,
    /// The stored progress of the run.
    saved_id: i64,
    saved_at: Instant,
}

impl Work<'_> {
    fn is_over(&self) -> bool {
        self.core.shutdown.is_cancelled()
            || Instant::now() >= self.ends_at
            || self.core.storage.is_full()
    }

    /// Reads the events of the run and writes what changes. Returns whether none is left.
    async fn read_all(&mut self) -> Result<bool> {
        let to = self.run.range.to_id;
        let mut stored = self.batches.stored((self.run.next_id, to)).await?;
        while !stored.is_empty() {
            if self.is_over() {
                self.store().await?;
                return Ok(false);
            }
            let began_at = Instant::now();
            let (events, next) = self.batches.reprocess(stored, to).await?;
            stored = next;
            self.core
                .metrics
                .reprocessed_events
                .inc_by(u64::try_from(events.len()).unwrap_or(0));
            let took = began_at.elapsed();
            let Some((wrote_for, rows)) = self.write(events).await? else {
                return Ok(false);
            };
            self.pace.rest(self.core, took + wrote_for, rows).await;
        }
        self.run.next_id = to;
        Ok(self.store().await?.is_some())
    }

    /// Writes the changes of a batch. Returns its duration and the number of changed events; None
    /// if the run has to be read from its row again.
    async fn write(&mut self, events: Vec<ReprocessedEvent>) -> Result<Option<(Duration, i64)>> {
        if self.run.cause == Cause::ScriptTime && events.iter().any(|event| event.is_unread) {
            let now = self.core.clock.now();
            let unread = Unread {
                tenant_uuid: self.run.tenant_uuid,
                from: Timestamp::from_micros(self.run.range.from_id),
                to: Timestamp::from_micros(self.run.range.to_id),
            };
            let due_at = now.plus_secs(UNREAD_AGAIN_SECS);
            unread.enqueue(self.core, due_at, now).await?;
        }
        let catalog = self.recognition.catalog(self.run.tenant_uuid).await?;
        let proved = ble::proved_keys(&catalog, &events);
        let closed_to = log::closed_to(&self.core.event_log, self.run.tenant_uuid).await?;
        let (mut took, mut rows) = (Duration::ZERO, 0);
        for event in events {
            let ble_event_id = event.ble_event_id;
            self.run.next_id = ble_event_id.saturating_add(1);
            if !self.run.range.has(&event) {
                continue;
            }
            self.run.counts.add(&event);
            if let Some(change) = event.change {
                self.part.add(ble_event_id, *change);
            }
            if ble_event_id > closed_to && self.part.len() >= self.pace.size() {
                rows += self.part.len();
                let Some(wrote_for) = self.store().await? else {
                    return Ok(None);
                };
                took += wrote_for;
            }
        }
        // A file is written again as a whole, so that its changes are collected first.
        let is_in_files = self.run.next_id <= closed_to;
        let is_kept = is_in_files && (1..MAX_KEPT).contains(&self.part.len());
        let is_unsaved = self.part.len() > 0 || self.saved_at.elapsed() >= SAVE_EVERY;
        if is_unsaved && !is_kept {
            rows += self.part.len();
            let Some(wrote_for) = self.store().await? else {
                return Ok(None);
            };
            took += wrote_for;
        }
        for (device_instance_id, hub_uuid) in proved {
            let mut changes = Changes::default();
            changes
                .bind_keys
                .insert(device_instance_id, BindKeyStatus::Verified);
            let scope = Scope::system(NAME, self.run.tenant_uuid);
            heard::apply(
                self.core,
                &scope,
                hub_uuid,
                ActivationKind::Upload,
                &changes,
            )
            .await?;
        }
        Ok(Some((took, rows)))
    }

    /// Stores the changes so far and the progress of the run. None if another process has continued
    /// the run, or events were deleted: then no change was stored.
    async fn store(&mut self) -> Result<Option<Duration>> {
        let part = std::mem::replace(&mut self.part, Part::new(&self.run));
        let (tenant_uuid, task_uuid, rows) = (self.run.tenant_uuid, self.run.task_uuid, part.len());
        let now = self.core.clock.now();
        let rewrite = log::rewrite(self.core, tenant_uuid, part.rewritten, now).await?;
        let mut tx = self.core.db.begin().await?;
        let mut held = Held::begin();
        if !store::advance(&mut tx, &self.run, self.saved_id).await?
            || !rewrite.apply(&mut tx).await?
        {
            return Ok(None);
        }
        store::add_hours(&mut tx, task_uuid, &part.hours).await?;
        part.late.write(&mut tx).await?;
        held.commits();
        tx.commit_unaudited("what is read from stored events is no change by an actor")
            .await?;
        if rewrite.replaces_files() {
            history::remove_files(self.core, || self.is_over()).await?;
        }
        self.saved_id = self.run.next_id;
        self.saved_at = Instant::now();
        self.core
            .metrics
            .reprocess_changed_events
            .inc_by(rows.unsigned_abs());
        Ok(Some(self.pace.measure(&held, rows)))
    }

    /// Rebuilds the rollups in which events have changed. Returns whether that is complete.
    async fn recount(&self) -> Result<bool> {
        let (tenant_uuid, task_uuid) = (self.run.tenant_uuid, self.run.task_uuid);
        loop {
            let hours = store::hours(&mut self.core.db.read().await?, task_uuid, HOURS).await?;
            let Some(&(last_device, last_hour, ..)) = hours.last() else {
                return Ok(true);
            };
            if self.is_over() {
                return Ok(false);
            }
            let changed = |(device_instance_id, hour, first_id, last_id)| {
                let observed_at = Timestamp::from_micros(0).plus_secs(hour);
                [first_id, last_id].map(|ble_event_id| Changed {
                    device_instance_id,
                    ble_event_id,
                    observed_at,
                })
            };
            let changed: Vec<Changed> = hours.into_iter().flat_map(changed).collect();
            device_history::recount(self.core, tenant_uuid, &changed).await?;
            let mut tx = self.core.db.begin().await?;
            store::delete_hours(&mut tx, task_uuid, (last_device, last_hour)).await?;
            tx.commit_unaudited("rollups that are made anew").await?;
        }
    }
}
