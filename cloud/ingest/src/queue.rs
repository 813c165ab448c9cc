//! The queue between handlers and the writer. It is bounded in uploads and in records.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hub_base::budget::Held;
use hub_base::error::{Error, Result};
use hub_identity::authn::hub::Hub;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use tokio::sync::{mpsc, oneshot};

use super::derived::Heard;
use super::kinds::Kind;
use super::receipt::{Receipt, Refusal, minute_of};
use super::upload::{Record, Upload};

/// Uploads that may wait for the writer.
const QUEUE_UPLOADS: usize = 4096;
/// Records, summed over all waiting uploads, beyond which new uploads are refused for now.
const QUEUE_RECORDS: usize = 200_000;
/// The most tenants and hubs whose limit is remembered as used up.
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

/// A tenant may upload no more of this kind in this minute, or one of its hubs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exhausted {
    pub tenant_uuid: TenantUuid,
    pub kind: Kind,
    /// The hub whose share is used up; None if that is the tenant's limit.
    pub hub_uuid: Option<HubUuid>,
    pub minute: i64,
    pub limit: i64,
    pub share: Option<i64>,
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
    /// Who may upload no more, with the number of refused uploads. That holds until the minute
    /// ends, whatever other replicas do, so no further queries are needed.
    exhausted: Mutex<HashMap<ExhaustedKey, (Exhausted, i64)>>,
}

type ExhaustedKey = (TenantUuid, Kind, Option<HubUuid>);

impl Queue {
    /// Passes an upload, or a part of one, to the writer and waits until it is durable or refused.
    pub async fn enqueue(
        &self,
        upload: Upload,
        is_counted: bool,
        held: &Arc<Held>,
    ) -> Result<Result<Receipt, Refusal>> {
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
        Ok(answer.await.unwrap_or(Err(Refusal::Unavailable)))
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
    /// What is used up for this hub, and how many of its uploads were refused for it so far.
    pub fn exhausted(&self, hub: &Hub, kind: Kind, now: Timestamp) -> Option<(Exhausted, i64)> {
        let mut exhausted = self
            .exhausted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let keys = [None, Some(hub.hub_uuid)].map(|hub_uuid| (hub.tenant_uuid, kind, hub_uuid));
        for key in keys {
            if let Some((limit, refused)) = exhausted.get_mut(&key)
                && limit.minute == minute_of(now)
            {
                *refused += 1;
                return Some((*limit, *refused));
            }
        }
        None
    }

    pub fn set_exhausted(&self, limit: Exhausted) {
        let mut exhausted = self
            .exhausted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let key = (limit.tenant_uuid, limit.kind, limit.hub_uuid);
        if !exhausted.contains_key(&key) {
            exhausted.retain(|_, (known, _)| known.minute >= limit.minute);
        }
        if exhausted.len() >= MAX_EXHAUSTED {
            exhausted.clear();
        }
        exhausted
            .entry(key)
            .and_modify(|known| {
                if known.0.minute != limit.minute {
                    *known = (limit, 0);
                }
            })
            .or_insert((limit, 0));
    }
}
