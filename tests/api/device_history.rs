//! What was heard of a device: `sensor-data`, `receptions` and `timeline` under `/tenant/devices`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hub_base::db::sql;
use hub_devices::device_history::{Changed, recount};
use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model, put_readings};
use hub_tests::events;
use hub_tests::events::note_repeat;
use hub_tests::{Backend, Call, Options, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

/// The beginning of an hour, and of a day.
const START_SECS: i64 = 1_800_057_600;
pub(super) const HOUR: i64 = 3600;

pub(super) fn at(secs: i64) -> Timestamp {
    Timestamp::from_micros((START_SECS + secs) * 1_000_000)
}

pub(super) struct World {
    pub(super) app: TestApp,
    micros: Arc<AtomicI64>,
    pub(super) tenant: Tenant,
    pub(super) hub: SimulatedHub,
    device_uuid: Uuid,
    device_instance_id: i64,
}

impl World {
    pub(super) async fn new(backend: Backend) -> Self {
        let (clock, micros) = set_clock(at(0));
        let app = TestApp::with(
            backend,
            Options {
                clock: Some(clock),
                ..Options::default()
            },
        )
        .await;
        let mut tenant = Tenant::create(&app.client()).await;
        // A key does not expire.
        tenant.client = tenant
            .api_key(json!({"scopes": ["*"], "rateLimitPerMinute": 100_000}))
            .await
            .client;
        let hub = SimulatedHub::claim(&tenant).await;
        let device_uuid = make_model(&tenant, "Thermometer").await;
        let device = make_device(
            &tenant,
            device_uuid,
            json!({"address": "C4:11:7D:DA:71:13"}),
        )
        .await;
        let device_instance_id = device["deviceInstanceId"].as_i64().expect("an id");
        Self {
            app,
            micros,
            tenant,
            hub,
            device_uuid,
            device_instance_id,
        }
    }

    pub(super) fn set_time(&self, secs: i64) {
        self.micros.store(at(secs).as_micros(), Ordering::Relaxed);
    }

    /// The hub uploads receptions of the device: when it was observed, the strength, the values.
    pub(super) async fn hear(&self, hub: &SimulatedHub, heard: &[(i64, i16, Value)]) -> Vec<i64> {
        let last = events::last_id(&self.app.app.db, self.tenant.tenant_uuid).await;
        let event = |(secs, rssi, _): &(i64, i16, Value)| json!({"observedAt": at(*secs), "address": "C4:11:7D:DA:71:13", "rssi": rssi});
        let body = json!({"batchUuid": Uuid::new_v4(), "events": heard.iter().map(event).collect::<Vec<_>>()});
        hub.client
            .post("/v1/ble/events")
            .json(&body)
            .call()
            .await
            .expect(201);
        let values: Vec<Value> = heard.iter().map(|(_, _, values)| values.clone()).collect();
        let (id, model) = (self.device_instance_id, self.device_uuid);
        put_readings(&self.app, &self.tenant, last, id, model, &values).await
    }

    pub(super) fn path(&self, rest: &str) -> String {
        format!("/tenant/devices/{}/{rest}", self.device_instance_id)
    }

    pub(super) async fn get(&self, rest: &str) -> Vec<Value> {
        self.tenant
            .client
            .get(&self.path(rest))
            .call()
            .await
            .expect(200)
            .data()
    }

    /// The field that a refused request has wrong.
    async fn refused(&self, rest: &str) -> String {
        let problem = self
            .tenant
            .client
            .get(&self.path(rest))
            .call()
            .await
            .expect(400)
            .problem();
        problem.errors[0].field.clone()
    }

    async fn upkeep(&self, kind: &str) {
        hub_tests::app::perform(&self.app.app, kind, Value::Null).await;
    }

    pub(super) async fn roll_up(&self) {
        self.upkeep("upkeep.sensor_rollups").await;
    }

    async fn rollups(&self) -> i64 {
        let mut conn = self.app.app.db.read().await.expect("a connection");
        sql("SELECT COUNT(*) FROM sensor_rollups")
            .scalar(&mut conn)
            .await
            .expect("a count")
    }
}

on_each_database!(values_are_listed_latest_first);
async fn values_are_listed_latest_first(backend: Backend) {
    let world = World::new(backend).await;
    world.set_time(100);
    let heard = [
        (10, -60, json!({"temperature": 20.5, "battery": 90})),
        (
            20,
            -61,
            json!({"temperature": 20.75, "button": "press", "acceleration_x[1]": 2}),
        ),
        (30, -62, json!({})),
        (40, 127, json!({"motion": true})),
    ];
    let ids = world.hear(&world.hub, &heard).await;
    let item = |id: usize, secs: i64, rssi: Value, values: Value, units: Value| {
        json!({
            "bleEventId": ids[id], "observedAt": at(secs), "receivedAt": Timestamp::from_micros(ids[id]),
            "hubUuid": world.hub.hub_uuid, "rssiDbm": rssi, "values": values, "units": units,
        })
    };
    let first = item(
        0,
        10,
        json!(-60),
        json!({"temperature": 20.5, "battery": 90}),
        json!({"temperature": "Cel", "battery": "%EL"}),
    );
    let values = json!({"temperature": 20.75, "button": "press", "acceleration_x[1]": 2});
    let second = item(
        1,
        20,
        json!(-61),
        values,
        json!({"temperature": "Cel", "acceleration_x[1]": "m/s2"}),
    );
    let last = item(3, 40, Value::Null, json!({"motion": true}), json!({}));
    for _ in 0..2 {
        assert_eq!(
            world.get("sensor-data").await,
            [last.clone(), second.clone(), first.clone()]
        );
        let between = format!("sensor-data?from={}&to={}", at(10), at(40));
        assert_eq!(world.get(&between).await, [second.clone(), first.clone()]);
        assert_eq!(
            world.get("sensor-data?page=2&size=2").await,
            std::slice::from_ref(&first)
        );
        let one = world.get("sensor-data?quantity=battery").await;
        assert_eq!(
            (one.len(), &one[0]["values"], &one[0]["units"]),
            (1, &json!({"battery": 90}), &json!({"battery": "%EL"}))
        );
        let one = world.get("sensor-data?quantity=acceleration_x").await;
        assert_eq!(one[0]["values"], json!({"acceleration_x[1]": 2}));
        assert!(
            world
                .get(&format!("sensor-data?from={}", at(50)))
                .await
                .is_empty()
        );
        world.roll_up().await;
    }
    let reply = world
        .tenant
        .client
        .get(&world.path("sensor-data?size=1"))
        .call()
        .await
        .expect(200);
    assert_eq!(reply.header("x-total-count"), "3");
}

on_each_database!(buckets_are_the_same_before_and_after_a_rollup);
async fn buckets_are_the_same_before_and_after_a_rollup(backend: Backend) {
    let world = World::new(backend).await;
    world.set_time(4 * HOUR);
    // Every ten minutes for four hours.
    let heard: Vec<(i64, i16, Value)> = (0..24)
        .map(|turn| {
            (
                turn * 600 + 5,
                -60,
                json!({"temperature": turn, "button": if turn == 7 { "press" } else { "none" }}),
            )
        })
        .collect();
    world.hear(&world.hub, &heard).await;
    let asked = [
        format!("sensor-data?every=1h&from={}&to={}", at(0), at(4 * HOUR)),
        format!(
            "sensor-data?every=2h&from={}&to={}",
            at(1800),
            at(3 * HOUR + 1)
        ),
        format!("sensor-data?every=30m&from={}&to={}", at(0), at(4 * HOUR)),
        format!("sensor-data?every=90s&from={}&quantity=temperature", at(0)),
        "sensor-data?every=1d".to_owned(),
    ];
    let mut before = Vec::new();
    for asked in &asked {
        before.push(world.get(asked).await);
    }
    let bucket = |from: i64,
                  to: i64,
                  quantity: &str,
                  unit: Value,
                  count: i64,
                  numbers: [Value; 4]| {
        let [min, max, mean, last] = numbers;
        json!({
            "from": at(from), "to": at(to), "quantity": quantity, "unit": unit, "count": count, "min": min, "max": max,
            "mean": mean, "last": last,
        })
    };
    let none = || [Value::Null, Value::Null, Value::Null, json!("none")];
    assert_eq!(before[0].len(), 8);
    assert_eq!(
        before[0][0],
        bucket(0, HOUR, "button", Value::Null, 6, none())
    );
    let numbers = [json!(6.0), json!(11.0), json!(8.5), json!(11)];
    assert_eq!(
        before[0][3],
        bucket(HOUR, 2 * HOUR, "temperature", json!("Cel"), 6, numbers)
    );
    let numbers = [json!(3.0), json!(11.0), json!(7.0), json!(11)];
    assert_eq!(
        before[1][1],
        bucket(1800, 2 * HOUR, "temperature", json!("Cel"), 9, numbers),
        "cut at both ends"
    );
    assert_eq!(before[1][3]["to"], json!(at(3 * HOUR + 1)));
    assert_eq!(
        (before[2].len(), before[3].len(), before[4].len()),
        (16, 24, 2)
    );

    world.roll_up().await;
    assert_eq!(world.rollups().await, 4);
    for (asked, before) in asked.iter().zip(&before) {
        assert_eq!(&world.get(asked).await, before, "{asked}");
    }

    // Another hub was offline, and brings what it heard in the first hour.
    let other = SimulatedHub::claim(&world.tenant).await;
    world.set_time(5 * HOUR);
    let late = world
        .hear(
            &other,
            &[
                (300, -50, json!({"temperature": -40})),
                (306, -50, json!({"temperature": 99})),
            ],
        )
        .await;
    // The second one was heard by both.
    note_repeat(
        &world.app.app.db,
        world.tenant.tenant_uuid,
        late[1],
        late[0],
    )
    .await;
    let mut expected = before[0].clone();
    expected[1] = bucket(
        0,
        HOUR,
        "temperature",
        json!("Cel"),
        7,
        [json!(-40.0), json!(5.0), json!(-25.0 / 7.0), json!(5)],
    );
    for _ in 0..2 {
        assert_eq!(world.get(&asked[0]).await, expected);
        let fine = world
            .get(&format!(
                "sensor-data?every=10s&from={}&to={}",
                at(290),
                at(320)
            ))
            .await;
        assert_eq!(
            (fine.len(), &fine[0]["count"], &fine[0]["last"]),
            (1, &json!(1), &json!(-40))
        );
        let raw = world
            .get(&format!("sensor-data?from={}&to={}", at(290), at(320)))
            .await;
        assert_eq!(
            (raw.len(), &raw[0]["values"]["temperature"]),
            (2, &json!(99))
        );
        world.roll_up().await;
    }
    assert_eq!(world.rollups().await, 4);
}

on_each_database!(events_that_are_read_again_are_counted_again);
async fn events_that_are_read_again_are_counted_again(backend: Backend) {
    let world = World::new(backend).await;
    world.set_time(2 * HOUR);
    let heard = [
        (10, -60, json!({"temperature": 1})),
        (20, -60, json!({})),
        (HOUR + 1, -60, json!({"temperature": 3})),
    ];
    let ids = world.hear(&world.hub, &heard).await;
    world.roll_up().await;
    let model = world.device_uuid;
    let values = [
        json!({"temperature": 4}),
        json!({"temperature": 2}),
        json!({"temperature": 3}),
    ];
    put_readings(
        &world.app,
        &world.tenant,
        0,
        world.device_instance_id,
        model,
        &values,
    )
    .await;
    let changed: Vec<Changed> = [(ids[0], 10), (ids[1], 20)]
        .map(|(ble_event_id, secs)| Changed {
            device_instance_id: world.device_instance_id,
            ble_event_id,
            observed_at: at(secs),
        })
        .to_vec();
    recount(&world.app.app, world.tenant.tenant_uuid, &changed)
        .await
        .expect("counted");
    let buckets = world
        .get(&format!("sensor-data?every=1h&from={}", at(0)))
        .await;
    let row = |bucket: &Value| {
        (
            bucket["count"].clone(),
            bucket["min"].clone(),
            bucket["last"].clone(),
        )
    };
    assert_eq!(
        buckets.iter().map(row).collect::<Vec<_>>(),
        [
            (json!(2), json!(2.0), json!(2)),
            (json!(1), json!(3.0), json!(3))
        ]
    );
    assert_eq!(world.rollups().await, 2);
}

on_each_database!(rollups_go_with_their_device_and_with_age);
async fn rollups_go_with_their_device_and_with_age(backend: Backend) {
    let world = World::new(backend).await;
    world.set_time(2 * HOUR);
    world
        .hear(
            &world.hub,
            &[
                (10, -60, json!({"temperature": 1})),
                (HOUR, -60, json!({"temperature": 2})),
            ],
        )
        .await;
    world.roll_up().await;
    assert_eq!(world.rollups().await, 2);
    world.set_time(400 * 86_400 + HOUR);
    world.upkeep("upkeep.old_rollups").await;
    assert_eq!(world.rollups().await, 1);
    let device = format!("/tenant/devices/{}", world.device_instance_id);
    world.tenant.client.delete(&device).call().await.expect(200);
    assert_eq!(world.rollups().await, 0);
    world
        .tenant
        .client
        .get(&world.path("sensor-data"))
        .call()
        .await
        .expect(404);
    // Events of a device that is gone are passed over.
    let body = json!({"batchUuid": Uuid::new_v4(), "events": [{"observedAt": at(0), "address": "C4:11:7D:DA:71:13"}]});
    let hub = SimulatedHub::claim(&world.tenant).await;
    hub.client
        .post("/v1/ble/events")
        .json(&body)
        .call()
        .await
        .expect(201);
    let db = &world.app.app.db;
    let last = events::last_id(db, world.tenant.tenant_uuid).await;
    let (id, model) = (world.device_instance_id, world.device_uuid);
    put_readings(&world.app, &world.tenant, last - 1, id, model, &[json!({})]).await;
    world.roll_up().await;
    assert_eq!(world.rollups().await, 0);
}

on_each_database!(receptions_are_counted_by_hub);
async fn receptions_are_counted_by_hub(backend: Backend) {
    let world = World::new(backend).await;
    let other = SimulatedHub::claim(&world.tenant).await;
    world.set_time(3 * HOUR);
    world
        .hear(
            &world.hub,
            &[
                (10, -60, json!({})),
                (HOUR + 10, -70, json!({})),
                (2 * HOUR, -62, json!({})),
            ],
        )
        .await;
    world.hear(&other, &[(20, 127, json!({}))]).await;
    let hub = |hub: &SimulatedHub, count: i64, rssi: [Value; 3], last: i64| {
        let [min, mean, max] = rssi;
        json!({"hubUuid": hub.hub_uuid, "count": count, "rssiMin": min, "rssiMean": mean, "rssiMax": max, "lastAt": at(last)})
    };
    for _ in 0..2 {
        let one = hub(
            &world.hub,
            3,
            [json!(-70), json!(-64.0), json!(-60)],
            2 * HOUR,
        );
        let two = hub(&other, 1, [Value::Null, Value::Null, Value::Null], 20);
        assert_eq!(world.get("receptions").await, [one, two]);
        let between = format!("receptions?from={}&to={}", at(11), at(2 * HOUR));
        let two = hub(&other, 1, [Value::Null, Value::Null, Value::Null], 20);
        assert_eq!(
            world.get(&between).await,
            [
                hub(
                    &world.hub,
                    1,
                    [json!(-70), json!(-70.0), json!(-70)],
                    HOUR + 10
                ),
                two
            ]
        );
        world.roll_up().await;
    }
}

on_each_database!(timeline_tells_a_silent_device_from_a_blind_hub);
async fn timeline_tells_a_silent_device_from_a_blind_hub(backend: Backend) {
    let world = World::new(backend).await;
    let telemetry = format!("/v1/hubs/{}/telemetry", world.hub.hub_uuid);
    let report = |secs: i64, adapter: Value| json!({"observedAt": at(secs), "adapters": {"00:1A:7D:DA:71:13": adapter}});
    let well = json!({"state": "LISTENING", "blind": []});
    let blind = json!({"state": "BLIND", "blind": [{"from": at(2 * HOUR), "reason": "the adapter is gone"}]});
    for minute in 0..240 {
        let secs = minute * 60;
        world.set_time(secs);
        if secs < HOUR {
            world
                .hear(&world.hub, &[(secs, -60, json!({"temperature": 1}))])
                .await;
        }
        let adapter = if (2 * HOUR..3 * HOUR).contains(&secs) {
            &blind
        } else {
            &well
        };
        if minute % 2 == 0 {
            world
                .hub
                .client
                .post(&telemetry)
                .json(&report(secs, adapter.clone()))
                .call()
                .await
                .expect(204);
        }
    }
    let over = json!({"state": "LISTENING", "blind": [{"from": at(2 * HOUR), "to": at(3 * HOUR), "reason": "the adapter is gone"}]});
    world
        .hub
        .client
        .post(&telemetry)
        .json(&report(4 * HOUR, over))
        .call()
        .await
        .expect(204);
    world.set_time(4 * HOUR);
    let period = |from: i64, to: i64, status: &str| json!({"from": at(from), "to": at(to), "status": status});
    for _ in 0..2 {
        let timeline = world
            .get(&format!("timeline?from={}&to={}", at(0), at(4 * HOUR)))
            .await;
        assert_eq!(
            timeline,
            [
                period(0, HOUR + 60, "HEARD"),
                period(HOUR + 60, 2 * HOUR, "SILENT"),
                period(2 * HOUR, 3 * HOUR, "HUB_BLIND"),
                period(3 * HOUR, 4 * HOUR, "SILENT"),
            ]
        );
        let timeline = world
            .get(&format!("timeline?from={}&to={}", at(600), at(1200)))
            .await;
        assert_eq!(timeline, [period(600, 1200, "HEARD")]);
        let timeline = world
            .get(&format!("timeline?from={}&to={}", at(-HOUR), at(1200)))
            .await;
        assert_eq!(
            timeline,
            [period(0, 1200, "HEARD")],
            "before it was first heard, nothing is known of it"
        );
        world.roll_up().await;
    }
    // The hub is gone, and nobody knows.
    world.set_time(6 * HOUR);
    let timeline = world.get(&format!("timeline?from={}", at(3 * HOUR))).await;
    assert_eq!(timeline[0]["status"], "SILENT");
    assert_eq!(timeline.last().expect("a period")["status"], "HUB_BLIND");
    assert_eq!(
        timeline.last().expect("a period")["to"],
        json!(at(6 * HOUR)),
        "not after now"
    );
}

on_each_database!(a_history_that_is_too_long_is_refused);
async fn a_history_that_is_too_long_is_refused(backend: Backend) {
    let world = World::new(backend).await;
    for every in ["9s", "2d", "5", "five", "5M", "-5m"] {
        assert_eq!(
            world.refused(&format!("sensor-data?every={every}")).await,
            "every",
            "{every}"
        );
    }
    assert_eq!(
        world
            .refused(&format!(
                "sensor-data?every=10s&from={}&to={}",
                at(0),
                at(50_001)
            ))
            .await,
        "every"
    );
    let quantity = "x".repeat(101);
    assert_eq!(
        world
            .refused(&format!("sensor-data?quantity={quantity}"))
            .await,
        "quantity"
    );
    assert_eq!(
        world
            .refused(&format!(
                "timeline?from={}&to={}",
                at(-31 * 86_400 - 1),
                at(0)
            ))
            .await,
        "from"
    );
    assert!(
        world
            .get(&format!(
                "sensor-data?every=10s&from={}&to={}",
                at(10),
                at(0)
            ))
            .await
            .is_empty()
    );
    assert!(
        world
            .get(&format!("timeline?from={}", at(10)))
            .await
            .is_empty(),
        "not begun yet"
    );
    assert!(
        world.get("timeline").await.is_empty(),
        "no hub ever heard it"
    );
}
