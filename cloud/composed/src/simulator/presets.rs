//! Events of the models of the library: the first frame that a model's file gives as an example.

use hub_adverts::advertisement::address_text;
use hub_adverts::frame::uuid16;
use hub_adverts::library::{self, Model, ModelTest, OwnedFrame};
use hub_protocol::Timestamp;
use hub_protocol::ble::{Advertisement, BleEvent, Payload};
use uuid::Uuid;

/// The address of examples that name none: a static random one.
const ADDRESS: [u8; 6] = [0xC0, 0xDE, 0xC0, 0xDE, 0x00, 0x01];
const RSSI_DBM: i16 = -60;

/// The event of the model of this key, received now; None if there is no such model.
pub fn preset(key: &str, now: Timestamp) -> Option<BleEvent> {
    event_of(library::model(key)?, now)
}

/// All models with an example, and its event.
pub fn all(now: Timestamp) -> impl Iterator<Item = (&'static Model, BleEvent)> {
    library::library()
        .iter()
        .filter_map(move |model| Some((model, event_of(model, now)?)))
}

/// An example that needs no key, if the model has one.
fn event_of(model: &Model, now: Timestamp) -> Option<BleEvent> {
    let is_plain = |test: &&ModelTest| test.bind_key.is_none() && !test.expect.is_empty();
    let test = model
        .tests
        .iter()
        .find(is_plain)
        .or_else(|| model.tests.first())?;
    Some(BleEvent {
        event_uuid: None,
        observed_at: now,
        traceparent: None,
        payload: advertisement_of(&test.frame),
    })
}

fn advertisement_of(frame: &OwnedFrame) -> Advertisement {
    let company = |(id, payload): &(u16, Vec<u8>)| (format!("{id:04x}"), Payload(payload.clone()));
    let service = |(uuid, payload): &(Uuid, Vec<u8>)| (text_of(*uuid), Payload(payload.clone()));
    Advertisement {
        address: address_text(frame.address.unwrap_or(ADDRESS)),
        address_type: frame.address.is_none().then(|| "random".to_owned()),
        rssi: Some(RSSI_DBM),
        name: frame.name.clone(),
        manufacturer_data: frame.manufacturer_data.iter().map(company).collect(),
        service_data: frame.service_data.iter().map(service).collect(),
        service_uuids: frame
            .service_uuids
            .iter()
            .map(|uuid| text_of(*uuid))
            .collect(),
        ..Advertisement::default()
    }
}

/// 4 digits for a 16-bit UUID, or the UUID in full.
fn text_of(uuid: Uuid) -> String {
    match u16::try_from(uuid.as_u128() >> 96) {
        Ok(short) if uuid16(short) == uuid => format!("{short:04x}"),
        _ => uuid.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use hub_adverts::library::read;

    use super::super::Simulated;
    use super::*;

    #[test]
    fn every_model_has_an_example_that_it_is_recognised_by() {
        let presets: Vec<_> = all(Timestamp::from_micros(0)).collect();
        assert_eq!(presets.len(), library::library().len());
        for (model, event) in presets {
            let text = serde_json::to_string(&event).expect("JSON");
            let simulated = Simulated::of(&text, "event")
                .unwrap_or_else(|error| panic!("{}: {error:?}", model.key));
            let found = simulated
                .checked
                .frame
                .with(read)
                .map(|reading| reading.model.key.clone());
            assert_eq!(found.as_deref(), Some(model.key.as_str()));
        }
    }

    #[test]
    fn uuids_have_the_form_of_uploads() {
        assert_eq!(text_of(uuid16(0xFCD2)), "fcd2");
        let long = "6e400001-b5a3-f393-e0a9-e50e24dcca9e";
        assert_eq!(text_of(long.parse().expect("a uuid")), long);
    }
}
