//! Stored BLE events that are read again: `/tenant/ble/reprocess`, and what a new bind key causes.

use std::collections::BTreeMap;

use hub_base::clock::Clock;
use hub_base::db::sql;
use hub_core::tasks::Done;
use hub_ingest::batches::Rewritten;
use hub_ingest::{ProcessingStatus, StoredEvent, log};
use hub_protocol::ble::{Advertisement, BleEvent, BleEventUpload, Payload};
use hub_protocol::{BatchUuid, TenantUuid, Timestamp};
use hub_tests::devices::{make_device, make_model};
use hub_tests::events;
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

const PATH: &str = "/tenant/ble/reprocess";
const ADDRESS: &str = "C4:11:22:33:44:55";
/// BTHome v2, not encrypted: 25.06 °C.
const PLAIN: &[u8] = &[0x40, 0x02, 0xCA, 0x09];
/// The example of an encrypted frame in the format's document: 25.06 °C and 50.55 %.
const ENCRYPTED: &[u8] = &[
    0x41, 0xA4, 0x72, 0x66, 0xC9, 0x5F, 0x73, 0x00, 0x11, 0x22, 0x33, 0x78, 0x23, 0x72, 0x14,
];
const ENCRYPTED_ADDRESS: &str = "54:48:E6:8F:80:A5";
const KEY: &str = "231d39c1d7cc1ab1aee224cd096db932";

