//! A hub reads an advertisement as the service does: with its scan configuration, to the same
//! device, values and status. Tried on frames of the library at random, whole and damaged, of
//! registered and of unknown senders.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::BuildHasher;

use hub_adverts::Measurement;
use hub_adverts::advertisement::{address_text, frame_of};
use hub_adverts::catalog::{Advertisers, Catalog, Status};
use hub_adverts::frame::uuid16;
use hub_adverts::library::{ModelTest, library};
use hub_base::clock::Clock;
use hub_protocol::ble::{Advertisement, BleEvent, BleEventUpload, Payload};
use hub_protocol::scan_config::ScanConfig;
use hub_protocol::{BatchUuid, Timestamp};
use hub_tests::devices::make_device;
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use uuid::Uuid;

use super::ble_routes::put;
use super::device_catalog::{post, text};
use super::scan_config::is_near;

const FRAMES: usize = 1_500;
const DEVICES: usize = 60;
/// Sample data of the Core Specification, Vol 3, Part H, appendix D.7.
const IDENTITY_KEY: &str = "ec0234a357c8ad05341010a60a397d9b";
const RESOLVABLE: &str = "70:81:94:0D:FB:AA";

on_each_database!(a_hub_reads_what_the_service_reads);
async fn a_hub_reads_what_the_service_reads(backend: Backend) {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let addresses = registered(&app, &tenant, &hub, &mut random).await;
    let rule = json!({"layer": "HUB", "match": {"known": true}, "action": "ON_CHANGE", "quantities": {"temperature": 1}});
    put(&tenant, &json!({"rules": [rule], "otherwise": "FORWARD"})).await;
    let config: ScanConfig = hub
        .client
        .get("/v1/hubs/scan-config")
        .call()
        .await
        .expect(200)
        .data();
    assert!(config.keys.len() > 3, "only {} keys", config.keys.len());
    let catalog = Catalog::from_scan_config(&config).expect("a catalog");

    let begin = Clock::System.now().plus_secs(-60).as_micros();
    let sent: Vec<Advertisement> = (0..FRAMES)
        .map(|_| advertisement(&mut random, &addresses))
        .collect();
    let event = |(number, payload): (usize, &Advertisement)| {
        let observed_at = Timestamp::from_micros(begin + number as i64);
        BleEvent {
            event_uuid: None,
            observed_at,
            traceparent: None,
            payload: payload.clone(),
        }
    };
    let events: Vec<BleEvent> = sent.iter().enumerate().map(event).collect();
    for events in events.chunks(500) {
        hub.upload(&BleEventUpload {
            batch_uuid: BatchUuid::new(),
            events: events.to_vec(),
        })
        .await
        .expect(201);
    }
    let stored = stored(&tenant).await;
    let mut statuses: HashMap<String, usize> = HashMap::new();
    let mut of_devices = 0;
    let (mut advertisers, hasher) = (Advertisers::default(), RandomState::new());
    for (number, advertisement) in sent.iter().enumerate() {
        let event = &stored[&Timestamp::from_micros(begin + number as i64).to_string()];
        let mut measured = Vec::new();
        let read = frame_of(advertisement).with(|frame| {
            // As the service, the hub knows the names that it has heard.
            let before = advertisers.note(hasher.hash_one(frame.address), frame);
            let read = catalog.read(&before.complete(frame), &mut measured);
            // The service shows values by name.
            measured.sort_by_key(Measurement::key);
            let status = match read.status {
                Status::Unmatched => "UNMATCHED",
                Status::Matched => "MATCHED",
                Status::Decoded => "DECODED",
                Status::Failed => "FAILED",
            };
            json!({
                "processingStatus": status,
                "deviceUuid": read.model.map(|model| model.device_uuid),
                "deviceInstanceId": read.instance.map(|device| device.device_instance_id),
                "measurements": measured,
            })
        });
        for member in [
            "processingStatus",
            "deviceUuid",
            "deviceInstanceId",
            "measurements",
        ] {
            assert_eq!(
                event[member], read[member],
                "{member} of {advertisement:?}: {event}"
            );
        }
        *statuses
            .entry(text(&event["processingStatus"]).to_owned())
            .or_default() += 1;
        of_devices += usize::from(event["deviceInstanceId"].is_i64());
    }
    assert!(
        statuses.len() == 4 && statuses.values().all(|count| *count > 10),
        "{statuses:?}"
    );
    assert!(of_devices > 100, "{of_devices}");
}

