//! Conversion of records into events of a stream: one description for each streamed record kind.

use futures_util::future::BoxFuture;
use hub_base::db::LogRange;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_devices::ble::delivered::{self, Delivery};
use hub_devices::ble::{self, BleEventResponse, StoredEvent};
use hub_fleet::jobs::{self, HubJobEventResponse, StoredJobEvent};
use hub_fleet::telemetry::{self, HubLogResponse, StoredRecord};
use hub_identity::authn::Authn;
use hub_identity::authz::{Caller, permission as perm};
use hub_ingest::{CommittedRecord, Kind};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::{BATCH_RECORDS, Heard, RecordFrame};

/// A range of a tenant's log.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub tenant_uuid: TenantUuid,
    /// The hub whose records are streamed. BLE events are read for all hubs of the tenant.
    pub hub_uuid: Option<HubUuid>,
    /// Records with ids above this.
    pub after: i64,
    /// The last id to read.
    pub last: i64,
    /// Bytes of the records to read, except for a single larger record.
    pub max_bytes: usize,
}

impl Span {
    fn range(&self) -> LogRange {
        let max_bytes = i64::try_from(self.max_bytes).unwrap_or(i64::MAX);
        let max_rows = i64::try_from(BATCH_RECORDS).unwrap_or(i64::MAX);
        LogRange {
            after: self.after,
            last: self.last,
            max_rows,
            max_bytes,
        }
    }
}

/// The result of reading a log.
pub struct Stored {
    pub frames: Vec<RecordFrame>,
    /// The id of the last row, which may be one that cannot be sent; None if there was none.
    pub last_id: Option<i64>,
}

/// The stream of one record kind.
pub struct StreamKind {
    pub kind: Kind,
    /// Whether a caller may still read a tenant's records of this kind.
    pub is_allowed: for<'a> fn(&'a Caller, &'a Authn, TenantUuid) -> BoxFuture<'a, bool>,
    pub read: for<'c> fn(&'c Core, Span) -> BoxFuture<'c, Result<Stored>>,
    /// The frame of a record that was just committed, equal to that of the stored record.
    /// `delivery` determines the delivery status of a BLE event.
    pub frame: fn(CommittedRecord, Option<&Delivery>) -> Result<RecordFrame>,
}

pub static BLE_EVENTS: StreamKind = StreamKind {
    kind: Kind::BleEvents,
    is_allowed: |caller, authn, tenant_uuid| {
        Box::pin(caller.is_still_allowed::<perm::BleRead>(authn, tenant_uuid))
    },
    read: |core, span| Box::pin(read_ble_events(core, span)),
    frame: |CommittedRecord {
                id,
                hub_uuid,
                observation_id,
                record,
            },
            delivery| {
        let mut event = ble::response(ble::committed(id, hub_uuid, observation_id, record))?;
        if let Some(delivery) = delivery {
            delivery.show(&mut event)?;
        }
        ble_frame(&event, observation_id.is_some())
    },
};

pub static LOGS: StreamKind = StreamKind {
    kind: Kind::Logs,
    is_allowed: |caller, authn, tenant_uuid| {
        Box::pin(caller.is_still_allowed::<perm::HubsRead>(authn, tenant_uuid))
    },
    read: |core, span| Box::pin(read_logs(core, span)),
    frame: |CommittedRecord {
                id,
                hub_uuid,
                record,
                ..
            },
            _| {
        log_frame(StoredRecord {
            id,
            hub_uuid,
            body: record.text.as_ref().to_owned(),
        })
    },
};

pub static JOB_EVENTS: StreamKind = StreamKind {
    kind: Kind::JobEvents,
    is_allowed: |caller, authn, tenant_uuid| {
        Box::pin(caller.is_still_allowed::<perm::HubsRead>(authn, tenant_uuid))
    },
    read: |core, span| Box::pin(read_job_events(core, span)),
    frame: |CommittedRecord {
                id,
                hub_uuid,
                record,
                ..
            },
            _| {
        job_event_frame(StoredJobEvent {
            hub_job_event_id: id,
            hub_uuid,
            body: record.text.as_ref().to_owned(),
        })
    },
};

