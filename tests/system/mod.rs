//! The real programs, and what befalls them.

mod backup;
mod bus;
mod crash;
mod deliveries;
mod every_table;
mod faults;
mod incidents;
mod interruptions;
mod issuer_sign_in;
mod login;
mod moves;
mod outage;
mod rolling;
mod supplier_link_kills;
mod supplier_links;
mod traces;

use hub_tests::{Call, Client};
use serde_json::Value;

/// Every BLE event of the tenant, in the order the service received them.
async fn stored_events(tenant: &Client) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    // Page after page of one list would end at 100,000 events. No two are received at one time.
    loop {
        let last = events.last().map(|event| event["receivedAt"].clone());
        let from = last
            .as_ref()
            .and_then(Value::as_str)
            .map_or_else(String::new, |at| format!("&from={at}"));
        let path = format!("/tenant/ble-query/events?sort=receivedAt,asc&size=100{from}");
        let mut answer = tenant.get(&path).call().await.expect(200).json();
        let Value::Array(content) = answer["data"]["content"].take() else {
            panic!("a page without content: {answer}");
        };
        let count = content.len();
        let total = answer["data"]["totalElements"].as_u64().unwrap_or(0);
        assert_eq!(count as u64, total.min(100), "a page has what follows it");
        events.extend(
            content
                .into_iter()
                .filter(|event| Some(&event["receivedAt"]) != last.as_ref()),
        );
        if count < 100 {
            return events;
        }
    }
}

/// What identifies an event in these tests: its name, and when it was received.
fn identity(event: &Value) -> (String, String) {
    let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
    (text("name"), text("observedAt"))
}
