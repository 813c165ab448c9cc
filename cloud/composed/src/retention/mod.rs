//! Deletes records that have been kept for long enough: of each kind for as long as the settings
//! say, or a shorter time of the tenant's own. PostgreSQL drops months that nobody keeps any
//! longer; all else goes in batches that hold the writer for a moment only. A run may end anywhere
//! and be continued by any replica: what is old is read from the tables themselves.

mod consents;
mod pipelines;

use std::time::{Duration, Instant};

use hub_base::db::aged::{AgedLog, Batch};
use hub_base::db::months::Month;
use hub_base::db::{partitions, space};
use hub_base::error::{Error, Result};
use hub_base::metrics::RetentionMetrics;
use hub_core::Core;
use hub_core::audit::{ActorType, retention as audit};
use hub_core::outbox;
use hub_core::pace::{Held, Pace};
use hub_core::tasks::Done;
use hub_devices::device_instances;
use hub_exposure::software;
use hub_fleet::jobs;
use hub_ingest::{self as ingest, Holder, Kind, history};
use hub_pipelines::{lose, lose_all};
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

/// The lane of all kinds of this work.
pub const LANE: &str = "retention";
const ACTIVATIONS: &str = "retention.activations";
const AUDIT: &str = "retention.audit";
const BLE_EVENTS: &str = "retention.ble_events";
const CONSENTS: &str = "retention.consents";
const JOB_EVENTS: &str = "retention.job_events";
const LOGS: &str = "retention.logs";
const PIPELINES: &str = "retention.pipelines";
const REGISTRATION_EVENTS: &str = "retention.registration_events";
const SOFTWARE: &str = "retention.software";
const TELEMETRY: &str = "retention.telemetry";
/// The kinds of task.
pub const KINDS: [&str; 10] = [
    ACTIVATIONS,
    AUDIT,
    BLE_EVENTS,
    CONSENTS,
    JOB_EVENTS,
    LOGS,
    PIPELINES,
    REGISTRATION_EVENTS,
    SOFTWARE,
    TELEMETRY,
];

/// The time after which the next kind is processed.
const RUN_TIME: Duration = Duration::from_secs(45);
/// The time after which the next tenant is processed.
const TENANT_TIME: Duration = Duration::from_secs(5);
/// Tenants that one query reads.
const TENANTS: i64 = 100;
/// Lists of packages that one transaction deletes, each with what exposes it.
const LISTS: i64 = 5;
/// Counts of months that one transaction deletes.
const COUNTS: i64 = 500;
/// The rest after a batch while no upload runs, as a multiple of the batch's duration.
const IDLE_REST: f64 = 0.5;
const DAY_SECS: i64 = 24 * 3600;
/// A run that has found nothing more is repeated after this part of the retention,
const RUNS_PER_RETENTION: u32 = 24;
/// but not sooner than this,
const LEAST_PAUSE: Duration = Duration::from_secs(10);
/// nor later.
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
/// Free pages are given back when they are more than this part of an SQLite file,
const GIVE_BACK_ABOVE: i64 = 8;
/// until they are no more than this part: new records need some soon.
const GIVE_BACK_TO: i64 = 16;
/// The least number of free bytes to return.
const LEAST_FREE_BYTES: i64 = 1 << 20;
/// The write-ahead log is moved to the file when it is longer, so that no transaction of retention
/// or ingest has to do so while it holds the writer. Half of what would make them do it.
const LONG_LOG_PAGES: i64 = 4096;

