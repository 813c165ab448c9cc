//! Tests of the language without scripts; those with scripts are in `tests/steps.rs`.

mod expressions;
mod forms;
mod running;
mod stateful;

use std::time::Duration;

use futures_util::FutureExt;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{DestinationForm, Event, Input, OptionForm, Outcome, Program, State};

/// Destinations as a text may name them.
pub const FORMS: [DestinationForm; 4] = [
    DestinationForm {
        kind: "HTTP",
        options: &[
            ("json", OptionForm::Itself("format")),
            ("influx_line", OptionForm::Itself("format")),
            ("template", OptionForm::Itself("format")),
        ],
        required: None,
    },
    DestinationForm {
        kind: "MQTT",
        options: &[
            ("topic", OptionForm::Text("topic")),
            ("qos", OptionForm::Whole("qos")),
            ("retain", OptionForm::Flag("retain")),
            ("discovery", OptionForm::Flag("homeAssistantDiscovery")),
        ],
        required: Some("topic"),
    },
    DestinationForm {
        kind: "NATS",
        options: &[
            ("subject", OptionForm::Text("subject")),
            ("tls_first", OptionForm::Flag("tlsFirst")),
        ],
        required: Some("subject"),
    },
    DestinationForm {
        kind: "S3",
        options: &[("every", OptionForm::Time("everySeconds"))],
        required: None,
    },
];

/// A time of a test: 2026-01-31, a Saturday.
const BEGINNING: i64 = 1_769_850_000_000_000;

fn event(value: Value) -> Event {
    match value {
        Value::Object(event) => event,
        other => panic!("{other}"),
    }
}

/// An event as a thermometer sends it.
fn thermometer() -> Event {
    event(json!({
        "bleEventId": BEGINNING, "receivedAt": "2026-01-31T09:00:00.000000Z", "observedAt": "2026-01-31T08:59:59.500000Z",
        "hubUuid": "0194e0a8-0000-7000-8000-000000000001", "deviceUuid": null, "protocolRevision": null,
        "processingStatus": "DECODED", "deliveryStatus": "NONE", "address": "AA:BB:CC:DD:EE:FF", "rssi": -61,
        "name": "Kitchen", "manufacturerData": {"0499": "BQ=="}, "serviceUuids": ["180f", "fcd2"], "deviceInstanceId": 7,
        "measurements": [
            {"quantity": "temperature", "value": 23.45, "unit": "Cel"},
            {"quantity": "humidity", "value": 53.5, "unit": "%RH"},
            {"quantity": "temperature_probe", "value": 20, "unit": "Cel", "index": 0},
            {"quantity": "temperature_probe", "value": 30, "unit": "Cel", "index": 1},
            {"quantity": "door", "value": true, "kind": "STATE"},
        ],
    }))
}

fn input(event: Event, seconds: f64, device: i64) -> Input {
    let at = Timestamp::from_micros(BEGINNING + (seconds * 1e6) as i64);
    Input {
        event,
        received_at: at,
        observed_at: at,
        hub_uuid: HubUuid(Uuid::from_u128(1)),
        device_instance_id: Some(device),
        address: "AA:BB:CC:DD:EE:FF".to_owned(),
        observation_id: None,
        ble_event_id: at.as_micros(),
    }
}

fn program(steps: &Value) -> Program {
    Program::compile(steps).unwrap_or_else(|problem| panic!("{steps}: {problem}"))
}

/// Programs without scripts never wait.
fn run(program: &Program, state: &mut State, inputs: Vec<Input>) -> Vec<Outcome> {
    let tenant_uuid = TenantUuid(Uuid::nil());
    program
        .run(state, inputs, None, tenant_uuid, Duration::ZERO)
        .now_or_never()
        .expect("no script")
}

/// The outcome of one event.
fn one(steps: &Value, event: Event) -> Outcome {
    let program = program(steps);
    run(
        &program,
        &mut program.new_state(),
        vec![input(event, 0.0, 7)],
    )
    .remove(0)
}

/// The event after the steps.
fn shaped(steps: &Value, event: Event) -> Value {
    match one(steps, event) {
        Outcome::Passed(outputs) => Value::Object(outputs[0].event.clone()),
        other => panic!("{steps}: {other:?}"),
    }
}

fn refused(steps: &Value) -> String {
    Program::compile(steps)
        .expect_err(&steps.to_string())
        .to_string()
}
