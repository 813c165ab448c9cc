//! Protocols that are scripts: from their creation to what a device measures.

use std::collections::BTreeMap;

use hub_base::clock::Clock;
use hub_base::db::sql;
use hub_core::tasks::Done;
use hub_protocol::BatchUuid;
use hub_protocol::ble::{Advertisement, BleEvent, BleEventUpload, Payload};
use hub_tests::devices::{make_device, make_model};
use hub_tests::events;
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::device_catalog::{get, post};

const PROTOCOLS: &str = "/tenant/device-protocols";
const ADDRESS: &str = "C4:11:22:33:44:55";
/// Reads `01 TT TT BB`: hundredths of a degree, little-endian, and the battery.
const SOURCE: &str = "function decode(frame) {
  const payload = frame.manufacturerData.find(one => one.companyId === 0x0a0b);
  if (!payload || payload.data[0] !== 1) return null;
  const view = new DataView(payload.data.buffer);
  return {temperature: view.getInt16(1, true) / 100, battery: view.getUint8(3)};
}";

fn event(data: &[u8]) -> BleEvent {
    let payload = Advertisement {
        address: ADDRESS.to_owned(),
        address_type: Some("random".to_owned()),
        rssi: Some(-60),
        manufacturer_data: BTreeMap::from([("0a0b".to_owned(), Payload(data.to_vec()))]),
        ..Advertisement::default()
    };
    BleEvent {
        event_uuid: None,
        observed_at: Clock::System.now(),
        traceparent: None,
        payload,
    }
}

async fn upload(hub: &SimulatedHub, payloads: &[&[u8]]) {
    let events = payloads.iter().map(|data| event(data)).collect();
    hub.upload(&BleEventUpload {
        batch_uuid: BatchUuid::new(),
        events,
    })
    .await
    .expect(201);
}

fn script(device_uuid: Uuid, source: &str, tests: Value) -> Value {
    json!({"deviceUuid": device_uuid, "name": "x", "kind": "SCRIPT", "definition": {"source": source}, "tests": tests})
}

/// A model that the company identifies.
async fn model(tenant: &Tenant) -> Uuid {
    let device_uuid = make_model(tenant, "Thermometer").await;
    let conditions = json!([{"kind": "MANUFACTURER_ID", "value": "0a0b"}]);
    let path = format!("/tenant/device-catalog/{device_uuid}/identifiers");
    post(&tenant.client, &path, &json!({"conditions": conditions})).await;
    device_uuid
}

/// Status and reading of all events, oldest first.
async fn stored(app: &TestApp) -> Vec<(String, Value)> {
    let events = events::all(&app.app.db).await;
    let reading = |text: Option<String>| {
        text.map_or(Value::Null, |text| {
            serde_json::from_str(&text).expect("JSON")
        })
    };
    events
        .into_iter()
        .map(|event| {
            (
                event.processing_status.name().to_owned(),
                reading(event.reading),
            )
        })
        .collect()
}

