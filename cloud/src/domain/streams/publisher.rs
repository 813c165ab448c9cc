//! The one task that fills the channels, in the order of ids and without gaps: commits of this process as they come, those of other replicas when
//! the bus or a look at the database tells of them.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use super::{BATCH_RECORDS, Batch, ChannelKey, Published, Streams, ble_frame, log_frame};
use crate::app::App;
use crate::bus::{Bus, Wake};
use crate::db::sql;
use crate::domain::{ble, telemetry};
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
        let (wake, mut wakes) = mpsc::channel(1024);
        let forwarding = tokio::spawn(self.bus.clone().forward(wake));
        let interval = if self.bus.is_shared() { LOOK_INTERVAL_WITH_BUS } else { LOOK_INTERVAL_ALONE };
        let mut looks = tokio::time::interval(interval);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let done = tokio::select! {
                biased;
                () = app.shutdown.cancelled() => break,
                Some(commits) = self.commits.recv() => self.publish(&app, commits).await,
                Some(wake) = wakes.recv() => self.catch_up(&app, (wake.tenant_uuid, wake.kind), wake.last_id).await,
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
        for commit in commits {
            let Published { tenant_uuid, kind, previous_id, last_id, records } = commit;
            if self.bus.is_shared() {
                self.bus.wake(Wake { tenant_uuid, kind, last_id }).await;
            }
            let key = (tenant_uuid, kind);
            self.catch_up(app, key, previous_id).await?;
            // A wake or a look may have been quicker and read these records from the database.
            let Some(sent) = self.sent(key).filter(|sent| *sent < last_id) else { continue };
            let mut frames = Vec::with_capacity(BATCH_RECORDS.min(records.len()));
            for record in records.into_iter().filter(|record| record.id > sent) {
                frames.push(record.into_frame(kind)?);
                if frames.len() == BATCH_RECORDS {
                    self.send(key, std::mem::take(&mut frames), None);
                }
            }
            self.send(key, frames, Some(last_id));
        }
        Ok(())
    }

    /// Reads from the database what the channel has not been sent, up to `last_id`.
    async fn catch_up(&self, app: &App, key: ChannelKey, last_id: i64) -> Result<()> {
        while let Some(sent) = self.sent(key).filter(|sent| *sent < last_id) {
            let frames = read(app, key, sent, last_id).await?;
            // The last read tells that there is nothing up to `last_id`.
            let is_last = frames.len() < BATCH_RECORDS;
            self.send(key, frames, is_last.then_some(last_id));
        }
        Ok(())
    }

    /// Asks the database what is new for all channels at once.
    async fn look(&self, app: &App) -> Result<()> {
        let keys: Vec<ChannelKey> = self.streams.channels().keys().copied().collect();
        app.metrics.stream_subscribers.set(self.streams.subscribers());
        for keys in keys.chunks(500) {
            let tenants = keys.iter().map(|(tenant_uuid, _)| *tenant_uuid);
            let rows: Vec<(hub_protocol::TenantUuid, String, i64)> =
                sql("SELECT tenant_uuid, kind, last_id FROM upload_clocks WHERE tenant_uuid IN ")
                    .push_list(tenants)
                    .all(&mut app.db.read().await?)
                    .await?;
            for (tenant_uuid, kind, last_id) in rows {
                if let Some(kind) = Kind::from_name(&kind) {
                    self.catch_up(app, (tenant_uuid, kind), last_id).await?;
                }
            }
        }
        Ok(())
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

    /// Sends records into the channel, which is then complete up to `complete_to`, or else up to the last of them.
    fn send(&self, key: ChannelKey, frames: Vec<(i64, hub_protocol::HubUuid, String)>, complete_to: Option<i64>) {
        let last_id = complete_to.or(frames.last().map(|(id, _, _)| *id));
        let batch = (!frames.is_empty()).then(|| std::sync::Arc::new(Batch::new(frames)));
        let mut channels = self.streams.channels();
        let (Some(channel), Some(last_id)) = (channels.get_mut(&key), last_id) else { return };
        // Both under the lock: who joins now is told of exactly what was sent before.
        channel.last_id = last_id;
        if let Some(batch) = batch {
            let _ = channel.batches.send(batch);
        }
    }
}

/// Up to [`BATCH_RECORDS`] records after an id, as frames. Logs are read for all hubs of the tenant.
async fn read(
    app: &App,
    (tenant_uuid, kind): ChannelKey,
    after: i64,
    last_id: i64,
) -> Result<Vec<(i64, hub_protocol::HubUuid, String)>> {
    let mut conn = app.db.read().await?;
    let limit = i64::try_from(BATCH_RECORDS).unwrap_or(i64::MAX);
    match kind {
        Kind::BleEvents => {
            let events = ble::after(&mut conn, tenant_uuid, after, last_id, limit).await?;
            events.into_iter().map(ble_frame).collect()
        }
        Kind::Logs | Kind::Telemetry => {
            let records = telemetry::logs_after(&mut conn, tenant_uuid, None, after, last_id, limit).await?;
            records.into_iter().map(log_frame).collect()
        }
    }
}
