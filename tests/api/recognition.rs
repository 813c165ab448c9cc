//! What becomes of an upload: its events are recognised and read, and devices change by being
//! heard.

use std::collections::BTreeMap;

use hub_base::clock::Clock;
use hub_base::db::sql;
use hub_ingest::StoredEvent;
use hub_protocol::ble::{Advertisement, BleEvent, BleEventUpload, BleUploadResult, Payload};
use hub_protocol::{BatchUuid, Timestamp};
use hub_tests::devices::make_device;
use hub_tests::events;
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

const ADDRESS: &str = "C4:11:22:33:44:55";
/// BTHome v2, not encrypted: 25.06 °C.
const PLAIN: &[u8] = &[0x40, 0x02, 0xCA, 0x09];
/// 25.16 °C.
const WARMER: &[u8] = &[0x40, 0x02, 0xD4, 0x09];
/// The example of an encrypted frame in the format's document: 25.06 °C and 50.55 %.
const ENCRYPTED: &[u8] = &[
    0x41, 0xA4, 0x72, 0x66, 0xC9, 0x5F, 0x73, 0x00, 0x11, 0x22, 0x33, 0x78, 0x23, 0x72, 0x14,
];
const ENCRYPTED_ADDRESS: &str = "54:48:E6:8F:80:A5";
const KEY: &str = "231d39c1d7cc1ab1aee224cd096db932";

/// An event of the service of BTHome.
fn event(address: &str, data: &[u8], rssi: i16, observed_at: Timestamp) -> BleEvent {
    let payload = Advertisement {
        address: address.to_owned(),
        address_type: Some("random".to_owned()),
        rssi: Some(rssi),
        service_data: BTreeMap::from([("fcd2".to_owned(), Payload(data.to_vec()))]),
        ..Advertisement::default()
    };
    BleEvent {
        event_uuid: None,
        observed_at,
        traceparent: None,
        payload,
    }
}

async fn upload(hub: &SimulatedHub, events: Vec<BleEvent>) {
    hub.upload(&BleEventUpload {
        batch_uuid: BatchUuid::new(),
        events,
    })
    .await
    .expect(201);
}

fn secs_ago(secs: i64) -> Timestamp {
    Clock::System.now().plus_micros(-secs * 1_000_000)
}

/// A model made from the library's BTHome.
async fn thermometer(tenant: &Tenant, auto_register: bool) -> Uuid {
    let body = json!({"template": "bthome/v2", "autoRegister": auto_register});
    let made: Value = tenant
        .client
        .post("/tenant/device-catalog")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    made["deviceUuid"]
        .as_str()
        .and_then(|uuid| uuid.parse().ok())
        .expect("a uuid")
}

async fn device(tenant: &Tenant, id: &Value) -> Value {
    tenant
        .client
        .get(&format!("/tenant/devices/{id}"))
        .call()
        .await
        .expect(200)
        .data()
}

/// Status, device, reading and first reception of an event.
type Stored<R> = (String, Option<i64>, Option<R>, Option<i64>);

/// All events, oldest first.
async fn stored(app: &TestApp) -> Vec<Stored<Value>> {
    let reading = |text: String| serde_json::from_str(&text).expect("JSON");
    let stored = |event: StoredEvent| {
        (
            event.processing_status.name().to_owned(),
            event.device_instance_id,
            event.reading.map(reading),
            event.observation_id,
        )
    };
    let events = events::all(&app.app.db).await;
    events.into_iter().map(stored).collect()
}

