//! Advertisements as they come: several frames in one event, frames under one number, companies
//! that pile up, names that not every frame has, and what a model does not read.

use std::collections::BTreeMap;
use std::time::Duration;

use hub_base::clock::Clock;
use hub_protocol::ble::{Advertisement, BleEvent, BleEventUpload, Payload};
use hub_protocol::{BatchUuid, Timestamp};
use hub_tests::devices::make_device;
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

/// A static random address.
const ADDRESS: &str = "C4:11:22:33:44:55";
/// An iBeacon.
const IBEACON: &str = "02150102030405060708090a0b0c0d0e0f1000010002c5";

struct World {
    app: TestApp,
    tenant: Tenant,
    hub: SimulatedHub,
}

/// Manufacturer data by company, in hexadecimal.
type Companies<'a> = &'a [(&'a str, &'a str)];

impl World {
    async fn new(backend: Backend) -> Self {
        let app = TestApp::new(backend).await;
        let tenant = Tenant::create(&app.client()).await;
        let hub = SimulatedHub::claim(&tenant).await;
        Self { app, tenant, hub }
    }

    async fn model(&self, template: &str, auto_register: bool) -> Uuid {
        let body = json!({"template": template, "autoRegister": auto_register});
        let made = self
            .tenant
            .client
            .post("/tenant/device-catalog")
            .json(&body);
        let made: Value = made.call().await.expect(200).data();
        let uuid = made["deviceUuid"].as_str().expect("a uuid");
        uuid.parse().expect("a uuid")
    }

    async fn upload(&self, events: Vec<BleEvent>) {
        let upload = BleEventUpload {
            batch_uuid: BatchUuid::new(),
            events,
        };
        self.hub.upload(&upload).await.expect(201);
    }

    /// The events, oldest first.
    async fn events(&self, query: &str) -> Vec<Value> {
        let path = format!("/tenant/ble-query/events?sort=receivedAt,asc&{query}");
        let page = self
            .tenant
            .client
            .get(&path)
            .call()
            .await
            .expect(200)
            .json();
        page["data"]["content"].as_array().expect("a page").clone()
    }

