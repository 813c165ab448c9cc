//! Stored events read again, with today's catalog and keys. This says what would become of them;
//! it changes nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use hub_adverts::Frame;
use hub_adverts::catalog::{Advertisers, Before, KeyUse, Status};
use hub_base::db::Direction;
use hub_base::error::Result;
use hub_core::Core;
use hub_ingest::batches::{Wanted, status_bits};
use hub_ingest::{Heard, ProcessingStatus, StoredEvent, log};
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use hub_scripts::BATCH_TIME;
use uuid::Uuid;

use super::check::{self, Checked};
use super::read::device_of;
use super::reading::{MeasurementResponse, Reading, reading_text, with_counter_status};
use super::scripts::{self, Scripted};
use crate::recognition::{TenantCatalog, advertiser_key};

/// The memory that a stored event uses.
pub fn bytes_of(stored: &StoredEvent) -> usize {
    size_of::<StoredEvent>() + stored.text_bytes()
}

/// The device, the model, and how far an event was processed.
#[derive(Clone, Debug)]
pub struct Processed {
    pub status: ProcessingStatus,
    pub device_instance_id: Option<i64>,
    pub device_uuid: Option<Uuid>,
    /// A [`Reading`] as JSON.
    pub reading: Option<Arc<str>>,
}

impl Processed {
    pub fn measurements(&self) -> Vec<MeasurementResponse> {
        let reading: Option<Reading> = self
            .reading
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        reading
            .as_ref()
            .map(Reading::measurements)
            .unwrap_or_default()
    }
}

/// A reprocessed event.
#[derive(Debug)]
pub struct ReprocessedEvent {
    pub ble_event_id: i64,
    pub device_instance_id: Option<i64>,
    pub device_uuid: Option<Uuid>,
    /// The device whose bind key reads the event.
    pub proves_key_of: Option<i64>,
    /// The change to store; None for an event that is read as it is stored.
    pub change: Option<Box<Change>>,
    /// There was no time for its script.
    pub is_unread: bool,
}

/// The change of an event.
#[derive(Debug)]
pub struct Change {
    pub hub_uuid: HubUuid,
    pub observed_at: Timestamp,
    pub before: Processed,
    pub after: Processed,
    /// The event's report of its device now. None for an event that was not decoded, or may be a
    /// recording.
    pub heard: Option<Heard>,
}

/// The stored events to read.
#[derive(Clone, Copy, Debug)]
pub enum Selection {
    All,
    /// The events of this device that could not be decoded.
    UndecodedOf(i64),
    /// The events that failed.
    Failed,
}

/// The tenant's events with ids from `from` up to, and without, `to`, oldest first; at most
/// `limit`.
pub async fn stored_events(
    core: &Core,
    tenant_uuid: TenantUuid,
    selection: Selection,
    (from, to): (i64, i64),
    limit: i64,
) -> Result<Vec<StoredEvent>> {
    let limit = usize::try_from(limit).unwrap_or(0);
    let all = Wanted {
        first_id: from,
        last_id: to.saturating_sub(1),
        ..Wanted::all_of(tenant_uuid)
    };
    let wanted = match selection {
        Selection::All => all,
        Selection::Failed => Wanted {
            statuses: status_bits([ProcessingStatus::Failed]),
            ..all
        },
        Selection::UndecodedOf(device_instance_id) => Wanted {
            device_instance_id: Some(device_instance_id),
            statuses: all.statuses & !status_bits([ProcessingStatus::Decoded]),
            ..all
        },
    };
    log::some(&core.event_log, &wanted, Direction::Ascending, limit).await
}

