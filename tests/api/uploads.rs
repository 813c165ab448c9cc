//! `/v1/ble/events`, `/v1/ble/events/windowed`, `/v1/hubs/{hubUuid}/logs` and `/telemetry`, and
//! what they leave for their tenant to read.

use std::io::Write;

use futures_util::future::join_all;
use hub_protocol::Timestamp;
use hub_protocol::ble::BleUploadResult;
use hub_tests::devices::{make_device, make_model};
use hub_tests::hub::events;
use hub_tests::{Backend, Call, Options, Reply, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

/// The middle of some minute, so that a test's requests fall into one.
fn mid_minute() -> Timestamp {
    "2026-03-01T12:00:20Z".parse().expect("a time")
}

async fn stored(tenant: &Tenant) -> Vec<Value> {
    let mut all = Vec::new();
    for page in 1.. {
        let path = format!("/tenant/ble/events?size=100&page={page}");
        let mut items: Vec<Value> = tenant.client.get(&path).call().await.expect(200).data();
        if items.is_empty() {
            return all;
        }
        all.append(&mut items);
    }
    all
}

on_each_database!(large_windows_are_read_back_unchanged);
/// Many rows at once take another way into the database than few, with columns that most uploads
/// leave out.
async fn large_windows_are_read_back_unchanged(backend: Backend) {
    const DEVICES: usize = 700;
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let now = app.app.clock.now();
    let device = |index: usize| {
        json!({
            "address": format!("C0:00:00:00:{:02X}:{:02X}", index / 256, index % 256), "count": index + 1, "rssiMin": -90,
            "rssiMax": -40, "rssiMean": -62.5, "firstSeenAt": now.plus_secs(-60), "lastSeenAt": now,
            "name": format!("Fühler {index} \u{1F321}"), "deviceInstanceId": index.is_multiple_of(3).then_some(index + 1),
        })
    };
    let devices: Vec<Value> = (0..DEVICES).map(device).collect();
    let upload = json!({
        "batchUuid": uuid::Uuid::new_v4(), "windowStart": now.plus_secs(-60), "windowEnd": now, "devices": devices,
    });
    let result: BleUploadResult = hub
        .client
        .post("/v1/ble/events/windowed")
        .json(&upload)
        .call()
        .await
        .expect(201)
        .data();
    assert_eq!(
        (result.accepted, result.rejected.len()),
        (DEVICES as i64, 0),
        "{result:?}"
    );
    let mut found = stored(&tenant).await;
    found.reverse();
    assert_eq!(found.len(), DEVICES);
    for (found, sent) in found.iter().zip(&devices) {
        for (key, value) in sent.as_object().expect("an object") {
            // None of these devices is the tenant's.
            let value = if key == "deviceInstanceId" {
                &Value::Null
            } else {
                value
            };
            let found = found.get(key).unwrap_or(&found["window"][key]);
            assert_eq!(found, value, "{key}");
        }
        let window = &found["window"];
        assert_eq!(
            (&window["windowStart"], &window["windowEnd"]),
            (&upload["windowStart"], &upload["windowEnd"])
        );
    }
}

on_each_database!(uploaded_events_are_read_back_unchanged);
async fn uploaded_events_are_read_back_unchanged(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let upload = hub.upload_events(120).await;
    let mut found = stored(&tenant).await;
    found.reverse();
    assert_eq!(found.len(), 120);
    for (found, sent) in found.iter().zip(&upload.events) {
        let sent = serde_json::to_value(sent).expect("JSON");
        for (key, value) in sent.as_object().expect("an object") {
            assert_eq!(&found[key], value, "{key} of {found}");
        }
        assert_eq!(found["hubUuid"], json!(hub.hub_uuid));
        assert_eq!(
            (
                found["processingStatus"].as_str(),
                found["deliveryStatus"].as_str()
            ),
            (Some("RECEIVED"), Some("NONE"))
        );
    }
    let ids: Vec<i64> = found
        .iter()
        .map(|event| event["bleEventId"].as_i64().expect("an id"))
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "ids rise");
    let other = Tenant::create(&app.client()).await;
    assert_eq!(
        stored(&other).await,
        Vec::<Value>::new(),
        "another tenant's events do not exist"
    );
    let path = format!("/tenant/ble-query/events/{}", ids[0]);
    other.client.get(&path).call().await.expect(404);
    let detail = tenant
        .client
        .get(&format!("{path}?includeRaw=true"))
        .call()
        .await
        .expect(200)
        .json();
    assert!(detail["data"]["raw"].is_string());
    assert!(
        tenant.client.get(&path).call().await.expect(200).json()["data"]
            .get("raw")
            .is_none()
    );
}

