//! What a pipeline must not be, and that the answer says where, as a JSON pointer.

use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::pipelines::{PIPELINES, http, made, path_of, with};

on_each_database!(bad_pipelines_are_refused_with_the_place);
async fn bad_pipelines_are_refused_with_the_place(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let stranger = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let foreign = SimulatedHub::claim(&stranger).await.hub_uuid;
    let part = |part: &str, value: Value| with(http(), part, value);
    let source = |member: &str, value: Value| part("source", json!({member: value}));
    let delivery = |value: Value| part("delivery", value);
    let destination = |member: &str, value: Value| {
        let mut body = http();
        body["destination"][member] = value;
        body
    };
    let keep = json!({"op": "filter", "when": "true"});
    let third = |step: Value| part("steps", json!([keep, keep, step]));
    let path = path_of(&made(client, &http()).await);
    for (body, field) in [
        (part("name", Value::Null), "/name"),
        (part("name", json!(" ")), "/name"),
        (part("name", json!("x".repeat(201))), "/name"),
        (part("name", json!(1)), "/name"),
        (part("description", json!("x".repeat(2001))), "/description"),
        (part("enabled", json!("yes")), "/enabled"),
        (part("step", json!([])), "/step"),
        (part("a/b~", json!(1)), "/a~1b~0"),
        (part("source", Value::Null), "/source"),
        (part("source", json!([])), "/source"),
        (source("hubs", json!([])), "/source/hubs"),
        (source("hubUuids", json!("x")), "/source/hubUuids"),
        (source("hubUuids", json!(["x"])), "/source/hubUuids/0"),
        (source("hubUuids", json!([foreign])), "/source/hubUuids/0"),
        (
            source("deviceUuids", json!([Uuid::new_v4()])),
            "/source/deviceUuids/0",
        ),
        (
            source("deviceInstanceIds", json!([4_000_000])),
            "/source/deviceInstanceIds/0",
        ),
        (
            source("deviceInstanceIds", json!((0..257).collect::<Vec<_>>())),
            "/source/deviceInstanceIds",
        ),
        (
            source("quantities", json!(["humidity", "warmth"])),
            "/source/quantities/1",
        ),
        (source("known", json!("maybe")), "/source/known"),
        (source("startAt", json!("SOON")), "/source/startAt"),
        (
            source("startAt", json!("2999-01-01T00:00:00Z")),
            "/source/startAt",
        ),
        (part("steps", json!({})), "/steps"),
        (part("steps", json!(vec![&keep; 33])), "/steps"),
        (
            third(json!({"op": "fliter", "when": "true"})),
            "/steps/2/op",
        ),
        (
            third(json!({"op": "filter", "wen": "true"})),
            "/steps/2/wen",
        ),
        (
            third(json!({"op": "filter", "when": "rssi >"})),
            "/steps/2/when",
        ),
        (
            third(json!({"op": "filter", "when": "rssi + 'x' > 1"})),
            "/steps/2/when",
        ),
        (
            third(json!({"op": "convert", "quantity": "temperature", "unit": "m"})),
            "/steps/2/unit",
        ),
        (
            third(json!({"op": "script", "source": "function process( {"})),
            "/steps/2/source",
        ),
        (part("destination", Value::Null), "/destination"),
        (part("destination", json!([])), "/destination"),
        (destination("kind", json!("FTP")), "/destination/kind"),
        (destination("uri", json!("x")), "/destination/uri"),
        (
            destination("url", json!("ftp://example.com")),
            "/destination/url",
        ),
        (
            destination("url", json!("https://user:secret@example.com/")),
            "/destination/url",
        ),
        (
            destination("url", json!("http://127.0.0.1/")),
            "/destination/url",
        ),
        (
            destination("url", json!("http://[::ffff:169.254.169.254]/")),
            "/destination/url",
        ),
        (
            destination("auth", json!({"type": "BEARER"})),
            "/destination/auth/token",
        ),
        (
            destination("auth", json!({"type": "OTHER"})),
            "/destination/auth/type",
        ),
        (destination("format", json!("XML")), "/destination/format"),
        (delivery(json!({"batch": 1})), "/delivery/batch"),
        (delivery(json!({"batchEvents": 0})), "/delivery/batchEvents"),
        (
            delivery(json!({"batchEvents": 1001})),
            "/delivery/batchEvents",
        ),
        (
            delivery(json!({"batchEvents": 1.5})),
            "/delivery/batchEvents",
        ),
        (
            delivery(json!({"batchMillis": 60_001})),
            "/delivery/batchMillis",
        ),
        (
            delivery(json!({"concurrency": 33})),
            "/delivery/concurrency",
        ),
        (
            delivery(json!({"concurrency": 2, "ordered": true})),
            "/delivery/concurrency",
        ),
        (
            delivery(json!({"timeoutSeconds": 31})),
            "/delivery/timeoutSeconds",
        ),
        (
            delivery(json!({"retryOn": [404, 200]})),
            "/delivery/retryOn",
        ),
        (
            delivery(json!({"retryOn": (400..433).collect::<Vec<_>>()})),
            "/delivery/retryOn",
        ),
        (
            delivery(json!({"retryOn": [404, "404"]})),
            "/delivery/retryOn/1",
        ),
        (delivery(json!({"retryOn": 404})), "/delivery/retryOn"),
        (delivery(json!([])), "/delivery"),
    ] {
        for request in [
            client.post(PIPELINES).json(&body),
            client.put(&path).json(&body),
        ] {
            let problem = request.call().await.expect(400).problem();
            let fields: Vec<&str> = problem
                .errors
                .iter()
                .map(|error| error.field.as_str())
                .collect();
            assert_eq!(fields, [field], "{body}");
        }
    }
    for headers in [
        json!({"a\r\nb": "x"}),
        json!({"x": "a\r\nb: c"}),
        json!({"webhook-id": "x"}),
        json!({"host": "x"}),
    ] {
        let body = destination("headers", headers);
        let problem = client
            .post(PIPELINES)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert!(
            problem.errors[0].field.starts_with("/destination/headers"),
            "{}",
            problem.errors[0].field
        );
    }
    for body in [json!([]), json!("x"), json!(1)] {
        client.post(PIPELINES).json(&body).call().await.expect(400);
    }
    let shown: Value = client.get(PIPELINES).call().await.expect(200).data();
    assert_eq!(
        shown.as_array().map(Vec::len),
        Some(1),
        "nothing was stored"
    );
    assert_eq!(shown[0]["revision"], 1);
}
