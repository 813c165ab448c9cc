//! The one task that fills the channels, in the order of ids and without gaps: commits of this process as they come, those of other replicas when
//! the bus or a look at the database tells of them.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::{
    BATCH_BYTES, BATCH_RECORDS, Batch, ChannelKey, Published, RecordFrame, Streams, ble_frame, job_event_frame,
    log_frame, said,
};
use crate::app::App;
use crate::bus::{Bus, News};
use crate::db::sql;
use crate::domain::{ble, jobs, telemetry};
use crate::error::Result;
use crate::ingest::Kind;

/// How often the database is asked for news: it is the only messenger where replicas share no bus, a safety net elsewhere.
const LOOK_INTERVAL_ALONE: Duration = Duration::from_secs(1);
const LOOK_INTERVAL_WITH_BUS: Duration = Duration::from_secs(10);

pub struct Publisher {
    pub streams: Streams,
    pub commits: mpsc::Receiver<Vec<Published>>,
    pub bus: Bus,
}

impl Publisher {
    pub async fn run(mut self, app: App) {
        let (to_news, mut news) = mpsc::channel(1024);
        let forwarding = tokio::spawn(self.bus.clone().forward(to_news));
        let interval = if self.bus.is_shared() { LOOK_INTERVAL_WITH_BUS } else { LOOK_INTERVAL_ALONE };
        let mut looks = tokio::time::interval(interval);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let done = tokio::select! {
                biased;
                () = app.shutdown.cancelled() => break,
                Some(commits) = self.commits.recv() => self.publish(&app, commits).await,
                Some(news) = news.recv() => match news {
                    News::Records { tenant_uuid, kind, last_id } => self.catch_up(&app, (tenant_uuid, kind), last_id).await,
                    News::DesiredState(hub_uuid) => {
                        app.hub_changes.notify_here(hub_uuid);
                        Ok(())
                    }
                },
                _ = looks.tick() => self.look(&app).await,
            };
            if let Err(error) = done {
                // Nothing is lost by it: the next commit or look finds the gap and fills it.
                tracing::debug!(%error, "streams are behind for a moment");
            }
        }
        forwarding.abort();
    }

    async fn publish(&self, app: &App, commits: Vec<Published>) -> Result<()> {
        let mut outcome = Ok(());
        for commit in commits {
            // One tenant's trouble is not another's.
            outcome = self.publish_one(app, commit).await.and(outcome);
        }
        outcome
    }

    async fn publish_one(&self, app: &App, commit: Published) -> Result<()> {
        let Published { tenant_uuid, kind, previous_id, last_id, records } = commit;
        if self.bus.is_shared() {
            self.bus.tell(News::Records { tenant_uuid, kind, last_id }).await;
        }
        let key = (tenant_uuid, kind);
        self.catch_up(app, key, previous_id).await?;
        // News or a look may have been quicker and read these records from the database.
        let Some(sent) = self.sent(key).filter(|sent| *sent < last_id) else { return Ok(()) };
        let new = records.into_iter().filter(|record| record.id > sent);
        self.send(key, new.filter_map(|record| said(record.into_frame(kind))).collect(), last_id);
        Ok(())
    }

    /// Reads from the database what the channel has not been sent, up to `last_id`.
    async fn catch_up(&self, app: &App, key: ChannelKey, last_id: i64) -> Result<()> {
        while let Some(sent) = self.sent(key).filter(|sent| *sent < last_id) {
            let (frames, read_to) = read(app, key, sent, last_id).await?;
            self.send(key, frames, read_to);
        }
        Ok(())
    }

    /// Asks the database what is new for all channels at once.
    async fn look(&self, app: &App) -> Result<()> {
        let keys: Vec<ChannelKey> = self.streams.channels().keys().copied().collect();
        app.metrics.stream_subscribers.set(self.streams.subscribers());
        let mut outcome = Ok(());
        for keys in keys.chunks(500) {
            let tenants = keys.iter().map(|(tenant_uuid, _)| *tenant_uuid);
            let rows: Vec<(hub_protocol::TenantUuid, String, i64)> =
                sql("SELECT tenant_uuid, kind, last_id FROM upload_clocks WHERE tenant_uuid IN ")
                    .push_list(tenants)
                    .all(&mut app.db.read().await?)
                    .await?;
            for (tenant_uuid, kind, last_id) in rows {
                if let Some(kind) = Kind::from_name(&kind) {
                    outcome = self.catch_up(app, (tenant_uuid, kind), last_id).await.and(outcome);
                }
            }
        }
        outcome
    }

    /// How far the channel is; nothing when nobody listens.
    fn sent(&self, key: ChannelKey) -> Option<i64> {
        let mut channels = self.streams.channels();
        if channels.get(&key)?.batches.receiver_count() == 0 {
            channels.remove(&key);
            return None;
        }
        channels.get(&key).map(|channel| channel.last_id)
    }

    /// Sends records into the channel, which is then complete up to `complete_to`.
    fn send(&self, key: ChannelKey, frames: Vec<RecordFrame>, complete_to: i64) {
        let batches: Vec<_> = in_batches(frames).map(|frames| std::sync::Arc::new(Batch::new(frames))).collect();
        let mut channels = self.streams.channels();
        let Some(channel) = channels.get_mut(&key) else { return };
        // Both under the lock: who joins now is told of exactly what was sent before.
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
        let mut bytes = batch.iter().map(|(_, _, frame)| frame.len()).sum::<usize>();
        while let Some((_, _, frame)) = frames.peek()
            && batch.len() < BATCH_RECORDS
            && bytes + frame.len() <= BATCH_BYTES
        {
            bytes += frame.len();
            batch.extend(frames.next());
        }
        Some(batch)
    })
}

/// Up to [`BATCH_RECORDS`] records after an id, as frames, and up to which id there are no others. Logs are read for all hubs of the tenant.
async fn read(app: &App, (tenant_uuid, kind): ChannelKey, after: i64, last_id: i64) -> Result<(Vec<RecordFrame>, i64)> {
    let mut conn = app.db.read().await?;
    let limit = i64::try_from(BATCH_RECORDS).unwrap_or(i64::MAX);
    let (frames, last_read) = match kind {
        Kind::BleEvents => {
            let events = ble::after(&mut conn, tenant_uuid, after, last_id, limit).await?;
            let last_read = events.get(BATCH_RECORDS - 1).map(|event| event.ble_event_id);
            (events.into_iter().filter_map(|event| said(ble_frame(event))).collect(), last_read)
        }
        Kind::Logs | Kind::Telemetry => {
            let records = telemetry::logs_after(&mut conn, tenant_uuid, None, after, last_id, limit).await?;
            let last_read = records.get(BATCH_RECORDS - 1).map(|record| record.id);
            (records.into_iter().filter_map(|record| said(log_frame(record))).collect(), last_read)
        }
        Kind::JobEvents => {
            let events = jobs::events_after(&mut conn, tenant_uuid, None, after, last_id, limit).await?;
            let last_read = events.get(BATCH_RECORDS - 1).map(|event| event.hub_job_event_id);
            (events.into_iter().filter_map(|event| said(job_event_frame(event))).collect(), last_read)
        }
    };
    // A read that is not full tells that there is nothing more up to `last_id`.
    Ok((frames, last_read.unwrap_or(last_id)))
}
