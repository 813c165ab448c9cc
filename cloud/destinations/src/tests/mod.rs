//! What tests of destinations share. They run on real receivers: brokers that are started for the
//! test, and servers of its own.

pub mod brokers;
mod definitions;

use std::sync::Arc;
use std::time::Duration;

use hub_base::metrics::Metrics;
use hub_outgoing::Outgoing;
use hub_outgoing::OutgoingConfig;
use hub_protocol::{TenantUuid, Timestamp};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{Attempt, Body, Connections, Definition, Message, Payload, Signing, parse, send};

/// For whatever a loaded machine needs.
const LONG: Duration = Duration::from_secs(60);

pub fn outgoing_with(ca: Option<std::path::PathBuf>) -> Outgoing {
    let config = OutgoingConfig {
        allow_private_targets: true.into(),
        ca,
        ..OutgoingConfig::default()
    };
    Outgoing::new(&config, Metrics::new()).expect("a client")
}

pub fn event(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

pub fn reading(device: i64, temperature: f64) -> Map<String, Value> {
    event(json!({
        "bleEventId": 1, "observedAt": "2026-01-31T09:30:00.000000Z", "deviceInstanceId": device,
        "hubUuid": "0d6c6f1e-7c6e-4a43-8f5c-6e2a1a3a4b5c", "address": "C4:11:00:00:00:01",
        "measurements": [{"quantity": "temperature", "value": temperature, "unit": "Cel"},
            {"quantity": "motion", "value": true, "kind": "STATE"}]
    }))
}

pub fn message(id: &str, events: Vec<Map<String, Value>>) -> Message {
    let payload = |event: Map<String, Value>| Payload {
        body: Body::Event(event.clone()),
        event: Arc::new(event),
    };
    Message {
        id: id.to_owned(),
        event_type: "ble.event",
        sent_at: Timestamp::from_micros(1_769_851_800_000_000),
        bodies: events.into_iter().map(payload).collect(),
        is_batch: false,
        tenant_uuid: TenantUuid::new(),
        pipeline_uuid: Uuid::nil(),
        first_event_id: 1_769_851_800_000_001,
        last_event_id: 1_769_851_800_000_001,
        trace: None,
    }
}

/// A destination, as it is used: with its secrets apart.
pub struct Target {
    pub definition: Definition,
    pub secrets: Option<SecretString>,
    pub outgoing: Outgoing,
    pub connections: Connections,
}

impl Target {
    pub fn new(definition: Value) -> Self {
        Self::with(outgoing_with(None), definition)
    }

    pub fn with(outgoing: Outgoing, definition: Value) -> Self {
        let (definition, secrets) = parse(&definition, &outgoing).expect("a destination");
        Self {
            definition,
            secrets,
            outgoing,
            connections: Connections::new(),
        }
    }

    pub async fn send(&self, message: &Message) -> Attempt {
        self.send_signed(message, None).await
    }

    pub async fn send_signed(&self, message: &Message, signing: Option<&Signing>) -> Attempt {
        self.try_once(message, signing, LONG).await
    }

    pub async fn send_within(&self, message: &Message, within: Duration) -> Attempt {
        self.try_once(message, None, within).await
    }

    async fn try_once(
        &self,
        message: &Message,
        signing: Option<&Signing>,
        within: Duration,
    ) -> Attempt {
        let secrets = self.secrets.as_ref();
        send(
            &self.definition,
            secrets,
            signing,
            message,
            &self.connections,
            &self.outgoing,
            within,
        )
        .await
    }
}
