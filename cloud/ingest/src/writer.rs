//! The only thread that writes uploads. It takes the uploads that have queued up, commits them,
//! announces the commit, answers, and starts again.

use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hub_base::error::Error;
use hub_core::Core;
use hub_protocol::TenantUuid;
use tokio::sync::{mpsc, oneshot};

use super::commits::Commits;
use super::derived::{Derived, Due};
use super::group::{self, Memory, Outcome};
use super::observations::Observations;
use super::parts::PART_BYTES;
use super::queue::{Pending, State};
use super::quota::Usages;
use super::receipt::{Receipt, Refusal};
use super::touches::Touches;

/// A transaction accepts no further upload beyond this many records: enough to share its cost, few
/// enough that no upload waits long.
const GROUP_RECORDS: usize = 8192;
/// The same for their memory. The largest upload that is not stored in parts fills it alone.
const GROUP_BYTES: usize = PART_BYTES;
/// Attempts of a transaction that was rolled back in favour of another replica's.
const ATTEMPTS: u32 = 4;
/// Answers wake all their hubs' connections, which send them and parse the next uploads. If that
/// comes at once, the short statements that begin the next group wait for a processor. So a large
/// group begins first, and is storing its records after about this time.
const HELD_FOR: Duration = Duration::from_millis(4);
/// A group of fewer records is committed in less time than that.
const HELD_RECORDS: usize = 2048;
/// What is derived from uploads is written after this time without any.
const IDLE_WRITE: Duration = Duration::from_secs(3);

/// What cannot be reached, a tenant's part of the database, is not tried again for this long at
/// least, and for this multiple of the time that it took to find out: others are waiting meanwhile.
const AWAY_FOR: Duration = Duration::from_secs(1);
const AWAY_FACTOR: u32 = 10;
/// A tenant that uploads nothing for so long after that is forgotten.
const AWAY_FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

pub struct Writer {
    queue: mpsc::Receiver<Pending>,
    state: Arc<State>,
    touches: Touches,
    usages: Usages,
    observations: Observations,
    derived: Arc<dyn Derived>,
    commits: Commits,
    /// The tenants whose part of the database could not be reached, and when it is tried again,
    /// until an upload of theirs is stored.
    away: HashMap<TenantUuid, Instant>,
    /// Until when tenants are tried one by one, since some part could not be reached.
    careful_until: Option<Instant>,
}

impl Writer {
    pub(super) fn new(
        queue: mpsc::Receiver<Pending>,
        state: Arc<State>,
        commits: Commits,
        derived: Arc<dyn Derived>,
    ) -> Self {
        Self {
            queue,
            state,
            touches: Touches::default(),
            usages: Usages::default(),
            observations: Observations::default(),
            derived,
            commits,
            away: HashMap::new(),
            careful_until: None,
        }
    }

    /// Starts the writer on a thread of its own. As a task of the runtime, it would wait behind
    /// requests that are being parsed after every response of the database, and all uploads wait
    /// for the writer. It ends with `core.workers`, or with the runtime.
    pub fn start(mut self, core: Core) -> std::io::Result<()> {
        let runtime = tokio::runtime::Handle::current();
        let stop_ingest = core.stop_ingest.clone().drop_guard();
        let (has_ended, ended) = oneshot::channel::<()>();
        let workers = core.workers.clone();
        std::thread::Builder::new()
            .name("ingest".to_owned())
            .spawn(move || {
                // The panic handler logs a panic. Its group got no response, so the hubs repeat it.
                // Later groups must not be affected.
                while catch_unwind(AssertUnwindSafe(|| runtime.block_on(self.run(&core)))).is_err()
                {
                }
                drop(has_ended);
            })?;
        workers.spawn(async move {
            let _ = ended.await;
            drop(stop_ingest);
        });
        Ok(())
    }

    /// Runs until `core.stop_ingest` is cancelled and the queue is empty. By then, no request is
    /// left that could add to it.
    async fn run(&mut self, core: &Core) {
        let mut outage = Outage::default();
        let mut answers = Answers::default();
        loop {
            let first = match self.queue.try_recv() {
                Ok(first) => Some(first),
                Err(_) => {
                    std::mem::take(&mut answers).send();
                    tokio::select! {
                        biased;
                        first = self.queue.recv() => first,
                        () = core.stop_ingest.cancelled() => None,
                        () = tokio::time::sleep(IDLE_WRITE) => {
                            if self.derived.is_waiting() {
                                self.write_derived(core, Due::Now, &mut outage).await;
                            }
                            continue;
                        }
                    }
                }
            };
            let Some(first) = first else { break };
            let (mut records, mut bytes) = (first.upload.records.len(), first.bytes);
            let mut group = vec![first];
            while group.len() < core.config.uploads_per_commit
                && records < GROUP_RECORDS
                && bytes < GROUP_BYTES
            {
                let Ok(next) = self.queue.try_recv() else {
                    break;
                };
                records += next.upload.records.len();
                bytes += next.bytes;
                group.push(next);
            }
            self.state
                .waiting_records
                .fetch_sub(records, Ordering::Relaxed);
            core.metrics
                .ingest_queued
                .set(i64::try_from(self.queue.len()).unwrap_or(i64::MAX));
            let held = std::mem::take(&mut answers);
            let answer_later = async {
                if records >= HELD_RECORDS {
                    tokio::time::sleep(HELD_FOR).await;
                }
                held.send();
            };
            (answers, ()) = tokio::join!(self.commit(core, group, &mut outage), answer_later);
        }
        if self.derived.is_waiting() {
            self.write_derived(core, Due::All, &mut outage).await;
        }
    }

