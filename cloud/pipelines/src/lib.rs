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
mod secrets;
mod status;
mod store;
mod test_run;
mod time_machine;
mod withdrawal;

use std::sync::Arc;

use axum::extract::FromRef;
use hub_base::bus::Subscription;
use hub_base::db::Tx;
use hub_core::Core;
use hub_identity::authn::Authn;
use tokio::sync::{Notify, mpsc};

pub use engine::Engine;
pub use http::routes;
pub use hub_devices::delivery_status::event_ids;
pub use numbers::{FailingRow, LosingRow, failing, lose, lose_all, losing, numbers, overview};
pub use rehearsal::{Rehearsal, Rehearsed, rehearsal};
pub use status::{DeliveryOutcome, LIVE, LaneStatus, PipelineStatus, REPLAY, RETRY, Retry};
pub use store::delete_all;
pub use withdrawal::{
    LANE as WITHDRAWAL_LANE, WITHDRAW, begin_for_device as withdraw_device, perform as withdraw,
};

/// Pipelines of a tenant.
const MAX_PIPELINES: i64 = 100;
/// Replays of a pipeline that have not ended.
const MAX_REPLAYS: i64 = 10;
/// The topic on the bus that says that lanes were changed.
const TOPIC: &str = "pipelines";
/// Announcements of other replicas that wait; one is as good as many.
const QUEUE_ANNOUNCEMENTS: usize = 16;

/// The state of this crate's handlers; each takes the part it needs. Cheap to clone.
#[derive(Clone, FromRef)]
pub struct Parts {
    pub core: Core,
    pub authn: Authn,
    pub pipelines: Pipelines,
}

/// What the operations on pipelines share. Cheap to clone.
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