/// Performs one task of this lane. It is due again at once when there is more to delete.
pub async fn perform(core: &Core, kind: &str) -> Result<Done> {
    let retention = &core.config.retention;
    let (name, records, keep) = match kind {
        // An activation names its author and action, as an audit entry does.
        ACTIVATIONS => ("activations", None, retention.audit),
        AUDIT => ("audit", None, retention.audit),
        BLE_EVENTS => ("ble_events", Some(Kind::BleEvents), retention.ble_events),
        CONSENTS => ("consents", None, retention.ble_events),
        JOB_EVENTS => ("job_events", Some(Kind::JobEvents), retention.job_events),
        LOGS => ("logs", Some(Kind::Logs), retention.logs),
        PIPELINES => ("pipelines", None, retention.deliveries),
        REGISTRATION_EVENTS => ("registration_events", None, retention.deliveries),
        // What a hub ran when is evidence, as an audit entry is.
        SOFTWARE => ("software", None, retention.audit),
        TELEMETRY => ("telemetry", Some(Kind::Telemetry), retention.telemetry),
        _ => return Err(Error::internal("no such kind of retention")),
    };
    let mut run = Run::new(core, core.metrics.retention(name), keep);
    let is_done = match records {
        Some(records) => run.records(records).await?,
        None if kind == ACTIVATIONS => run.activations().await?,
        None if kind == CONSENTS => run.consents().await?,
        None if kind == PIPELINES => run.pipelines().await?,
        None if kind == SOFTWARE => run.software().await?,
        None if kind == REGISTRATION_EVENTS => run.registration_events().await?,
        None => run.audit().await?,
    };
    let is_done = is_done && run.give_back().await?;
    run.metrics.is_behind.set(i64::from(!is_done));
    let now = core.clock.now();
    Ok(Done::RunAt(if is_done {
        now.plus_secs(pause(keep).as_secs().cast_signed())
    } else {
        now
    }))
}

fn pause(keep: Duration) -> Duration {
    (keep / RUNS_PER_RETENTION).clamp(LEAST_PAUSE, LONGEST_PAUSE)
}

/// One run of a task.
struct Run<'a> {
    core: &'a Core,
    metrics: RetentionMetrics,
    keep_secs: i64,
    now: Timestamp,
    ends_at: Instant,
    /// Records of a batch.
    pace: Pace,
}

fn pace(core: &Core) -> Pace {
    Pace::new(
        core,
        IDLE_REST,
        core.metrics.retention_batch_duration.clone(),
    )
}

impl<'a> Run<'a> {
    fn new(core: &'a Core, metrics: RetentionMetrics, keep: Duration) -> Self {
        let keep_secs = i64::try_from(keep.as_secs()).unwrap_or(i64::MAX);
        let ends_at = Instant::now() + RUN_TIME;
        Self {
            core,
            metrics,
            keep_secs,
            now: core.clock.now(),
            ends_at,
            pace: pace(core),
        }
    }

    fn is_over(&self) -> bool {
        self.core.shutdown.is_cancelled() || Instant::now() >= self.ends_at
    }

    async fn rest(&mut self, held: &Held, rows: i64) {
        let took = self.pace.measure(held, rows);
        self.pace.rest(self.core, took, rows).await;
    }

    /// The limit of old records, in a tenant with this retention of its own.
    fn before(&self, retention_days: Option<i64>) -> Timestamp {
        let own_secs = retention_days.map_or(i64::MAX, |days| days.max(1).saturating_mul(DAY_SECS));
        self.now.plus_secs(-own_secs.min(self.keep_secs))
    }

    /// Deletes old records of a kind. Returns whether none is left.
    async fn records(&mut self, kind: Kind) -> Result<bool> {
        let log = ingest::log_of(kind).unwrap_or(jobs::EVENT_LOG);
        let mut is_done = self.drop_months(kind, log).await?;
        // The scan begins at a random tenant, so that one with much to delete does not delay
        // others.
        let start = Uuid::new_v4();
        let mut after = start;
        let mut has_wrapped = false;
        loop {
            let holders =
                ingest::holders(&mut self.core.db.read().await?, kind, log, after, TENANTS).await?;
            for holder in &holders {
                if has_wrapped && holder.tenant_uuid.0 > start {
                    break;
                }
                is_done &= self.records_of(kind, log, holder).await?;
                if self.is_over() {
                    return Ok(false);
                }
            }
            match holders.last() {
                Some(last) if !(has_wrapped && last.tenant_uuid.0 > start) => {
                    after = last.tenant_uuid.0
                }
                _ if has_wrapped => break,
                _ => (after, has_wrapped) = (Uuid::nil(), true),
            }
        }
        self.forget_counts(kind).await?;
        let stored = ingest::stored_of_kind(&mut self.core.db.read().await?, kind).await?;
        self.metrics.stored_bytes.set(stored);
        Ok(is_done)
    }