    /// Writes what is derived from uploads while there are none. It is written with the next one if
    /// this fails.
    async fn write_derived(&self, core: &Core, due: Due, outage: &mut Outage) {
        let write = async {
            let mut tx = core.db.begin_first().await?;
            self.derived
                .write(&mut tx, &[], due, core.clock.now())
                .await?;
            tx.commit_unaudited("what follows from uploads is data, as they are")
                .await
        };
        match write.await {
            Ok(()) => {
                self.derived.committed(core.clock.now());
                outage.is_derived_left_out = false;
            }
            Err(error) if error.is_internal() => self.leave_out_derived(core, &error, outage),
            Err(error) => tracing::debug!(%error, "cannot write what is known of devices"),
        }
    }

    /// What the last transaction would have derived cannot be written, now or later. It must not
    /// keep uploads from being stored.
    fn leave_out_derived(&self, core: &Core, error: &Error, outage: &mut Outage) {
        self.derived.committed(core.clock.now());
        if !std::mem::replace(&mut outage.is_derived_left_out, true) {
            tracing::error!(%error, "cannot store the states of devices or unknown advertisers; those of this moment are left out");
        }
    }

    /// Returns the answers to the group.
    async fn commit(&mut self, core: &Core, group: Vec<Pending>, outage: &mut Outage) -> Answers {
        let now = Instant::now();
        let (away, group): (Vec<_>, Vec<_>) = group.into_iter().partition(|pending| {
            let until = self.away.get(&tenant_of(pending));
            until.is_some_and(|until| *until > now)
        });
        let mut answers = Answers::refusals(away, Refusal::Unavailable);
        if !group.is_empty() {
            answers
                .0
                .append(&mut self.commit_reachable(core, group, outage).await.0);
        }
        answers
    }

    /// Notes that uploads of this group were stored, and says so when nobody waits any more.
    fn note_reached(&mut self, group: &[Pending]) {
        if self.away.is_empty() {
            return;
        }
        self.away
            .retain(|_, until| until.elapsed() < AWAY_FORGOTTEN_AFTER);
        for pending in group {
            self.away.remove(&tenant_of(pending));
        }
        if self.away.is_empty() {
            tracing::warn!("all parts of the database can be reached again");
        }
    }

    /// Notes that the part of the database that has a tenant cannot be reached.
    fn note_away(&mut self, tenant_uuid: TenantUuid, until: Instant, error: &Error) {
        if self.away.is_empty() {
            tracing::warn!(%error, %tenant_uuid, "a part of the database cannot be reached: uploads of the tenants in it are refused until it can; `hub-cloud check` names it");
        }
        self.away.insert(tenant_uuid, until);
    }

    /// Whether a part of the database could not be reached a moment ago.
    fn is_careful(&self) -> bool {
        self.careful_until
            .is_some_and(|until| until > Instant::now())
    }

    async fn commit_reachable(
        &mut self,
        core: &Core,
        group: Vec<Pending>,
        outage: &mut Outage,
    ) -> Answers {
        if core.storage.is_full() {
            // Noticed since the requests were admitted.
            return Answers::refusals(group, Refusal::StorageFull);
        }
        let (started_at, was_careful) = (Instant::now(), self.is_careful());
        let committed = self.try_commit(core, &group, outage).await;
        let busy_secs = started_at.elapsed().as_secs_f64();
        core.metrics.ingest_busy.inc_by(busy_secs);
        match committed {
            Ok(outcome) => {
                outage.end();
                self.note_reached(&group);
                core.metrics.ingest_commit_duration.observe(busy_secs);
                self.record(core, group, outcome)
            }
            Err(error) if error.is_internal() && group.len() > 1 => {
                // Some upload of the group cannot be stored. Storing them one by one isolates it.
                tracing::warn!(%error, uploads = group.len(), "a group of uploads failed; storing them one by one");
                let mut answers = Answers::default();
                for pending in group {
                    answers
                        .0
                        .append(&mut Box::pin(self.commit(core, vec![pending], outage)).await.0);
                }
                answers
            }
            Err(error) if error.is_node_unreachable() => {
                // A part of the database is away. Tenants in the other parts need not wait for it.
                let away_for = AWAY_FOR.max(started_at.elapsed() * AWAY_FACTOR);
                let until = Instant::now() + away_for;
                self.careful_until = Some(until);
                let mut of_tenants: BTreeMap<TenantUuid, Vec<Pending>> = BTreeMap::new();
                for pending in group {
                    of_tenants
                        .entry(tenant_of(&pending))
                        .or_default()
                        .push(pending);
                }
                let is_theirs = was_careful && of_tenants.len() == 1;
                let mut answers = Answers::default();
                for (tenant_uuid, group) in of_tenants {
                    let mut of_tenant = if is_theirs {
                        self.note_away(tenant_uuid, until, &error);
                        Answers::refusals(group, Refusal::Unavailable)
                    } else {
                        Box::pin(self.commit(core, group, outage)).await
                    };
                    answers.0.append(&mut of_tenant.0);
                }
                answers
            }
            Err(error) => {
                if error.is_storage_full() {
                    core.storage.report_full();
                    return Answers::refusals(group, Refusal::StorageFull);
                }
                outage.log(&error);
                Answers::refusals(
                    group,
                    if error.is_internal() {
                        Refusal::Failed
                    } else {
                        Refusal::Unavailable
                    },
                )
            }
        }
    }

