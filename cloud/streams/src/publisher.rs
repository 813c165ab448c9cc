//! The single task that fills the channels, in the order of ids and without gaps: with commits of
//! this process as they happen, and with those of other replicas when the bus announces them or
//! polling finds them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hub_base::budget::Holder;
use hub_base::bus::Subscription;
use hub_base::error::Result;
use hub_core::Core;
use hub_devices::ble::delivered::Delivery;
use hub_ingest::{self as ingest, Commit, Kind, LogKey, Queued};
use hub_protocol::TenantUuid;
use tokio::sync::mpsc;

use super::kinds::{self, Span, sendable};
use super::{BATCH_BYTES, BATCH_RECORDS, Batch, Channels, RecordFrame};

/// How often the database is polled. Without a shared bus, polling is the only way to see commits
/// of other replicas; with one it is a safety net.
const POLL_INTERVAL_WITH_BUS: Duration = Duration::from_secs(10);
/// Queued announcements of other replicas.
const QUEUE_ANNOUNCEMENTS: usize = 1024;
/// The longest age of the positions of pipelines.
const DELIVERY_AGE: Duration = Duration::from_secs(1);

pub struct Publisher {
    core: Core,
    channels: Channels,
    commits: Queued,
    announcements: mpsc::Receiver<String>,
    /// The delivery data of the BLE events of tenants, and when it was read.
    deliveries: HashMap<TenantUuid, (Instant, Arc<Delivery>)>,
}

impl Publisher {
    /// The publisher, and its subscription to the bus.
    pub fn new(core: Core, channels: Channels, commits: Queued) -> (Self, Subscription) {
        let (messages, announcements) = mpsc::channel(QUEUE_ANNOUNCEMENTS);
        (
            Self {
                core,
                channels,
                commits,
                announcements,
                deliveries: HashMap::new(),
            },
            Subscription {
                topic: ingest::TOPIC,
                messages,
            },
        )
    }

    pub async fn run(mut self) {
        let mut polls = self.core.bus.polls(POLL_INTERVAL_WITH_BUS);
        loop {
            let published = tokio::select! {
                biased;
                () = self.core.shutdown.cancelled() => break,
                Some(commits) = self.commits.recv() => self.publish(commits).await,
                Some(text) = self.announcements.recv() => match ingest::parse_announcement(&text) {
                    Some((key, last_id)) => self.catch_up(key, last_id).await,
                    None => Ok(()),
                },
                () = polls.next() => self.poll().await,
            };
            if let Err(error) = published {
                // The next commit or poll finds the gap and fills it.
                tracing::debug!(%error, "cannot publish records; the next commit or poll retries");
            }
        }
    }

    async fn publish(&mut self, commits: Vec<Commit>) -> Result<()> {
        let mut outcome = Ok(());
        for commit in commits {
            // A failure of one tenant's stream does not delay the others.
            outcome = self.publish_one(commit).await.and(outcome);
        }
        outcome
    }

    async fn publish_one(&mut self, commit: Commit) -> Result<()> {
        let Commit {
            tenant_uuid,
            kind,
            previous_id,
            last_id,
            records,
        } = commit;
        let key = (tenant_uuid, kind);
        if self.core.bus.is_shared() {
            self.core
                .bus
                .publish(ingest::TOPIC, &ingest::announcement(key, last_id))
                .await;
        }
        self.catch_up(key, previous_id).await?;
        // An announcement or a poll may have come first and read these records from the database.
        let Some(sent) = self.sent(key).filter(|sent| *sent < last_id) else {
            return Ok(());
        };
        let Some(description) = kinds::of(kind) else {
            return Ok(());
        };
        let delivery = match kind {
            Kind::BleEvents => Some(self.delivery(tenant_uuid).await?),
            _ => None,
        };
        let new = records.iter().filter(|record| record.id > sent).cloned();
        let frame = |record| sendable((description.frame)(record, delivery.as_deref()));
        self.send(key, new.filter_map(frame).collect(), last_id);
        Ok(())
    }