/// All models of the library, and devices of them that are near the hub. Returns their addresses.
async fn registered(
    app: &TestApp,
    tenant: &Tenant,
    hub: &SimulatedHub,
    random: &mut SmallRng,
) -> Vec<String> {
    let mut models: Vec<(Uuid, &[ModelTest])> = Vec::new();
    for model in library() {
        let made = post(
            &tenant.client,
            "/tenant/device-catalog",
            &json!({"template": model.key}),
        )
        .await;
        models.push((
            text(&made["deviceUuid"]).parse().expect("a uuid"),
            &model.tests,
        ));
    }
    let mut taken = HashSet::new();
    let mut addresses = vec![RESOLVABLE.to_owned()];
    let with_keys =
        |(_, tests): &&(Uuid, &[ModelTest])| tests.iter().any(|test| test.bind_key.is_some());
    let with_key: Vec<_> = models.iter().filter(with_keys).copied().collect();
    for number in 0..DEVICES {
        let all = if number % 3 == 0 { &with_key } else { &models };
        let (model, tests) = all[random.random_range(0..all.len())];
        let test = tests
            .iter()
            .find(|test| test.bind_key.is_some())
            .unwrap_or(&tests[0]);
        let mut device = json!({"name": format!("Device {number}")});
        let address = address_text(test.frame.address.unwrap_or_else(|| random.random()));
        if !taken.insert(address.clone()) {
            continue;
        }
        device["address"] = json!(address);
        if let Some(key) = &test.bind_key {
            device["bindKey"] = json!(hex::encode(key));
        }
        if random.random_bool(0.5) {
            device["calibration"] =
                json!({"temperature": {"offset": random.random_range(-2.0..2.0), "scale": 1.01}});
        }
        let made = make_device(tenant, model, device).await;
        is_near(app, tenant, &made, hub).await;
        addresses.push(address);
    }
    let rotating = make_device(
        tenant,
        models[0].0,
        json!({"identityResolvingKey": IDENTITY_KEY}),
    )
    .await;
    is_near(app, tenant, &rotating, hub).await;
    addresses
}

/// A frame of the library: of its sender or of another one, with or without damage.
fn advertisement(random: &mut SmallRng, addresses: &[String]) -> Advertisement {
    let tests: Vec<&ModelTest> = library().iter().flat_map(|model| &model.tests).collect();
    let frame = &tests[random.random_range(0..tests.len())].frame;
    let is_damaged = random.random_bool(0.4);
    let mut payload = |data: &Vec<u8>| {
        let mut data = data.clone();
        if is_damaged && !data.is_empty() {
            let place = random.random_range(0..data.len());
            data[place] ^= 1 << random.random_range(0..8);
            if random.random_bool(0.5) {
                data.truncate(random.random_range(0..=data.len()));
            }
        }
        Payload(data)
    };
    let manufacturer_data: BTreeMap<String, Payload> = frame
        .manufacturer_data
        .iter()
        .map(|(id, data)| (format!("{id:04x}"), payload(data)))
        .collect();
    let service_data = frame
        .service_data
        .iter()
        .map(|(id, data)| (short(*id), payload(data)))
        .collect();
    let own = frame
        .address
        .map(address_text)
        .unwrap_or_else(|| address_text(random.random()));
    let address = match random.random_range(0..4) {
        0 => addresses[random.random_range(0..addresses.len())].clone(),
        1 => address_text(random.random()),
        _ => own,
    };
    let address_type = ["public", "random"]
        .get(random.random_range(0..3))
        .map(|kind| (*kind).to_owned());
    Advertisement {
        address,
        address_type,
        rssi: Some(-60),
        name: frame.name.clone().filter(|_| random.random_bool(0.8)),
        manufacturer_data,
        service_data,
        service_uuids: frame.service_uuids.iter().map(|id| short(*id)).collect(),
        ..Advertisement::default()
    }
}

/// As hubs report it.
fn short(id: Uuid) -> String {
    let number = u16::from_be_bytes([id.as_bytes()[2], id.as_bytes()[3]]);
    if uuid16(number) == id {
        format!("{number:04x}")
    } else {
        id.to_string()
    }
}

/// All events, by the time of observation.
async fn stored(tenant: &Tenant) -> HashMap<String, Value> {
    let mut found = HashMap::new();
    for page in 1.. {
        let path = format!("/tenant/ble/events?size=100&page={page}");
        let events: Vec<Value> = tenant.client.get(&path).call().await.expect(200).data();
        if events.is_empty() {
            break;
        }
        found.extend(
            events
                .into_iter()
                .map(|event| (text(&event["observedAt"]).to_owned(), event)),
        );
    }
    found
}
