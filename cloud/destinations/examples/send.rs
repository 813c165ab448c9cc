//! Sends one message to a destination, as a pipeline does, for the tests beside other programs:
//! reads `{"destination", "id", "events" | "texts", "secret"?, "isBatch"?}` from standard input,
//! and prints the result.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use hub_base::metrics::Metrics;
use hub_destinations::{Body, Connections, Message, Payload, Signing, parse, send};
use hub_outgoing::Outgoing;
use hub_outgoing::OutgoingConfig;
use hub_protocol::{TenantUuid, Timestamp};
use serde_json::{Map, Value, json};
use uuid::Uuid;

type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut given = String::new();
    std::io::stdin().read_to_string(&mut given)?;
    let given: Value = serde_json::from_str(&given)?;
    let config = OutgoingConfig {
        allow_private_targets: true.into(),
        ..OutgoingConfig::default()
    };
    let outgoing = Outgoing::new(&config, Metrics::new())?;
    let parsed = parse(given.get("destination").unwrap_or(&Value::Null), &outgoing);
    let (definition, secrets) =
        parsed.map_err(|problem| format!("{}: {}", problem.pointer, problem.message))?;
    let texts = given
        .get("texts")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let texts = texts
        .filter_map(Value::as_str)
        .map(|text| payload(Body::Text(text.to_owned()), Map::new()));
    let events = given
        .get("events")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let events = events
        .filter_map(Value::as_object)
        .map(|event| payload(Body::Event(event.clone()), event.clone()));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let micros = i64::try_from(now.as_micros())?;
    let message = Message {
        id: given
            .get("id")
            .and_then(Value::as_str)
            .unwrap_or("msg_example")
            .to_owned(),
        event_type: "ble.event",
        sent_at: Timestamp::from_micros(micros),
        bodies: texts.chain(events).collect(),
        is_batch: given
            .get("isBatch")
            .and_then(Value::as_bool)
            .unwrap_or_default(),
        tenant_uuid: TenantUuid::new(),
        pipeline_uuid: Uuid::nil(),
        first_event_id: micros,
        last_event_id: micros,
        trace: None,
    };
    let secret = |name: &str| {
        given
            .get(name)
            .and_then(Value::as_str)
            .map(|secret| secret.into())
    };
    let signing = secret("secret").map(|current| Signing {
        current,
        previous: secret("previousSecret").into_iter().collect(),
    });
    let within = Duration::from_secs(30);
    let connections = Connections::new();
    let attempt = send(
        &definition,
        secrets.as_ref(),
        signing.as_ref(),
        &message,
        &connections,
        &outgoing,
        within,
    )
    .await;
    let error = attempt.result.err().map(|failure| format!("{failure:?}"));
    println!(
        "{}",
        json!({"error": error, "status": attempt.response_status, "body": attempt.response_body})
    );
    Ok(())
}

fn payload(body: Body, event: Map<String, Value>) -> Payload {
    Payload {
        body,
        event: Arc::new(event),
    }
}