    /// The inbox, once it has this many advertisers.
    async fn unknown(&self, count: usize) -> Vec<Value> {
        for _ in 0..200 {
            let listed = self.tenant.client.get("/tenant/ble/unknown").call().await;
            let listed: Vec<Value> = listed.expect(200).data();
            if listed.len() >= count {
                return listed;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("there are no {count} advertisers in the inbox");
    }
}

fn secs_ago(secs: i64) -> Timestamp {
    Clock::System.now().plus_micros(-secs * 1_000_000)
}

fn event(address: &str, name: Option<&str>, companies: Companies, bthome: &str) -> BleEvent {
    let bytes = |hex: &str| Payload(hex::decode(hex).expect("hexadecimal"));
    let companies = companies.iter();
    let services = (!bthome.is_empty()).then(|| ("fcd2".to_owned(), bytes(bthome)));
    BleEvent {
        event_uuid: None,
        observed_at: secs_ago(5),
        traceparent: None,
        payload: Advertisement {
            address: address.to_owned(),
            address_type: Some("random".to_owned()),
            name: name.map(str::to_owned),
            rssi: Some(-60),
            manufacturer_data: companies
                .map(|(company, data)| ((*company).to_owned(), bytes(data)))
                .collect(),
            service_data: services.into_iter().collect::<BTreeMap<_, _>>(),
            ..Advertisement::default()
        },
    }
}

/// The values of an event, by quantity.
fn values(event: &Value) -> BTreeMap<String, Value> {
    let measured = event["measurements"].as_array().cloned();
    let value = |one: Value| {
        (
            one["quantity"].to_string().replace('"', ""),
            one["value"].clone(),
        )
    };
    measured
        .unwrap_or_default()
        .into_iter()
        .map(value)
        .collect()
}

on_each_database!(two_frames_with_one_number_are_two_observations);
async fn two_frames_with_one_number_are_two_observations(backend: Backend) {
    let world = World::new(backend).await;
    let model = world.model("bthome/v2", false).await;
    make_device(&world.tenant, model, json!({"address": ADDRESS})).await;
    let events = ["4000b00151028d0a038d11", "4000b00c200b10001101"];
    let events = events.map(|data| event(ADDRESS, None, &[], data));
    world.upload(events.to_vec()).await;
    let observed = world.events("view=observations").await;
    assert_eq!(observed.len(), 2, "{observed:?}");
    assert_eq!(values(&observed[0])["temperature"], 27.01);
    assert_eq!(values(&observed[1])["voltage"], 2.848);
}

on_each_database!(every_frame_of_an_event_is_read);
async fn every_frame_of_an_event_is_read(backend: Backend) {
    let world = World::new(backend).await;
    world.model("apple/ibeacon", false).await;
    let sensor = world.model("bthome/v2", false).await;
    let both = event(ADDRESS, None, &[("004c", IBEACON)], "4002ca09");
    world.upload(vec![both]).await;
    let events = world.events("").await;
    assert_eq!(events[0]["deviceUuid"], json!(sensor), "{events:?}");
    let values = values(&events[0]);
    assert_eq!(values["temperature"], 25.06);
    assert_eq!(values["tx_power"], -59);
}

on_each_database!(companies_that_pile_up_and_names_are_known_from_before);
async fn companies_that_pile_up_and_names_are_known_from_before(backend: Backend) {
    let world = World::new(backend).await;
    world.model("thermopro/tp35x", false).await;
    let name = Some("TP357 (2A01)");
    let (first, second, third) = (
        ("d4c2", "0037022c"),
        ("d9c2", "0030022c"),
        ("dac2", "0030022c"),
    );
    world.upload(vec![event(ADDRESS, name, &[first], "")]).await;
    world
        .upload(vec![event(ADDRESS, name, &[first, second], "")])
        .await;
    // Without its name, as in a passive scan.
    world
        .upload(vec![event(ADDRESS, None, &[first, second, third], "")])
        .await;
    // Another address, of which nothing is known.
    let other = "C4:11:22:33:44:66";
    world
        .upload(vec![event(other, name, &[first, second], "")])
        .await;
    let read = world.events("").await;
    let temperatures: Vec<_> = read
        .iter()
        .map(|event| values(event).remove("temperature"))
        .collect();
    assert_eq!(
        temperatures,
        [
            Some(json!(21.2)),
            Some(json!(21.7)),
            Some(json!(21.8)),
            None
        ]
    );
    // Reading them again loses nothing, also from the midst of them on.
    for from in [&read[0], &read[2]] {
        let body = json!({"from": from["receivedAt"], "to": secs_ago(-60)});
        let dry_run = world
            .tenant
            .client
            .post("/tenant/ble/reprocess")
            .json(&body);
        let found: Value = dry_run.call().await.expect(200).data();
        assert_eq!(found["changed"], 0, "{found}");
    }
}

on_each_database!(what_a_model_does_not_read_stays_in_the_inbox);
async fn what_a_model_does_not_read_stays_in_the_inbox(backend: Backend) {
    let world = World::new(backend).await;
    let model = world.model("bthome/v2", false).await;
    // BTHome with its encryption flag, and with an object that is cut short.
    let encrypted = "41a47266c95f730011223378237214";
    world
        .upload(vec![
            event("C4:11:22:33:44:01", None, &[], encrypted),
            event("C4:11:22:33:44:02", None, &[], "4002ca"),
            event("C4:11:22:33:44:03", None, &[], "4002ca09"),
        ])
        .await;
    let mut listed = world.unknown(2).await;
    listed.sort_by_key(|one| one["address"].to_string());
    let reasons: Vec<(&Value, &Value)> = listed
        .iter()
        .map(|one| (&one["deviceUuid"], &one["unreadReason"]))
        .collect();
    let model = json!(model);
    assert_eq!(
        reasons,
        [
            (
                &model,
                &json!("it is encrypted; register the device with its bind key")
            ),
            (
                &model,
                &json!("the payload is cut short, or against the rules of its format")
            ),
        ]
    );
}

on_each_database!(one_beacon_of_two_fixed_addresses_is_two_devices);
/// Makers send one beacon from all their devices.
async fn one_beacon_of_two_fixed_addresses_is_two_devices(backend: Backend) {
    let world = World::new(backend).await;
    world.model("apple/ibeacon", true).await;
    let addresses = [ADDRESS, "C4:11:22:33:44:66"];
    let events = addresses.map(|address| event(address, None, &[("004c", IBEACON)], ""));
    world.upload(events.to_vec()).await;
    let devices = world.tenant.client.get("/tenant/devices").call().await;
    let devices: Vec<Value> = devices.expect(200).data();
    let mut found: Vec<&str> = devices
        .iter()
        .filter_map(|device| device["address"].as_str())
        .collect();
    found.sort_unstable();
    assert_eq!(found, addresses, "{devices:?}");
    drop(world.app);
}

on_each_database!(an_address_in_the_payload_is_shown_beside_the_advertisers);
async fn an_address_in_the_payload_is_shown_beside_the_advertisers(backend: Backend) {
    let world = World::new(backend).await;
    world.model("ruuvi/ruuvitag", false).await;
    // Format 5 of the document, whose last six bytes are the address.
    let data = "0512fc5394c37c0004fffc040cac364200cdcbb8334c884f";
    let own = "CB:B8:33:4C:88:4F";
    for address in [own, "5A:B8:33:4C:88:4F"] {
        world
            .upload(vec![event(address, None, &[("0499", data)], "")])
            .await;
    }
    let shown = world.events("").await;
    let named: Vec<&Value> = shown.iter().map(|event| &event["payloadAddress"]).collect();
    assert_eq!(named, [&Value::Null, &json!(own)], "{shown:?}");
}
