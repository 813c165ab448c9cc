//! Data pipelines: which events leave the platform, what is made of them, and where they go. A
//! pipeline is a position in the log of its tenant's BLE events: nothing is written for an event
//! that waits. This is what operators define and change; it must never send anything but a test.
//!
//! Every change of an operator that concerns a lane raises its epoch, which takes it away from
//! whoever works on it, and wakes those who do.

pub mod bound;
mod dead_letters;
pub mod definition;
mod destination;
mod draft;
mod engine;
pub mod http;
mod lag;
mod members;
mod numbers;
mod operations;
mod rehearsal;
mod replays;
pub mod retention;
mod store;
mod test_run;
mod time_machine;

pub use engine::Engine;
pub use numbers::{FailingRow, LosingRow, failing, lose, lose_all, losing, numbers, overview};

use std::sync::Arc;

use hub_protocol::{TenantUuid, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, mpsc};

use crate::bus::Subscription;
use crate::core::Core;
use crate::db::Tx;
pub use crate::domain::delivery_status::event_ids;
use crate::error::Result;
pub use rehearsal::{Rehearsal, Rehearsed, rehearsal};

/// Pipelines of a tenant.
const MAX_PIPELINES: i64 = 100;
/// Revisions of a pipeline that are kept, besides those that dead letters name.
const KEPT_REVISIONS: i64 = 50;
/// Replays of a pipeline that have not ended.
const MAX_REPLAYS: i64 = 10;
/// Replays of a pipeline that have ended and are kept.
const FINISHED_REPLAYS: i64 = 1000;
/// How long the previous signing secret signs as well.
const SECRET_OVERLAP_SECS: i64 = 24 * 3600;
/// The topic on the bus that says that lanes were changed.
const TOPIC: &str = "pipelines";
/// Announcements of other replicas that wait; one is as good as many.
const QUEUE_ANNOUNCEMENTS: usize = 16;

/// State of the handlers of pipelines; cheap to clone.
#[derive(Clone)]
pub struct Pipelines {
    pub core: Core,
    /// Notified when an operator has changed lanes.
    pub woken: Arc<Notify>,
}

impl Pipelines {
    pub fn new(core: Core) -> Self {
        Self {
            core,
            woken: Arc::new(Notify::new()),
        }
    }

    /// Has those who work on lanes look for changes, here and at the other replicas.
    pub async fn wake(&self) {
        self.woken.notify_one();
        self.core.bus.publish(TOPIC, "changed").await;
    }

    /// Wakes them once the transaction is committed.
    fn wake_after(&self, tx: &mut Tx) {
        let pipelines = self.clone();
        tx.after_commit(async move { pipelines.wake().await });
    }
}

/// Wakes those who work on lanes when another replica says that some were changed, until the
/// service ends; and the subscription to the bus for that.
pub fn follow(pipelines: Pipelines) -> (impl Future<Output = ()>, Subscription) {
    let (messages, mut announcements) = mpsc::channel(QUEUE_ANNOUNCEMENTS);
    let following = async move {
        loop {
            tokio::select! {
                () = pipelines.core.shutdown.cancelled() => return,
                Some(_) = announcements.recv() => pipelines.woken.notify_one(),
            }
        }
    };
    (
        following,
        Subscription {
            topic: TOPIC,
            messages,
        },
    )
}

/// Whether a pipeline works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PipelineStatus {
    /// It delivers what there is.
    Running,
    /// It was paused.
    Disabled,
    /// Its receiver fails; it is tried again now and then.
    OpenCircuit,
    /// Its receiver has failed for too long, or refuses for good; it waits for somebody to resume
    /// it.
    Suspended,
}

/// How far a position in the log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "PipelineReplayStatus")]
pub enum LaneStatus {
    /// It is worked on, or waits for its turn.
    Running,
    /// The receiver fails; it is tried again now and then.
    OpenCircuit,
    /// It waits for somebody to resume the pipeline.
    Suspended,
    /// The pipeline was paused.
    Disabled,
    /// It is done.
    Finished,
    /// It was cancelled.
    Cancelled,
}

text_enum!(LaneStatus {
    Running = "RUNNING",
    OpenCircuit = "OPEN_CIRCUIT",
    Suspended = "SUSPENDED",
    Disabled = "DISABLED",
    Finished = "FINISHED",
    Cancelled = "CANCELLED",
});

impl LaneStatus {
    /// Of a lane that begins now.
    const fn of_new(enabled: bool) -> Self {
        if enabled {
            Self::Running
        } else {
            Self::Disabled
        }
    }

    const fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Cancelled)
    }

    /// Of the pipeline whose LIVE lane this is.
    const fn of_pipeline(self, enabled: bool) -> PipelineStatus {
        match self {
            _ if !enabled => PipelineStatus::Disabled,
            Self::Running | Self::Finished => PipelineStatus::Running,
            Self::OpenCircuit => PipelineStatus::OpenCircuit,
            Self::Suspended => PipelineStatus::Suspended,
            Self::Disabled | Self::Cancelled => PipelineStatus::Disabled,
        }
    }
}

/// Lanes by what they are for, as they are stored.
pub const LIVE: &str = "LIVE";
pub const REPLAY: &str = "REPLAY";
pub const RETRY: &str = "RETRY";

/// What came of an attempt to deliver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DeliveryOutcome {
    /// It is under way. Attempts are recorded when they have ended, so none is.
    Pending,
    /// The receiver took the message.
    Delivered,
    /// It failed; another attempt follows.
    Failed,
    /// It failed, and the message is a dead letter.
    Dead,
}

text_enum!(DeliveryOutcome { Pending = "PENDING", Delivered = "DELIVERED", Failed = "FAILED", Dead = "DEAD" });

/// The revision with which a dead letter is sent again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "RetryRevision")]
pub enum Retry {
    /// The one that made it.
    Original,
    /// The one in force.
    #[default]
    Current,
}

text_enum!(Retry { Original = "ORIGINAL", Current = "CURRENT" });

/// Ends all pipelines of a tenant that is deleted, and returns how many there were.
pub async fn delete_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<u64> {
    store::delete_all(tx, tenant_uuid).await
}