/// Reprocesses a batch of stored events of one tenant, in their order. The decoders run on a thread
/// for such work.
pub async fn reprocess(
    core: &Core,
    tenant_uuid: TenantUuid,
    catalog: Arc<TenantCatalog>,
    stored: Vec<StoredEvent>,
) -> Result<Vec<ReprocessedEvent>> {
    let read_all = move || {
        let mut advertisers = Advertisers::default();
        stored
            .into_iter()
            .map(|event| read_one(&catalog, &mut advertisers, event))
            .collect::<Vec<Event>>()
    };
    let mut events = core.bodies.work(read_all).await?;
    let (mut waiting, mut frames) = (Vec::new(), Vec::new());
    for now in events.iter_mut().filter_map(|event| event.now.as_mut()) {
        if let Some(scripted) = now.scripted.take() {
            waiting.push(now);
            frames.push(scripted);
        }
    }
    if !frames.is_empty() {
        let outcomes = scripts::run(&core.scripts, tenant_uuid, frames, BATCH_TIME).await;
        for (now, outcome) in waiting.into_iter().zip(outcomes) {
            now.processed.status = outcome.status;
            now.processed.reading = outcome.reading_text().map(Arc::from);
            now.is_complete = outcome.is_run;
            now.measurements = outcome.measurements;
        }
    }
    Ok(events.into_iter().map(Event::compared).collect())
}

/// A stored event, and what today's catalog makes of it.
struct Event {
    stored: StoredEvent,
    /// The result with today's catalog; None for an event that an earlier version accepted and this
    /// one would not.
    now: Option<Reread>,
}

/// Reads an event with what its hub has heard of the advertiser before, in this batch.
fn read_one(catalog: &TenantCatalog, advertisers: &mut Advertisers, stored: StoredEvent) -> Event {
    let check = if stored.window.is_some() {
        check::device
    } else {
        check::event
    };
    let now = check(&stored.event).ok().and_then(|checked| {
        let key = |frame: &Frame<'_>| advertiser_key(stored.hub_uuid, frame);
        let before = checked
            .frame
            .with(|frame| advertisers.note(key(frame), frame));
        let now = read_frame(catalog, &checked, &before);
        // It may have been read by what was heard before this batch.
        let is_first = before.changed_companies.is_none();
        (!(is_first && may_be_lost(catalog, &stored, &checked, &now))).then_some(now)
    });
    Event { stored, now }
}

/// Whether an event was decoded by a model that is still there, and is not, for want of a name or
/// of the companies that its advertiser was heard with before.
fn may_be_lost(
    catalog: &TenantCatalog,
    stored: &StoredEvent,
    checked: &Checked,
    now: &Reread,
) -> bool {
    let models = catalog.catalog.models();
    let wants_name =
        checked.frame.name.is_none() && now.processed.status == ProcessingStatus::Unmatched;
    let wants_companies = models.takes_several_companies()
        && checked.frame.manufacturer_data.len() > 1
        && now.processed.status == ProcessingStatus::Matched;
    let reading = stored.reading.as_deref().unwrap_or_default();
    stored.processing_status == ProcessingStatus::Decoded
        && (wants_name || wants_companies)
        && serde_json::from_str::<Reading>(reading)
            .is_ok_and(|reading| models.model(reading.device_uuid).is_some())
}