on_each_database!(a_device_that_a_hub_names_is_believed_unless_something_contradicts);
async fn a_device_that_a_hub_names_is_believed_unless_something_contradicts(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (tenant, other) = (
        Tenant::create(&app.client()).await,
        Tenant::create(&app.client()).await,
    );
    let hub = SimulatedHub::claim(&tenant).await;
    let make = async |tenant: &Tenant, company: &str, body: Value| {
        let model = make_model(tenant, company).await;
        let conditions = json!([{"kind": "MANUFACTURER_ID", "value": company}]);
        tenant
            .client
            .post(&format!("/tenant/device-catalog/{model}/identifiers"))
            .json(&json!({"conditions": conditions}))
            .call()
            .await
            .expect(200);
        let device = make_device(tenant, model, body).await;
        device["deviceInstanceId"].as_i64().expect("an id")
    };
    let nameless = make(&tenant, "fff1", json!({"name": "lamp"})).await;
    let addressed = make(&tenant, "fff2", json!({"address": "C0:00:00:00:00:02"})).await;
    let retired = make(&tenant, "fff3", json!({"name": "old"})).await;
    tenant
        .client
        .post(&format!("/tenant/devices/{retired}/retire"))
        .call()
        .await
        .expect(200);
    let theirs = make(&other, "fff4", json!({"name": "theirs"})).await;
    let cases = [
        // Of its model, and nothing says who sent it.
        ("fff1", "C0:00:00:00:00:01", nameless, Some(nameless)),
        // Not of its model; of none.
        ("fff2", "C0:00:00:00:00:01", nameless, None),
        ("ffff", "C0:00:00:00:00:01", nameless, None),
        // Of its model, from another address; recognised by its own, whatever the hub names.
        ("fff2", "C0:00:00:00:00:01", addressed, None),
        ("fff2", "C0:00:00:00:00:02", nameless, Some(addressed)),
        // Not in use any more, somebody else's, of nobody.
        ("fff3", "C0:00:00:00:00:01", retired, None),
        ("fff4", "C0:00:00:00:00:01", theirs, None),
        ("fff1", "C0:00:00:00:00:01", 4_242_424_242, None),
    ];
    let mut upload = events(cases.len());
    for (event, (company, address, named, _)) in upload.events.iter_mut().zip(&cases) {
        event.payload.address = (*address).to_owned();
        event.payload.manufacturer_data = [(
            (*company).to_owned(),
            hub_protocol::ble::Payload(vec![1, 2]),
        )]
        .into();
        event.payload.device_instance_id = Some(*named);
    }
    hub.upload(&upload).await.expect(201);
    let mut found = stored(&tenant).await;
    found.reverse();
    for (found, case) in found.iter().zip(&cases) {
        assert_eq!(
            found["deviceInstanceId"],
            json!(case.3),
            "{case:?}: {found}"
        );
    }
    // A run that reads them again says the same.
    let now = app.app.clock.now();
    let range = json!({"from": now.plus_secs(-3600), "to": now.plus_secs(60), "dryRun": true});
    let run: Value = tenant
        .client
        .post("/tenant/ble/reprocess")
        .json(&range)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&run["events"], &run["changed"]),
        (&json!(cases.len()), &json!(0)),
        "{run}"
    );
}

