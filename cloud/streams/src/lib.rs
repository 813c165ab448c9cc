//! Live streams of records as they are committed. The ingest writer passes on each commit; one
//! publisher task serializes it once and sends the same bytes to every subscriber. Ids increase
//! within a tenant and the publisher never skips one, so a subscriber that resumes after an id gets
//! every record exactly once. Records that a subscriber missed are read from the database; a
//! subscriber that is too slow is disconnected. What a subscriber filters is left out on its own
//! task. Each stream has a guard that ends it in time.

mod devices;
mod filter;
pub mod guard;
pub mod http;
mod kinds;
mod publisher;
mod slots;
mod subscription;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRef;
use bytes::Bytes;
use hub_core::Core;
use hub_identity::authn::Authn;
use hub_ingest::{Follower, LogKey};
use hub_protocol::HubUuid;
use tokio::sync::broadcast;

pub use devices::{DeviceFeed, News};
use filter::Heard;
pub use publisher::Publisher;
pub use slots::{Slot, Slots};
pub use subscription::Subscription;

/// Batches that a subscriber may lag behind before it is disconnected.
const CHANNEL_BATCHES: usize = 64;
/// Records in a batch. With [`BATCH_BYTES`], it bounds the memory of a channel.
const BATCH_RECORDS: usize = 500;
/// Bytes of a batch, except for a single larger record.
const BATCH_BYTES: usize = 256 * 1024;

/// A record as an event of the stream.
struct RecordFrame {
    id: i64,
    hub_uuid: HubUuid,
    /// Whether another reception of the same frame came first; for BLE events.
    is_repeat: bool,
    /// The members of a BLE event that filters are matched with.
    heard: Option<Heard>,
    /// The text to send.
    text: String,
}

/// The channel that all subscribers of one tenant and record kind share.
struct Channel {
    batches: broadcast::Sender<Arc<Batch>>,
    /// Records up to this id have been sent into the channel.
    last_id: i64,
}

/// Consecutive records, ready to send.
struct Batch {
    frames: Vec<Frame>,
    /// All frames concatenated, for subscribers without a filter.
    bytes: Bytes,
}

/// One record as an event of the stream; a slice of its batch's bytes.
struct Frame {
    id: i64,
    hub_uuid: HubUuid,
    is_repeat: bool,
    heard: Option<Heard>,
    bytes: Bytes,
}

/// Connects the publisher with its subscribers; cheap to clone.
#[derive(Clone)]
pub struct Channels(Arc<Inner>);

struct Inner {
    channels: Mutex<HashMap<LogKey, Channel>>,
    follower: Follower,
}

/// State of the stream handlers.
#[derive(Clone, FromRef)]
pub struct Streams {
    pub core: Core,
    pub authn: Authn,
    pub channels: Channels,
    pub slots: Slots,
}

impl Channels {
    pub fn new(follower: Follower) -> Self {
        Self(Arc::new(Inner {
            channels: Mutex::default(),
            follower,
        }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<LogKey, Channel>> {
        self.0
            .channels
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A receiver, and the id up to which records were sent before it joined.
    fn join(&self, key: LogKey, last_id: i64) -> (broadcast::Receiver<Arc<Batch>>, i64) {
        let mut channels = self.lock();
        self.0.follower.follow(key);
        let channel = channels.entry(key).or_insert_with(|| Channel {
            batches: broadcast::Sender::new(CHANNEL_BATCHES),
            last_id,
        });
        (channel.batches.subscribe(), channel.last_id)
    }

    fn unfollow(&self, key: LogKey) {
        self.0.follower.unfollow(key);
    }
}

impl Batch {
    /// None if `hold` finds no memory for it.
    fn new(records: Vec<RecordFrame>, hold: impl FnOnce(Bytes) -> Option<Bytes>) -> Option<Self> {
        let bytes = hold(
            records
                .iter()
                .map(|record| record.text.as_str())
                .collect::<String>()
                .into(),
        )?;
        let mut start = 0;
        let frames = records
            .into_iter()
            .map(
                |RecordFrame {
                     id,
                     hub_uuid,
                     is_repeat,
                     heard,
                     text,
                 }| {
                    let end = start + text.len();
                    let frame = Frame {
                        id,
                        hub_uuid,
                        is_repeat,
                        heard,
                        bytes: bytes.slice(start..end),
                    };
                    start = end;
                    frame
                },
            )
            .collect();
        Some(Self { frames, bytes })
    }
}