on_each_database!(a_script_reads_events);
async fn a_script_reads_events(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let device_uuid = model(&tenant).await;
    let tests = json!([
        {"manufacturerData": {"0a0b": "01ca0961"}, "expect": {"temperature": 25.06, "battery": 97}},
        {"manufacturerData": {"0a0b": "02"}, "expect": {"temperature": null}},
    ]);
    let made = post(
        &tenant.client,
        PROTOCOLS,
        &script(device_uuid, SOURCE, tests),
    )
    .await;
    assert_eq!(
        (&made["kind"], &made["revision"]),
        (&json!("SCRIPT"), &json!(1))
    );
    let calibration = json!({"temperature": {"offset": 1, "scale": 1}});
    let device = make_device(
        &tenant,
        device_uuid,
        json!({"address": ADDRESS, "calibration": calibration}),
    )
    .await;
    let path = format!("/tenant/devices/{}", device["deviceInstanceId"]);

    upload(
        &hub,
        &[
            &[1, 0xCA, 0x09, 97],
            &[2, 0, 0, 0],
            &[1, 0xCA],
            &[1, 0xD4, 0x09, 96],
        ],
    )
    .await;
    let found = stored(&app).await;
    let statuses: Vec<&str> = found.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(
        statuses,
        ["DECODED", "MATCHED", "FAILED", "DECODED"],
        "{found:?}"
    );
    assert_eq!(
        found[0].1["values"],
        json!({"temperature": 26.06, "battery": 97})
    );
    assert_eq!(found[0].1["deviceProtocolId"], made["deviceProtocolId"]);
    assert_eq!(
        (
            &found[0].1["protocolRevision"],
            &found[1].1["protocolRevision"]
        ),
        (&json!(1), &Value::Null)
    );
    let error = found[2].1["error"].as_str().expect("an error");
    assert!(
        error.starts_with("the script threw RangeError: "),
        "{error}"
    );
    let data = get(&tenant.client, &format!("{path}/sensor-data")).await;
    let values: Vec<&Value> = data
        .as_array()
        .expect("items")
        .iter()
        .map(|item| &item["values"])
        .collect();
    assert_eq!(
        values,
        [
            &json!({"temperature": 26.16, "battery": 96}),
            &json!({"temperature": 26.06, "battery": 97})
        ]
    );
    assert_eq!(data[0]["units"]["temperature"], "Cel");
    let state = get(&tenant.client, &path).await;
    assert_eq!(
        state["state"]["temperature"]["value"],
        json!(26.16),
        "{state}"
    );

    let simulated = json!({"event": event(&[1, 0xCA, 0x09, 97])});
    let one: Value = tenant
        .client
        .post("/tenant/simulator/run")
        .json(&simulated)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&one["processingStatus"], &one["protocol"]["revision"]),
        (&json!("DECODED"), &json!(1)),
        "{one}"
    );
    assert_eq!(
        one["measurements"].as_array().map(Vec::len),
        Some(2),
        "{one}"
    );
    let several = json!({"events": [event(&[1, 0xCA, 0x09, 97]), event(&[1])]});
    let both: Value = tenant
        .client
        .post("/tenant/simulator/stream")
        .json(&several)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&both[0]["processingStatus"], &both[1]["processingStatus"]),
        (&json!("DECODED"), &json!("FAILED"))
    );
    assert!(
        both[1]["error"]
            .as_str()
            .is_some_and(|error| error.contains("RangeError")),
        "{both}"
    );

    // Another revision counts for the next upload.
    let one = format!("{PROTOCOLS}/{}", made["deviceProtocolId"]);
    let changed = json!({"definition": {"source": SOURCE.replace("/ 100", "/ 10")}, "tests": []});
    let changed: Value = tenant
        .client
        .patch(&one)
        .json(&changed)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(changed["revision"], json!(2));
    upload(&hub, &[&[1, 100, 0, 97]]).await;
    let last = stored(&app).await.pop().expect("an event");
    assert_eq!(
        (
            &last.1["values"]["temperature"],
            &last.1["protocolRevision"]
        ),
        (&json!(11), &json!(2))
    );
    let metrics = app.app.metrics.classic().expect("metrics");
    assert!(
        metrics.contains("hub_cloud_script_runs_total{outcome=\"decoded\"}"),
        "{metrics}"
    );

    // A hub gets no script.
    let config: Value = hub
        .client
        .get("/v1/hubs/scan-config")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(config["protocols"], json!([]), "{config}");
}

on_each_database!(a_device_is_registered_and_read_at_once);
async fn a_device_is_registered_and_read_at_once(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let device_uuid = model(&tenant).await;
    let auto: Value = json!({"autoRegister": true});
    tenant
        .client
        .patch(&format!("/tenant/device-catalog/{device_uuid}"))
        .json(&auto)
        .call()
        .await
        .expect(200);
    post(
        &tenant.client,
        PROTOCOLS,
        &script(device_uuid, SOURCE, json!([])),
    )
    .await;
    upload(&hub, &[&[1, 0xCA, 0x09, 97], &[1, 0xCA, 0x09, 97]]).await;
    let found = stored(&app).await;
    assert!(
        found
            .iter()
            .all(|(status, reading)| status == "DECODED" && reading["values"]["battery"] == 97),
        "{found:?}"
    );
}

