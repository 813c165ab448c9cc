//! `/public/device-library`, `/public/quantities` and `/public/schemas/decoder`.

use hub_tests::{Backend, Call, TestApp, on_each_database};
use serde_json::{Value, json};

on_each_database!(library_is_there_for_everyone);
async fn library_is_there_for_everyone(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    let first = client
        .get("/public/device-library?size=2")
        .call()
        .await
        .expect(200);
    let total: usize = first.header("x-total-count").parse().expect("a number");
    assert!(total > 100, "{total}");
    assert!(first.header("link").contains("rel=\"next\""));
    assert_eq!(first.data::<Vec<Value>>().len(), 2);
    let past = format!("/public/device-library?page={}", total + 1);
    assert_eq!(
        client
            .get(&past)
            .call()
            .await
            .expect(200)
            .data::<Vec<Value>>(),
        Vec::<Value>::new()
    );

    let search = async |q: &str| -> Vec<Value> {
        client
            .get(&format!("/public/device-library?size=100&q={q}"))
            .call()
            .await
            .expect(200)
            .data()
    };
    let ruuvi = search("RuuviTAG").await;
    assert_eq!(ruuvi[0]["key"], "ruuvi/ruuvitag");
    assert_eq!(ruuvi[0]["metrics"][0]["unit"], "Cel");
    assert!(
        search("lywsdcgq")
            .await
            .iter()
            .any(|model| model["key"] == "xiaomi/lywsdcgq")
    );
    assert_eq!(search("no%20such%20thing").await, Vec::<Value>::new());
    let long = "x".repeat(201);
    let problem = client
        .get(&format!("/public/device-library?q={long}"))
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors[0].field, "q");

    let one: Value = client
        .get("/public/device-library/ruuvi/ruuvitag")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        one["protocol"],
        json!({"kind": "BUILTIN", "definition": {"decoder": "ruuvi"}})
    );
    assert_eq!(one["identifiers"].as_array().map(Vec::len), Some(3));
    assert_eq!(one["name"], "RuuviTag");
    for path in [
        "ruuvi/none",
        "none/ruuvitag",
        "%2e%2e/ruuvitag",
        "ruuvi/ruuvitag%2f",
    ] {
        client
            .get(&format!("/public/device-library/{path}"))
            .call()
            .await
            .expect(404);
    }
}

on_each_database!(quantities_and_the_schema_are_there_for_everyone);
async fn quantities_and_the_schema_are_there_for_everyone(backend: Backend) {
    let app = TestApp::new(backend).await;
    let client = app.client();
    let quantities: Vec<Value> = client
        .get("/public/quantities")
        .call()
        .await
        .expect(200)
        .data();
    let temperature = quantities
        .iter()
        .find(|quantity| quantity["name"] == "temperature")
        .expect("temperature");
    assert_eq!(
        (&temperature["unit"], &temperature["kind"]),
        (&json!("Cel"), &json!("MEASUREMENT"))
    );
    assert!(temperature["min"].as_f64() < temperature["max"].as_f64());
    let schema = client
        .get("/public/schemas/decoder")
        .call()
        .await
        .expect(200);
    assert_eq!(schema.header("content-type"), "application/schema+json");
    assert_eq!(schema.json()["title"], "Decoder");
}
