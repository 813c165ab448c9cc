//! The values of a person's device as files, and what describes them.

use std::time::{Duration, Instant};

use hub_base::clock::Clock;
use hub_tests::duckdb;
use hub_tests::{Backend, Call, Person, on_each_database};
use serde_json::{Value, json};

use super::person_stream::{World, hear};

const PATIENCE: Duration = Duration::from_secs(30);

fn path(device: i64, rest: &str) -> String {
    format!("/app/devices/{device}/{rest}")
}

on_each_database!(values_are_the_same_in_every_form_of_file);
async fn values_are_the_same_in_every_form_of_file(backend: Backend) {
    let world = World::new(backend).await;
    let device = world.device(1).await;
    let other = world.device(2).await;
    for temperature in [2100, -40, 2150] {
        hear(&world.hub, 1, temperature).await;
        hear(&world.hub, 2, 9999).await;
    }
    let client = &world.person.client;
    let own = path(device, "sensor-data");
    let listed: Value = client.get(&own).call().await.expect(200).data();
    let mut listed = listed["items"].as_array().expect("items").clone();
    listed.reverse();
    assert_eq!(listed.len(), 4);

    let export = |query: &str| client.get(&path(device, &format!("sensor-data/export?{query}")));
    let lines = export("format=ndjson").call().await.expect(200);
    assert_eq!(lines.header("content-type"), "application/x-ndjson");
    let lines: Vec<Value> = lines
        .body
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines, listed);

    let csv = export("format=csv").call().await.expect(200);
    assert!(
        csv.header("content-disposition")
            .contains(&format!("device-{device}.csv"))
    );
    let csv: Vec<&str> = csv.body.split_terminator("\r\n").collect();
    assert_eq!(
        csv[0],
        "observedAt,receivedAt,hubUuid,rssiDbm,quantity,value,text,unit"
    );
    let rows: Vec<Value> = listed
        .iter()
        .map(|item| {
            let micros = |name: &str| {
                let at: hub_protocol::Timestamp =
                    serde_json::from_value(item[name].clone()).expect("a time");
                at.as_micros()
            };
            json!([
                micros("observedAt"),
                micros("receivedAt"),
                item["hubUuid"],
                item["rssiDbm"],
                "temperature",
                item["values"]["temperature"].as_f64(),
                null,
                "Cel",
            ])
        })
        .collect();
    for (line, item) in csv[1..].iter().zip(&listed) {
        let expected = format!(
            "{},{},{},{},temperature,{},,Cel",
            item["observedAt"].as_str().expect("a time"),
            item["receivedAt"].as_str().expect("a time"),
            item["hubUuid"].as_str().expect("a uuid"),
            item["rssiDbm"],
            item["values"]["temperature"].as_f64().expect("a number"),
        );
        assert_eq!(*line, expected);
    }
    assert_eq!(csv.len(), 5);

    let parquet = export("format=parquet").send().await.expect("an answer");
    let bytes = parquet.bytes().await.expect("the file");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("values.parquet");
    std::fs::write(&file, &bytes).expect("a file");
    if let Some((types, read)) = duckdb::values_of(&file).await {
        assert_eq!(types[0], json!("TIMESTAMP WITH TIME ZONE"));
        assert_eq!(types[5], json!("DOUBLE"));
        assert_eq!(read, rows);
    }

    // A period, a device of somebody else, a form that there is none of.
    let from = serde_json::from_value::<hub_protocol::Timestamp>(listed[2]["observedAt"].clone());
    let query = format!("format=ndjson&from={}", from.expect("a time"));
    let some = export(&query).call().await.expect(200);
    assert_eq!(some.body.lines().count(), 2);
    let stranger = Person::register(&world.app.client()).await;
    let foreign = path(device, "sensor-data/export?format=csv");
    stranger.client.get(&foreign).call().await.expect(404);
    let problem = export("format=xlsx").call().await.expect(400).problem();
    assert_eq!(problem.errors[0].field, "format");
    assert_eq!(export("").call().await.expect(200).body.lines().count(), 4);
    assert_ne!(device, other);
}

on_each_database!(a_device_is_described_for_programs);
async fn a_device_is_described_for_programs(backend: Backend) {
    let world = World::new(backend).await;
    let device = world.device(1).await;
    hear(&world.hub, 1, 2100).await;
    let client = &world.person.client;
    let schema = client
        .get(&path(device, "value-schema"))
        .call()
        .await
        .expect(200);
    assert_eq!(schema.header("content-type"), "application/schema+json");
    let schema = jsonschema::validator_for(&schema.json()).expect("a schema");
    let list: Value = client
        .get(&path(device, "sensor-data"))
        .call()
        .await
        .expect(200)
        .data();
    for item in list["items"].as_array().expect("items") {
        assert!(schema.is_valid(item), "{item}");
    }
    let mut wrong = list["items"][0].clone();
    wrong["values"]["temperature"] = json!("warm");
    assert!(!schema.is_valid(&wrong));
    wrong["values"]["temperature"] = json!(1e6);
    assert!(!schema.is_valid(&wrong), "out of its range");

    let thing = client
        .get(&path(device, "thing-description"))
        .call()
        .await
        .expect(200);
    assert_eq!(thing.header("content-type"), "application/td+json");
    let thing = thing.json();
    let temperature = &thing["properties"]["temperature"];
    assert_eq!(temperature["unit"], json!("Cel"));
    // What its form names is what it says.
    let href = temperature["forms"][0]["href"].as_str().expect("a path");
    let newest: Value = client.get(href).call().await.expect(200).data();
    assert_eq!(
        newest["items"][0]["values"]["temperature"].as_f64(),
        Some(21.0)
    );

    let until = Clock::System.now().plus_secs(3600);
    let body = json!({"recipient": {"name": "A"}, "until": until, "form": "PULL"});
    let granted: Value = client
        .post("/app/mandates")
        .json(&body)
        .call()
        .await
        .expect(201)
        .data();
    let credential = granted["credential"].as_str().expect("a credential");
    let recipient = world.app.client().bearer(credential);
    let of_recipient = format!("/mandate/v1/devices/{device}/thing-description");
    // Nothing was heard since the mandate.
    let thing = recipient.get(&of_recipient).call().await.expect(200).json();
    assert_eq!(thing["properties"], json!({}));
    hear(&world.hub, 1, 2200).await;
    // What was last heard is noted some seconds later.
    let begun = Instant::now();
    let thing = loop {
        let thing = recipient.get(&of_recipient).call().await.expect(200).json();
        if thing["properties"] != json!({}) {
            break thing;
        }
        assert!(begun.elapsed() < PATIENCE, "the value is noted");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let href = thing["properties"]["temperature"]["forms"][0]["href"].as_str();
    let newest = recipient.get(href.expect("a path")).call().await;
    let newest: Vec<Value> = newest.expect(200).data();
    assert_eq!(newest[0]["values"]["temperature"].as_f64(), Some(22.0));
    recipient
        .get("/mandate/v1/devices/999999/thing-description")
        .call()
        .await
        .expect(404);
}
