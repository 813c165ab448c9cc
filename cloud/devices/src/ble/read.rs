//! Recognises and reads the events of an upload, before they are stored.

use std::collections::HashMap;

use hub_adverts::Frame;
use hub_adverts::catalog::{Catalog, Read, Status};
use hub_base::error::{Error, Result};
use hub_identity::authn::hub::Hub;
use hub_ingest::{Heard, Observation, Record};
use hub_protocol::HubUuid;
use hub_scripts::{Scripts, UPLOAD_TIME};

use super::check::Checked;
use super::reading::{CounterStatus, reading_text, with_counter_status};
use super::scripts::{self, Scripted};
use crate::ble_routes::{Facts, Verdict};
use crate::device_instances::ActivationKind;
use crate::device_instances::heard::Changes;
use crate::recognition::{Counter, Recognition, Sightings, TenantCatalog, UnreadModel};

/// The results of reading an upload, besides its records.
#[derive(Default)]
pub struct ReadUpload {
    /// Reports of devices, in the order of their records.
    heard: Vec<(usize, Heard)>,
    /// Events with an authenticated counter, by the place of their record.
    counters: Vec<(usize, Counter)>,
    changes: Changes,
    /// Events that have to be read again once the changes are made.
    reread: Vec<(usize, Checked)>,
    /// Events that a script reads.
    scripted: Vec<(usize, Scripted)>,
    /// Advertisers of which no model is known.
    unknown: Sightings,
    /// Events that the tenant's route drops.
    pub dropped: usize,
}

/// The next step for an event that was read.
enum NextStep {
    Store,
    /// The event is of a newly registered device, and is read again as one of it.
    Reread,
    /// The tenant's route drops it.
    Drop,
}

impl ReadUpload {
    /// Reads a valid event, whose record comes next.
    pub fn add(
        &mut self,
        (catalog, hub_uuid): (&TenantCatalog, HubUuid),
        checked: Checked,
        records: &mut Vec<Record>,
        mut record: Record,
    ) {
        let place = records.len();
        match self.read((catalog, hub_uuid), &checked, place, &mut record) {
            NextStep::Drop => return self.dropped += 1,
            NextStep::Reread => self.reread.push((place, checked)),
            NextStep::Store => {}
        }
        records.push(record);
    }

    fn read(
        &mut self,
        (catalog, hub_uuid): (&TenantCatalog, HubUuid),
        checked: &Checked,
        place: usize,
        record: &mut Record,
    ) -> NextStep {
        let Checked {
            observed_at,
            rssi_dbm,
            ..
        } = *checked;
        checked.frame.with(|frame| {
            let before = catalog.before(hub_uuid, frame);
            let frame = &before.complete(frame);
            let mut measurements = Vec::new();
            let read = catalog.catalog.read(frame, &mut measurements);
            let facts = Facts {
                device_uuid: read.model.map(|model| model.device_uuid),
                device_instance_id: read.instance.map(|instance| instance.device_instance_id),
                hub_uuid,
                rssi_dbm: checked.strongest_dbm,
                frame,
            };
            if catalog.route.cloud_verdict(&facts) == Verdict::Drop {
                return NextStep::Drop;
            }
            let sighting = (&record.text, rssi_dbm, observed_at);
            if read.status == Status::Unmatched {
                self.unknown.add(frame, sighting, None);
            }
            if catalog.catalog.is_empty() {
                return NextStep::Store;
            }
            let is_registered = catalog.note(frame, &read, &mut self.changes);
            if let Some(unread) = UnreadModel::of(frame, &read).filter(|_| !is_registered) {
                self.unknown.add(frame, sighting, Some(unread));
            }
            if record.window.is_none() {
                let found = read.observation(frame, &measurements);
                let (hash, has_sequence) = (found.hash, found.has_sequence);
                record.observation = Some(Observation {
                    hash,
                    observed_at,
                    has_sequence,
                });
            }
            record.processing_status = read.status.into();
            record.reading = reading_text(&read, &measurements).map(Into::into);
            if let Some(scripted) = Scripted::of(&read, &checked.frame).filter(|_| !is_registered) {
                self.scripted.push((place, scripted));
            }
            record.device_instance_id = device_of(&catalog.catalog, frame, &read, checked);
            let Some(instance) = read.instance else {
                return if is_registered {
                    NextStep::Reread
                } else {
                    NextStep::Store
                };
            };
            let device_instance_id = instance.device_instance_id;
            if let Some(sequence) = read
                .facts
                .sequence
                .filter(|sequence| sequence.authenticated)
            {
                self.counters.push((
                    place,
                    Counter {
                        device_instance_id,
                        sequence,
                        observed_at,
                    },
                ));
            }
            let expected_interval_secs = read.model.and_then(|model| model.expected_interval_secs);
            let heard = Heard {
                device_instance_id,
                observed_at,
                rssi_dbm,
                expected_interval_secs,
                measurements,
            };
            self.heard.push((place, heard));
            NextStep::Store
        })
    }

