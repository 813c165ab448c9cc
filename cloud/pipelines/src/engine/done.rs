//! What a lane has done, as it is to be stored: attempts, dead letters, and how far it is now.

use std::sync::Arc;

use hub_destinations::Attempt;
use hub_devices::delivery_status::event_ids;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::super::definition::Compiled;
use super::circuit::Health;
use super::feed::LogEvent;

/// How far a lane is.
#[derive(Clone, Debug)]
pub struct Advance {
    pub lane_uuid: Uuid,
    pub epoch: i64,
    pub cursor: i64,
    /// Ranges after the cursor that are settled, as JSON.
    pub settled_ahead: Option<String>,
    /// Ends of the batches that may be under way, as JSON.
    pub planned: Option<String>,
    pub health: Health,
    /// Events delivered since the last time.
    pub events: i64,
    /// When a replay finished reading; None for other lanes and before.
    pub finished_at: Option<Timestamp>,
}

/// An attempt to deliver a message.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub tenant_uuid: TenantUuid,
    pub pipeline_uuid: Uuid,
    pub revision: i64,
    /// DELIVERED, FAILED or DEAD.
    pub status: &'static str,
    pub first_event_id: i64,
    pub last_event_id: i64,
    pub events: i64,
    pub event_ids: Option<Arc<str>>,
    /// From 1.
    pub attempt: i64,
    pub response_status: Option<i64>,
    pub response_body: Option<Arc<str>>,
    pub error: Option<Arc<str>>,
    pub duration_millis: i64,
    pub started_at: Timestamp,
}

impl Delivery {
    /// The `number`th attempt to deliver a message of these events.
    pub fn new(
        compiled: &Compiled,
        ids: &[i64],
        number: i64,
        started_at: Timestamp,
        attempt: Attempt,
    ) -> Self {
        let first_event_id = ids.first().copied().unwrap_or_default();
        let status = attempt.status();
        Self {
            tenant_uuid: compiled.tenant_uuid,
            pipeline_uuid: compiled.pipeline_uuid,
            revision: compiled.revision,
            status,
            first_event_id,
            last_event_id: ids.last().copied().unwrap_or(first_event_id),
            events: i64::try_from(ids.len()).unwrap_or(i64::MAX),
            event_ids: event_ids::encode(ids).map(Into::into),
            attempt: number,
            response_status: attempt.response_status.map(i64::from),
            response_body: attempt
                .response_body
                .filter(|_| attempt.result.is_err())
                .map(Into::into),
            error: attempt
                .result
                .err()
                .map(|failure| failure.into_reason().into()),
            duration_millis: i64::try_from(attempt.duration.as_millis()).unwrap_or(i64::MAX),
            started_at,
        }
    }
}

/// A message that will not be delivered.
#[derive(Clone, Debug)]
pub struct DeadLetter {
    pub tenant_uuid: TenantUuid,
    pub pipeline_uuid: Uuid,
    pub revision: i64,
    pub message_id: String,
    pub first_event_id: i64,
    pub last_event_id: i64,
    pub events: i64,
    pub event_ids: Option<Arc<str>>,
    /// The first event as JSON.
    pub payload: Arc<str>,
    pub reason: String,
    pub response_status: Option<i64>,
    pub attempts: i64,
    pub created_at: Timestamp,
}

impl DeadLetter {
    /// A message of these events that was never sent. `first` is the first of them.
    pub fn new(
        compiled: &Compiled,
        message_id: String,
        ids: &[i64],
        first: &LogEvent,
        reason: String,
        now: Timestamp,
    ) -> Self {
        let first_event_id = ids.first().copied().unwrap_or_default();
        Self {
            tenant_uuid: compiled.tenant_uuid,
            pipeline_uuid: compiled.pipeline_uuid,
            revision: compiled.revision,
            message_id,
            first_event_id,
            last_event_id: ids.last().copied().unwrap_or(first_event_id),
            events: i64::try_from(ids.len()).unwrap_or(i64::MAX),
            event_ids: event_ids::encode(ids).map(Into::into),
            payload: first.to_json().into(),
            reason,
            response_status: None,
            attempts: 0,
            created_at: now,
        }
    }
}

/// The result of sending a dead letter once more.
#[derive(Clone, Debug)]
pub enum Retried {
    Delivered {
        dlq_id: i64,
    },
    Refused {
        dlq_id: i64,
        attempts: i64,
        reason: String,
        response_status: Option<i64>,
    },
}

/// What a lane has to store.
#[derive(Debug, Default)]
pub struct Done {
    pub deliveries: Vec<Delivery>,
    pub dead_letters: Vec<DeadLetter>,
    pub retried: Vec<Retried>,
    /// The state of the steps after an event that is settled.
    pub snapshot: Option<(i64, Vec<u8>)>,
}

impl Done {
    pub fn len(&self) -> usize {
        self.deliveries.len() + self.dead_letters.len() + self.retried.len()
    }

    pub fn append(&mut self, later: Self) {
        self.deliveries.extend(later.deliveries);
        self.dead_letters.extend(later.dead_letters);
        self.retried.extend(later.retried);
        self.snapshot = later.snapshot.or_else(|| self.snapshot.take());
    }
}