    /// The delivery data of a tenant's BLE events, as of a moment ago.
    async fn delivery(&mut self, tenant_uuid: TenantUuid) -> Result<Arc<Delivery>> {
        self.deliveries
            .retain(|_, (read_at, _)| read_at.elapsed() < DELIVERY_AGE);
        if let Some((_, delivery)) = self.deliveries.get(&tenant_uuid) {
            return Ok(delivery.clone());
        }
        let delivery = Arc::new(
            Delivery::read_for_stream(&mut self.core.db.read().await?, tenant_uuid).await?,
        );
        self.deliveries
            .insert(tenant_uuid, (Instant::now(), delivery.clone()));
        Ok(delivery)
    }

    /// Reads from the database what was not sent into the channel yet, up to `last_id`.
    async fn catch_up(&self, key: LogKey, last_id: i64) -> Result<()> {
        while let Some(sent) = self.sent(key).filter(|sent| *sent < last_id) {
            let (frames, read_to) = self.read(key, sent, last_id).await?;
            self.send(key, frames, read_to);
        }
        Ok(())
    }

    /// Reads a batch of records after an id. Returns their frames, and the id up to which the read
    /// is complete.
    async fn read(
        &self,
        (tenant_uuid, kind): LogKey,
        after: i64,
        last: i64,
    ) -> Result<(Vec<RecordFrame>, i64)> {
        let Some(description) = kinds::of(kind) else {
            return Ok((Vec::new(), last));
        };
        let span = Span {
            tenant_uuid,
            hub_uuid: None,
            after,
            last,
            max_bytes: BATCH_BYTES,
        };
        let stored = (description.read)(&self.core, span).await?;
        Ok((stored.frames, stored.last_id.unwrap_or(last)))
    }

    /// Reads the last ids of all channels from the database at once.
    async fn poll(&self) -> Result<()> {
        let keys: Vec<LogKey> = self.channels.lock().keys().copied().collect();
        let mut outcome = Ok(());
        for keys in keys.chunks(500) {
            let tenants = keys.iter().map(|(tenant_uuid, _)| *tenant_uuid);
            let mut conn = self.core.db.read().await?;
            for (key, last_id) in ingest::last_ids(&mut conn, tenants).await? {
                outcome = self.catch_up(key, last_id).await.and(outcome);
            }
        }
        outcome
    }

    /// The id up to which the channel was filled; None if it has no subscribers.
    fn sent(&self, key: LogKey) -> Option<i64> {
        let mut channels = self.channels.lock();
        if channels.get(&key)?.batches.receiver_count() == 0 {
            channels.remove(&key);
            self.channels.unfollow(key);
            return None;
        }
        channels.get(&key).map(|channel| channel.last_id)
    }

    /// Sends records into the channel, which is then complete up to `complete_to`. If the tenant's
    /// slow readers keep too many batches in memory, the channel ends, and its readers resume.
    fn send(&self, key: LogKey, frames: Vec<RecordFrame>, complete_to: i64) {
        let holder = Holder {
            group: key.0.0,
            member: None,
        };
        let hold = |bytes: Bytes| {
            Some(
                self.core
                    .bodies
                    .answers
                    .reserve(holder, bytes.len())
                    .ok()?
                    .attach(bytes),
            )
        };
        let batches = in_batches(frames).map(|frames| Batch::new(frames, hold).map(Arc::new));
        let batches: Option<Vec<Arc<Batch>>> = batches.collect();
        let mut channels = self.channels.lock();
        let Some(batches) = batches else {
            self.core.metrics.stream_slow_readers.inc();
            channels.remove(&key);
            self.channels.unfollow(key);
            return;
        };
        let Some(channel) = channels.get_mut(&key) else {
            return;
        };
        // Both are under the lock: a new subscriber gets exactly the id that was sent before it
        // joined.
        channel.last_id = complete_to;
        for batch in batches {
            let _ = channel.batches.send(batch);
        }
    }
}

/// Splits frames into batches of bounded size.
fn in_batches(frames: Vec<RecordFrame>) -> impl Iterator<Item = Vec<RecordFrame>> {
    let mut frames = frames.into_iter().peekable();
    std::iter::from_fn(move || {
        let mut batch = vec![frames.next()?];
        let mut bytes = batch.iter().map(|frame| frame.text.len()).sum::<usize>();
        while let Some(frame) = frames.peek()
            && batch.len() < BATCH_RECORDS
            && bytes + frame.text.len() <= BATCH_BYTES
        {
            bytes += frame.text.len();
            batch.extend(frames.next());
        }
        Some(batch)
    })
}
