//! Live streams: what was committed, as it is committed. The writer hands over each commit; one publisher task turns it into bytes once and
//! passes the same bytes to every subscriber. Ids rise within a tenant and a publisher never skips one, so a subscriber that resumes
//! after an id neither misses nor sees twice. What a subscriber missed is read from the database; what it is too slow for cuts it off.

pub mod http;
mod publisher;
mod subscription;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde::Serialize;
use tokio::sync::{broadcast, mpsc};

use crate::db::{Conn, sql};
use crate::domain::ble::StoredEvent;
use crate::domain::jobs::StoredJobEvent;
use crate::error::{Error, Result};
use crate::ingest::{Kind, Record};

pub use publisher::Publisher;
pub use subscription::Subscription;

/// Batches a subscriber may be behind before it is cut off.
const CHANNEL_BATCHES: usize = 64;
/// Most records in a batch, so that what waits in a channel is bounded in bytes too.
const BATCH_RECORDS: usize = 500;
/// Bytes of a batch, but for a record that is larger by itself.
const BATCH_BYTES: usize = 256 * 1024;
/// Commits that may wait for the publisher; what does not fit is read from the database.
const QUEUE_COMMITS: usize = 256;
/// Streams open at once.
const MAX_SUBSCRIBERS: usize = 20_000;

/// What one commit stored for one tenant.
#[derive(Debug)]
pub struct Published {
    pub tenant_uuid: TenantUuid,
    pub kind: Kind,
    /// The last id of the tenant before this commit.
    pub previous_id: i64,
    pub last_id: i64,
    pub records: Vec<PublishedRecord>,
}

#[derive(Debug)]
pub struct PublishedRecord {
    pub id: i64,
    pub hub_uuid: HubUuid,
    pub record: Record,
}

type ChannelKey = (TenantUuid, Kind);

/// A record as an event of the stream: its id, its hub, and what is sent.
type RecordFrame = (i64, HubUuid, String);

/// All that subscribers of one tenant and kind share.
struct Channel {
    batches: broadcast::Sender<Arc<Batch>>,
    /// Records up to this id have been sent into the channel.
    last_id: i64,
}

/// Some records in order, ready to send.
struct Batch {
    frames: Vec<Frame>,
    /// All frames in one piece, for subscribers that want all.
    bytes: Bytes,
}

/// One record as an event of the stream; a part of its batch's bytes.
struct Frame {
    id: i64,
    hub_uuid: HubUuid,
    bytes: Bytes,
}

/// Where streams are published and subscribed to; cheap to clone.
#[derive(Clone)]
pub struct Streams(Arc<Inner>);

struct Inner {
    channels: Mutex<HashMap<ChannelKey, Channel>>,
    commits: mpsc::Sender<Vec<Published>>,
    subscribers: AtomicUsize,
    /// Other replicas are told of every commit, subscribers here or not.
    tells_others: bool,
}

impl Streams {
    pub fn new(tells_others: bool) -> (Self, mpsc::Receiver<Vec<Published>>) {
        let (commits, receiver) = mpsc::channel(QUEUE_COMMITS);
        let inner = Inner { channels: Mutex::default(), commits, subscribers: AtomicUsize::new(0), tells_others };
        (Self(Arc::new(inner)), receiver)
    }

    /// Hands a commit to the publisher. Never waits: a commit the publisher has no room for is found in the database.
    pub fn publish(&self, mut published: Vec<Published>) {
        published.retain(|commit| commit.kind != Kind::Telemetry && !commit.records.is_empty());
        if !self.0.tells_others {
            if self.0.subscribers.load(Ordering::Relaxed) == 0 {
                return;
            }
            let channels = self.channels();
            published.retain(|commit| channels.contains_key(&(commit.tenant_uuid, commit.kind)));
        }
        if !published.is_empty() {
            let _ = self.0.commits.try_send(published);
        }
    }

    fn channels(&self) -> std::sync::MutexGuard<'_, HashMap<ChannelKey, Channel>> {
        self.0.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver, and the id up to which records have been sent before it.
    fn join(&self, key: ChannelKey, last_id: i64) -> (broadcast::Receiver<Arc<Batch>>, i64) {
        let mut channels = self.channels();
        let channel = channels
            .entry(key)
            .or_insert_with(|| Channel { batches: broadcast::Sender::new(CHANNEL_BATCHES), last_id });
        (channel.batches.subscribe(), channel.last_id)
    }