    /// Drops months that are old for everybody. Returns whether none is left.
    async fn drop_months(&mut self, kind: Kind, log: AgedLog) -> Result<bool> {
        let core = self.core;
        for month in partitions::ended(&core.db, log.table, self.before(None)).await? {
            let mut tx = core.db.begin().await?;
            if kind == Kind::BleEvents {
                let ids = (month.start_micros(), month.end_micros() - 1);
                lose_all(&mut tx, ids, core.clock.now()).await?;
            }
            for table in ingest::tables_of(kind, log) {
                match partitions::drop_month(&mut tx, table, month).await {
                    // Another transaction reads from the partition; batches go on.
                    Err(error) if error.is_lock_timeout() => return Ok(false),
                    dropped => dropped?,
                }
            }
            ingest::forget_month(&mut tx, kind, month).await?;
            tx.commit_unaudited("records that nobody keeps any longer")
                .await?;
            self.metrics.dropped_months.inc();
            tracing::info!(
                table = log.table,
                month = month.number(),
                "a month of old records was dropped"
            );
        }
        Ok(true)
    }

    /// Deletes a tenant's old records, for a while. Returns whether none is left.
    async fn records_of(&mut self, kind: Kind, log: AgedLog, holder: &Holder) -> Result<bool> {
        let before = self.before(holder.retention_days);
        if kind == Kind::BleEvents && !self.files_of(holder.tenant_uuid, before).await? {
            return Ok(false);
        }
        let Some(mut from_id) = holder.oldest_id.filter(|id| *id < before.as_micros()) else {
            return Ok(true);
        };
        let ends_at = Instant::now() + TENANT_TIME;
        loop {
            // Bytes are counted by the month.
            let month = Month::of(Timestamp::from_micros(from_id));
            let end_id = before.as_micros().min(month.end_micros());
            let size = self.pace.size();
            let mut conn = self.core.db.read().await?;
            let batch = log
                .measure(
                    &mut conn,
                    holder.tenant_uuid,
                    (from_id, end_id),
                    before,
                    size,
                )
                .await?;
            drop(conn);
            if let Some(last_id) = batch.last_id {
                if !self
                    .delete(kind, log, holder.tenant_uuid, batch, before)
                    .await?
                {
                    return Ok(false);
                }
                from_id = last_id.saturating_add(1);
            }
            if batch.row_count < size {
                if end_id >= before.as_micros() {
                    return Ok(true);
                }
                from_id = end_id;
            }
            if self.is_over() || Instant::now() >= ends_at {
                return Ok(false);
            }
        }
    }

    /// Drops the tenant's files of events that are all old. Returns whether none is left.
    async fn files_of(&mut self, tenant_uuid: TenantUuid, before: Timestamp) -> Result<bool> {
        let core = self.core;
        let mut is_dropped = false;
        loop {
            let mut conn = core.db.read().await?;
            let oldest = history::oldest_before(&mut conn, tenant_uuid, before).await?;
            drop(conn);
            let Some(oldest) = oldest else { break };
            let now = core.clock.now();
            let mut tx = core.db.begin().await?;
            if !oldest.apply(&mut tx, now).await? {
                return Ok(false);
            }
            oldest.lower_stored(&mut tx).await?;
            lose(&mut tx, tenant_uuid, oldest.last_id(), now).await?;
            tx.commit_unaudited("records whose retention has passed")
                .await?;
            is_dropped = true;
            let (records, bytes) = (oldest.removed_events(), oldest.removed_bytes());
            self.metrics.deleted_records.inc_by(records.unsigned_abs());
            self.metrics.deleted_bytes.inc_by(bytes.unsigned_abs());
            if self.is_over() {
                return Ok(false);
            }
        }
        if is_dropped {
            history::remove_files(core, || self.is_over()).await?;
        }
        Ok(true)
    }

