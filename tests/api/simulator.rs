//! `/tenant/simulator/**` and the runs of stored events: what becomes of an event.

use hub_tests::devices::make_device;
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::ble_routes::put;
use super::device_catalog::{get, post, text};
use super::device_query::ruuvi;
use super::pipelines::{http, made};

const PRESETS: &str = "/tenant/simulator/presets";
const RUN: &str = "/tenant/simulator/run";
const STREAM: &str = "/tenant/simulator/stream";
const TIME: &str = "2026-01-31T08:00:00.000000Z";

fn event() -> Value {
    let mut event = ruuvi("F4:1F:0C:28:CB:D6");
    event["observedAt"] = json!(TIME);
    event
}

fn value(result: &Value, quantity: &str) -> Value {
    let measurements = result["measurements"].as_array().expect("measurements");
    let found = measurements
        .iter()
        .find(|measurement| measurement["quantity"] == quantity);
    found.map_or(Value::Null, |found| found["value"].clone())
}

async fn run(tenant: &Tenant, body: &Value) -> Value {
    tenant
        .client
        .post(RUN)
        .json(body)
        .call()
        .await
        .expect(200)
        .data()
}

on_each_database!(simulation_tells_what_would_become_of_an_event);
async fn simulation_tells_what_would_become_of_an_event(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let presets = get(&tenant.client, PRESETS).await;
    let presets = presets.as_array().expect("presets");
    assert!(presets.len() >= 150, "{}", presets.len());
    let preset = presets
        .iter()
        .find(|preset| preset["key"] == "ruuvi/ruuvitag")
        .expect("a preset");
    assert_eq!(
        (&preset["title"], &preset["brand"]),
        (&json!("RuuviTag"), &json!("Ruuvi"))
    );

    let unknown = run(&tenant, &json!({"preset": "ruuvi/ruuvitag"})).await;
    assert_eq!(
        (&unknown["matched"], &unknown["processingStatus"]),
        (&Value::Null, &json!("UNMATCHED"))
    );
    assert_eq!(
        unknown["cloudRoute"],
        json!({"rule": null, "action": "FORWARD"})
    );

    let model = post(
        &tenant.client,
        "/tenant/device-catalog",
        &json!({"template": "ruuvi/ruuvitag"}),
    )
    .await;
    let device_uuid = text(&model["deviceUuid"]).parse().expect("a uuid");
    let device = make_device(
        &tenant,
        device_uuid,
        json!({"address": "F4:1F:0C:28:CB:D6"}),
    )
    .await;
    let pipeline = made(&tenant.client, &http()).await["pipelineUuid"].clone();
    made(&tenant.client, &http()).await;
    put(
        &tenant,
        &json!({"rules": [
            {"layer": "HUB", "match": {"hubUuid": hub.hub_uuid}, "action": "SAMPLE", "everySeconds": 60},
            {"layer": "CLOUD", "match": {"known": true}, "action": "FORWARD", "pipelineUuids": [pipeline]},
        ]}),
    )
    .await;
    for body in [
        json!({"preset": "ruuvi/ruuvitag"}),
        json!({"event": preset["event"]}),
        json!({"event": event()}),
    ] {
        let mut body = body;
        body["hubUuid"] = json!(hub.hub_uuid);
        let result = run(&tenant, &body).await;
        assert_eq!(
            result["matched"]["deviceUuid"], model["deviceUuid"],
            "{result}"
        );
        assert_eq!(
            result["candidates"][0]["identifierId"],
            result["matched"]["identifierId"]
        );
        assert_eq!(result["candidates"][0]["deviceName"], "RuuviTag");
        assert_eq!(result["deviceInstanceId"], device["deviceInstanceId"]);
        assert_eq!(
            (
                value(&result, "temperature"),
                &result["protocol"]["revision"]
            ),
            (json!(28.025), &json!(1))
        );
        assert_eq!(
            result["hubRoute"],
            json!({"rule": 0, "action": "SAMPLE", "everySeconds": 60})
        );
        let cloud = json!({"rule": 1, "action": "FORWARD", "pipelineUuids": [pipeline]});
        assert_eq!(result["cloudRoute"], cloud);
        let made = result["pipelines"].as_array().expect("pipelines");
        assert_eq!(
            made.len(),
            1,
            "the other pipeline is not named by the rule: {result}"
        );
        assert_eq!(
            (&made[0]["pipelineUuid"], &made[0]["steps"]),
            (&pipeline, &json!([]))
        );
        assert_eq!(
            made[0]["output"]["deviceInstanceId"],
            device["deviceInstanceId"]
        );
    }
    let elsewhere = run(&tenant, &json!({"event": event()})).await;
    assert_eq!(
        elsewhere["hubRoute"],
        json!({"rule": null, "action": "FORWARD"})
    );

    let events = get(&tenant.client, "/tenant/ble/events").await;
    let path = format!("/tenant/devices/{}", device["deviceInstanceId"]);
    let after = get(&tenant.client, &path).await;
    assert_eq!(
        (events, &after["activationStatus"]),
        (json!([]), &json!("REGISTERED")),
        "nothing is stored or activated"
    );
}

