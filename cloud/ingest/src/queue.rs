//! The queue between handlers and the writer. It is bounded in uploads and in records.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hub_base::budget::Held;
use hub_base::error::{Error, Result};
use hub_protocol::{TenantUuid, Timestamp};
use tokio::sync::{mpsc, oneshot};

use super::derived::Heard;
use super::kinds::Kind;
use super::receipt::{Receipt, Refusal, minute_of};
use super::upload::{Record, Upload};

/// Uploads that may wait for the writer.
const QUEUE_UPLOADS: usize = 4096;
/// Records, summed over all waiting uploads, beyond which new uploads are refused for now.
const QUEUE_RECORDS: usize = 200_000;
/// The most tenants whose limit is remembered as reached.
const MAX_EXHAUSTED: usize = 100_000;

/// An upload that waits for the writer.
pub(super) struct Pending {
    pub upload: Upload,
    /// Whether it counts against the limit of the minute. Of an upload in parts, the first does.
    pub is_counted: bool,
    /// The memory of its records.
    pub bytes: usize,
    _held: Arc<Held>,
    pub answer_to: oneshot::Sender<Result<Receipt, Refusal>>,
}

/// A tenant may upload no more of this kind in this minute.
pub(super) struct Exhausted {
    pub tenant_uuid: TenantUuid,
    pub kind: Kind,
    pub minute: i64,
    pub limit: i64,
}

/// The end of the queue that handlers have; cheap to clone.
#[derive(Clone)]
pub(super) struct Queue {
    sender: mpsc::Sender<Pending>,
    pub state: Arc<State>,
}

/// Both ends of a queue.
pub(super) fn new() -> (Queue, mpsc::Receiver<Pending>) {
    let (sender, receiver) = mpsc::channel(QUEUE_UPLOADS);
    let state = Arc::new(State::default());
    (Queue { sender, state }, receiver)
}

#[derive(Default)]
pub(super) struct State {
    pub waiting_records: AtomicUsize,
    /// Tenants that reached their limit: (minute, limit). That holds until the minute ends,
    /// whatever other replicas do, so no further queries are needed.
    exhausted: Mutex<HashMap<(TenantUuid, Kind), (i64, i64)>>,
}

impl Queue {
    /// Passes an upload, or a part of one, to the writer and waits until it is durable.
    pub async fn enqueue(
        &self,
        upload: Upload,
        is_counted: bool,
        held: &Arc<Held>,
    ) -> Result<Receipt> {
        let (records, bytes) = (upload.records.len(), bytes_of(&upload));
        let waiting = self
            .state
            .waiting_records
            .fetch_add(records, Ordering::Relaxed);
        let (answer_to, answer) = oneshot::channel();
        let pending = Pending {
            upload,
            is_counted,
            bytes,
            _held: held.clone(),
            answer_to,
        };
        // An empty queue accepts an upload of any size, which otherwise could never be stored.
        let has_room = waiting == 0 || waiting + records <= QUEUE_RECORDS;
        if !has_room || self.sender.try_send(pending).is_err() {
            self.state
                .waiting_records
                .fetch_sub(records, Ordering::Relaxed);
            let message = "the queue of uploads is full; try again shortly";
            return Err(Error::unavailable("INGEST_BUSY", message));
        }
        match answer.await {
            Ok(Ok(receipt)) => Ok(receipt),
            Ok(Err(refusal)) => Err(refusal.into()),
            Err(_) => Err(Refusal::Unavailable.into()),
        }
    }
}

/// The memory that an upload uses while it waits.
pub(super) fn bytes_of(upload: &Upload) -> usize {
    let heard: usize = upload.heard.iter().map(Heard::bytes).sum();
    size_of::<Pending>()
        + upload.answer.len()
        + heard
        + upload.records.iter().map(Record::bytes).sum::<usize>()
}

impl State {
    pub fn exhausted_limit(
        &self,
        tenant_uuid: TenantUuid,
        kind: Kind,
        now: Timestamp,
    ) -> Option<i64> {
        let exhausted = self
            .exhausted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let (minute, limit) = exhausted.get(&(tenant_uuid, kind)).copied()?;
        (minute == minute_of(now)).then_some(limit)
    }

    pub fn set_exhausted(&self, tenant: &Exhausted) {
        let mut exhausted = self
            .exhausted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !exhausted.contains_key(&(tenant.tenant_uuid, tenant.kind)) {
            exhausted.retain(|_, (minute, _)| *minute >= tenant.minute);
        }
        if exhausted.len() >= MAX_EXHAUSTED {
            exhausted.clear();
        }
        exhausted.insert(
            (tenant.tenant_uuid, tenant.kind),
            (tenant.minute, tenant.limit),
        );
    }
}
