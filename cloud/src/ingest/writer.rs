//! The one thread that writes uploads: takes what has gathered, commits it, answers, publishes, and begins again.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hub_protocol::HubUuid;
use tokio::sync::{mpsc, oneshot};

use super::group::{self, Outcome};
use super::{Kind, Pending, Refusal, State};
use crate::app::App;
use crate::error::Error;

/// Records beyond which a transaction takes no further upload: enough to spread its cost thin, little enough that nobody waits long.
const GROUP_RECORDS: usize = 8192;
/// Tries of a transaction that gave way to another replica's.
const ATTEMPTS: u32 = 4;
/// A hub's `last_seen_at` is at most this much behind; writing it with every upload would cost a row an upload.
const TOUCH_INTERVAL_MICROS: i64 = 5_000_000;
/// Hubs whose last touch is remembered.
const REMEMBERED_TOUCHES: usize = 100_000;

pub struct Writer {
    queue: mpsc::Receiver<Pending>,
    state: Arc<State>,
    touches: Touches,
}

/// When hubs were last marked as seen, by this process.
#[derive(Default)]
pub(super) struct Touches(HashMap<(HubUuid, Kind), i64>);

impl Touches {
    pub(super) fn is_due(&self, hub_uuid: HubUuid, kind: Kind, now_micros: i64) -> bool {
        self.0.get(&(hub_uuid, kind)).is_none_or(|at| now_micros.saturating_sub(*at).abs() >= TOUCH_INTERVAL_MICROS)
    }

    fn remember(&mut self, touched: Vec<(HubUuid, Kind)>, now_micros: i64) {
        if self.0.len() + touched.len() > REMEMBERED_TOUCHES {
            self.0.clear();
        }
        self.0.extend(touched.into_iter().map(|key| (key, now_micros)));
    }
}

impl Writer {
    pub(super) fn new(queue: mpsc::Receiver<Pending>, state: Arc<State>) -> Self {
        Self { queue, state, touches: Touches::default() }
    }

    /// Starts writing, on a thread of its own: among the runtime's tasks every answer of the database would wait behind the requests that are
    /// being parsed, and everyone waits for the writer. Ends with `app.workers`, or with the runtime.
    pub fn start(mut self, app: App) -> std::io::Result<()> {
        let runtime = tokio::runtime::Handle::current();
        let stop_ingest = app.stop_ingest.clone().drop_guard();
        let (has_ended, ended) = oneshot::channel::<()>();
        let workers = app.workers.clone();
        std::thread::Builder::new().name("ingest".to_owned()).spawn(move || {
            // A panic is told to the log by itself. Its group was not answered, so hubs send it again; the next ones are not to suffer.
            while catch_unwind(AssertUnwindSafe(|| runtime.block_on(self.run(&app)))).is_err() {}
            drop(has_ended);
        })?;
        workers.spawn(async move {
            let _ = ended.await;
            drop(stop_ingest);
        });
        Ok(())
    }

    /// Runs until `app.stop_ingest` is cancelled and the queue is empty: by then no request is left that could add to it.
    async fn run(&mut self, app: &App) {
        let mut outage = Outage::default();
        loop {
            let first = tokio::select! {
                biased;
                first = self.queue.recv() => first,
                () = app.stop_ingest.cancelled() => None,
            };
            let Some(first) = first else { break };
            let mut records = first.upload.records.len();
            let mut group = vec![first];
            while group.len() < app.config.uploads_per_commit && records < GROUP_RECORDS {
                let Ok(next) = self.queue.try_recv() else { break };
                records += next.upload.records.len();
                group.push(next);
            }
            self.state.waiting_records.fetch_sub(records, Ordering::Relaxed);
            app.metrics.ingest_queued.set(i64::try_from(self.queue.len()).unwrap_or(i64::MAX));
            self.commit(app, group, &mut outage).await;
        }
    }

    async fn commit(&mut self, app: &App, group: Vec<Pending>, outage: &mut Outage) {
        let started_at = Instant::now();
        match self.try_commit(app, &group).await {
            Ok(outcome) => {
                outage.is_over();
                app.metrics.ingest_commit_duration.observe(started_at.elapsed().as_secs_f64());
                self.answer(app, group, outcome);
            }
            Err(error) if error.is_internal() && group.len() > 1 => {
                // Something in the group cannot be stored. Alone, each upload stands or falls by itself.
                tracing::warn!(%error, uploads = group.len(), "a group of uploads failed; storing them one by one");
                for pending in group {
                    Box::pin(self.commit(app, vec![pending], outage)).await;
                }
            }
            Err(error) => {
                outage.note(&error);
                let refusal = if error.is_internal() { Refusal::Failed } else { Refusal::Unavailable };
                for pending in group {
                    let _ = pending.answer_to.send(Err(refusal));
                }
            }
        }
    }

    async fn try_commit(&self, app: &App, group: &[Pending]) -> Result<Outcome, Error> {
        let mut attempt = 1;
        loop {
            match group::commit(app, group, &self.touches).await {
                Err(error) if error.is_serialization_failure() && attempt < ATTEMPTS => {
                    tokio::time::sleep(Duration::from_millis(u64::from(attempt) * 10)).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    fn answer(&mut self, app: &App, group: Vec<Pending>, outcome: Outcome) {
        let Outcome { verdicts, published, touched, exhausted, at, records } = outcome;
        app.metrics.ingest_commits.inc();
        app.metrics.ingest_uploads.inc_by(group.len() as u64);
        app.metrics.ingest_records.inc_by(records);
        self.touches.remember(touched, at.as_micros());
        for exhausted in exhausted {
            self.state.set_exhausted(&exhausted);
        }
        app.streams.publish(published);
        for (pending, verdict) in group.into_iter().zip(verdicts) {
            // A hub that hung up has its data stored all the same; its retry will find that.
            let _ = pending.answer_to.send(verdict);
        }
    }
}

/// Whether the database is away, so that the log says so once and not with every group.
#[derive(Default)]
struct Outage {
    since: Option<Instant>,
}

impl Outage {
    fn note(&mut self, error: &Error) {
        if error.is_internal() {
            tracing::error!(%error, "an upload could not be stored");
        } else if self.since.is_none() {
            tracing::error!(%error, "uploads cannot be stored now; hubs are told to come back");
            self.since = Some(Instant::now());
        }
    }

    fn is_over(&mut self) {
        if let Some(since) = self.since.take() {
            tracing::warn!(outage_secs = since.elapsed().as_secs(), "uploads are stored again");
        }
    }
}
