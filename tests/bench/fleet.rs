//! A simulated fleet: tenants, their claimed hubs, and the advertisements of the recorded trace.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_protocol::{HubUuid, TenantUuid};
use hub_tests::client::Client;
use hub_tests::people::{Person, Tenant};
use serde_json::{Map, Value, json};

use crate::service::Service;

pub struct Hub {
    pub hub_uuid: HubUuid,
    pub tenant_uuid: TenantUuid,
    pub access_token: String,
}

pub struct Fleet {
    pub tenants: Vec<Client>,
    pub hubs: Vec<Hub>,
}

impl Fleet {
    /// Claims `hubs` hubs, spread over `tenants` tenants of one owner.
    pub async fn claim(service: &Service, tenants: usize, hubs: usize) -> Self {
        let client = Client::new(&service.url);
        let owner = Person::register(&client).await;
        let mut fleet = Self {
            tenants: Vec::new(),
            hubs: Vec::new(),
        };
        let per_tenant = hubs.div_ceil(tenants);
        for _ in 0..tenants {
            let tenant = Tenant::create_by(&owner).await;
            let code = tenant
                .claim_code_for(u32::try_from(per_tenant).expect("a small number"))
                .await;
            for _ in 0..per_tenant.min(hubs - fleet.hubs.len()) {
                let body = json!({"claimCode": code, "deviceInstanceId": uuid::Uuid::new_v4().to_string()});
                let reply = client
                    .post("/v1/hubs/claim")
                    .json(&body)
                    .send()
                    .await
                    .expect("an answer");
                let reply: Value = reply.json().await.expect("JSON");
                let credentials: hub_protocol::claim::HubCredentials =
                    serde_json::from_value(reply["data"].clone()).expect("credentials");
                fleet.hubs.push(Hub {
                    hub_uuid: credentials.hub_uuid,
                    tenant_uuid: credentials.tenant_uuid,
                    access_token: credentials.access_token,
                });
            }
            fleet.tenants.push(tenant.client);
        }
        fleet
    }
}

/// The recorded trace as events, in JSON, one string each.
pub fn recorded_events() -> Vec<String> {
    let trace = zstd::decode_all(&include_bytes!("../data/ble/trace.jsonl.zst")[..])
        .expect("the trace unpacks");
    let text = String::from_utf8(trace).expect("the trace is text");
    text.lines()
        .map(|line| event(&serde_json::from_str(line).expect("a line of the trace")))
        .collect()
}

fn event(report: &Map<String, Value>) -> String {
    let mut event = Map::new();
    event.insert("observedAt".into(), "2026-11-21T08:00:00.123456Z".into());
    event.insert("adapterAddress".into(), "00:11:22:33:44:55".into());
    for (key, value) in report {
        let value = match key.as_str() {
            "t_ms" => continue,
            "manufacturerData" | "serviceData" => {
                let payloads = value.as_object().expect("a map of payloads");
                let base64 = payloads
                    .iter()
                    .map(|(id, hex)| (id.clone(), base64_of(hex)))
                    .collect();
                Value::Object(base64)
            }
            _ => value.clone(),
        };
        event.insert(key.clone(), value);
    }
    Value::Object(event).to_string()
}

fn base64_of(hex: &Value) -> Value {
    let hex = hex.as_str().expect("hex digits");
    let byte = |index: usize| u8::from_str_radix(&hex[index..index + 2], 16).expect("a byte");
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    STANDARD.encode(bytes).into()
}
