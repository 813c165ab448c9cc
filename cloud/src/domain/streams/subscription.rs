//! One reader of a stream: it gets missed records from the database first, then new ones from the
//! channel. A subscription ends after five minutes, when the service shuts down, or when the reader
//! is too slow; the reader resumes with `Last-Event-ID`. It also ends soon after the reader has
//! lost its permission.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hub_protocol::HubUuid;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::kinds::{self, Span, StreamKind};
use super::{Batch, Frame, Streams};
use crate::authz::{Caller, Scope};
use crate::error::Result;
use crate::ingest::{self, LogKey};

const HEARTBEAT: Duration = Duration::from_secs(20);
/// How long a stream may outlive its reader's membership, login or key, or the tenant.
const RECHECK: Duration = Duration::from_secs(10);
const LIFETIME: Duration = Duration::from_secs(300);
/// Records read from the database at a time.
const READ_RECORDS: i64 = 200;

/// What a reader subscribes to: records of one kind, of all hubs or of one.
#[derive(Clone, Copy)]
pub struct Subject {
    description: &'static StreamKind,
    hub_uuid: Option<HubUuid>,
}

impl Subject {
    pub const BLE_EVENTS: Self = Self { description: &kinds::BLE_EVENTS, hub_uuid: None };

    pub const fn logs_of(hub_uuid: HubUuid) -> Self {
        Self { description: &kinds::LOGS, hub_uuid: Some(hub_uuid) }
    }

    pub const fn job_events_of(hub_uuid: HubUuid) -> Self {
        Self { description: &kinds::JOB_EVENTS, hub_uuid: Some(hub_uuid) }
    }

    fn includes(&self, frame: &Frame) -> bool {
        self.hub_uuid.is_none_or(|hub_uuid| frame.hub_uuid == hub_uuid)
    }
}

pub struct Subscription {
    streams: Streams,
    scope: Scope,
    caller: Caller,
    subject: Subject,
    batches: broadcast::Receiver<Arc<Batch>>,
    /// The reader has all records up to this id.
    cursor: i64,
    /// Records up to this id come from the database, later ones from the channel.
    stored_to: i64,
    heartbeats: Interval,
    rechecks: Interval,
    ends_at: Instant,
    has_sent_retry: bool,
}

impl Subscription {
    /// Starts after `resume_after`, or with the next commit.
    pub async fn open(
        streams: Streams,
        scope: Scope,
        caller: Caller,
        subject: Subject,
        resume_after: Option<i64>,
    ) -> Result<Self> {
        let key: LogKey = (scope.tenant_uuid(), subject.description.kind);
        let last_id = ingest::last_id(&mut streams.core.db.read().await?, key).await?;
        streams.channels.enter()?;
        let (batches, stored_to) = streams.channels.join(key, last_id);
        let every = |period: Duration, first: Duration| {
            let mut interval = tokio::time::interval_at(Instant::now() + first, period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        };
        // Readers that connect at the same moment, as after a restart, recheck at different times,
        // so that one cached result serves many of the same caller.
        let phase = RECHECK.mul_f64(f64::from(u16::from_le_bytes(crate::sealing::random())) / f64::from(u16::MAX));
        Ok(Self {
            streams,
            scope,
            caller,
            subject,
            batches,
            cursor: resume_after.unwrap_or(last_id),
            stored_to,
            heartbeats: every(HEARTBEAT, HEARTBEAT),
            rechecks: every(RECHECK, phase),
            ends_at: Instant::now() + LIFETIME,
            has_sent_retry: false,
        })
    }

    /// The next bytes to send; None when the stream has ended.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !self.has_sent_retry {
            self.has_sent_retry = true;
            // Confirms the connection at once, and sets the client's reconnection delay to one
            // second.
            return Some(Bytes::from_static(b"retry: 1000\n\n"));
        }
        while self.cursor < self.stored_to {
            // Boxed: it runs rarely, and a stream stays open long.
            match Box::pin(self.read_stored()).await {
                Ok(Some(bytes)) => return Some(bytes),
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(%error, "a stream ends because the database is not available");
                    return None;
                }
            }
        }
        loop {
            tokio::select! {
                biased;
                () = self.streams.core.shutdown.cancelled() => return None,
                _ = self.heartbeats.tick() => {
                    return (Instant::now() < self.ends_at).then(|| Bytes::from_static(b": ping\n\n"));
                }
                _ = self.rechecks.tick() => {
                    let is_allowed = self.subject.description.is_allowed;
                    if !is_allowed(&self.caller, &self.streams.authn, self.scope.tenant_uuid()).await {
                        return None;
                    }
                }
                batch = self.batches.recv() => match batch {
                    Ok(batch) => {
                        if let Some(bytes) = self.select(&batch) {
                            return Some(bytes);
                        }
                    }
                    Err(RecvError::Lagged(_)) => {
                        self.streams.core.metrics.stream_slow_readers.inc();
                        return None;
                    }
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    /// The frames of the batch that match the subscription and were not sent yet.
    fn select(&mut self, batch: &Batch) -> Option<Bytes> {
        let (first, last) = (batch.frames.first()?, batch.frames.last()?);
        let cursor = self.cursor;
        self.cursor = cursor.max(last.id);
        if first.id > cursor && self.subject.hub_uuid.is_none() {
            return Some(batch.bytes.clone());
        }
        let selected: Vec<&[u8]> = batch
            .frames
            .iter()
            .filter(|frame| frame.id > cursor && self.subject.includes(frame))
            .map(|frame| &*frame.bytes)
            .collect();
        (!selected.is_empty()).then(|| selected.concat().into())
    }

    async fn read_stored(&mut self) -> Result<Option<Bytes>> {
        let mut conn = self.streams.core.db.read().await?;
        let Subject { description, hub_uuid } = self.subject;
        let (after, last) = (self.cursor, self.stored_to);
        let tenant_uuid = self.scope.tenant_uuid();
        let span = Span { tenant_uuid, hub_uuid, after, last, limit: READ_RECORDS };
        let stored = (description.read)(&mut conn, span).await?;
        drop(conn);
        self.cursor = stored.last_id.unwrap_or(last);
        let frames = stored.frames;
        Ok((!frames.is_empty()).then(|| frames.into_iter().map(|(_, _, frame)| frame).collect::<String>().into()))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.streams.channels.leave();
    }
}
