//! One reader of a stream: first what it missed, from the database, then what comes, from the channel. Ends after five minutes, when the service
//! stops, or when the reader is too slow; it then resumes with `Last-Event-ID`. It also ends soon after its reader has lost the right to it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hub_protocol::{HubUuid, TenantUuid};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::{Batch, ChannelKey, Frame, RecordFrame, ble_frame, job_event_frame, last_id, log_frame, said};
use crate::app::App;
use crate::authz::{Caller, Scope, permission as perm};
use crate::domain::{ble, jobs, telemetry};
use crate::error::Result;
use crate::ingest::Kind;

const HEARTBEAT: Duration = Duration::from_secs(20);
/// How long a stream may outlive its reader's membership, login or key, or the tenant.
const RECHECK: Duration = Duration::from_secs(10);
const LIFETIME: Duration = Duration::from_secs(300);
/// Records read from the database at a time.
const READ_RECORDS: i64 = 200;

/// What a reader wants to see.
#[derive(Clone, Debug)]
pub enum Subject {
    BleEvents,
    LogsOf(HubUuid),
    JobEventsOf(HubUuid),
}

impl Subject {
    const fn kind(&self) -> Kind {
        match self {
            Self::BleEvents => Kind::BleEvents,
            Self::LogsOf(_) => Kind::Logs,
            Self::JobEventsOf(_) => Kind::JobEvents,
        }
    }

    /// Whether the reader would be let in again.
    async fn is_open_to(&self, caller: &Caller, app: &App, tenant_uuid: TenantUuid) -> bool {
        match self {
            Self::BleEvents => caller.may_go_on::<perm::BleRead>(app, tenant_uuid).await,
            Self::LogsOf(_) | Self::JobEventsOf(_) => caller.may_go_on::<perm::HubsRead>(app, tenant_uuid).await,
        }
    }

    fn wants(&self, frame: &Frame) -> bool {
        match self {
            Self::BleEvents => true,
            Self::LogsOf(hub_uuid) | Self::JobEventsOf(hub_uuid) => frame.hub_uuid == *hub_uuid,
        }
    }
}

pub struct Subscription {
    app: App,
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
    greeted: bool,
}

impl Subscription {
    /// Begins after `resume_after`, or with what is committed from now on.
    pub async fn open(
        app: App,
        scope: Scope,
        caller: Caller,
        subject: Subject,
        resume_after: Option<i64>,
    ) -> Result<Self> {
        let key: ChannelKey = (scope.tenant_uuid(), subject.kind());
        let last_id = last_id(&mut app.db.read().await?, key).await?;
        app.streams.enter()?;
        let (batches, stored_to) = app.streams.join(key, last_id);
        let every = |period: Duration, first: Duration| {
            let mut interval = tokio::time::interval_at(Instant::now() + first, period);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            interval
        };
        // Readers that come at the same moment, as after a restart, ask at different ones: one answer then serves many of the same caller.
        let phase = RECHECK.mul_f64(f64::from(u16::from_le_bytes(crate::sealing::random())) / f64::from(u16::MAX));
        Ok(Self {
            app,
            scope,
            caller,
            subject,
            batches,
            cursor: resume_after.unwrap_or(last_id),
            stored_to,
            heartbeats: every(HEARTBEAT, HEARTBEAT),
            rechecks: every(RECHECK, phase),
            ends_at: Instant::now() + LIFETIME,
            greeted: false,
        })
    }

    /// The next bytes to send; nothing when the stream is over.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !self.greeted {
            self.greeted = true;
            // Tells the reader at once that it is connected, and to come back after a second when it is cut off.
            return Some(Bytes::from_static(b"retry: 1000\n\n"));
        }
        while self.cursor < self.stored_to {
            // Boxed: it runs seldom, and a stream is open long.
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
                () = self.app.shutdown.cancelled() => return None,
                _ = self.heartbeats.tick() => {
                    return (Instant::now() < self.ends_at).then(|| Bytes::from_static(b": ping\n\n"));
                }
                _ = self.rechecks.tick() => {
                    let is_open = self.subject.is_open_to(&self.caller, &self.app, self.scope.tenant_uuid());
                    if !Box::pin(is_open).await {
                        return None;
                    }
                }
                batch = self.batches.recv() => match batch {
                    Ok(batch) => {
                        if let Some(bytes) = self.take(&batch) {
                            return Some(bytes);
                        }
                    }
                    Err(RecvError::Lagged(_)) => {
                        self.app.metrics.stream_slow_readers.inc();
                        return None;
                    }
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    /// Frames of the batch that the reader wants and has not seen.
    fn take(&mut self, batch: &Batch) -> Option<Bytes> {
        let (first, last) = (batch.frames.first()?, batch.frames.last()?);
        let cursor = self.cursor;
        self.cursor = cursor.max(last.id);
        if first.id > cursor && matches!(self.subject, Subject::BleEvents) {
            return Some(batch.bytes.clone());
        }
        let wanted: Vec<&[u8]> = batch
            .frames
            .iter()
            .filter(|frame| frame.id > cursor && self.subject.wants(frame))
            .map(|frame| &*frame.bytes)
            .collect();
        (!wanted.is_empty()).then(|| wanted.concat().into())
    }

    async fn read_stored(&mut self) -> Result<Option<Bytes>> {
        let mut conn = self.app.db.read().await?;
        let tenant_uuid = self.scope.tenant_uuid();
        let (after, last) = (self.cursor, self.stored_to);
        let (frames, last_read): (Vec<RecordFrame>, Option<i64>) = match &self.subject {
            Subject::BleEvents => {
                let events = ble::after(&mut conn, tenant_uuid, after, last, READ_RECORDS).await?;
                let last_read = events.last().map(|event| event.ble_event_id);
                (events.into_iter().filter_map(|event| said(ble_frame(event))).collect(), last_read)
            }
            Subject::LogsOf(hub_uuid) => {
                let hub_uuid = Some(*hub_uuid);
                let records =
                    telemetry::logs_after(&mut conn, tenant_uuid, hub_uuid, after, last, READ_RECORDS).await?;
                let last_read = records.last().map(|record| record.id);
                (records.into_iter().filter_map(|record| said(log_frame(record))).collect(), last_read)
            }
            Subject::JobEventsOf(hub_uuid) => {
                let hub_uuid = Some(*hub_uuid);
                let events = jobs::events_after(&mut conn, tenant_uuid, hub_uuid, after, last, READ_RECORDS).await?;
                let last_read = events.last().map(|event| event.hub_job_event_id);
                (events.into_iter().filter_map(|event| said(job_event_frame(event))).collect(), last_read)
            }
        };
        drop(conn);
        self.cursor = last_read.unwrap_or(last);
        Ok((!frames.is_empty()).then(|| frames.into_iter().map(|(_, _, frame)| frame).collect::<String>().into()))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.app.streams.leave();
    }
}
