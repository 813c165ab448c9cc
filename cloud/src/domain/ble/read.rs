//! Recognises and reads the events of an upload, before they are stored.

use hub_adverts::Measurement;
use hub_adverts::catalog::{Read, Status};
use hub_adverts::library::OwnedFrame;
use hub_protocol::{HubUuid, Timestamp};

use super::Reading;
use super::check::Checked;
use super::reading::CounterStatus;
use crate::authn::hub::Hub;
use crate::domain::ble_routes::{Facts, Verdict};
use crate::domain::device_instances::ActivationKind;
use crate::domain::device_instances::heard::Changes;
use crate::domain::recognition::{Counter, Recognition, Sightings, TenantCatalog};
use crate::error::{Error, Result};
use crate::ingest::{Heard, Observation, Record};

/// What the events of an upload say, besides their records.
#[derive(Default)]
pub struct Found {
    /// In the order of their records.
    heard: Vec<(usize, Heard)>,
    /// Events with an authenticated counter, by the place of their record.
    counters: Vec<(usize, Counter)>,
    changes: Changes,
    /// Events that have to be read again once the changes are carried out.
    again: Vec<(usize, Event)>,
    /// Advertisers of which no model is known.
    unknown: Sightings,
    /// Events that the tenant's route drops.
    pub dropped: usize,
}

/// An event as recognition sees it.
struct Event {
    observed_at: Timestamp,
    rssi_dbm: Option<i16>,
    frame: OwnedFrame,
}

impl Found {
    /// Reads a valid event, whose record comes next.
    pub fn add(
        &mut self,
        (catalog, hub_uuid): (&TenantCatalog, HubUuid),
        checked: Checked,
        records: &mut Vec<Record>,
        mut record: Record,
    ) {
        if is_dropped(catalog, hub_uuid, &checked) {
            self.dropped += 1;
            return;
        }
        record.device_instance_id = checked.device_instance_id;
        if catalog.catalog.is_empty() {
            let Checked { observed_at, rssi_dbm, frame, .. } = checked;
            frame.with(|frame| self.unknown.add(frame, &record.text, rssi_dbm, observed_at));
            return records.push(record);
        }
        let event = Event { observed_at: checked.observed_at, rssi_dbm: checked.rssi_dbm, frame: checked.frame };
        let place = records.len();
        if self.read(catalog, &event, place, &mut record) {
            self.again.push((place, event));
        }
        records.push(record);
    }

    /// Whether the event has to be read again.
    fn read(&mut self, catalog: &TenantCatalog, event: &Event, place: usize, record: &mut Record) -> bool {
        let Event { observed_at, rssi_dbm, frame } = event;
        frame.with(|frame| {
            let mut measurements = Vec::new();
            let (read, again) = catalog.read(frame, &mut measurements, &mut self.changes);
            if record.window.is_none() {
                let found = read.observation(frame);
                let (hash, has_sequence) = (found.hash, found.has_sequence);
                record.observation = Some(Observation { hash, observed_at: *observed_at, has_sequence });
            }
            if read.status == Status::Unmatched {
                self.unknown.add(frame, &record.text, *rssi_dbm, *observed_at);
            }
            record.processing_status = read.status.into();
            record.reading = reading_of(&read, &measurements).and_then(|reading| text_of(&reading));
            let Some(instance) = read.instance else { return again };
            record.device_instance_id = Some(instance.device_instance_id);
            if let Some(sequence) = read.facts.sequence.filter(|sequence| sequence.authenticated) {
                let (device_instance_id, observed_at) = (instance.device_instance_id, *observed_at);
                self.counters.push((place, Counter { device_instance_id, sequence, observed_at }));
            }
            let heard = Heard {
                device_instance_id: instance.device_instance_id,
                observed_at: *observed_at,
                rssi_dbm: *rssi_dbm,
                expected_interval_secs: read.model.and_then(|model| model.expected_interval_secs),
                measurements,
            };
            self.heard.push((place, heard));
            again
        })
    }

    /// Carries out what the events change of devices, and finds events that may be recordings.
    /// Returns what the records say of devices, and the unknown advertisers.
    pub async fn settle(
        mut self,
        recognition: &Recognition,
        hub: &Hub,
        records: &mut [Record],
    ) -> Result<(Vec<Heard>, Sightings)> {
        if !self.changes.is_empty() {
            let changes = std::mem::take(&mut self.changes);
            recognition.apply(hub, ActivationKind::Upload, &changes).await?;
        }
        if !self.again.is_empty() {
            let catalog = recognition.catalog(hub.tenant_uuid).await?;
            for (place, event) in std::mem::take(&mut self.again) {
                if let Some(record) = records.get_mut(place) {
                    self.read(&catalog, &event, place, record);
                }
            }
        }
        if !self.counters.is_empty() {
            self.counters.sort_by_key(|(_, counter)| counter.observed_at);
            let counters: Vec<Counter> = self.counters.iter().map(|(_, counter)| *counter).collect();
            let replayed = recognition.replayed(hub, &counters).await?;
            for ((place, _), _) in self.counters.iter().zip(replayed).filter(|(_, replayed)| *replayed) {
                if let Some(record) = records.get_mut(*place) {
                    mark_replayed(record)?;
                }
                // What a recording says is not the state of the device.
                self.heard.retain(|(heard, _)| heard != place);
            }
        }
        self.heard.sort_by_key(|(_, heard)| heard.observed_at);
        Ok((self.heard.into_iter().map(|(_, heard)| heard).collect(), self.unknown))
    }
}

/// Whether the tenant's route drops the event.
fn is_dropped(catalog: &TenantCatalog, hub_uuid: HubUuid, checked: &Checked) -> bool {
    !catalog.route.keeps_everything()
        && checked.frame.with(|frame| {
            let read = catalog.catalog.read(frame, &mut Vec::new());
            let facts = Facts {
                device_uuid: read.model.map(|model| model.device_uuid),
                device_instance_id: read.instance.map(|instance| instance.device_instance_id),
                hub_uuid,
                rssi_dbm: checked.strongest_dbm,
                frame,
            };
            catalog.route.cloud_verdict(&facts) == Verdict::Drop
        })
}

/// None of an event of which no model is known.
pub fn reading_of(read: &Read<'_>, measurements: &[Measurement]) -> Option<Reading> {
    let model = read.model?;
    let mut reading = Reading {
        device_uuid: model.device_uuid,
        identifier_id: read.identifier.map(|found| found.identifier_id),
        specificity: read.identifier.map(|found| found.specificity),
        error: read.error.map(str::to_owned),
        ..Reading::default()
    };
    if let Some(protocol) = read.protocol.filter(|_| read.status != Status::Matched) {
        reading.device_protocol_id = Some(protocol.device_protocol_id);
        reading.protocol_revision = Some(protocol.revision);
    }
    reading.set_values(measurements);
    Some(reading)
}

fn text_of(reading: &Reading) -> Option<std::sync::Arc<str>> {
    serde_json::to_string(reading).ok().map(Into::into)
}

fn mark_replayed(record: &mut Record) -> Result<()> {
    let Some(text) = &record.reading else { return Ok(()) };
    let mut reading: Reading = serde_json::from_str(text).map_err(Error::internal)?;
    reading.counter_status = Some(CounterStatus::Replayed);
    record.reading = text_of(&reading);
    Ok(())
}
