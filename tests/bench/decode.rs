//! *decode*, *recognise*: what an advertisement costs to read, in this process and without I/O.
//! `tests/bench/decode` compares *decode* with decoders in Python.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hub_adverts::catalog::{self, Catalog, Instance, Models, Protocol, Reader};
use hub_adverts::library::{Model, OwnedFrame, library, read};
use hub_adverts::{Builtin, Keys};
use serde_json::Value;
use uuid::Uuid;

const TIME: Duration = Duration::from_millis(500);
const ROUNDS: usize = 5;

/// The published advertisements, by the first word of their format.
fn vectors() -> BTreeMap<String, Vec<OwnedFrame>> {
    let mut found: BTreeMap<String, Vec<OwnedFrame>> = BTreeMap::new();
    for line in include_str!("../data/ble/vectors.jsonl").lines() {
        let vector: Value = serde_json::from_str(line).expect("a vector");
        let format = vector["format"].as_str().unwrap_or_default();
        let name = format
            .split(['-', ':'])
            .next()
            .unwrap_or_default()
            .to_owned();
        found
            .entry(name)
            .or_default()
            .push(OwnedFrame::parse(&vector).expect("a frame"));
    }
    found
}

/// Nanoseconds a frame, the median of a few rounds over all frames.
fn nanos_per_frame(frames: &[OwnedFrame], see: impl Fn(&hub_adverts::Frame<'_>)) -> f64 {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let (mut count, started_at) = (0_u64, Instant::now());
        while started_at.elapsed() < TIME {
            for frame in frames {
                frame.with(|frame| see(frame));
            }
            count += frames.len() as u64;
        }
        rounds.push(started_at.elapsed().as_nanos() as f64 / count as f64);
    }
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

/// Prints a line `decode NAME NANOS ns` for each built-in decoder and for the library.
pub fn decode() {
    let vectors = vectors();
    let formats = [
        (Builtin::Ruuvi, "ruuvi"),
        (Builtin::BtHome, "bthome"),
        (Builtin::MiBeacon, "mibeacon"),
        (Builtin::Eddystone, "eddystone"),
        (Builtin::IBeacon, "ibeacon"),
    ];
    for (decoder, format) in formats {
        let frames = &vectors[format];
        let mut out = Vec::new();
        let out = std::cell::RefCell::new(&mut out);
        let nanos = nanos_per_frame(frames, |frame| {
            let mut out = out.borrow_mut();
            out.clear();
            black_box(decoder.decode(frame, &Keys::default(), &mut out));
        });
        println!("decode {format} {nanos:.0} ns ({} frames)", frames.len());
    }
    let all: Vec<OwnedFrame> = vectors.into_values().flatten().collect();
    let nanos = nanos_per_frame(&all, |frame| drop(black_box(read(frame))));
    println!(
        "decode library {nanos:.0} ns ({} frames; recognised among {} models)",
        all.len(),
        library().len()
    );
}

/// Models of the smallest catalog, and the devices in it: one of each of the first models.
const FEWEST_MODELS: usize = 20;
const FEWEST_DEVICES: usize = 10;

/// What the catalog of a tenant costs an event, with ever more devices and models. All read the
/// same frames, of models that all have; those of the first models are of registered devices.
pub fn recognise() {
    let frames: Vec<OwnedFrame> = library()
        .iter()
        .take(FEWEST_MODELS)
        .enumerate()
        .flat_map(frames_of)
        .collect();
    let mut nanos = Vec::new();
    for (instances, models) in [(FEWEST_DEVICES, FEWEST_MODELS), (1_000, 500), (10_000, 500)] {
        let catalog = catalog(models, instances);
        let out = std::cell::RefCell::new(Vec::new());
        let recognised = std::cell::Cell::new(0);
        let found = nanos_per_frame(&frames, |frame| {
            let mut out = out.borrow_mut();
            out.clear();
            let read = black_box(catalog.read(frame, &mut out));
            recognised.set(recognised.get() + u64::from(read.model.is_some()));
        });
        assert!(recognised.get() > 0, "frames of known models");
        println!("recognise: {found:.0} ns an event with {instances} devices of {models} models");
        nanos.push(found);
    }
    println!(
        "recognise: ratio {:.2} of 10,000 devices and 500 models to 10 and 20 (wanted: 1.2)",
        nanos[2] / nanos[0]
    );
}

/// The frames of a model's tests.
fn frames_of((number, model): (usize, &'static Model)) -> impl Iterator<Item = OwnedFrame> {
    model.tests.iter().map(move |test| {
        let address = if number < FEWEST_DEVICES {
            Some(address_of(number))
        } else {
            test.frame.address
        };
        OwnedFrame {
            address,
            ..test.frame.clone()
        }
    })
}

/// The address of a registered device.
fn address_of(number: usize) -> [u8; 6] {
    let [.., high, low] = number.to_be_bytes();
    [0xC9, 0x11, 0x22, 0x33, high, low]
}

/// The library's models, copied under other uuids as often as wanted. Copies are recognised by the
/// addresses of a maker, so that they do not tie.
fn catalog(models: usize, instances: usize) -> Catalog {
    let (mut made, mut identifiers, mut protocols) = (Vec::new(), Vec::new(), Vec::new());
    for (number, model) in library().iter().cycle().take(models).enumerate() {
        let id = number as i64 + 1;
        let device_uuid = Uuid::from_u128(id as u128);
        let name = model.name.clone();
        made.push(catalog::Model {
            device_uuid,
            name,
            device_protocol_id: Some(id),
            ..catalog::Model::default()
        });
        let reader = Reader::Decoder(model.protocol.clone());
        protocols.push(Protocol {
            device_protocol_id: id,
            revision: 1,
            reader,
        });
        if number < library().len() {
            identifiers.extend(
                model
                    .identifiers
                    .iter()
                    .map(|identifier| (id, device_uuid, identifier.clone())),
            );
        } else {
            let value = format!("{:02X}:{:02X}:{:02X}", 0xC0 + number / 256, number % 256, 7);
            let identifier = serde_json::json!({"kind": "ADDRESS_PREFIX", "value": value});
            let identifier =
                hub_adverts::matching::Identifier::parse(&identifier).expect("an identifier");
            identifiers.push((id, device_uuid, identifier));
        }
    }
    let instance = |number: usize| Instance {
        device_instance_id: number as i64 + 1,
        device_uuid: Uuid::from_u128((number % models) as u128 + 1),
        address: Some(address_of(number)),
        ..Instance::default()
    };
    let instances = (0..instances).map(instance).collect();
    Catalog::new(
        Arc::new(Models::new(made, identifiers, protocols)),
        instances,
    )
}