    async fn try_commit(
        &self,
        core: &Core,
        group: &[Pending],
        outage: &mut Outage,
    ) -> Result<Outcome, Error> {
        let due = match self.is_careful() {
            true => Due::Theirs,
            false => Due::Now,
        };
        let derived = Some((&*self.derived, due));
        match self.attempt(core, group, derived).await {
            Ok(outcome) => {
                outage.is_derived_left_out = false;
                Ok(outcome)
            }
            Err(error) if error.is_internal() => {
                let outcome = self.attempt(core, group, None).await?;
                self.leave_out_derived(core, &error, outage);
                Ok(outcome)
            }
            Err(error) => Err(error),
        }
    }

    /// Commits a group, again if it was rolled back in favour of another replica's.
    async fn attempt(
        &self,
        core: &Core,
        group: &[Pending],
        derived: Option<(&dyn Derived, Due)>,
    ) -> Result<Outcome, Error> {
        let mut attempt = 1;
        loop {
            let memory = Memory {
                touches: &self.touches,
                usages: &self.usages,
                observations: &self.observations,
                derived,
            };
            match group::commit(core, group, memory).await {
                Err(error) if error.is_serialization_failure() && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(u64::from(attempt) * 10)).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// Counts and announces a commit. Returns the answers to its uploads.
    fn record(&mut self, core: &Core, group: Vec<Pending>, outcome: Outcome) -> Answers {
        let Outcome {
            verdicts,
            committed,
            touched,
            exhausted,
            usages,
            at,
            records,
            frames,
        } = outcome;
        core.metrics.ingest_commits.inc();
        core.metrics.ingest_uploads.inc_by(group.len() as u64);
        core.metrics.ingest_records.inc_by(records);
        self.touches.record(touched, at.as_micros());
        self.usages.record(usages);
        self.observations.record(frames);
        for exhausted in exhausted {
            self.state.set_exhausted(exhausted);
        }
        self.commits.announce(committed);
        for refusal in verdicts.iter().filter_map(|verdict| verdict.as_ref().err()) {
            if let Some(quota) = refusal.quota() {
                core.metrics.quota_refusals(quota).inc();
            }
        }
        Answers(group.into_iter().zip(verdicts).collect())
    }
}

fn tenant_of(pending: &Pending) -> TenantUuid {
    pending.upload.hub.tenant_uuid
}

/// What uploads are answered, not yet sent.
#[derive(Default)]
struct Answers(Vec<(Pending, Result<Receipt, Refusal>)>);

impl Answers {
    fn refusals(group: Vec<Pending>, refusal: Refusal) -> Self {
        Self(
            group
                .into_iter()
                .map(|pending| (pending, Err(refusal)))
                .collect(),
        )
    }

    fn send(self) {
        for (pending, answer) in self.0 {
            // If the hub disconnected, its data is stored all the same, and its retry is
            // recognised.
            let _ = pending.answer_to.send(answer);
        }
    }
}

/// Whether uploads cannot be stored, so that the log says so once and not for every group. That
/// the database is away it says of the whole service.
#[derive(Default)]
struct Outage {
    since: Option<Instant>,
    /// The last transaction was committed without what is derived.
    is_derived_left_out: bool,
}

impl Outage {
    fn log(&mut self, error: &Error) {
        if error.is_internal() {
            tracing::error!(%error, "cannot store an upload");
        } else if self.since.is_none() && !error.is_watched() {
            tracing::error!(%error, "cannot store uploads; hubs are asked to retry");
            self.since = Some(Instant::now());
        }
    }

    fn end(&mut self) {
        if let Some(since) = self.since.take() {
            tracing::warn!(
                outage_secs = since.elapsed().as_secs(),
                "uploads are stored again"
            );
        }
    }
}
