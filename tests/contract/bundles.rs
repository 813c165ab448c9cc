//! The bundles of the first tenant.

use hub_tests::{Call, Client};
use serde_json::{Value, json};

const BUNDLES: &str = "/tenant/supplier-bundles";
/// More of one status than this are made fewer.
const MANY: i64 = 50;

/// A bundle that the operation can be done to.
pub async fn bundle_for(client: &Client, operation_id: &str) -> String {
    match operation_id {
        "bundles.archive" => published(client).await,
        _ => draft(client).await,
    }
}

async fn of_status(client: &Client, status: &str) -> (Vec<String>, i64) {
    let reply = client
        .get(&format!("{BUNDLES}?size=20&status={status}"))
        .call()
        .await
        .expect(200);
    let total = reply.header("x-total-count").parse().expect("a number");
    let uuid = |bundle: &Value| bundle["bundleUuid"].as_str().expect("a uuid").to_owned();
    (reply.data::<Vec<Value>>().iter().map(uuid).collect(), total)
}

async fn draft(client: &Client) -> String {
    let (drafts, total) = of_status(client, "DRAFT").await;
    if total > MANY {
        for one in &drafts {
            client
                .delete(&format!("{BUNDLES}/{one}"))
                .call()
                .await
                .expect(200);
        }
    }
    let (published, total) = of_status(client, "PUBLISHED").await;
    if total > MANY {
        for one in &published {
            client
                .post(&format!("{BUNDLES}/{one}/archive"))
                .call()
                .await
                .expect(200);
        }
    }
    let body = json!({"name": "Hall"});
    let made: Value = client
        .post(BUNDLES)
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    made["bundleUuid"].as_str().expect("a uuid").to_owned()
}

/// A published bundle, which is applied by itself to no hub.
pub async fn published(client: &Client) -> String {
    let made = draft(client).await;
    client
        .post(&format!("{BUNDLES}/{made}/publish"))
        .call()
        .await
        .expect(200);
    made
}
