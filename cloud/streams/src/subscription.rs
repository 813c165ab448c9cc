//! One reader of a stream: it gets missed records from the database first, then new ones from the
//! channel. Its guard ends it after five minutes, when the service shuts down, and soon after the
//! reader has lost its permission or has stopped reading. The reader resumes with `Last-Event-ID`.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hub_base::error::Result;
use hub_core::http::connection::Connection;
use hub_devices::ble::View;
use hub_identity::authz::{Caller, Scope};
use hub_ingest::{self as ingest, LogKey};
use hub_people::tenants;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::filter::{Filter, Heard, Wanted};
use super::guard::{self, Guard, Reader, Watch};
use super::kinds::{self, Span, Stored, StreamKind};
use super::slots::Slot;
use super::{Batch, Streams};

/// Bytes read from the database at a time, except for a single larger record.
const READ_BYTES: usize = 64 * 1024;
const PING: Bytes = Bytes::from_static(b": ping\n\n");
/// Sets the client's reconnection delay to one second.
const RETRY: Bytes = Bytes::from_static(b"retry: 1000\n\n");

/// The subject of a subscription: records of one kind, of all hubs or of one.
pub struct Subject {
    description: &'static StreamKind,
    hub_uuid: Option<HubUuid>,
    /// Whether to pass first receptions of BLE events only.
    only_first: bool,
    /// The filters of BLE events. Boxed: few streams have one.
    filter: Option<Box<Filter>>,
}

impl Subject {
    pub fn ble_events(view: View, wanted: Wanted) -> Self {
        let only_first = matches!(view, View::Observations);
        let filter = Filter::new(wanted).map(Box::new);
        Self {
            description: &kinds::BLE_EVENTS,
            hub_uuid: None,
            only_first,
            filter,
        }
    }

    pub fn logs_of(hub_uuid: HubUuid) -> Self {
        Self {
            description: &kinds::LOGS,
            hub_uuid: Some(hub_uuid),
            only_first: false,
            filter: None,
        }
    }

    pub fn job_events_of(hub_uuid: HubUuid) -> Self {
        Self {
            description: &kinds::JOB_EVENTS,
            hub_uuid: Some(hub_uuid),
            only_first: false,
            filter: None,
        }
    }

    /// Called once for each record that the reader lacks, in their order.
    fn includes(
        &mut self,
        id: i64,
        hub_uuid: HubUuid,
        is_repeat: bool,
        heard: Option<&Heard>,
    ) -> bool {
        let is_wanted = self.hub_uuid.is_none_or(|wanted| hub_uuid == wanted)
            && !(self.only_first && is_repeat);
        is_wanted
            && match (&mut self.filter, heard) {
                (Some(filter), Some(heard)) => filter.passes(id, hub_uuid, heard),
                _ => true,
            }
    }

    /// Whether it is every record of its kind.
    const fn is_all(&self) -> bool {
        self.hub_uuid.is_none() && !self.only_first && self.filter.is_none()
    }
}

pub struct Subscription {
    streams: Streams,
    tenant_uuid: TenantUuid,
    subject: Subject,
    batches: broadcast::Receiver<Arc<Batch>>,
    /// The reader has all records up to this id.
    cursor: i64,
    /// Records up to this id come from the database, later ones from the channel.
    stored_to: i64,
    /// The read of the database under way. A heartbeat does not interrupt it.
    reading: Option<BoxFuture<'static, Result<Stored>>>,
    heartbeats: Interval,
    has_begun: bool,
    watch: Arc<Watch>,
    _guard: Guard,
    _slot: Slot,
}

impl Subscription {
    /// Starts after `resume_after`, or with the next commit. Fails with 429 when the tenant or the
    /// caller has too many streams.
    pub async fn open(
        streams: Streams,
        scope: Scope,
        caller: Caller,
        connection: Connection,
        subject: Subject,
        resume_after: Option<i64>,
    ) -> Result<Self> {
        let tenant_uuid = scope.tenant_uuid();
        let key: LogKey = (tenant_uuid, subject.description.kind);
        let mut conn = streams.core.db.read().await?;
        let limit = tenants::stream_limit(&mut conn, tenant_uuid).await?;
        let slot = streams.slots.enter(
            tenant_uuid,
            &caller,
            limit.unwrap_or(streams.core.config.streams_per_tenant),
        )?;
        let last_id = ingest::last_id(&mut conn, key).await?;
        drop(conn);
        let (batches, stored_to) = streams.channels.join(key, last_id);
        let period = streams.core.config.stream_times.heartbeat;
        let mut heartbeats = tokio::time::interval_at(Instant::now() + period, period);
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let kind = subject.description;
        let authn = streams.authn.clone();
        let is_allowed = move || {
            let (caller, authn) = (caller.clone(), authn.clone());
            Box::pin(async move { (kind.is_allowed)(&caller, &authn, tenant_uuid).await }) as _
        };
        let (watch, guard) = guard::post(Reader {
            core: streams.core.clone(),
            connection,
            is_allowed: Box::new(is_allowed),
        });
        Ok(Self {
            streams,
            tenant_uuid,
            subject,
            batches,
            cursor: resume_after.unwrap_or(last_id),
            stored_to,
            reading: None,
            heartbeats,
            has_begun: false,
            watch,
            _guard: guard,
            _slot: slot,
        })
    }