#[tokio::test]
async fn a_hostile_script_costs_others_nothing() {
    let app = TestApp::new(Backend::Sqlite).await;
    let (tenant, other) = (
        Tenant::create(&app.client()).await,
        Tenant::create(&app.client()).await,
    );
    let (hub, other_hub) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&other).await,
    );
    let (device_uuid, other_uuid) = (model(&tenant).await, model(&other).await);
    let hostile = "function decode(frame) { const a = []; \
        if (frame.manufacturerData.length > 0) { a.length = 2 ** 32 - 1; a.join('x'); } return null; }";
    post(
        &tenant.client,
        PROTOCOLS,
        &script(device_uuid, hostile, json!([])),
    )
    .await;
    post(
        &other.client,
        PROTOCOLS,
        &script(other_uuid, SOURCE, json!([])),
    )
    .await;
    let bad: Vec<&[u8]> = vec![&[1, 1, 1, 1]; 50];
    let uploads = futures_util::future::join_all((0..8).map(|_| upload(&hub, &bad)));
    let good = async {
        let mut times = Vec::new();
        for _ in 0..10 {
            let begun = std::time::Instant::now();
            upload(&other_hub, &[&[1, 0xCA, 0x09, 97]]).await;
            times.push(begun.elapsed());
        }
        // A busy machine delays a single one.
        times.sort();
        assert!(times[5].as_millis() < 900, "{times:?}");
    };
    tokio::join!(uploads, good);
    let found = stored(&app).await;
    assert_eq!(found.len(), 8 * 50 + 10, "every event is stored");
    let decoded = found
        .iter()
        .filter(|(status, _)| status == "DECODED")
        .count();
    let failed = found
        .iter()
        .filter(|(status, _)| status == "FAILED")
        .count();
    assert_eq!((decoded, failed), (10, 400));
    let unrun = |(_, reading): &&(String, Value)| {
        reading["error"]
            .as_str()
            .is_some_and(|error| error.starts_with("script not run: "))
    };
    assert!(found.iter().filter(unrun).count() > 300);
}

on_each_database!(what_was_not_read_for_want_of_time_is_read_by_itself);
async fn what_was_not_read_for_want_of_time_is_read_by_itself(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let device_uuid = model(&tenant).await;
    let source = SOURCE.replace(
        "if (!payload ",
        "while (payload?.data[0] === 9);\n  if (!payload ",
    );
    post(
        &tenant.client,
        PROTOCOLS,
        &script(device_uuid, &source, json!([])),
    )
    .await;
    // More than the time of an upload, and less than that of a batch that is read again.
    let mut payloads: Vec<&[u8]> = vec![&[9]; 24];
    payloads.extend([&[1, 0xCA, 0x09, 97][..]; 5]);
    upload(&hub, &payloads).await;
    let decoded = async || {
        let found = stored(&app).await;
        found
            .iter()
            .filter(|(status, _)| status == "DECODED")
            .count()
    };
    assert_eq!(decoded().await, 0, "there was no time for them");

    let mut conn = app.app.db.read().await.expect("a connection");
    let (payload, dedup_key): (String, String) =
        sql("SELECT CAST(payload AS TEXT), dedup_key FROM tasks WHERE kind = 'ble.unread'")
            .one(&mut conn)
            .await
            .expect("one task");
    drop(conn);
    assert!(
        dedup_key.contains(&tenant.tenant_uuid.to_string()),
        "{dedup_key}"
    );
    let payload: Value = serde_json::from_str(&payload).expect("JSON");
    hub_tests::app::perform(&app.app, "ble.unread", payload).await;
    let of_tenant = json!({"tenantUuid": tenant.tenant_uuid});
    let run = "ble.reprocess";
    while hub_tests::app::perform(&app.app, run, of_tenant.clone()).await != Done::Finished {}
    assert_eq!(decoded().await, 5);
}