fn event(address: &str, data: &[u8], observed_at: Timestamp) -> BleEvent {
    let payload = Advertisement {
        address: address.to_owned(),
        address_type: Some("random".to_owned()),
        rssi: Some(-60),
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

fn secs_ago(secs: i64) -> Timestamp {
    Clock::System.now().plus_secs(-secs)
}

struct World {
    app: TestApp,
    tenant: Tenant,
    hub: SimulatedHub,
}

/// Status, device and reading of an event.
type Stored = (i64, String, Option<i64>, Option<String>);

impl World {
    async fn new(backend: Backend) -> Self {
        let app = TestApp::new(backend).await;
        let tenant = Tenant::create(&app.client()).await;
        let hub = SimulatedHub::claim(&tenant).await;
        Self { app, tenant, hub }
    }

    async fn upload(&self, events: Vec<BleEvent>) {
        self.hub
            .upload(&BleEventUpload {
                batch_uuid: BatchUuid::new(),
                events,
            })
            .await
            .expect(201);
    }

    async fn thermometer(&self) -> Uuid {
        let body = json!({"template": "bthome/v2"});
        let made: Value = self
            .tenant
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

    async fn get(&self, path: &str) -> Value {
        self.tenant.client.get(path).call().await.expect(200).data()
    }

    fn request(more: Value) -> Value {
        let mut body = json!({"from": secs_ago(3600), "to": secs_ago(-60)});
        let more = more.as_object().cloned().unwrap_or_default();
        body.as_object_mut().expect("an object").extend(more);
        body
    }

    async fn dry_run(&self, more: Value) -> Value {
        self.tenant
            .client
            .post(PATH)
            .json(&Self::request(more))
            .call()
            .await
            .expect(200)
            .data()
    }

    async fn begin(&self, mut more: Value) -> String {
        more["dryRun"] = json!(false);
        let task: Value = self
            .tenant
            .client
            .post(PATH)
            .json(&Self::request(more))
            .call()
            .await
            .expect(202)
            .data();
        task["taskId"].as_str().expect("a task").to_owned()
    }

    /// Begins a run and carries it out.
    async fn run(&self, more: Value) -> Value {
        let task = self.begin(more).await;
        work(&self.app, self.tenant.tenant_uuid).await;
        self.get(&format!("{PATH}/{task}")).await
    }

    /// All events, oldest first.
    async fn stored(&self) -> Vec<Stored> {
        let stored = |event: StoredEvent| {
            (
                event.ble_event_id,
                event.processing_status.name().to_owned(),
                event.device_instance_id,
                event.reading,
            )
        };
        let events = events::all(&self.app.app.db).await;
        events.into_iter().map(stored).collect()
    }

    async fn statuses(&self) -> Vec<String> {
        self.stored()
            .await
            .into_iter()
            .map(|event| event.1)
            .collect()
    }

    /// What the tenant's events count is what they have.
    async fn expect_bytes_to_be_true(&self) {
        let mut conn = self.app.app.db.read().await.expect("a connection");
        let counted: i64 = sql("SELECT CAST(SUM(bytes) AS BIGINT) FROM stored_bytes \
             WHERE kind = 'BLE_EVENTS' AND tenant_uuid = $1")
        .bind(self.tenant.tenant_uuid)
        .scalar(&mut conn)
        .await
        .expect("a sum");
        drop(conn);
        let have = events::counted_bytes(&self.app.app.db, self.tenant.tenant_uuid).await;
        assert_eq!(counted, have);
    }
}

async fn perform(app: &TestApp, kind: &str, payload: Value) -> Done {
    hub_tests::app::perform(&app.app, kind, payload).await
}

/// Carries out all runs of a tenant.
async fn work(app: &TestApp, tenant_uuid: TenantUuid) {
    while perform(app, "ble.reprocess", json!({"tenantUuid": tenant_uuid})).await != Done::Finished
    {
    }
}

on_each_database!(stored_events_are_read_with_a_model_that_was_made_later);
async fn stored_events_are_read_with_a_model_that_was_made_later(backend: Backend) {
    let world = World::new(backend).await;
    let events = vec![
        event(ADDRESS, PLAIN, secs_ago(50)),
        event("C4:11:22:33:44:56", PLAIN, secs_ago(40)),
        event(ADDRESS, &[0], secs_ago(30)),
    ];
    world.upload(events).await;
    let before = world.stored().await;
    let model = world.thermometer().await;
    let device = make_device(&world.tenant, model, json!({"address": ADDRESS})).await;
    let id = device["deviceInstanceId"].as_i64().expect("an id");

    let preview = world.dry_run(json!({})).await;
    let counts = |of: &Value| {
        ["events", "changed", "newlyDecoded", "noLongerDecoded"].map(|name| of[name].as_i64())
    };
    assert_eq!(
        counts(&preview),
        [Some(3), Some(3), Some(2), Some(0)],
        "{preview}"
    );
    assert_eq!(preview["complete"], true);
    let example = &preview["examples"][0];
    assert_eq!(example["bleEventId"], before[0].0);
    assert_eq!(example["before"]["processingStatus"], "RECEIVED");
    assert_eq!(example["before"]["measurements"], json!([]));
    assert_eq!(
        (
            &example["after"]["processingStatus"],
            &example["after"]["deviceInstanceId"]
        ),
        (&json!("DECODED"), &json!(id))
    );
    assert_eq!(
        example["after"]["measurements"][0]["value"], 25.06,
        "{example}"
    );
    // Nothing is done yet.
    assert_eq!(world.stored().await, before);
    assert_eq!(
        world.dry_run(json!({"deviceInstanceId": id})).await["events"],
        2
    );
    assert_eq!(
        world
            .dry_run(json!({"deviceUuid": model, "from": secs_ago(9), "to": secs_ago(8)}))
            .await["events"],
        0
    );

    // Only what is of the device.
    let done = world.run(json!({"deviceInstanceId": id})).await;
    assert_eq!(
        (&done["state"], &done["cause"], &done["error"]),
        (&json!("SUCCEEDED"), &json!("OPERATOR"), &Value::Null)
    );
    assert_eq!(
        counts(&done),
        [Some(2), Some(2), Some(1), Some(0)],
        "{done}"
    );
    assert_eq!(world.statuses().await[..2], ["DECODED", "RECEIVED"]);
    let done = world.run(json!({})).await;
    assert_eq!(
        counts(&done),
        [Some(3), Some(1), Some(1), Some(0)],
        "{done}"
    );
    let after = world.stored().await;
    assert_eq!(
        after.iter().map(|event| event.2).collect::<Vec<_>>(),
        [Some(id), None, Some(id)]
    );
    world.expect_bytes_to_be_true().await;

    // The device knows it, and is not activated by it.
    let device = world.get(&format!("/tenant/devices/{id}")).await;
    assert_eq!(device["state"]["temperature"]["value"], 25.06, "{device}");
    assert_eq!(device["activationStatus"], "REGISTERED");
    let shown = world
        .get(&format!("/tenant/ble/events/{}", after[0].0))
        .await;
    assert_eq!(
        (&shown["deviceUuid"], &shown["measurements"][0]["value"]),
        (&json!(model), &json!(25.06))
    );
    let runs = world
        .get(&format!("/tenant/ble/events/{}/runs", after[0].0))
        .await;
    let found: Vec<(&Value, &Value)> = runs
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| (&run["trigger"], &run["status"]))
        .collect();
    assert_eq!(
        found,
        [
            (&json!("INGEST"), &json!("RECEIVED")),
            (&json!("REPROCESS"), &json!("DECODED"))
        ],
        "{runs}"
    );
    let audit = world
        .tenant
        .client
        .get("/tenant/audit-logs?action=ble.reprocess")
        .call()
        .await
        .expect(200)
        .body;
    assert!(audit.contains("ble.reprocess"), "{audit}");

    // Again: nothing changes, and nothing is written.
    let done = world.run(json!({})).await;
    assert_eq!(
        counts(&done),
        [Some(3), Some(0), Some(0), Some(0)],
        "{done}"
    );
    assert_eq!(world.stored().await, after);

    // Without the model, nothing is known.
    world
        .tenant
        .client
        .delete(&format!("/tenant/devices/{id}"))
        .call()
        .await
        .expect(200);
    world
        .tenant
        .client
        .delete(&format!("/tenant/device-catalog/{model}"))
        .call()
        .await
        .expect(200);
    assert_eq!(
        counts(&world.dry_run(json!({})).await),
        [Some(3), Some(3), Some(0), Some(2)]
    );
    world.run(json!({})).await;
    assert_eq!(world.stored().await, before);
    world.expect_bytes_to_be_true().await;
}

on_each_database!(a_new_bind_key_reads_what_is_stored_of_the_device);
async fn a_new_bind_key_reads_what_is_stored_of_the_device(backend: Backend) {
    let world = World::new(backend).await;
    let model = world.thermometer().await;
    let device = make_device(&world.tenant, model, json!({"address": ENCRYPTED_ADDRESS})).await;
    let path = format!("/tenant/devices/{}", device["deviceInstanceId"]);
    let at = secs_ago(600);
    world
        .upload(vec![
            event(ENCRYPTED_ADDRESS, ENCRYPTED, at),
            event(ADDRESS, ENCRYPTED, at),
        ])
        .await;
    world
        .upload(vec![event(ENCRYPTED_ADDRESS, PLAIN, at.plus_secs(-600))])
        .await;
    assert_eq!(world.statuses().await, ["MATCHED", "MATCHED", "DECODED"]);
    for (key, status, of_key) in [
        ("00".repeat(16), "FAILED", "SET"),
        (KEY.to_owned(), "DECODED", "VERIFIED"),
        ("00".repeat(16), "DECODED", "SET"),
    ] {
        world
            .tenant
            .client
            .patch(&path)
            .json(&json!({"bindKey": key}))
            .call()
            .await
            .expect(200);
        let mut conn = world.app.app.db.read().await.expect("a connection");
        let payload: String = sql("SELECT CAST(payload AS TEXT) FROM tasks \
             WHERE kind = 'device.key_was_set'")
        .scalar(&mut conn)
        .await
        .expect("a task");
        drop(conn);
        let payload: Value = serde_json::from_str(&payload).expect("JSON");
        assert_eq!(
            perform(&world.app, "device.key_was_set", payload).await,
            Done::Finished
        );
        work(&world.app, world.tenant.tenant_uuid).await;
        assert_eq!(world.statuses().await, [status, "MATCHED", "DECODED"]);
        assert_eq!(world.get(&path).await["bindKeyStatus"], of_key);
        world.expect_bytes_to_be_true().await;
    }
    let state = world.get(&path).await["state"].clone();
    assert_eq!(
        (&state["temperature"]["value"], &state["humidity"]["value"]),
        (&json!(25.06), &json!(50.55)),
        "{state}"
    );
}

on_each_database!(what_was_said_of_a_counter_stays);
async fn what_was_said_of_a_counter_stays(backend: Backend) {
    let world = World::new(backend).await;
    let model = world.thermometer().await;
    let device = make_device(
        &world.tenant,
        model,
        json!({"address": ENCRYPTED_ADDRESS, "bindKey": KEY}),
    )
    .await;
    let id = device["deviceInstanceId"].as_i64().expect("an id");
    world
        .upload(vec![event(ENCRYPTED_ADDRESS, ENCRYPTED, secs_ago(50))])
        .await;
    let (event_id, _, device_instance_id, reading) = world.stored().await.remove(0);
    let mut reading: Value = serde_json::from_str(&reading.expect("a reading")).expect("JSON");
    reading["counterStatus"] = json!("REPLAYED");
    // In the order of its members.
    let text = reading.to_string();
    let rewritten = Rewritten {
        ble_event_id: event_id,
        device_instance_id,
        processing_status: ProcessingStatus::Decoded,
        reading: Some(text.into()),
        more_bytes: 27,
    };
    let now = world.app.app.clock.now();
    let rewrite = log::rewrite(
        &world.app.app,
        world.tenant.tenant_uuid,
        vec![rewritten],
        now,
    )
    .await;
    let mut tx = world.app.app.db.begin().await.expect("a transaction");
    let is_there = rewrite.expect("a change").apply(&mut tx).await;
    assert!(is_there.expect("a row"));
    tx.commit_unaudited("a test's own").await.expect("a commit");
    let body = json!({"calibration": {"temperature": {"offset": 1.0}}});
    world
        .tenant
        .client
        .patch(&format!("/tenant/devices/{id}"))
        .json(&body)
        .call()
        .await
        .expect(200);
    let state = world.get(&format!("/tenant/devices/{id}")).await["state"]["temperature"].clone();
    let done = world.run(json!({})).await;
    assert_eq!(
        (&done["changed"], &done["newlyDecoded"]),
        (&json!(1), &json!(0)),
        "{done}"
    );
    let shown = world.get(&format!("/tenant/ble/events/{event_id}")).await;
    assert_eq!(shown["counterStatus"], "REPLAYED", "{shown}");
    let values: Vec<&Value> = shown["measurements"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["value"])
        .collect();
    assert!(values.contains(&&json!(26.06)), "{shown}");
    // What may be a recording is not the state of the device.
    assert_eq!(
        world.get(&format!("/tenant/devices/{id}")).await["state"]["temperature"],
        state
    );
    assert_eq!(world.dry_run(json!({})).await["changed"], 0);
    world.expect_bytes_to_be_true().await;
}

on_each_database!(histories_follow);
async fn histories_follow(backend: Backend) {
    let world = World::new(backend).await;
    let model = world.thermometer().await;
    let device = make_device(&world.tenant, model, json!({"address": ADDRESS})).await;
    let id = device["deviceInstanceId"].as_i64().expect("an id");
    let events = (0..300).map(|number| event(ADDRESS, PLAIN, secs_ago(9000 - 30 * number)));
    world.upload(events.collect()).await;
    perform(&world.app, "upkeep.sensor_rollups", Value::Null).await;
    let path = format!("/tenant/devices/{id}");
    let buckets = format!(
        "{path}/sensor-data?every=1h&quantity=temperature&from={}",
        secs_ago(10_800)
    );
    let sums = async || {
        let buckets = world.get(&buckets).await;
        let sum = |name: &str| {
            buckets
                .as_array()
                .expect("a list")
                .iter()
                .filter_map(|one| one[name].as_f64())
                .sum::<f64>()
        };
        (sum("count"), buckets[0]["max"].clone())
    };
    assert_eq!(sums().await, (300.0, json!(25.06)));
    let body = json!({"calibration": {"temperature": {"offset": 1.0}}});
    world
        .tenant
        .client
        .patch(&path)
        .json(&body)
        .call()
        .await
        .expect(200);
    assert_eq!(
        world.run(json!({"deviceInstanceId": id})).await["changed"],
        300
    );
    assert_eq!(sums().await, (300.0, json!(26.06)));
    // The last value is as old as it was, and read with today's calibration.
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    let state = world.get(&path).await["state"]["temperature"].clone();
    assert_eq!(state["value"], 26.06, "{state}");
    let model = make_model(&world.tenant, "nothing reads it").await;
    let other = make_device(
        &world.tenant,
        model,
        json!({"address": "C4:11:22:33:44:57"}),
    )
    .await;
    assert_eq!(
        world
            .dry_run(json!({"deviceInstanceId": other["deviceInstanceId"]}))
            .await["events"],
        0
    );
    let mut conn = world.app.app.db.read().await.expect("a connection");
    let left: i64 = sql("SELECT COUNT(*) FROM ble_reprocess_hours")
        .scalar(&mut conn)
        .await
        .expect("a count");
    assert_eq!(left, 0);
}

on_each_database!(a_run_is_carried_on_by_another_replica);
async fn a_run_is_carried_on_by_another_replica(backend: Backend) {
    let world = World::new(backend).await;
    let at = secs_ago(600);
    for _ in 0..4 {
        world
            .upload((0..1000).map(|_| event(ADDRESS, PLAIN, at)).collect())
            .await;
    }
    world.thermometer().await;
    let task = world.begin(json!({})).await;
    let other = TestApp::replica_of(&world.app, hub_tests::Options::default()).await;
    let payload = json!({"tenantUuid": world.tenant.tenant_uuid});
    // The work is given up at any moment, as by a kill, or two replicas are at it.
    for millis in [5, 40, 60, 80] {
        let both = futures_util::future::join(
            perform(&world.app, "ble.reprocess", payload.clone()),
            perform(&other, "ble.reprocess", payload.clone()),
        );
        let _ = tokio::time::timeout(std::time::Duration::from_millis(millis), both).await;
    }
    let [here, there] = [&world.app, &other].map(|app| work(app, world.tenant.tenant_uuid));
    tokio::join!(here, there);
    let done = world.get(&format!("{PATH}/{task}")).await;
    assert_eq!(done["state"], "SUCCEEDED", "{done}");
    assert_eq!(
        (&done["events"], &done["changed"], &done["newlyDecoded"]),
        (&json!(4000), &json!(4000), &json!(4000))
    );
    assert!(
        world
            .statuses()
            .await
            .iter()
            .all(|status| status == "DECODED")
    );
    world.expect_bytes_to_be_true().await;
}

on_each_database!(one_run_at_a_time_and_none_of_others);
async fn one_run_at_a_time_and_none_of_others(backend: Backend) {
    let world = World::new(backend).await;
    let model = world.thermometer().await;
    world
        .upload(vec![event(ADDRESS, PLAIN, secs_ago(50))])
        .await;
    let task = world.begin(json!({})).await;
    let shown = world.get(&format!("{PATH}/{task}")).await;
    assert_eq!(
        (&shown["state"], &shown["startedAt"]),
        (&json!("QUEUED"), &Value::Null),
        "{shown}"
    );
    let again = World::request(json!({"dryRun": false}));
    let problem = world
        .tenant
        .client
        .post(PATH)
        .json(&again)
        .call()
        .await
        .expect(409)
        .problem();
    assert!(
        problem.code == "REPROCESSING" && problem.message.contains(&task),
        "{problem:?}"
    );
    let other = Tenant::create(&world.app.client()).await;
    other
        .client
        .get(&format!("{PATH}/{task}"))
        .call()
        .await
        .expect(404);
    other
        .client
        .get(&format!("{PATH}/{}", Uuid::new_v4()))
        .call()
        .await
        .expect(404);
    for dry_run in [true, false] {
        let body = World::request(json!({"deviceUuid": model, "dryRun": dry_run}));
        other.client.post(PATH).json(&body).call().await.expect(404);
        let body = World::request(json!({"deviceInstanceId": 1, "dryRun": dry_run}));
        other.client.post(PATH).json(&body).call().await.expect(404);
    }
    // Nothing of the other one's is read.
    let body = World::request(json!({}));
    let preview: Value = other
        .client
        .post(PATH)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(preview["events"], 0);
    work(&world.app, other.tenant_uuid).await;
    assert_eq!(
        world.get(&format!("{PATH}/{task}")).await["state"],
        "QUEUED"
    );
    work(&world.app, world.tenant.tenant_uuid).await;
    assert_eq!(
        world.get(&format!("{PATH}/{task}")).await["state"],
        "SUCCEEDED"
    );
    world.begin(json!({})).await;

    for (more, field) in [
        (json!({"from": secs_ago(1), "to": secs_ago(2)}), "to"),
        (json!({"from": null}), "from"),
        (json!({"to": "yesterday"}), "to"),
        (json!({"deviceUuid": "x"}), "deviceUuid"),
        (json!({"deviceInstanceId": "x"}), "deviceInstanceId"),
        (json!({"dryRun": 1}), "dryRun"),
    ] {
        let reply = world
            .tenant
            .client
            .post(PATH)
            .json(&World::request(more.clone()))
            .call()
            .await;
        assert_eq!(reply.expect(400).problem().errors[0].field, field, "{more}");
    }
}