on_each_database!(an_event_is_recognised_and_read);
async fn an_event_is_recognised_and_read(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    upload(&hub, vec![event(ADDRESS, PLAIN, -60, secs_ago(9))]).await;
    // Without a pause: the change counts for the next upload.
    let model = thermometer(&tenant, false).await;
    upload(
        &hub,
        vec![
            event(ADDRESS, PLAIN, -60, secs_ago(8)),
            event(ADDRESS, &PLAIN[..3], -60, secs_ago(8)),
        ],
    )
    .await;
    let registered = make_device(&tenant, model, json!({"address": ADDRESS})).await;
    let id = &registered["deviceInstanceId"];
    upload(&hub, vec![event(ADDRESS, PLAIN, -60, secs_ago(7))]).await;

    let events = stored(&app).await;
    let statuses: Vec<(&str, Option<i64>)> = events
        .iter()
        .map(|event| (event.0.as_str(), event.1))
        .collect();
    let known = id.as_i64();
    assert_eq!(
        statuses,
        [
            ("RECEIVED", None),
            ("DECODED", None),
            ("FAILED", None),
            ("DECODED", known)
        ]
    );
    let reading = events[3].2.as_ref().expect("a reading");
    assert_eq!(
        (&reading["deviceUuid"], &reading["values"]),
        (&json!(model), &json!({"temperature": 25.06}))
    );
    assert_eq!(reading["protocolRevision"], 1);
    assert!(reading["identifierId"].is_i64(), "{reading}");

    let heard = device(&tenant, id).await;
    assert_eq!(
        (&heard["activationStatus"], &heard["online"]),
        (&json!("ACTIVE"), &json!(true)),
        "{heard}"
    );
    assert_eq!(
        (&heard["lastRssiDbm"], &heard["nearestHub"]["hubUuid"]),
        (&json!(-60), &json!(hub.hub_uuid))
    );
    assert_eq!(heard["state"]["temperature"]["value"], 25.06);
    assert_eq!(heard["state"]["temperature"]["unit"], "Cel");
    let mut conn = app.app.db.read().await.expect("a connection");
    let kinds: Vec<String> = sql("SELECT kind FROM activation_events")
        .scalars(&mut conn)
        .await
        .expect("rows");
    assert_eq!(kinds, ["UPLOAD"]);

    // Another tenant has nothing of it.
    let other = Tenant::create(&app.client()).await;
    let other_hub = SimulatedHub::claim(&other).await;
    upload(&other_hub, vec![event(ADDRESS, PLAIN, -40, secs_ago(6))]).await;
    let events = stored(&app).await;
    assert_eq!((events[4].0.as_str(), events[4].1), ("RECEIVED", None));
    assert_eq!(
        device(&tenant, id).await["nearestHub"]["hubUuid"],
        json!(hub.hub_uuid)
    );
}

on_each_database!(an_older_event_sets_nothing_back);
async fn an_older_event_sets_nothing_back(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let (hub, far) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let model = thermometer(&tenant, false).await;
    let registered = make_device(&tenant, model, json!({"address": ADDRESS})).await;
    let id = &registered["deviceInstanceId"];
    upload(
        &hub,
        vec![
            event(ADDRESS, WARMER, -60, secs_ago(5)),
            event(ADDRESS, PLAIN, -60, secs_ago(20)),
        ],
    )
    .await;
    // From the spool of a hub that was away.
    upload(&far, vec![event(ADDRESS, PLAIN, -90, secs_ago(3600))]).await;
    // Longer than it takes until what was heard is written.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    let heard = device(&tenant, id).await;
    assert_eq!(heard["state"]["temperature"]["value"], 25.16, "{heard}");
    assert_eq!(
        (&heard["lastRssiDbm"], &heard["nearestHub"]["hubUuid"]),
        (&json!(-60), &json!(hub.hub_uuid))
    );
}

on_each_database!(devices_of_a_model_with_auto_register_are_registered);
async fn devices_of_a_model_with_auto_register_are_registered(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let model = thermometer(&tenant, true).await;
    // A resolvable private address is nobody's for long.
    let rotating = "5A:11:22:33:44:55";
    let events = [ADDRESS, "C4:11:22:33:44:56", ADDRESS, rotating];
    upload(
        &hub,
        events
            .iter()
            .map(|address| event(address, PLAIN, -60, secs_ago(5)))
            .collect(),
    )
    .await;
    let page: Value = tenant
        .client
        .get("/tenant/devices")
        .call()
        .await
        .expect(200)
        .data();
    let devices = page.as_array().expect("a list");
    let mut addresses: Vec<&str> = devices
        .iter()
        .filter_map(|device| device["address"].as_str())
        .collect();
    addresses.sort_unstable();
    assert_eq!(addresses, [ADDRESS, "C4:11:22:33:44:56"], "{page}");
    assert!(
        devices
            .iter()
            .all(|device| device["activationStatus"] == "ACTIVE")
    );
    assert!(
        devices
            .iter()
            .all(|device| device["deviceUuid"] == json!(model))
    );
    let stored = stored(&app).await;
    assert!(
        stored[..3].iter().all(|event| event.1.is_some()) && stored[3].1.is_none(),
        "{stored:?}"
    );
    assert_eq!(stored[0].1, stored[2].1);
}