    /// The next bytes to send; None when the stream has ended. The caller calls it again once they
    /// were sent.
    pub async fn next(&mut self) -> Option<Bytes> {
        self.watch.sent_on();
        let bytes = self.produce().await?;
        self.watch.handed_over();
        Some(bytes)
    }

    async fn produce(&mut self) -> Option<Bytes> {
        if !self.has_begun {
            self.has_begun = true;
            // Confirms the connection at once.
            return Some(RETRY);
        }
        loop {
            let is_behind = self.cursor < self.stored_to;
            if is_behind && self.reading.is_none() {
                self.reading = Some(self.read());
            }
            tokio::select! {
                biased;
                () = self.watch.ended() => return None,
                _ = self.heartbeats.tick() => return Some(self.heartbeat()),
                stored = finished(&mut self.reading), if is_behind => {
                    self.reading = None;
                    match stored {
                        Ok(stored) => {
                            self.cursor = stored.last_id.unwrap_or(self.stored_to);
                            let subject = &mut self.subject;
                            let frames = stored.frames.into_iter();
                            let wanted = frames.filter(|frame| {
                                subject.includes(frame.id, frame.hub_uuid, frame.is_repeat, frame.heard.as_ref())
                            });
                            let text: String = wanted.map(|frame| frame.text).collect();
                            if !text.is_empty() {
                                return Some(text.into());
                            }
                        }
                        Err(error) => {
                            tracing::debug!(%error, "a stream ends because the database is not available");
                            return None;
                        }
                    }
                }
                batch = self.batches.recv(), if !is_behind => match batch {
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

    /// Keeps the connection open. A filtered stream may have no event for long: the id is its
    /// position, so that the reader resumes there and not after its last event.
    fn heartbeat(&self) -> Bytes {
        match self.subject.filter {
            Some(_) => format!("id: {}\n: ping\n\n", Timestamp::from_micros(self.cursor)).into(),
            None => PING,
        }
    }

    /// The frames of the batch that match the subscription and were not sent yet.
    fn select(&mut self, batch: &Batch) -> Option<Bytes> {
        let (first, last) = (batch.frames.first()?, batch.frames.last()?);
        let cursor = self.cursor;
        self.cursor = cursor.max(last.id);
        if first.id > cursor && self.subject.is_all() {
            return Some(batch.bytes.clone());
        }
        let subject = &mut self.subject;
        let selected: Vec<&[u8]> = batch
            .frames
            .iter()
            .filter(|frame| {
                frame.id > cursor
                    && subject.includes(
                        frame.id,
                        frame.hub_uuid,
                        frame.is_repeat,
                        frame.heard.as_ref(),
                    )
            })
            .map(|frame| &*frame.bytes)
            .collect();
        (!selected.is_empty()).then(|| selected.concat().into())
    }

    /// Reads the next stored records. Boxed: it runs rarely, and a stream stays open long.
    fn read(&self) -> BoxFuture<'static, Result<Stored>> {
        let Subject {
            description,
            hub_uuid,
            ..
        } = self.subject;
        let (after, last) = (self.cursor, self.stored_to);
        let span = Span {
            tenant_uuid: self.tenant_uuid,
            hub_uuid,
            after,
            last,
            max_bytes: READ_BYTES,
        };
        let core = self.streams.core.clone();
        Box::pin(async move { (description.read)(&core, span).await })
    }
}

/// Waits for the read under way; for ever, if there is none.
async fn finished(reading: &mut Option<BoxFuture<'static, Result<Stored>>>) -> Result<Stored> {
    match reading {
        Some(read) => read.await,
        None => std::future::pending().await,
    }
}
