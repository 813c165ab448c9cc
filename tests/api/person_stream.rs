//! `/app/stream`: values, devices and commands of a person, live, and of nobody else.

use std::collections::BTreeMap;
use std::time::Duration;

use hub_base::clock::Clock;
use hub_base::db::sql;
use hub_protocol::BatchUuid;
use hub_protocol::ble::{Advertisement, BleEvent, BleEventUpload, Payload};
use hub_tests::devices::make_device;
use hub_tests::{Backend, Call, Person, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::device_commands;
use super::streams::{Event, Reader};

const STREAM: &str = "/app/stream";

/// A supplier whose model is read from BTHome, and a person with a hub of it.
pub(super) struct World {
    pub app: TestApp,
    pub tenant: Tenant,
    pub person: Person,
    pub hub: SimulatedHub,
    pub model: Value,
}

impl World {
    pub async fn new(backend: Backend) -> Self {
        Self::in_app(TestApp::new(backend).await).await
    }

    pub async fn in_app(app: TestApp) -> Self {
        let person = Person::register(&app.client()).await;
        Self::of(app, person).await
    }

    /// Another supplier of the person.
    async fn of(app: TestApp, person: Person) -> Self {
        let tenant = Tenant::create(&app.client()).await;
        let hub = device_commands::hub_of(&app, &tenant, &person).await;
        let model: Value = tenant
            .client
            .post("/tenant/device-catalog")
            .json(&json!({"template": "bthome/v2"}))
            .call()
            .await
            .expect(200)
            .data();
        Self {
            app,
            tenant,
            person,
            hub,
            model,
        }
    }

    /// A device that the person's hub has heard once.
    pub async fn device(&self, number: u8) -> i64 {
        let model: Uuid = serde_json::from_value(self.model["deviceUuid"].clone()).expect("a uuid");
        let made = make_device(&self.tenant, model, json!({"address": address(number)})).await;
        hear(&self.hub, number, 0).await;
        made["deviceInstanceId"].as_i64().expect("an id")
    }
}

pub(super) fn address(number: u8) -> String {
    format!("C4:11:22:33:44:{number:02X}")
}

/// A hub uploads a temperature of a device, in hundredths.
pub(super) async fn hear(hub: &SimulatedHub, number: u8, temperature: i16) {
    let [low, high] = temperature.to_le_bytes();
    let data = Payload(vec![0x40, 0x02, low, high]);
    let payload = Advertisement {
        address: address(number),
        address_type: Some("random".to_owned()),
        rssi: Some(-60),
        service_data: BTreeMap::from([("fcd2".to_owned(), data)]),
        ..Advertisement::default()
    };
    let event = BleEvent {
        event_uuid: None,
        observed_at: Clock::System.now(),
        traceparent: None,
        payload,
    };
    let upload = BleEventUpload {
        batch_uuid: BatchUuid::new(),
        events: vec![event],
    };
    hub.upload(&upload).await.expect(201);
}

/// The device and the temperature of an event, in hundredths; nothing of another event.
pub(super) fn value(event: &Event) -> Option<(i64, i64)> {
    let temperature = event.data["values"]["temperature"].as_f64();
    (event.name == "values").then_some(())?;
    let device = event.data["deviceInstanceId"].as_i64();
    Some((device?, (temperature? * 100.0).round() as i64))
}

/// So many values of a stream.
pub(super) async fn values(reader: &mut Reader, count: usize) -> Vec<Event> {
    let mut found = Vec::new();
    while found.len() < count {
        found.extend(
            reader
                .take(1)
                .await
                .into_iter()
                .filter(|event| value(event).is_some()),
        );
    }
    found
}

on_each_database!(a_person_sees_their_devices_live_and_nobody_else_does);
async fn a_person_sees_their_devices_live_and_nobody_else_does(backend: Backend) {
    let world = World::new(backend).await;
    let device = world.device(1).await;
    // The same model at the hub of somebody else.
    let other = Person::register(&world.app.client()).await;
    let neighbour = device_commands::hub_of(&world.app, &world.tenant, &other).await;
    let model = serde_json::from_value(world.model["deviceUuid"].clone()).expect("a uuid");
    make_device(&world.tenant, model, json!({"address": address(2)})).await;
    hear(&neighbour, 2, 0).await;

    let mut reader = Reader::open(&world.person.client, STREAM, None).await;
    let begin = reader.take(1).await.remove(0);
    let listed: Vec<Value> = world
        .person
        .client
        .get("/app/devices")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!((begin.name.as_str(), &begin.data), ("device", &listed[0]));
    for temperature in [2100, 2150, -40] {
        hear(&neighbour, 2, 1).await;
        hear(&world.hub, 1, temperature).await;
    }
    let seen = values(&mut reader, 3).await;
    let expected = [(device, 2100), (device, 2150), (device, -40)];
    assert_eq!(seen.iter().filter_map(value).collect::<Vec<_>>(), expected);
    let path = format!("/app/devices/{device}/sensor-data?size=1");
    let mut items: Value = world
        .person
        .client
        .get(&path)
        .call()
        .await
        .expect(200)
        .data();
    let mut item = items["items"][0].take();
    item["deviceInstanceId"] = json!(device);
    assert_eq!(seen.last().expect("an event").data, item);

    // The supplier takes the hub back: what it hears then is the person's no longer.
    let path = format!("/tenant/hubs/{}", world.hub.hub_uuid);
    world.tenant.client.delete(&path).call().await.expect(204);
    let gone = reader.take(1).await.remove(0);
    assert_eq!(
        (gone.name.as_str(), &gone.data),
        ("device_removed", &json!({"deviceInstanceId": device}))
    );
}

on_each_database!(a_reader_that_resumes_gets_every_value_once);
async fn a_reader_that_resumes_gets_every_value_once(backend: Backend) {
    let world = World::new(backend).await;
    let devices = [world.device(1).await, world.device(2).await];
    let World { app, person, .. } = world;
    let second = World::of(app, person).await;
    let of_second = second.device(3).await;
    let hubs = [
        (&world.hub, 1, devices[0]),
        (&world.hub, 2, devices[1]),
        (&second.hub, 3, of_second),
    ];
    let client = &second.person.client;
    let mut last_id = {
        let mut reader = Reader::open(client, STREAM, None).await;
        reader.take(3).await.pop().expect("an event").id
    };
    let (mut seen, mut expected) = (Vec::new(), Vec::new());
    for round in 0..6 {
        for turn in 0..20 {
            let (hub, number, device) = hubs[turn % 3];
            let temperature = i16::try_from(round * 100 + turn).expect("a small number");
            hear(hub, number, temperature).await;
            expected.push((device, i64::from(temperature)));
        }
        // The connection is lost after a part of what is new.
        let mut reader = Reader::open(client, STREAM, Some(&last_id)).await;
        let found = values(&mut reader, 3 + round * 2).await;
        last_id = found.last().expect("an event").id.clone();
        seen.extend(found.iter().filter_map(value));
    }
    let mut reader = Reader::open(client, STREAM, Some(&last_id)).await;
    let rest = values(&mut reader, expected.len() - seen.len()).await;
    seen.extend(rest.iter().filter_map(value));
    for supplier in [vec![devices[0], devices[1]], vec![of_second]] {
        let of = |all: &[(i64, i64)]| -> Vec<(i64, i64)> {
            all.iter()
                .filter(|(device, _)| supplier.contains(device))
                .copied()
                .collect()
        };
        assert_eq!(of(&seen), of(&expected), "in the order of receipt");
    }
}

on_each_database!(a_command_is_streamed_whenever_its_status_changes);
async fn a_command_is_streamed_whenever_its_status_changes(backend: Backend) {
    let world = device_commands::World::new(backend).await;
    let mut reader = Reader::open(&world.user(), STREAM, None).await;
    assert_eq!(reader.take(1).await[0].name, "device");
    let path = format!("{}?wait=0", world.path("app"));
    let order = device_commands::level(7);
    let given: Value = world
        .user()
        .post(&path)
        .json(&order)
        .call()
        .await
        .expect(200)
        .data();
    // What the supplier gives is not the person's.
    world.ordered(&device_commands::level(8)).await;
    let queued = reader.take(1).await.remove(0);
    assert_eq!((queued.name.as_str(), &queued.data), ("command", &given));
    let job = world.hub.desired_jobs().await.remove(0);
    world
        .hub
        .tell(job.hub_job_uuid, "ACCEPTED", json!({}))
        .await
        .expect(204);
    let sent = reader.take(1).await.remove(0);
    assert_eq!(sent.data["commandUuid"], given["commandUuid"]);
    assert_eq!(sent.data["status"], json!("SENT"));
}

on_each_database!(a_stream_of_too_many_devices_is_refused_and_one_hub_of_them_is_not);
async fn a_stream_of_too_many_devices_is_refused_and_one_hub_of_them_is_not(backend: Backend) {
    let world = World::new(backend).await;
    world.device(1).await;
    let second = device_commands::hub_of(&world.app, &world.tenant, &world.person).await;
    // Another 501, which the other hub hears best.
    let mut tx = world.app.app.db.begin().await.expect("a transaction");
    for device_instance_id in 1_000_000..1_000_501_i64 {
        sql(
            "INSERT INTO device_states (tenant_uuid, device_instance_id, last_seen_at, \
             nearest_hub_uuid, state) VALUES ($1, $2, $3, $4, '{}')",
        )
        .bind((
            world.tenant.tenant_uuid,
            device_instance_id,
            Clock::System.now(),
            second.hub_uuid,
        ))
        .run(&mut tx)
        .await
        .expect("a row");
    }
    tx.commit_unaudited("a test").await.expect("a commit");
    let client = &world.person.client;
    let problem = client.get(STREAM).call().await.expect(409).problem();
    assert_eq!(problem.code, "TOO_MANY_DEVICES");
    assert!(problem.message.contains("`hubUuid`"), "{}", problem.message);
    let of_hub = format!("{STREAM}?hubUuid={}", world.hub.hub_uuid);
    let mut reader = Reader::open(client, &of_hub, None).await;
    assert_eq!(reader.take(1).await[0].name, "device");
    // A mandate may be of such a hub, and its stream is refused alike.
    let body = json!({
        "recipient": {"name": "Adviser"}, "hubUuid": second.hub_uuid, "form": "PULL",
        "until": Clock::System.now().plus_secs(3600),
    });
    let granted: Value = client
        .post("/app/mandates")
        .json(&body)
        .call()
        .await
        .expect(201)
        .data();
    let credential = granted["credential"].as_str().expect("a credential");
    let recipient = world.app.client().bearer(credential);
    let refused = recipient.get("/mandate/v1/stream").call().await.expect(409);
    assert_eq!(refused.problem().code, "TOO_MANY_DEVICES");
}

on_each_database!(streams_of_persons_are_refused_when_they_have_to_be);
async fn streams_of_persons_are_refused_when_they_have_to_be(backend: Backend) {
    let world = World::new(backend).await;
    world.device(1).await;
    let client = &world.person.client;
    for id in ["x", "2026-01-31T09:30:00.123456Z", &"-7".repeat(2000)] {
        let request = client.get(STREAM).header("last-event-id", id);
        let problem = request.call().await.expect(400).problem();
        assert_eq!(problem.errors[0].field, "Last-Event-ID");
    }
    let other = Person::register(&world.app.client()).await;
    let of_hub = format!("{STREAM}?hubUuid={}", world.hub.hub_uuid);
    other.client.get(&of_hub).call().await.expect(404);
    let key = world.tenant.api_key(json!({"scopes": ["*"]})).await;
    key.client.get(STREAM).call().await.expect(401);
    world.app.client().get(STREAM).call().await.expect(401);
    let mut open = Vec::new();
    for _ in 0..8 {
        open.push(Reader::open(client, &of_hub, None).await);
    }
    client.get(STREAM).call().await.expect(429);
    other
        .client
        .get(STREAM)
        .send()
        .await
        .expect("a stream of another person");
    drop(open.pop());
    tokio::time::timeout(Duration::from_secs(10), async {
        while client.get(STREAM).send().await.expect("an answer").status() != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .expect("the place of a stream that was closed");
}
