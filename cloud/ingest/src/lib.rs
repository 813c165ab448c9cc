//! The entry point for everything that hubs upload. A handler validates an upload and submits it.
//! The writer commits all uploads that have queued up in one transaction, and responses are sent
//! only after that. So all uploads in flight share the cost of a commit, and no acknowledged upload
//! can be lost. The queue is bounded: when it is full, hubs are asked to retry, and their spools
//! keep the data. A large upload takes several transactions, so that no other one waits long.

pub mod batches;
mod body;
mod commits;
mod day_shares;
mod derived;
mod group;
pub mod history;
mod kinds;
pub mod log;
mod observations;
mod parts;
mod place;
mod queue;
mod quota;
mod receipt;
mod retention;
mod shares;
mod single;
mod store;
mod touches;
mod upload;
mod writer;

use std::sync::Arc;

use hub_base::budget::Held;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::body::no_memory;
pub use hub_history::{ProcessingStatus, StoredEvent};
use hub_identity::authn::hub::Hub;

pub use body::{HubUpload, UploadBody};
pub use commits::{
    Commit, Commits, CommittedRecord, Follower, LogKey, Queued, TOPIC, announcement,
    parse_announcement,
};
pub use derived::{Derived, Due, Heard, HeardUpload};
pub use group::CLONE_QUIET_SECS;
pub use kinds::Kind;
pub use quota::{
    Used, count_stored, forget_month, forget_months_before, has_months_before, lower_stored,
    near_bytes_per_day, near_stored_bytes, stored_in_total, stored_of_kind,
};
pub use receipt::{Limited, RateLimit, Receipt};
pub use retention::{
    BLE_EVENTS, Holder, delete, delete_of_hub, holders, log_of, oldest_of_hub, tables_of,
};
pub use single::{Ids, issue_id, store_answer, stored_answer};
pub use store::{delete_keys, last_id, last_ids};
pub use upload::{Observation, Record, ReportedAgent, Upload};
pub use writer::Writer;

use queue::bytes_of;
use receipt::{Refusal, rate_limited, secs_left, share_exceeded};

/// An upload that was read, and the memory that a large one uses.
pub struct Received<R> {
    pub hub: Hub,
    /// What the body contains, or what is wrong with it.
    pub content: Result<R>,
    pub held: Option<Held>,
}

/// Submits uploads to the writer; cheap to clone.
#[derive(Clone)]
pub struct Ingest {
    pub core: Core,
    queue: queue::Queue,
}

/// Creates the two ends of the queue.
pub fn queue(core: &Core, commits: Commits, derived: Arc<dyn Derived>) -> (Ingest, Writer) {
    let (queue, receiver) = queue::new();
    let writer = Writer::new(receiver, queue.state.clone(), commits, derived);
    (
        Ingest {
            core: core.clone(),
            queue,
        },
        writer,
    )
}

impl Ingest {
    /// Reads, unpacks and parses an upload. Nothing of it is read if the tenant has reached its
    /// limit.
    pub async fn receive<T, R: Send + 'static>(
        &self,
        kind: Kind,
        upload: HubUpload<T>,
        parse: impl FnOnce(&[u8]) -> Result<R> + Send + 'static,
    ) -> Result<Received<R>> {
        let HubUpload { hub, request, .. } = upload;
        self.require_below_limit(&hub, kind).await?;
        let body::Parsed { content, held } =
            body::receive(&self.core, &hub, request, parse).await?;
        Ok(Received { hub, content, held })
    }

    /// Stores the upload; returns when it is durable.
    pub async fn submit(&self, upload: Upload) -> Result<Receipt> {
        self.submit_held(upload, None).await
    }

    /// As [`Ingest::submit`], with the memory that was reserved for a large upload.
    pub async fn submit_held(&self, upload: Upload, held: Option<Held>) -> Result<Receipt> {
        self.require_below_limit(&upload.hub, upload.kind).await?;
        let bytes = bytes_of(&upload);
        let held = match held {
            Some(mut held) => {
                held.shrink_to(bytes);
                held
            }
            None => self
                .core
                .bodies
                .queued
                .reserve(body::holder(&upload.hub), bytes)
                .map_err(no_memory)?,
        };
        let held = Arc::new(held);
        match bytes {
            ..=parts::PART_BYTES => {
                let (hub, kind) = (upload.hub.clone(), upload.kind);
                let stored = self.queue.enqueue(upload, true, &held).await?;
                if matches!(
                    stored,
                    Err(Refusal::ShareExceeded { .. } | Refusal::DayShareExceeded { .. })
                ) {
                    // Counts it, as those that are refused at once.
                    self.require_below_limit(&hub, kind).await?;
                }
                Ok(stored?)
            }
            _ => parts::submit(&self.core, &self.queue, upload, &held).await,
        }
    }

    /// Fails if the tenant has reached its limit of the minute.
    async fn require_below_limit(&self, hub: &Hub, kind: Kind) -> Result<()> {
        let now = self.core.clock.now();
        let Some((exhausted, refused)) = self.queue.state.exhausted(hub, kind, now) else {
            return Ok(());
        };
        // A hub that has to refresh its token must get 401, even if others have used up the minute.
        hub.require_in_force(&self.core).await?;
        let rate_limit = RateLimit {
            limit: exhausted.limit,
            remaining: 0,
            reset_secs: secs_left(now),
        };
        let Some(share) = exhausted.share else {
            return Err(rate_limited(rate_limit));
        };
        self.core.metrics.ingest_share_refusals.inc();
        if shares::is_flood(refused, share) {
            Box::pin(shares::note_flood(&self.core, hub.hub_uuid)).await;
        }
        Err(share_exceeded(rate_limit, share, hub.hub_uuid))
    }

    /// The response to an upload that cannot be stored because of `error`. It counts like any other
    /// upload. A token that is no longer in force and a reached limit take precedence over `error`.
    pub async fn refuse(&self, hub: Hub, kind: Kind, error: Error) -> Error {
        let nothing = Upload {
            hub,
            kind,
            key: None,
            records: Vec::new(),
            heard: Vec::new(),
            answer: String::new(),
            agent: ReportedAgent::default(),
        };
        self.submit(nothing).await.err().unwrap_or(error)
    }
}