#[tokio::test]
async fn several_events_are_simulated_in_one_request() {
    let app = TestApp::new(Backend::Sqlite).await;
    let tenant = Tenant::create(&app.client()).await;
    post(
        &tenant.client,
        "/tenant/device-catalog",
        &json!({"template": "ruuvi/ruuvitag"}),
    )
    .await;
    let results = async |body: &Value| -> Vec<Value> {
        tenant
            .client
            .post(STREAM)
            .json(body)
            .call()
            .await
            .expect(200)
            .data()
    };
    let repeated = results(&json!({"event": event(), "count": 3, "intervalMillis": 1500})).await;
    let times: Vec<&str> = repeated
        .iter()
        .map(|result| text(&result["event"]["observedAt"]))
        .collect();
    assert_eq!(
        times,
        [
            TIME,
            "2026-01-31T08:00:01.500000Z",
            "2026-01-31T08:00:03.000000Z"
        ]
    );
    assert_eq!(value(&repeated[2], "humidity"), json!(43.2525));
    assert_eq!(results(&json!({"preset": "ruuvi/ruuvitag"})).await.len(), 1);
    let each = results(&json!({"events": vec![event(); 100]})).await;
    assert_eq!(each.len(), 100);

    let stranger = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    for (path, body, status, field) in [
        (RUN, json!({}), 400, "event"),
        (RUN, json!({"preset": "a", "event": event()}), 400, "event"),
        (RUN, json!({"preset": "ruuvi/none"}), 400, "preset"),
        (
            RUN,
            json!({"event": {"address": "F4:1F:0C:28:CB:D6"}}),
            400,
            "event.observedAt",
        ),
        (
            RUN,
            json!({"event": {"observedAt": TIME, "address": "x"}}),
            400,
            "event.address",
        ),
        (RUN, json!({"event": []}), 400, "event"),
        (
            RUN,
            json!({"event": event(), "hubUuid": stranger.hub_uuid}),
            404,
            "",
        ),
        (
            RUN,
            json!({"event": event(), "pipelineUuid": Uuid::nil()}),
            404,
            "",
        ),
        (STREAM, json!({"events": vec![event(); 101]}), 400, "events"),
        (STREAM, json!({"events": []}), 400, "events"),
        (
            STREAM,
            json!({"events": [event(), {"observedAt": TIME, "address": "x"}]}),
            400,
            "events[1].address",
        ),
        (
            STREAM,
            json!({"events": [event()], "count": 2}),
            400,
            "count",
        ),
        (
            STREAM,
            json!({"event": event(), "count": 101}),
            400,
            "count",
        ),
        (STREAM, json!({"event": event(), "count": 0}), 400, "count"),
        (
            STREAM,
            json!({"event": event(), "intervalMillis": -1}),
            400,
            "intervalMillis",
        ),
        (
            STREAM,
            json!({"event": event(), "pipelineUuid": Uuid::nil()}),
            404,
            "",
        ),
    ] {
        let problem = tenant
            .client
            .post(path)
            .json(&body)
            .call()
            .await
            .expect(status)
            .problem();
        let found = problem
            .errors
            .first()
            .map_or("", |error| error.field.as_str());
        assert_eq!(found, field, "{}", problem.message);
    }
}

on_each_database!(stored_event_tells_how_it_was_processed);
async fn stored_event_tells_how_it_was_processed(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let model = post(
        &tenant.client,
        "/tenant/device-catalog",
        &json!({"template": "ruuvi/ruuvitag"}),
    )
    .await;
    let foreign = json!({"observedAt": TIME, "address": "AA:BB:CC:DD:EE:FF"});
    let window = json!({"batchUuid": Uuid::new_v4(), "windowStart": TIME, "windowEnd": TIME, "devices": [{
        "address": "F4:1F:0C:28:CB:D6", "manufacturerData": event()["manufacturerData"], "count": 2, "rssiMin": -70,
        "rssiMax": -60, "rssiMean": -65.0, "firstSeenAt": TIME, "lastSeenAt": TIME}]});
    let upload = json!({"batchUuid": Uuid::new_v4(), "events": [event(), foreign]});
    hub.client
        .post("/v1/ble/events")
        .json(&upload)
        .call()
        .await
        .expect(201);
    hub.client
        .post("/v1/ble/events/windowed")
        .json(&window)
        .call()
        .await
        .expect(201);
    put(
        &tenant,
        &json!({"rules": [{"layer": "CLOUD", "match": {"minRssiDbm": -64}, "action": "DROP"}]}),
    )
    .await;

    let events = get(&tenant.client, "/tenant/ble/events").await;
    let run = async |at: usize| {
        let id = &events[at]["bleEventId"];
        let runs = get(&tenant.client, &format!("/tenant/ble/events/{id}/runs")).await;
        let paged = get(
            &tenant.client,
            &format!("/tenant/ble-query/events/{id}/runs"),
        )
        .await;
        assert_eq!(
            (runs.as_array().map(Vec::len), &runs[0]["bleEventId"]),
            (Some(1), id)
        );
        assert_eq!(paged[0]["measurements"], runs[0]["measurements"]);
        runs[0].clone()
    };
    let (window, foreign, single) = (run(0).await, run(1).await, run(2).await);
    for (run, rule) in [(&window, Value::Null), (&single, json!(0))] {
        assert_eq!(
            (&run["trigger"], &run["status"]),
            (&json!("INGEST"), &json!("DECODED"))
        );
        assert_eq!(run["matched"]["deviceUuid"], model["deviceUuid"]);
        assert_eq!(
            run["matched"]["identifierId"],
            run["candidates"][0]["identifierId"]
        );
        assert_eq!(
            (value(run, "temperature"), &run["route"]["rule"]),
            (json!(28.025), &rule)
        );
        assert_eq!(
            (&run["deliveries"], &run["protocol"]["revision"]),
            (&json!([]), &json!(1))
        );
    }
    assert_eq!(
        (&foreign["status"], &foreign["candidates"]),
        (&json!("UNMATCHED"), &json!([]))
    );
    assert!(foreign["matched"].is_null() && foreign["protocol"].is_null());

    let other = Tenant::create(&app.client()).await;
    for path in ["/tenant/ble/events", "/tenant/ble-query/events"] {
        let path = format!("{path}/{}/runs", events[0]["bleEventId"]);
        other.client.get(&path).call().await.expect(404);
    }
}
