//! Which devices of a tenant were heard, as it happens: for readers that then read what they may.

use std::collections::HashSet;
use std::sync::Arc;

use hub_base::error::Result;
use hub_ingest::{self as ingest, Kind, LogKey};
use hub_protocol::TenantUuid;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

use super::{Batch, Streams};

/// Devices with new events.
pub struct News {
    /// None if it is not known which: any may have some.
    pub devices: Option<HashSet<i64>>,
    /// The last event that is considered. It is stored, and so are all before it.
    pub up_to: i64,
}

/// The devices of one tenant, as they are heard.
pub struct DeviceFeed {
    batches: broadcast::Receiver<Arc<Batch>>,
    last_id: i64,
    /// Whether batches before the next one were left out.
    has_gap: bool,
}

impl DeviceFeed {
    pub async fn join(streams: &Streams, tenant_uuid: TenantUuid) -> Result<Self> {
        let key: LogKey = (tenant_uuid, Kind::BleEvents);
        let last_id = ingest::last_id(&mut streams.core.db.read().await?, key).await?;
        let (batches, sent_to) = streams.channels.join(key, last_id);
        Ok(Self {
            batches,
            last_id: last_id.max(sent_to),
            has_gap: false,
        })
    }

    /// The last event that was considered. It is stored, and so are all before it.
    pub const fn last_id(&self) -> i64 {
        self.last_id
    }

    /// Waits for events of wanted devices. None if the feed has ended, because the service has no
    /// memory left for it. A call that is dropped loses nothing.
    pub async fn next(&mut self, is_wanted: impl Fn(i64) -> bool) -> Option<News> {
        let mut devices = HashSet::new();
        loop {
            // What has come meanwhile is one piece of news.
            let received = match self.batches.try_recv() {
                Err(TryRecvError::Empty) if self.has_gap || !devices.is_empty() => break,
                Err(TryRecvError::Empty) => self.batches.recv().await,
                Err(TryRecvError::Lagged(batches)) => Err(RecvError::Lagged(batches)),
                Err(TryRecvError::Closed) => Err(RecvError::Closed),
                Ok(batch) => Ok(batch),
            };
            let batch = match received {
                Ok(batch) => batch,
                Err(RecvError::Lagged(_)) => {
                    self.has_gap = true;
                    continue;
                }
                Err(RecvError::Closed) => return None,
            };
            let before = self.last_id;
            self.last_id = batch
                .frames
                .last()
                .map_or(before, |last| before.max(last.id));
            let new = batch.frames.iter().filter(|frame| frame.id > before);
            devices.extend(
                new.filter_map(|frame| frame.heard?.device_instance_id)
                    .filter(|device_instance_id| is_wanted(*device_instance_id)),
            );
        }
        let has_gap = std::mem::take(&mut self.has_gap);
        Some(News {
            devices: (!has_gap).then_some(devices),
            up_to: self.last_id,
        })
    }
}
