//! *steps*: what an event costs the steps of a pipeline, by kind of step, in batches of 1,000.

use std::hint::black_box;
use std::time::Duration;

use hub_base::metrics::Metrics;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use hub_scripts::Scripts;
use hub_steps::{Event, Input, Outcome, Program};
use hub_tests::process::program;
use serde_json::json;
use uuid::Uuid;

use crate::script::micros;

const BATCH: i64 = 1000;
const SCRIPT: &str = "function process(event) {
  const found = event.measurements.find((one) => one.quantity === 'temperature');
  return {...event, fahrenheit: found.value * 1.8 + 32};
}";

fn event() -> Event {
    let event = json!({
        "bleEventId": 1_769_850_000_000_000_i64, "receivedAt": "2026-01-31T09:00:00.000000Z",
        "observedAt": "2026-01-31T08:59:59.500000Z", "hubUuid": "0194e0a8-0000-7000-8000-000000000001",
        "deviceUuid": "0194e0a8-0000-7000-8000-000000000009", "deviceInstanceId": 7, "processingStatus": "DECODED",
        "deliveryStatus": "NONE", "protocolRevision": 3, "address": "AA:BB:CC:DD:EE:FF", "addressType": "random",
        "rssi": -61, "name": "Kitchen", "manufacturerData": {"0499": "BRL8U5TDfAAE//wEDKw2QgDNy7gzTIhP"},
        "measurements": [
            {"quantity": "acceleration_x", "value": 0.04, "unit": "m/s2"},
            {"quantity": "acceleration_y", "value": -0.04, "unit": "m/s2"},
            {"quantity": "humidity", "value": 53.5, "unit": "%RH"},
            {"quantity": "pressure", "value": 100_044, "unit": "Pa"},
            {"quantity": "temperature", "value": 24.3, "unit": "Cel"},
        ],
    });
    event.as_object().cloned().expect("an object")
}

fn inputs() -> Vec<Input> {
    let input = |at: i64| {
        let time = Timestamp::from_micros(1_769_850_000_000_000).plus_secs(at);
        let mut event = event();
        event["measurements"][4]["value"] = json!(at % 40);
        Input {
            event,
            received_at: time,
            observed_at: time,
            hub_uuid: HubUuid(Uuid::from_u128(1)),
            device_instance_id: Some(at % 100),
            address: "AA:BB:CC:DD:EE:FF".to_owned(),
            observation_id: None,
            ble_event_id: time.as_micros(),
        }
    };
    (0..BATCH).map(input).collect()
}

pub async fn steps() {
    let scripts = Scripts::new(program("hub-cloud"), 2, Metrics::new());
    let tenant = TenantUuid(Uuid::new_v4());
    let inputs = inputs();
    let copied = micros(inputs.len(), async || _ = black_box(inputs.clone())).await;
    let none = micros(inputs.len(), async || {
        let program = Program::compile(&json!([])).expect("steps");
        let mut state = program.new_state();
        black_box(
            program
                .run(&mut state, inputs.clone(), None, tenant, Duration::ZERO)
                .await,
        );
    });
    let none = none.await - copied;
    println!("steps: {none:.2} us an event without a step; what follows is beside it");
    for (name, list) in [
        (
            "filter that drops",
            json!([{"op": "filter", "when": "temperature > 50 and has(humidity)"}]),
        ),
        (
            "filter that lets pass",
            json!([{"op": "filter", "when": "temperature >= 0 and has(humidity)"}]),
        ),
        (
            "map",
            json!([{"op": "map", "set": {"fahrenheit": "temperature * 1.8 + 32", "place.room": "lower(name)"}}]),
        ),
        (
            "convert",
            json!([{"op": "convert", "quantity": "temperature", "unit": "degF"}]),
        ),
        (
            "on_change",
            json!([{"op": "on_change", "quantity": "temperature", "delta": 0.5}]),
        ),
        ("dedupe", json!([{"op": "dedupe", "seconds": 10}])),
        (
            "template",
            json!([{"op": "template", "body": "{\"room\": {{json(name)}}, \"t\": {{temperature}}}"}]),
        ),
        ("script", json!([{"op": "script", "source": SCRIPT}])),
    ] {
        let compiled = Program::compile(&list).expect("steps");
        let mut state = compiled.new_state();
        let found = micros(inputs.len(), async || {
            let within = Duration::from_secs(30);
            let outcomes = compiled
                .run(&mut state, inputs.clone(), Some(&scripts), tenant, within)
                .await;
            assert!(!outcomes.iter().any(is_failed), "{name}");
            black_box(outcomes);
        });
        println!(
            "steps: {:.2} us an event, {name}",
            found.await - copied - none
        );
    }
    let program =
        Program::compile(&json!([{"op": "sample", "everySeconds": 2_000_000, "by": "DEVICE"}]))
            .expect("steps");
    let mut state = program.new_state();
    let small = |at: i64| Input {
        device_instance_id: Some(at),
        event: Event::new(),
        ..inputs[0].clone()
    };
    program
        .run(
            &mut state,
            (0..50_000).map(small).collect(),
            None,
            tenant,
            Duration::ZERO,
        )
        .await;
    let written = micros(1, async || _ = black_box(state.to_bytes())).await;
    println!(
        "steps: {:.1} ms to write a state of 50,000 keys, {} bytes",
        written / 1000.0,
        state.to_bytes().len()
    );
}

fn is_failed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed { .. } | Outcome::NotRun { .. })
}