/// None for a kind that is not streamed.
pub fn of(kind: Kind) -> Option<&'static StreamKind> {
    [&BLE_EVENTS, &LOGS, &JOB_EVENTS]
        .into_iter()
        .find(|description| description.kind == kind)
}

async fn read_ble_events(core: &Core, span: Span) -> Result<Stored> {
    let events = ble::after(&core.event_log, span.tenant_uuid, span.range()).await?;
    let last_id = events.last().map(|event| event.ble_event_id);
    let response = |event: StoredEvent| {
        let is_repeat = event.observation_id.is_some();
        Some((sendable(ble::response(event))?, is_repeat))
    };
    let (mut events, repeats): (Vec<_>, Vec<_>) = events.into_iter().filter_map(response).unzip();
    let mut conn = core.db.read().await?;
    delivered::show(&mut conn, span.tenant_uuid, &mut events).await?;
    let frames = events
        .iter()
        .zip(repeats)
        .filter_map(|(event, is_repeat)| sendable(ble_frame(event, is_repeat)));
    Ok(Stored {
        frames: frames.collect(),
        last_id,
    })
}

async fn read_logs(core: &Core, span: Span) -> Result<Stored> {
    let mut conn = core.db.read().await?;
    let records =
        telemetry::logs_after(&mut conn, span.tenant_uuid, span.hub_uuid, span.range()).await?;
    let last_id = records.last().map(|record| record.id);
    Ok(stored(last_id, records, log_frame))
}

async fn read_job_events(core: &Core, span: Span) -> Result<Stored> {
    let mut conn = core.db.read().await?;
    let events =
        jobs::events_after(&mut conn, span.tenant_uuid, span.hub_uuid, span.range()).await?;
    let last_id = events.last().map(|event| event.hub_job_event_id);
    Ok(stored(last_id, events, job_event_frame))
}

fn stored<T>(last_id: Option<i64>, rows: Vec<T>, frame: fn(T) -> Result<RecordFrame>) -> Stored {
    Stored {
        frames: rows
            .into_iter()
            .filter_map(|row| sendable(frame(row)))
            .collect(),
        last_id,
    }
}

/// Skips a record that cannot be sent, so that it does not block those after it.
pub fn sendable<T>(frame: Result<T>) -> Option<T> {
    frame
        .inspect_err(
            |error| tracing::error!(%error, "stored record cannot be streamed; it is skipped"),
        )
        .ok()
}

/// A record as an event of a stream.
pub trait Streamed: Serialize + JsonSchema {
    /// The name of the event.
    const EVENT: &'static str;
}

impl Streamed for BleEventResponse {
    const EVENT: &'static str = "ble_event";
}

impl Streamed for HubLogResponse {
    const EVENT: &'static str = "hub_log";
}

impl Streamed for HubJobEventResponse {
    const EVENT: &'static str = "hub_job_event";
}

fn ble_frame(event: &BleEventResponse, is_repeat: bool) -> Result<RecordFrame> {
    let (id, hub_uuid) = (event.ble_event_id, event.hub_uuid);
    Ok(RecordFrame {
        id,
        hub_uuid,
        is_repeat,
        heard: Some(Heard::from(event)),
        text: text(id, event)?,
    })
}

fn log_frame(record: StoredRecord) -> Result<RecordFrame> {
    let (id, hub_uuid) = (record.id, record.hub_uuid);
    Ok(RecordFrame {
        id,
        hub_uuid,
        is_repeat: false,
        heard: None,
        text: text(id, &HubLogResponse::from(record))?,
    })
}

fn job_event_frame(event: StoredJobEvent) -> Result<RecordFrame> {
    let (id, hub_uuid) = (event.hub_job_event_id, event.hub_uuid);
    Ok(RecordFrame {
        id,
        hub_uuid,
        is_repeat: false,
        heard: None,
        text: text(id, &event.response()?)?,
    })
}

/// One server-sent event. Its id is the time at which the record was received.
fn text<T: Streamed>(id: i64, data: &T) -> Result<String> {
    let data = serde_json::to_string(data).map_err(Error::internal)?;
    Ok(format!(
        "id: {}\nevent: {}\ndata: {data}\n\n",
        Timestamp::from_micros(id),
        T::EVENT
    ))
}