impl Event {
    fn compared(self) -> ReprocessedEvent {
        let stored = self.stored;
        // An event that cannot be reprocessed stays unchanged.
        let is_unread = self.now.as_ref().is_some_and(|now| !now.is_complete);
        let Some(mut now) = self.now.filter(|now| now.is_complete) else {
            let unchanged = unchanged(&stored, None, None);
            return ReprocessedEvent {
                is_unread,
                ..unchanged
            };
        };
        let is_same = now.processed.status == stored.processing_status
            && now.processed.device_instance_id == stored.device_instance_id;
        if is_same && now.processed.reading.as_deref() == stored.reading.as_deref() {
            return unchanged(&stored, now.processed.device_uuid, now.proves_key_of);
        }
        let before: Option<Reading> = stored
            .reading
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok());
        // Counters are compared when events arrive; the stored status stays valid.
        let counter_status = before.as_ref().and_then(|reading| reading.counter_status);
        if let (Some(text), Some(status)) = (&now.processed.reading, counter_status) {
            now.processed.reading = with_counter_status(text, status).ok().map(Arc::from);
            if is_same && now.processed.reading.as_deref() == stored.reading.as_deref() {
                return unchanged(&stored, now.processed.device_uuid, now.proves_key_of);
            }
        }
        let after = now.processed;
        let (observed_at, rssi_dbm) = (now.observed_at, now.rssi_dbm);
        let is_news = after.status == ProcessingStatus::Decoded && counter_status.is_none();
        let heard = after
            .device_instance_id
            .filter(|_| is_news)
            .map(|device_instance_id| Heard {
                device_instance_id,
                observed_at,
                rssi_dbm,
                expected_interval_secs: now.expected_interval_secs,
                measurements: now.measurements,
            });
        let before = Processed {
            status: stored.processing_status,
            device_instance_id: stored.device_instance_id,
            device_uuid: before.map(|reading| reading.device_uuid),
            reading: stored.reading.map(Arc::from),
        };
        ReprocessedEvent {
            ble_event_id: stored.ble_event_id,
            device_instance_id: after.device_instance_id,
            device_uuid: after.device_uuid,
            proves_key_of: now.proves_key_of,
            change: Some(Box::new(Change {
                hub_uuid: stored.hub_uuid,
                observed_at,
                before,
                after,
                heard,
            })),
            is_unread,
        }
    }
}

fn unchanged(
    stored: &StoredEvent,
    device_uuid: Option<Uuid>,
    proves_key_of: Option<i64>,
) -> ReprocessedEvent {
    ReprocessedEvent {
        ble_event_id: stored.ble_event_id,
        device_instance_id: stored.device_instance_id,
        device_uuid,
        proves_key_of,
        change: None,
        is_unread: false,
    }
}

/// The result of today's catalog for a frame.
struct Reread {
    observed_at: Timestamp,
    rssi_dbm: Option<i16>,
    processed: Processed,
    /// The frame that a script has still to decode.
    scripted: Option<Scripted>,
    /// Whether it was read: there may be no time for a script.
    is_complete: bool,
    measurements: Vec<hub_adverts::Measurement>,
    expected_interval_secs: Option<i64>,
    proves_key_of: Option<i64>,
}

/// Reads a frame as uploads do.
fn read_frame(catalog: &TenantCatalog, checked: &Checked, before: &Before) -> Reread {
    let Checked {
        observed_at,
        rssi_dbm,
        ..
    } = *checked;
    let mut now = Reread {
        observed_at,
        rssi_dbm,
        processed: Processed {
            status: ProcessingStatus::Received,
            device_instance_id: None,
            device_uuid: None,
            reading: None,
        },
        scripted: None,
        is_complete: true,
        measurements: Vec::new(),
        expected_interval_secs: None,
        proves_key_of: None,
    };
    if catalog.catalog.is_empty() {
        return now;
    }
    checked.frame.with(|frame| {
        let frame = &before.complete(frame);
        let read = catalog.catalog.read(frame, &mut now.measurements);
        let instance = read.instance.map(|instance| instance.device_instance_id);
        now.processed.status = read.status.into();
        now.processed.device_instance_id = device_of(&catalog.catalog, frame, &read, checked);
        now.processed.device_uuid = read.model.map(|model| model.device_uuid);
        now.processed.reading = reading_text(&read, &now.measurements).map(Arc::from);
        now.scripted = Scripted::of(&read, &checked.frame);
        now.expected_interval_secs = read.model.and_then(|model| model.expected_interval_secs);
        now.proves_key_of = instance
            .filter(|_| read.status == Status::Decoded && read.key == Some(KeyUse::Verified));
    });
    now
}

/// The devices whose bind keys these events prove, each with a hub that received one.
pub fn proved_keys(catalog: &TenantCatalog, events: &[ReprocessedEvent]) -> BTreeMap<i64, HubUuid> {
    let proved = events.iter().filter_map(|event| {
        let id = event
            .proves_key_of
            .filter(|id| catalog.may_be_proved(*id))?;
        Some((id, event.change.as_ref()?.hub_uuid))
    });
    proved.collect()
}