    async fn delete(
        &mut self,
        kind: Kind,
        log: AgedLog,
        tenant_uuid: TenantUuid,
        batch: Batch,
        before: Timestamp,
    ) -> Result<bool> {
        self.keep_log_short().await?;
        let month = Month::of(Timestamp::from_micros(batch.first_id.unwrap_or_default()));
        let mut tx = self.core.db.begin().await?;
        let mut held = Held::begin();
        if !ingest::delete(&mut tx, kind, log, tenant_uuid, batch, before).await? {
            return Ok(false);
        }
        ingest::lower_stored(&mut tx, tenant_uuid, kind, month, batch.bytes).await?;
        if let Some(last_id) = batch.last_id.filter(|_| kind == Kind::BleEvents) {
            lose(&mut tx, tenant_uuid, last_id, self.core.clock.now()).await?;
        }
        held.commits();
        tx.commit_unaudited("records whose retention has passed")
            .await?;
        self.metrics
            .deleted_records
            .inc_by(batch.records.unsigned_abs());
        self.metrics
            .deleted_bytes
            .inc_by(batch.bytes.unsigned_abs());
        self.rest(&held, batch.row_count).await;
        Ok(true)
    }

    /// Deletes counts of months in which nothing is stored any more.
    async fn forget_counts(&self, kind: Kind) -> Result<()> {
        let core = self.core;
        let month = Month::of(self.before(None));
        while ingest::has_months_before(&mut core.db.read().await?, kind, month).await?
            && !self.is_over()
        {
            let mut tx = core.db.begin().await?;
            ingest::forget_months_before(&mut tx, kind, month, COUNTS).await?;
            tx.commit_unaudited("counts of what is gone").await?;
        }
        Ok(())
    }

    /// Deletes old entries of the audit log. Returns whether none is left.
    async fn audit(&mut self) -> Result<bool> {
        if !self.entries(None, self.before(None)).await? {
            return Ok(false);
        }
        let mut after = Uuid::nil();
        loop {
            let keepers =
                audit::short_keepers(&mut self.core.db.read().await?, after, TENANTS).await?;
            let Some(last) = keepers.last() else {
                return Ok(true);
            };
            after = last.tenant_uuid.0;
            for keeper in keepers {
                let before = self.before(Some(keeper.retention_days));
                if !self.entries(Some(keeper.tenant_uuid), before).await? {
                    return Ok(false);
                }
            }
        }
    }

    /// Deletes a tenant's old entries, or everybody's. Returns whether none is left.
    async fn entries(
        &mut self,
        tenant_uuid: Option<TenantUuid>,
        before: Timestamp,
    ) -> Result<bool> {
        for actor in ActorType::ALL {
            while audit::has_before(&mut self.core.db.read().await?, tenant_uuid, actor, before)
                .await?
            {
                if self.is_over() {
                    return Ok(false);
                }
                self.keep_log_short().await?;
                let mut tx = self.core.db.begin().await?;
                let mut held = Held::begin();
                let size = self.pace.size();
                let deleted =
                    audit::delete_before(&mut tx, tenant_uuid, actor, before, size).await?;
                held.commits();
                tx.commit_unaudited("entries whose retention has passed")
                    .await?;
                self.metrics.deleted_records.inc_by(deleted);
                self.rest(&held, deleted.cast_signed()).await;
            }
        }
        Ok(true)
    }

    /// Deletes old activations of devices. Returns whether none is left.
    async fn activations(&mut self) -> Result<bool> {
        let before = self.before(None);
        while device_instances::has_activations_before(&mut self.core.db.read().await?, before)
            .await?
        {
            if self.is_over() {
                return Ok(false);
            }
            self.keep_log_short().await?;
            let mut tx = self.core.db.begin().await?;
            let mut held = Held::begin();
            let deleted =
                device_instances::delete_activations_before(&mut tx, before, self.pace.size())
                    .await?;
            held.commits();
            tx.commit_unaudited("activations whose retention has passed")
                .await?;
            self.metrics.deleted_records.inc_by(deleted);
            self.rest(&held, deleted.cast_signed()).await;
        }
        Ok(true)
    }

