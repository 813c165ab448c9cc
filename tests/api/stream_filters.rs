//! `/tenant/stream/ble/events` with filters: only what is asked for is sent, live and after a
//! resumption alike.

use std::time::Duration;

use hub_core::config::StreamTimes;
use hub_tests::hub::events;
use hub_tests::{Backend, Call, Client, Options, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

use super::streams::{BLE, Event, Reader};

/// Each event has an address of its own, and is weaker than the one before.
const COUNT: usize = 20;

fn addresses(events: &[Event]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event.data["address"].as_str())
        .collect()
}

/// What the query lets through of one upload by each hub, live, and again from the database.
async fn let_through(
    client: &Client,
    hubs: &[SimulatedHub; 2],
    query: &str,
    expected: usize,
) -> Vec<Event> {
    let path = format!("{BLE}?{query}");
    let mut before = Reader::open(client, BLE, None).await;
    let mut live = Reader::open(client, &path, None).await;
    hubs[0].upload_events(1).await;
    let start = before.take(1).await.remove(0).id;
    for hub in hubs {
        hub.upload_events(COUNT).await;
    }
    // Passes every filter, so what it is not preceded by was left out.
    let mut last = events(1);
    last.events[0].payload.rssi = Some(20);
    last.events[0].payload.address = "C0:00:00:00:00:05".to_owned();
    hubs[0].upload(&last).await.expect(201);
    let is_last = |event: &Event| event.data["rssi"] == 20;
    let mut seen = Vec::new();
    while !seen.last().is_some_and(is_last) {
        seen.extend(live.take(1).await);
    }
    let seen: Vec<Event> = seen
        .into_iter()
        .filter(|event| event.id > start && !is_last(event))
        .collect();
    assert_eq!(seen.len(), expected, "{query}");

    let mut resumed = Reader::open(client, &path, Some(&start)).await;
    let again = resumed.take(expected + 1).await;
    let (last, again) = again.split_last().expect("events");
    assert!(is_last(last), "{query}: {last:?}");
    assert_eq!(again, seen, "{query}: from the database");
    if let [.., before_last, _] = again {
        let mut resumed = Reader::open(client, &path, Some(&before_last.id)).await;
        assert_eq!(
            resumed.take(2).await,
            [&seen[seen.len() - 1..], std::slice::from_ref(last)].concat()
        );
    }
    seen
}