    /// Counts a subscriber in, or refuses it when there are too many.
    fn enter(&self) -> Result<()> {
        if self.0.subscribers.fetch_add(1, Ordering::Relaxed) >= MAX_SUBSCRIBERS {
            self.leave();
            return Err(Error::unavailable("TOO_MANY_STREAMS", "too many streams are open; try again shortly"));
        }
        Ok(())
    }

    fn subscribers(&self) -> i64 {
        i64::try_from(self.0.subscribers.load(Ordering::Relaxed)).unwrap_or(i64::MAX)
    }

    fn leave(&self) {
        self.0.subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The last id handed out to a tenant; 0 when there is none yet.
async fn last_id(conn: &mut Conn, (tenant_uuid, kind): ChannelKey) -> Result<i64> {
    let row: Option<(i64,)> = sql("SELECT last_id FROM upload_clocks WHERE tenant_uuid = $1 AND kind = $2")
        .bind(tenant_uuid)
        .bind(kind.name())
        .optional(conn)
        .await?;
    Ok(row.map_or(0, |(last_id,)| last_id))
}

impl Batch {
    fn new(records: Vec<RecordFrame>) -> Self {
        let bytes: Bytes = records.iter().map(|(_, _, frame)| frame.as_str()).collect::<String>().into();
        let mut start = 0;
        let frames = records
            .into_iter()
            .map(|(id, hub_uuid, frame)| {
                let end = start + frame.len();
                let frame = Frame { id, hub_uuid, bytes: bytes.slice(start..end) };
                start = end;
                frame
            })
            .collect();
        Self { frames, bytes }
    }
}

/// One event of a stream; its id is the time the record was received.
fn frame<T: Serialize>(id: i64, event: &str, data: &T) -> Result<String> {
    let data = serde_json::to_string(data).map_err(Error::internal)?;
    Ok(format!("id: {}\nevent: {event}\ndata: {data}\n\n", Timestamp::from_micros(id)))
}

fn ble_frame(event: StoredEvent) -> Result<RecordFrame> {
    let (id, hub_uuid) = (event.ble_event_id, event.hub_uuid);
    Ok((id, hub_uuid, frame(id, "ble_event", &event.response()?)?))
}

fn log_frame(record: crate::domain::telemetry::StoredRecord) -> Result<RecordFrame> {
    let (id, hub_uuid) = (record.id, record.hub_uuid);
    Ok((id, hub_uuid, frame(id, "hub_log", &crate::domain::telemetry::HubLogResponse::from(record))?))
}

fn job_event_frame(event: StoredJobEvent) -> Result<RecordFrame> {
    let (id, hub_uuid) = (event.hub_job_event_id, event.hub_uuid);
    Ok((id, hub_uuid, frame(id, "hub_job_event", &event.response()?)?))
}

impl PublishedRecord {
    fn into_frame(self, kind: Kind) -> Result<RecordFrame> {
        let Self { id, hub_uuid, record } = self;
        match kind {
            Kind::BleEvents => ble_frame(StoredEvent {
                ble_event_id: id,
                hub_uuid,
                device_instance_id: record.device_instance_id,
                processing_status: "RECEIVED".to_owned(),
                delivery_status: "NONE".to_owned(),
                window_start: record.window.map(|(start, _)| start),
                window_end: record.window.map(|(_, end)| end),
                event: record.text.as_ref().to_owned(),
            }),
            Kind::Logs | Kind::Telemetry => log_frame(crate::domain::telemetry::StoredRecord {
                id,
                hub_uuid,
                body: record.text.as_ref().to_owned(),
            }),
            Kind::JobEvents => job_event_frame(StoredJobEvent {
                hub_job_event_id: id,
                hub_uuid,
                body: record.text.as_ref().to_owned(),
            }),
        }
    }
}

/// A record that cannot be shown is left out: it must not hold back those after it.
fn said(frame: Result<RecordFrame>) -> Option<RecordFrame> {
    frame.inspect_err(|error| tracing::error!(%error, "a stored record cannot be streamed")).ok()
}