on_each_database!(a_key_proves_right_or_wrong);
async fn a_key_proves_right_or_wrong(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let model = thermometer(&tenant, false).await;
    let registered = make_device(&tenant, model, json!({"address": ENCRYPTED_ADDRESS})).await;
    let id = registered["deviceInstanceId"].clone();
    let hear = async || {
        upload(
            &hub,
            vec![event(ENCRYPTED_ADDRESS, ENCRYPTED, -60, secs_ago(5))],
        )
        .await;
        device(&tenant, &id).await["bindKeyStatus"].clone()
    };
    let set = async |key: &str| {
        let path = format!("/tenant/devices/{id}");
        tenant
            .client
            .patch(&path)
            .json(&json!({"bindKey": key}))
            .call()
            .await
            .expect(200);
    };
    assert_eq!(hear().await, "NONE");
    set("00000000000000000000000000000000").await;
    assert_eq!(hear().await, "WRONG");
    set(KEY).await;
    assert_eq!(hear().await, "VERIFIED");
    let statuses: Vec<String> = stored(&app)
        .await
        .into_iter()
        .map(|event| event.0)
        .collect();
    assert_eq!(statuses, ["MATCHED", "FAILED", "DECODED"]);
    // Whoever sends garbage in its name changes nothing.
    upload(
        &hub,
        vec![event(
            ENCRYPTED_ADDRESS,
            &[&ENCRYPTED[..14], &[0xFF]].concat(),
            -60,
            secs_ago(1),
        )],
    )
    .await;
    assert_eq!(device(&tenant, &id).await["bindKeyStatus"], "VERIFIED");
}

on_each_database!(receptions_of_one_frame_are_one_observation);
async fn receptions_of_one_frame_are_one_observation(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hubs = [
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    thermometer(&tenant, false).await;
    let at = secs_ago(30);
    for hub in &hubs {
        upload(hub, vec![event(ADDRESS, PLAIN, -60, at)]).await;
    }
    upload(&hubs[1], vec![event(ADDRESS, WARMER, -60, at)]).await;
    let firsts: Vec<Option<i64>> = stored(&app)
        .await
        .into_iter()
        .map(|event| event.3)
        .collect();
    assert!(
        firsts[0].is_none() && firsts[1].is_some() && firsts[2].is_none(),
        "{firsts:?}"
    );
}

on_each_database!(unknown_advertisers_come_to_the_inbox);
async fn unknown_advertisers_come_to_the_inbox(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let rotating = [
        "4A:11:22:33:44:55",
        "4B:11:22:33:44:55",
        "4C:11:22:33:44:55",
    ];
    let addresses = rotating.iter().chain([&ADDRESS, &ADDRESS]);
    upload(
        &hub,
        addresses
            .map(|address| event(address, PLAIN, -60, secs_ago(5)))
            .collect(),
    )
    .await;
    let started_at = std::time::Instant::now();
    let inbox = loop {
        let inbox: Value = tenant
            .client
            .get("/tenant/ble/unknown")
            .call()
            .await
            .expect(200)
            .data();
        let is_there = inbox.as_array().is_some_and(|inbox| !inbox.is_empty());
        if is_there || started_at.elapsed().as_secs() > 20 {
            break inbox;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    };
    let counts: BTreeMap<bool, &Value> = inbox
        .as_array()
        .expect("a list")
        .iter()
        .map(|advertiser| (advertiser["address"] == ADDRESS, &advertiser["count"]))
        .collect();
    assert_eq!(
        counts,
        BTreeMap::from([(true, &json!(2)), (false, &json!(3))]),
        "{inbox}"
    );
    assert!(inbox.to_string().contains("bthome/v2"), "{inbox}");
}

on_each_database!(the_route_drops_events_before_they_are_stored);
async fn the_route_drops_events_before_they_are_stored(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    thermometer(&tenant, false).await;
    let rules = json!({"rules": [{"layer": "CLOUD", "match": {"known": true, "minRssiDbm": -70}, "action": "DROP"}]});
    tenant
        .client
        .put("/tenant/ble/route")
        .json(&rules)
        .call()
        .await
        .expect(200);
    let near = event(ADDRESS, PLAIN, -60, secs_ago(5));
    let events = vec![
        near,
        event(ADDRESS, PLAIN, -80, secs_ago(5)),
        event(ADDRESS, &[0], -60, secs_ago(4)),
    ];
    let upload = BleEventUpload {
        batch_uuid: BatchUuid::new(),
        events,
    };
    for duplicate in [false, true] {
        let result: BleUploadResult = hub.upload(&upload).await.expect(201).data();
        assert_eq!(
            (result.accepted, result.rejected.len(), result.duplicate),
            (3, 0, duplicate)
        );
    }
    let statuses: Vec<String> = stored(&app)
        .await
        .into_iter()
        .map(|event| event.0)
        .collect();
    assert_eq!(statuses, ["DECODED"], "the far one");
}