    /// The remaining changes of devices by the events.
    fn changes_due(&mut self, catalog: &TenantCatalog) -> Changes {
        let mut changes = std::mem::take(&mut self.changes);
        catalog.retain_due(&mut changes);
        changes.register.clear();
        for (_, checked) in &self.reread {
            checked.frame.with(|frame| {
                let read = catalog.catalog.read(frame, &mut Vec::new());
                catalog.note(frame, &read, &mut changes);
            });
        }
        changes
    }

    /// Makes the changes of devices by the events, and finds events that may be recordings. Returns
    /// the records' reports of devices, and the unknown advertisers.
    pub async fn settle(
        mut self,
        recognition: &Recognition,
        scripts: &Scripts,
        hub: &Hub,
        records: &mut [Record],
    ) -> Result<Settled> {
        if !self.changes.is_empty() {
            let _changing = recognition.begin_changes(hub.tenant_uuid).await;
            let changes = self.changes_due(&*recognition.catalog(hub.tenant_uuid).await?);
            if !changes.is_empty() {
                recognition
                    .apply(hub, ActivationKind::Upload, &changes)
                    .await?;
            }
        }
        if !self.reread.is_empty() {
            let catalog = recognition.catalog(hub.tenant_uuid).await?;
            for (place, checked) in std::mem::take(&mut self.reread) {
                if let Some(record) = records.get_mut(place) {
                    self.read((&catalog, hub.hub_uuid), &checked, place, record);
                }
            }
        }
        let is_read = match self.scripted.is_empty() {
            true => true,
            false => self.run_scripts(scripts, hub, records).await,
        };
        if !self.counters.is_empty() {
            self.counters
                .sort_by_key(|(_, counter)| counter.observed_at);
            let counters: Vec<Counter> =
                self.counters.iter().map(|(_, counter)| *counter).collect();
            let replayed = recognition.replayed(hub, &counters).await?;
            for ((place, _), _) in self
                .counters
                .iter()
                .zip(replayed)
                .filter(|(_, replayed)| *replayed)
            {
                if let Some(record) = records.get_mut(*place) {
                    mark_replayed(record)?;
                }
                // A recording does not show the present state of the device.
                self.heard.retain(|(heard, _)| heard != place);
            }
        }
        self.heard.sort_by_key(|(_, heard)| heard.observed_at);
        Ok(Settled {
            heard: self.heard.into_iter().map(|(_, heard)| heard).collect(),
            unknown: self.unknown,
            is_read,
        })
    }

    /// Runs the scripts, and adds their results to the records and to the reports. Returns whether
    /// there was time for all of them.
    async fn run_scripts(&mut self, scripts: &Scripts, hub: &Hub, records: &mut [Record]) -> bool {
        let (places, frames): (Vec<usize>, Vec<Scripted>) =
            std::mem::take(&mut self.scripted).into_iter().unzip();
        let mut heard: HashMap<usize, &mut Heard> = self
            .heard
            .iter_mut()
            .map(|(place, heard)| (*place, heard))
            .collect();
        let scripts = scripts.of_uploads();
        let outcomes = scripts::run(&scripts, hub.tenant_uuid, frames, UPLOAD_TIME).await;
        let is_read = outcomes.iter().all(|outcome| outcome.is_run);
        for (place, outcome) in places.into_iter().zip(outcomes) {
            let Some(record) = records.get_mut(place) else {
                continue;
            };
            record.processing_status = outcome.status;
            record.reading = outcome.reading_text().map(Into::into);
            if let Some(heard) = heard.get_mut(&place) {
                heard.measurements = outcome.measurements;
            }
        }
        is_read
    }
}

/// What follows from the events of an upload.
pub struct Settled {
    /// Reports of devices.
    pub heard: Vec<Heard>,
    pub unknown: Sightings,
    /// Whether there was time for all scripts.
    pub is_read: bool,
}

/// The device of a frame: the recognised one, else the one that the hub named, if it is a device of
/// the tenant and the frame does not contradict that. A device with an identity of its own would
/// have been recognised by it.
pub fn device_of(
    catalog: &Catalog,
    frame: &Frame<'_>,
    read: &Read<'_>,
    checked: &Checked,
) -> Option<i64> {
    if let Some(instance) = read.instance {
        return Some(instance.device_instance_id);
    }
    let named = catalog.instance(checked.device_instance_id?)?;
    let is_of_model = read
        .model
        .is_some_and(|model| model.device_uuid == named.device_uuid);
    let is_of_sender = named
        .address
        .is_none_or(|address| frame.address == Some(address));
    let has_identity = named.beacon.is_some() || named.identity_resolving_key.is_some();
    (is_of_model && is_of_sender && !has_identity).then_some(named.device_instance_id)
}

fn mark_replayed(record: &mut Record) -> Result<()> {
    let Some(text) = &record.reading else {
        return Ok(());
    };
    record.reading = Some(
        with_counter_status(text, CounterStatus::Replayed)
            .map_err(Error::internal)?
            .into(),
    );
    Ok(())
}
