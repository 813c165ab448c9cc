//! The real programs, and what befalls them.

mod bus;
mod crash;
mod deliveries;
mod interruptions;
mod issuer_sign_in;
mod login;
mod outage;
mod supplier_link_kills;
mod supplier_links;

use hub_tests::{Call, Client};
use serde_json::Value;

/// Every BLE event of the tenant, in the order the service received them.
async fn stored_events(tenant: &Client) -> Vec<Value> {
    let mut events = Vec::new();
    for page in 0.. {
        let path = format!("/tenant/ble-query/events?sort=receivedAt,asc&size=100&page={page}");
        let mut answer = tenant.get(&path).call().await.expect(200).json();
        match answer["data"]["content"].take() {
            Value::Array(content) => events.extend(content),
            other => panic!("a page without content: {other}"),
        }
        if answer["data"]["last"] == true {
            break;
        }
    }
    events
}

/// What identifies an event in these tests: its name, and when it was received.
fn identity(event: &Value) -> (String, String) {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    (text("name"), text("observedAt"))
}