on_each_database!(every_event_filter_narrows_the_list);
async fn every_event_filter_narrows_the_list(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let (one, two) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    one.upload_events(3).await;
    let upload = events(2);
    let address = &upload.events[0].payload.address;
    let model = make_model(&tenant, "lamp").await;
    let device = make_device(&tenant, model, json!({"address": address})).await;
    two.upload(&upload).await.expect(201);
    let all = stored(&tenant).await;
    let third = all[2]["receivedAt"].as_str().expect("a time");
    for (query, expected) in [
        (format!("hubUuid={}", one.hub_uuid), 3),
        (
            format!("deviceInstanceId={}", device["deviceInstanceId"]),
            1,
        ),
        ("processingStatus=RECEIVED".to_owned(), 3),
        ("processingStatus=DECODED".to_owned(), 0),
        ("deliveryStatus=NONE".to_owned(), 5),
        ("deliveryStatus=DEAD".to_owned(), 0),
        (format!("from={third}"), 3),
        (format!("to={third}"), 2),
        (
            format!("hubUuid={}&from={third}&to={third}", one.hub_uuid),
            0,
        ),
    ] {
        let reply = tenant
            .client
            .get(&format!("/tenant/ble-query/events?{query}"))
            .call()
            .await
            .expect(200);
        assert_eq!(
            reply.json()["data"]["totalElements"],
            json!(expected),
            "{query} on {backend}"
        );
        if !query.contains("deliveryStatus") {
            let reply = tenant
                .client
                .get(&format!("/tenant/ble/events?{query}"))
                .call()
                .await
                .expect(200);
            assert_eq!(
                reply.header("x-total-count"),
                expected.to_string(),
                "{query} on {backend}"
            );
        }
    }
}

on_each_database!(concurrent_repeats_of_a_batch_are_stored_once_with_the_same_answer);
async fn concurrent_repeats_of_a_batch_are_stored_once_with_the_same_answer(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let mut upload = serde_json::to_value(events(5)).expect("JSON");
    upload["events"][3]["address"] = json!("nonsense");
    let replies =
        join_all((0..10).map(|_| hub.client.post("/v1/ble/events").json(&upload).call())).await;
    let results: Vec<BleUploadResult> = replies
        .into_iter()
        .map(|reply| reply.expect(201).data())
        .collect();
    assert_eq!(results.iter().filter(|result| !result.duplicate).count(), 1);
    for result in &results {
        assert_eq!((result.accepted, result.rejected.len()), (4, 1));
        assert_eq!(result.rejected[0].index, 3);
        assert!(result.rejected[0].message.contains("address"));
    }
    assert_eq!(stored(&tenant).await.len(), 4);
    // Another hub's batch of the same name is another batch.
    let other = SimulatedHub::claim(&tenant).await;
    other
        .client
        .post("/v1/ble/events")
        .json(&upload)
        .call()
        .await
        .expect(201);
    assert_eq!(stored(&tenant).await.len(), 8);
}