on_each_database!(only_what_is_asked_for_is_streamed);
async fn only_what_is_asked_for_is_streamed(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hubs = [
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    let client = &tenant.client;

    let of_hub = let_through(
        client,
        &hubs,
        &format!("hubUuid={}", hubs[0].hub_uuid),
        COUNT,
    )
    .await;
    assert!(
        of_hub
            .iter()
            .all(|event| event.data["hubUuid"] == json!(hubs[0].hub_uuid))
    );
    let of_address = let_through(client, &hubs, "address=c0%3A00:00:00:00:05", 2).await;
    assert_eq!(addresses(&of_address), ["C0:00:00:00:00:05"; 2]);
    let strong = let_through(client, &hubs, "minRssi=-42", 6).await;
    assert!(
        strong
            .iter()
            .all(|event| event.data["rssi"].as_i64().is_some_and(|dbm| dbm >= -42)),
        "{strong:?}"
    );
    let query = format!(
        "minRssi=-45&hubUuid={}&address=C0:00:00:00:00:05",
        hubs[0].hub_uuid
    );
    assert_eq!(let_through(client, &hubs, &query, 1).await.len(), 1);
}

on_each_database!(each_sender_has_one_event_in_the_time);
async fn each_sender_has_one_event_in_the_time(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let mut all = Reader::open(&tenant.client, BLE, None).await;
    let mut thinned = Reader::open(&tenant.client, &format!("{BLE}?every=1h"), None).await;
    for _ in 0..3 {
        hub.upload_events(COUNT).await;
    }
    // A sender that is new passes, so all before it were tried.
    let mut new = events(1);
    new.events[0].payload.address = "C1:00:00:00:00:00".to_owned();
    hub.upload(&new).await.expect(201);
    let seen = thinned.take(COUNT + 1).await;
    let all = all.take(3 * COUNT + 1).await;
    let firsts = [&all[..COUNT], &all[3 * COUNT..]].concat();
    assert_eq!(seen, firsts, "the first event of each");
    // From the database too; and in a short time, those that lie apart.
    let mut resumed = Reader::open(
        &tenant.client,
        &format!("{BLE}?every=1h"),
        Some(&all[COUNT - 1].id),
    )
    .await;
    assert_eq!(
        resumed.take(COUNT + 1).await,
        [&all[COUNT..2 * COUNT], &all[3 * COUNT..]].concat()
    );
    let last = &all[3 * COUNT].id;
    for _ in 0..2 {
        hub.upload_events(1).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    let mut short = Reader::open(&tenant.client, &format!("{BLE}?every=100ms"), Some(last)).await;
    assert_eq!(
        addresses(&short.take(2).await),
        ["C0:00:00:00:00:00"; 2],
        "they lie apart"
    );
}

on_each_database!(device_and_window_are_filtered);
async fn device_and_window_are_filtered(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let model = hub_tests::devices::make_model(&tenant, "Sensor").await;
    let device = json!({"address": "C0:00:00:00:00:03"});
    let device = hub_tests::devices::make_device(&tenant, model, device).await;
    let query = format!("deviceInstanceId={}", device["deviceInstanceId"]);
    let mut of_device = Reader::open(&tenant.client, &format!("{BLE}?{query}"), None).await;
    // Of a window, the strongest signal counts.
    let mut strong = Reader::open(&tenant.client, &format!("{BLE}?minRssi=-40"), None).await;
    let now = app.app.clock.now();
    let window = |address: &str, strongest: i64| {
        json!({"address": address, "count": 2, "rssiMin": -90, "rssiMax": strongest, "rssiMean": -60.0,
            "firstSeenAt": now.plus_secs(-60), "lastSeenAt": now})
    };
    let upload = json!({"batchUuid": uuid::Uuid::new_v4(), "windowStart": now.plus_secs(-60), "windowEnd": now,
        "devices": [window("C0:00:00:00:00:02", -41), window("C0:00:00:00:00:03", -40)]});
    hub.client
        .post("/v1/ble/events/windowed")
        .json(&upload)
        .call()
        .await
        .expect(201);
    for reader in [&mut of_device, &mut strong] {
        assert_eq!(addresses(&reader.take(1).await), ["C0:00:00:00:00:03"]);
    }
}

on_each_database!(silent_streams_say_how_far_they_are);
/// Else a reader whose filter lets little through would resume far back, or miss what came between.
async fn silent_streams_say_how_far_they_are(backend: Backend) {
    let times = StreamTimes {
        heartbeat: Duration::from_millis(100),
        ..StreamTimes::default()
    };
    let app = TestApp::configured(backend, Options::default(), |config| {
        config.stream_times = times
    })
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let mut silent = Reader::open(
        &tenant.client,
        &format!("{BLE}?address=FF:FF:FF:FF:FF:FF"),
        None,
    )
    .await;
    hub.upload_events(3).await;
    let listed: Vec<Value> = tenant
        .client
        .get("/tenant/ble/events?size=1")
        .call()
        .await
        .expect(200)
        .data();
    let last = listed[0]["receivedAt"].as_str().expect("a time");
    silent.until(&format!("id: {last}\n: ping\n\n")).await;
    // Others have no ids in their heartbeats.
    let mut all = Reader::open(&tenant.client, BLE, None).await;
    all.until("\n\n: ping\n\n").await;
}

on_each_database!(bad_filters_are_refused_by_name);
async fn bad_filters_are_refused_by_name(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    for (name, values) in [
        ("hubUuid", &["hub", "0"][..]),
        ("deviceInstanceId", &["one", "1.5"]),
        (
            "address",
            &[
                "C0",
                "C0:00:00:00:00",
                "C0:00:00:00:00:0G",
                "C0:00:00:00:00:00:00",
            ],
        ),
        ("minRssi", &["strong", "-129", "127", "-60.5"]),
        (
            "every",
            &[
                "2",
                "s",
                "99ms",
                "2h",
                "1d",
                "-1s",
                "1.5s",
                "1%20s",
                "99999999999999999999s",
            ],
        ),
    ] {
        for value in values {
            let path = format!("{BLE}?{name}={value}");
            let problem = tenant.client.get(&path).call().await.expect(400).problem();
            assert_eq!(problem.errors[0].field, name, "{path}");
        }
    }
    let problem = tenant
        .client
        .get(&format!("{BLE}?address=C0&every=2"))
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors.len(), 2, "{problem:?}");
}