    /// Deletes what hubs ran long ago, and lists that no hub has any more. Returns whether none is
    /// left.
    async fn software(&mut self) -> Result<bool> {
        let before = self.before(None);
        while software::has_before(&mut self.core.db.read().await?, before).await? {
            if self.is_over() {
                return Ok(false);
            }
            self.keep_log_short().await?;
            let mut tx = self.core.db.begin().await?;
            let mut held = Held::begin();
            let deleted = software::forget_before(&mut tx, before, self.pace.size()).await?;
            held.commits();
            tx.commit_unaudited("what hubs ran, whose retention has passed")
                .await?;
            self.metrics.deleted_records.inc_by(deleted);
            self.rest(&held, deleted.cast_signed()).await;
        }
        while jobs::has_periods_before(&mut self.core.db.read().await?, before).await? {
            if self.is_over() {
                return Ok(false);
            }
            self.keep_log_short().await?;
            let mut tx = self.core.db.begin().await?;
            let mut held = Held::begin();
            let deleted = jobs::forget_periods_before(&mut tx, before, self.pace.size()).await?;
            held.commits();
            tx.commit_unaudited("what hubs ran, whose retention has passed")
                .await?;
            self.metrics.deleted_records.inc_by(deleted);
            self.rest(&held, deleted.cast_signed()).await;
        }
        loop {
            if self.is_over() {
                return Ok(false);
            }
            let mut tx = self.core.db.begin().await?;
            let deleted = software::forget_lists(&mut tx, LISTS).await?;
            tx.commit_unaudited("lists that no hub has any more")
                .await?;
            if deleted == 0 {
                return Ok(true);
            }
        }
    }

    /// Deletes registration events that ended. Returns whether none is left.
    async fn registration_events(&mut self) -> Result<bool> {
        let before = self.before(None);
        while outbox::has_settled_before(&mut self.core.db.read().await?, before).await? {
            if self.is_over() {
                return Ok(false);
            }
            self.keep_log_short().await?;
            let mut tx = self.core.db.begin().await?;
            let mut held = Held::begin();
            let deleted = outbox::delete_settled_before(&mut tx, before, self.pace.size()).await?;
            held.commits();
            tx.commit_unaudited("events whose retention has passed")
                .await?;
            self.metrics.deleted_records.inc_by(deleted);
            self.rest(&held, deleted.cast_signed()).await;
        }
        Ok(true)
    }

    async fn keep_log_short(&self) -> Result<()> {
        if space::log_pages(&self.core.db).await? > LONG_LOG_PAGES {
            space::checkpoint(&self.core.db).await?;
        }
        Ok(())
    }

    /// Returns the free pages of an SQLite file that are not needed soon to the file system.
    /// Returns whether that is complete.
    async fn give_back(&mut self) -> Result<bool> {
        let core = self.core;
        let mut pace = pace(core);
        let mut above = GIVE_BACK_ABOVE;
        loop {
            let Some(pages) = space::pages(&core.db).await? else {
                return Ok(true);
            };
            let surplus = pages.free - pages.all / above;
            if !pages.can_be_given_back || surplus <= 0 || pages.free_bytes() < LEAST_FREE_BYTES {
                break;
            }
            if self.is_over() {
                return Ok(false);
            }
            above = GIVE_BACK_TO;
            self.keep_log_short().await?;
            let count = pace.size();
            let mut tx = core.db.begin().await?;
            let mut held = Held::begin();
            space::give_back(&mut tx, count).await?;
            held.commits();
            tx.commit_unaudited("space of deleted records").await?;
            let took = pace.measure(&held, count);
            pace.rest(core, took, count).await;
        }
        // The file shrinks at this point only.
        if above == GIVE_BACK_TO {
            space::checkpoint(&core.db).await?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_retention_is_looked_after_more_often() {
        let secs = |keep_secs| pause(Duration::from_secs(keep_secs)).as_secs();
        assert_eq!(
            [1, 240, 3600, 86_400, 30 * 86_400].map(secs),
            [10, 10, 150, 3600, 3600]
        );
    }
}
