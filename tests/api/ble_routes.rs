//! `/tenant/ble/route`: what hubs report, and what the service keeps.

use hub_identity::authz::permission::Role;
use hub_tests::devices::{make_device, make_model};
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::pipelines;

pub const ROUTE: &str = "/tenant/ble/route";

pub async fn put(tenant: &Tenant, body: &Value) -> Value {
    tenant
        .client
        .put(ROUTE)
        .json(body)
        .call()
        .await
        .expect(200)
        .data()
}

async fn get(tenant: &Tenant) -> Value {
    tenant.client.get(ROUTE).call().await.expect(200).data()
}

on_each_database!(route_is_replaced_as_a_whole);
async fn route_is_replaced_as_a_whole(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let none = json!({"rules": [], "otherwise": "FORWARD", "revision": 0, "updatedAt": null});
    assert_eq!(get(&tenant).await, none);

    let hub = SimulatedHub::claim(&tenant).await;
    let model = make_model(&tenant, "Thermometer").await;
    let device = make_device(&tenant, model, json!({"address": "C4:11:00:00:00:01"})).await;
    let pipeline =
        pipelines::made(&tenant.client, &pipelines::http()).await["pipelineUuid"].clone();
    let rules = json!([
        {"layer": "HUB", "match": {"companyId": "004C", "minRssiDbm": -128}, "action": "DROP"},
        {"layer": "HUB", "match": {"deviceUuid": model, "hubUuid": hub.hub_uuid}, "action": "ON_CHANGE",
         "quantities": {"temperature": 0.1, "humidity": 1}},
        {"layer": "HUB", "match": {"known": false}, "action": "WINDOW", "everySeconds": 86_400},
        {"layer": "HUB", "match": {"serviceUuid": "6E400001-B5A3-F393-E0A9-E50E24DCCA9E"}, "action": "SAMPLE", "everySeconds": 1},
        {"layer": "CLOUD", "match": {"deviceInstanceId": device["deviceInstanceId"]}, "action": "FORWARD",
         "pipelineUuids": [pipeline]},
        {"layer": "CLOUD", "action": "DROP"},
    ]);
    let made = put(&tenant, &json!({"rules": rules, "otherwise": "DROP"})).await;
    assert_eq!(
        (&made["revision"], &made["otherwise"]),
        (&json!(1), &json!("DROP"))
    );
    assert_eq!(
        made["rules"][0]["match"]["companyId"], "004c",
        "identifiers have one form"
    );
    assert_eq!(
        made["rules"][1]["quantities"],
        json!({"temperature": 0.1, "humidity": 1.0})
    );
    assert_eq!(
        made["rules"][3]["match"]["serviceUuid"],
        "6e400001-b5a3-f393-e0a9-e50e24dcca9e"
    );
    assert_eq!(
        made["rules"][5],
        json!({"layer": "CLOUD", "match": {}, "action": "DROP"})
    );
    assert_eq!(get(&tenant).await, made);

    assert_eq!(
        put(
            &tenant,
            &json!({"rules": made["rules"], "otherwise": "DROP"})
        )
        .await,
        made,
        "nothing changed"
    );
    let entries: Value = tenant
        .client
        .get("/tenant/audit-logs?objectType=ble_route")
        .call()
        .await
        .expect(200)
        .data();
    let entries = entries["content"].as_array().expect("entries").clone();
    assert_eq!(entries.len(), 1);
    let after = json!({"hubRules": 4, "cloudRules": 2, "otherwise": "DROP", "revision": 1});
    assert_eq!(
        (&entries[0]["action"], &entries[0]["after"]),
        (&json!("ble_route.update"), &after)
    );

    let cleared = put(&tenant, &json!({"rules": []})).await;
    assert_eq!(
        (&cleared["otherwise"], &cleared["revision"]),
        (&json!("FORWARD"), &json!(2))
    );
    let other = Tenant::create(&app.client()).await;
    assert_eq!(get(&other).await, none);

    let viewer = tenant.member(Role::Viewer).await;
    viewer.get(ROUTE).call().await.expect(200);
    viewer
        .put(ROUTE)
        .json(&json!({"rules": []}))
        .call()
        .await
        .expect(403);
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_by_its_place() {
    let app = TestApp::new(Backend::Sqlite).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let model = make_model(&other, "Thermometer").await;
    let device = make_device(&other, model, json!({"address": "C4:11:00:00:00:01"})).await;
    let hub = SimulatedHub::claim(&other).await;
    let hub_rule = |action: &str, more: Value| {
        let mut rule = json!({"layer": "HUB", "action": action});
        rule.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        rule
    };
    let fits = |fits: Value| hub_rule("DROP", json!({"match": fits}));
    for (rule, field) in [
        (hub_rule("SAMPLE", json!({})), "everySeconds"),
        (
            hub_rule("WINDOW", json!({"everySeconds": 0})),
            "everySeconds",
        ),
        (
            hub_rule("WINDOW", json!({"everySeconds": 86_401})),
            "everySeconds",
        ),
        (
            hub_rule("WINDOW", json!({"everySeconds": 1.5})),
            "everySeconds",
        ),
        (hub_rule("DROP", json!({"everySeconds": 5})), "everySeconds"),
        (
            hub_rule(
                "ON_CHANGE",
                json!({"everySeconds": 5, "quantities": {"humidity": 1}}),
            ),
            "everySeconds",
        ),
        (hub_rule("ON_CHANGE", json!({})), "quantities"),
        (
            hub_rule("ON_CHANGE", json!({"quantities": {"warmth": 1}})),
            "quantities",
        ),
        (
            hub_rule("ON_CHANGE", json!({"quantities": {"humidity": 0}})),
            "quantities.humidity",
        ),
        (
            hub_rule("ON_CHANGE", json!({"quantities": {"humidity": -1}})),
            "quantities.humidity",
        ),
        (
            hub_rule("FORWARD", json!({"quantities": {"humidity": 1}})),
            "quantities",
        ),
        (
            hub_rule("FORWARD", json!({"pipelineUuids": [Uuid::nil()]})),
            "pipelineUuids",
        ),
        (
            json!({"layer": "CLOUD", "action": "FORWARD", "pipelineUuids": [Uuid::nil()]}),
            "pipelineUuids[0]",
        ),
        (hub_rule("FORWARD", json!({"every": 5})), "every"),
        (hub_rule("SOMETIMES", json!({})), "action"),
        (
            json!({"layer": "CLOUD", "action": "SAMPLE", "everySeconds": 5}),
            "action",
        ),
        (
            json!({"layer": "CLOUD", "action": "DROP", "pipelineUuids": [Uuid::nil()]}),
            "pipelineUuids",
        ),
        (json!({"layer": "SKY", "action": "DROP"}), "layer"),
        (json!({"action": "DROP"}), "layer"),
        (fits(json!({"companyId": "4c"})), "match.companyId"),
        (fits(json!({"companyId": "+04c"})), "match.companyId"),
        (fits(json!({"serviceUuid": "fcd2-"})), "match.serviceUuid"),
        (fits(json!({"minRssiDbm": -129})), "match.minRssiDbm"),
        (fits(json!({"minRssiDbm": "near"})), "match.minRssiDbm"),
        (fits(json!({"rssi": -60})), "match.rssi"),
        (fits(json!({"deviceUuid": model})), "match.deviceUuid"),
        (
            fits(json!({"deviceInstanceId": device["deviceInstanceId"]})),
            "match.deviceInstanceId",
        ),
        (fits(json!({"hubUuid": hub.hub_uuid})), "match.hubUuid"),
    ] {
        let fine = json!({"layer": "HUB", "action": "FORWARD"});
        let body = json!({"rules": [fine, rule]});
        let problem = tenant
            .client
            .put(ROUTE)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        let fields: Vec<&str> = problem
            .errors
            .iter()
            .map(|error| error.field.as_str())
            .collect();
        assert_eq!(fields, [format!("rules[1].{field}")], "{rule}");
    }
    let one = json!({"layer": "HUB", "action": "FORWARD"});
    for (body, field) in [
        (json!({"rules": vec![one.clone(); 101]}), "rules"),
        (json!({"rules": [], "default": "DROP"}), "default"),
        (json!({"rules": [], "otherwise": "SAMPLE"}), "otherwise"),
        (json!({}), "rules"),
    ] {
        let problem = tenant
            .client
            .put(ROUTE)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{}", problem.message);
    }
    put(&tenant, &json!({"rules": vec![one; 100]})).await;
}
