//! `/v1/hubs/{hubUuid}/device-query`: which registered device a hub sees.

use hub_tests::devices::make_device;
use hub_tests::{Backend, Call, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

use super::device_catalog::{get, patch, post, text};

/// A frame of a RuuviTag from this address.
pub fn ruuvi(address: &str) -> Value {
    json!({"address": address, "addressType": "random", "rssi": -60,
           "manufacturerData": {"0499": "BRXlQ5XFYwAE/7gD5HVWrX4t9B8MKMvW"}})
}

async fn query(hub: &SimulatedHub, body: &Value) -> Value {
    let path = format!("/v1/hubs/{}/device-query", hub.hub_uuid);
    hub.client
        .post(&path)
        .json(body)
        .call()
        .await
        .expect(200)
        .data()
}

/// The activations of a device, latest first.
async fn activations(app: &TestApp, tenant: &Tenant, id: &Value) -> Vec<Value> {
    let admin = tenant.owner.as_platform_admin(app);
    let all: Value = admin
        .get("/platform/activation-events?size=100")
        .call()
        .await
        .expect(200)
        .data();
    let all = all
        .as_array()
        .or_else(|| all["content"].as_array())
        .expect("a list")
        .clone();
    all.into_iter()
        .filter(|entry| entry["deviceInstanceId"] == *id)
        .collect()
}

on_each_database!(asking_activates_a_registered_device);
async fn asking_activates_a_registered_device(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let frame = ruuvi("F4:1F:0C:28:CB:D6");
    assert_eq!(
        query(&hub, &frame).await,
        json!({"matched": false}),
        "there is no catalog"
    );
    let model = post(
        &tenant.client,
        "/tenant/device-catalog",
        &json!({"template": "ruuvi/ruuvitag"}),
    )
    .await;
    assert_eq!(
        query(&hub, &frame).await,
        json!({"matched": false}),
        "the device is not registered"
    );

    let device_uuid = text(&model["deviceUuid"]).parse().expect("a uuid");
    let device = make_device(
        &tenant,
        device_uuid,
        json!({"address": "F4:1F:0C:28:CB:D6"}),
    )
    .await;
    let id = &device["deviceInstanceId"];
    let active = |activated: bool| json!({"matched": true, "deviceInstanceId": id, "deviceUuid": device_uuid, "activationStatus": "ACTIVE", "activated": activated});
    assert_eq!(query(&hub, &frame).await, active(true));
    assert_eq!(
        query(&hub, &frame).await,
        active(false),
        "it is active already"
    );
    let logged = activations(&app, &tenant, id).await;
    assert_eq!(logged.len(), 1);
    assert_eq!(
        (&logged[0]["kind"], &logged[0]["hubUuid"]),
        (&json!("QUERY"), &json!(hub.hub_uuid))
    );

    let path = format!("/tenant/devices/{id}");
    tenant
        .client
        .post(&format!("{path}/suspend"))
        .call()
        .await
        .expect(200);
    let suspended = query(&hub, &frame).await;
    assert_eq!(
        (&suspended["activationStatus"], &suspended["activated"]),
        (&json!("SUSPENDED"), &json!(false))
    );
    tenant
        .client
        .post(&format!("{path}/retire"))
        .call()
        .await
        .expect(200);
    assert_eq!(query(&hub, &frame).await, json!({"matched": false}));

    let stranger = SimulatedHub::claim(&Tenant::create(&app.client()).await).await;
    assert_eq!(query(&stranger, &frame).await, json!({"matched": false}));
    let other = format!("/v1/hubs/{}/device-query", stranger.hub_uuid);
    hub.client
        .post(&other)
        .json(&frame)
        .call()
        .await
        .expect(403);
}

on_each_database!(asking_registers_a_device_of_a_model_that_wants_it);
async fn asking_registers_a_device_of_a_model_that_wants_it(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let model = post(
        &tenant.client,
        "/tenant/device-catalog",
        &json!({"template": "ruuvi/ruuvitag"}),
    )
    .await;
    let path = format!("/tenant/device-catalog/{}", text(&model["deviceUuid"]));
    patch(&tenant.client, &path, &json!({"autoRegister": true})).await;
    let frame = ruuvi("F4:1F:0C:28:CB:D6");
    let made = query(&hub, &frame).await;
    let expected = (
        &json!(true),
        &json!("ACTIVE"),
        &json!(true),
        &model["deviceUuid"],
    );
    assert_eq!(
        (
            &made["matched"],
            &made["activationStatus"],
            &made["activated"],
            &made["deviceUuid"]
        ),
        expected
    );
    let device = get(
        &tenant.client,
        &format!("/tenant/devices/{}", made["deviceInstanceId"]),
    )
    .await;
    assert_eq!(device["address"], "F4:1F:0C:28:CB:D6");
    let again = query(&hub, &frame).await;
    assert_eq!(
        (&again["deviceInstanceId"], &again["activated"]),
        (&made["deviceInstanceId"], &json!(false))
    );
    let other = query(&hub, &json!({"address": "AA:BB:CC:DD:EE:FF"})).await;
    assert_eq!(other, json!({"matched": false}));
}

#[tokio::test]
async fn malformed_questions_are_refused_by_field() {
    let app = TestApp::new(Backend::Sqlite).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let path = format!("/v1/hubs/{}/device-query", hub.hub_uuid);
    for (member, value, field) in [
        ("address", json!("somewhere"), "address"),
        ("address", json!(null), "address"),
        ("addressType", json!("static"), "addressType"),
        ("rssi", json!(-129), "rssi"),
        (
            "manufacturerData",
            json!({"0499": "?"}),
            "manufacturerData.0499",
        ),
        (
            "manufacturerData",
            json!({"499": "BQ=="}),
            "manufacturerData.499",
        ),
        ("serviceUuids", json!(["here"]), "serviceUuids[0]"),
    ] {
        let mut body = ruuvi("F4:1F:0C:28:CB:D6");
        body[member] = value;
        let problem = hub
            .client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(
            problem.errors[0].field, field,
            "{body}: {}",
            problem.message
        );
    }
}