on_each_database!(upload_101_of_a_minute_is_429_on_every_replica);
async fn upload_101_of_a_minute_is_429_on_every_replica(backend: Backend) {
    let (clock, now) = hub_tests::app::set_clock(mid_minute());
    let options = || Options {
        clock: Some(clock.clone()),
        ..Options::default()
    };
    let app = TestApp::with(backend, options()).await;
    let replica = match backend {
        Backend::Sqlite => None,
        Backend::Postgres => Some(TestApp::replica_of(&app, options()).await),
    };
    let tenant = Tenant::create(&app.client()).await;
    let mut hubs = vec![
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    ];
    if let Some(replica) = &replica {
        hubs[1].client = hubs[1].client.at(&replica.url);
    }
    let at_once = |uploads: usize| {
        let hubs = &hubs;
        join_all(
            (0..uploads).map(move |index| async move { hubs[index % 2].upload(&events(1)).await }),
        )
    };
    let count = |replies: &[Reply], status: u16| {
        replies
            .iter()
            .filter(|reply| reply.status == status)
            .count()
    };
    let replies = at_once(130).await;
    assert_eq!(
        (count(&replies, 201), count(&replies, 429)),
        (100, 30),
        "on {backend}"
    );
    let refused = replies
        .iter()
        .find(|reply| reply.status == 429)
        .expect("a refusal");
    refused.problem();
    assert_eq!(
        (
            refused.header("retry-after"),
            refused.header("ratelimit-limit")
        ),
        ("40", "100")
    );
    assert_eq!(
        (
            refused.header("ratelimit-remaining"),
            refused.header("ratelimit-reset")
        ),
        ("0", "40")
    );
    assert_eq!(stored(&tenant).await.len(), 100);
    // The other endpoints, and other tenants, count for themselves; both kinds of BLE upload count
    // together.
    hubs[0]
        .client
        .post(&format!("/v1/hubs/{}/logs", hubs[0].hub_uuid))
        .json(&json!({}))
        .call()
        .await
        .expect(204);
    let windowed = json!({"batchUuid": uuid::Uuid::new_v4(), "windowStart": mid_minute(), "windowEnd": mid_minute(), "devices": []});
    hubs[1]
        .client
        .post("/v1/ble/events/windowed")
        .json(&windowed)
        .call()
        .await
        .expect(429);
    SimulatedHub::claim(&Tenant::create(&app.client()).await)
        .await
        .upload_events(1)
        .await;
    // The next minute is a new one.
    now.fetch_add(40_000_000, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(count(&at_once(2).await, 201), 2);
}

on_each_database!(upload_with_a_replaced_token_is_refused_and_not_stored);
async fn upload_with_a_replaced_token_is_refused_and_not_stored(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let mut hub = SimulatedHub::claim(&tenant).await;
    let old = hub.clone();
    hub.refresh().await;
    assert_eq!(
        old.upload(&events(1)).await.expect(401).problem().code,
        "INVALID_TOKEN"
    );
    hub.upload_events(1).await;
    assert_eq!(stored(&tenant).await.len(), 1);
}

on_each_database!(logs_and_telemetry_keep_any_json_and_are_stored_once);
async fn logs_and_telemetry_keep_any_json_and_are_stored_once(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    for (name, form) in [("logs", "logs"), ("telemetry", "telemetry")] {
        let path = format!("/v1/hubs/{}/{name}", hub.hub_uuid);
        // One record an element; odd values stay what they are.
        let body =
            "[{\"n\": 12345678901234567890,\n \"s\": \"\\u0000\\ud83d\\ude00\"}, 7, null, \"x\"]";
        for _ in 0..3 {
            let request = hub
                .client
                .post(&path)
                .header("idempotency-key", "one")
                .header("content-type", "application/json");
            request.body(body).call().await.expect(204);
        }
        let list = tenant
            .client
            .get(&format!("/tenant/hubs/{}/{form}", hub.hub_uuid))
            .call()
            .await
            .expect(200);
        let data: Vec<Value> = list.data();
        let sent: Vec<Value> = serde_json::from_str(body).expect("JSON");
        assert_eq!(
            data.iter()
                .rev()
                .map(|record| &record["data"])
                .collect::<Vec<_>>(),
            sent.iter().collect::<Vec<_>>()
        );
        let path = format!(
            "/tenant/hub-monitoring/{}/{form}?size=3&sort=receivedAt,asc",
            hub.hub_uuid
        );
        let page = tenant.client.get(&path).call().await.expect(200).json();
        assert_eq!(
            (&page["data"]["totalElements"], &page["data"]["last"]),
            (&json!(4), &json!(false))
        );
        assert_eq!(page["data"]["content"][0]["data"], sent[0]);
        let stranger = Tenant::create(&app.client()).await;
        stranger.client.get(&path).call().await.expect(404);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compressed_uploads_are_unpacked_within_limits() {
    let app = TestApp::new(Backend::Sqlite).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("packed");
        encoder.finish().expect("packed")
    };
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).expect("packed");
    let post = |encoding: &'static str, body: Vec<u8>| {
        let request = hub
            .client
            .post("/v1/ble/events")
            .header("content-type", "application/json");
        request
            .header("content-encoding", encoding)
            .body(body)
            .call()
    };
    let upload = || serde_json::to_vec(&events(50)).expect("JSON");
    post("gzip", gzip(&upload())).await.expect(201);
    post("zstd", zstd(&upload())).await.expect(201);
    assert_eq!(stored(&tenant).await.len(), 100);
    let bomb = vec![b' '; 64 * 1024 * 1024];
    assert_eq!(
        post("gzip", gzip(&bomb)).await.expect(413).problem().code,
        "BODY_TOO_LARGE"
    );
    post("zstd", zstd(&bomb)).await.expect(413).problem();
    post("identity", bomb[..5 * 1024 * 1024].to_vec())
        .await
        .expect(413)
        .problem();
    post("gzip", gzip(&upload())[..40].to_vec())
        .await
        .expect(400)
        .problem();
    post("zstd", upload()).await.expect(400).problem();
    post("br", upload()).await.expect(415).problem();
    hub.upload_events(1).await;
}
