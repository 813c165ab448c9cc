//! `/tenant/dashboards`: pages of values, charts and states of chosen devices.

use hub_identity::authz::permission::Role;
use hub_tests::devices::{make_device, make_model};
use hub_tests::{Backend, Call, Client, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};

const PATH: &str = "/tenant/dashboards";

async fn made(client: &Client, body: &Value) -> Value {
    client.post(PATH).json(body).call().await.expect(201).data()
}

fn at(dashboard: &Value) -> String {
    format!(
        "{PATH}/{}",
        dashboard["dashboardUuid"].as_str().expect("a uuid")
    )
}

async fn put(client: &Client, dashboard: &Value, body: &Value) -> Value {
    let put = client.put(&at(dashboard)).json(body);
    put.call().await.expect(200).data()
}

/// The id of a new device with an address.
async fn registered(tenant: &Tenant, address: &str) -> i64 {
    let model = make_model(tenant, "Sensor").await;
    let device = make_device(tenant, model, json!({"address": address})).await;
    device["deviceInstanceId"].as_i64().expect("an id")
}

fn value_of(device: i64, quantity: &str) -> Value {
    json!({"kind": "VALUE", "deviceInstanceId": device, "quantity": quantity})
}

on_each_database!(a_dashboard_has_the_tiles_that_it_was_given);
async fn a_dashboard_has_the_tiles_that_it_was_given(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let (one, other) = (
        registered(&tenant, "C4:11:00:00:00:01").await,
        registered(&tenant, "C4:11:00:00:00:02").await,
    );
    let tiles = json!([
        value_of(one, "temperature"),
        {"kind": "CHART", "deviceInstanceId": other, "quantity": "temperature[1]"},
        {"kind": "STATE", "deviceInstanceId": one, "quantity": null},
    ]);
    let body = json!({"name": " Cold rooms ", "onOverview": true, "tiles": tiles});
    let first = made(&tenant.client, &body).await;
    assert_eq!(first["name"], "Cold rooms");
    assert_eq!(
        (&first["tiles"], &first["onOverview"]),
        (&tiles, &json!(true))
    );
    let second = made(&tenant.client, &json!({"name": "Attic", "tiles": []})).await;
    assert_eq!(second["onOverview"], false);
    let listed: Vec<Value> = tenant.client.get(PATH).call().await.expect(200).data();
    assert_eq!(listed, [second.clone(), first.clone()], "by name");

    // One is on the overview.
    let body = json!({"name": "Attic", "onOverview": true, "tiles": [tiles[1]]});
    let second = put(&tenant.client, &second, &body).await;
    assert_eq!(
        put(&tenant.client, &second, &body).await,
        second,
        "nothing changed"
    );
    let read: Value = tenant
        .client
        .get(&at(&first))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(read["onOverview"], false);

    // A device that was deleted meanwhile keeps nobody from changing the rest.
    let device = format!("/tenant/devices/{other}");
    tenant.client.delete(&device).call().await.expect(200);
    let body = json!({"name": "Loft", "tiles": [tiles[1], tiles[0]]});
    assert_eq!(
        put(&tenant.client, &second, &body).await["tiles"],
        body["tiles"]
    );
    let fresh = tenant.client.post(PATH).json(&body).call().await;
    assert_eq!(
        fresh.expect(400).problem().errors[0].field,
        "tiles[0].deviceInstanceId"
    );

    tenant.client.delete(&at(&first)).call().await.expect(204);
    tenant.client.get(&at(&first)).call().await.expect(404);
    tenant.client.delete(&at(&first)).call().await.expect(404);
}

on_each_database!(what_a_dashboard_cannot_have_is_refused);
async fn what_a_dashboard_cannot_have_is_refused(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let stranger = Tenant::create(&app.client()).await;
    let own = registered(&tenant, "C4:11:00:00:00:01").await;
    let foreign = registered(&stranger, "C4:11:00:00:00:02").await;
    for (body, field) in [
        (json!({"name": " ", "tiles": []}), "name"),
        (
            json!({"name": "a", "tiles": [value_of(foreign, "temperature")]}),
            "tiles[0].deviceInstanceId",
        ),
        (
            json!({"name": "a", "tiles": [value_of(-1, "temperature")]}),
            "tiles[0].deviceInstanceId",
        ),
        (
            json!({"name": "a", "tiles": [value_of(own, "")]}),
            "tiles[0].quantity",
        ),
        (
            json!({"name": "a", "tiles": [{"kind": "CHART", "deviceInstanceId": own}]}),
            "tiles[0].quantity",
        ),
        (
            json!({"name": "a", "tiles": [{"kind": "STATE", "deviceInstanceId": own, "quantity": "temperature"}]}),
            "tiles[0].quantity",
        ),
        (
            json!({"name": "a", "tiles": vec![value_of(own, "temperature"); 41]}),
            "tiles",
        ),
    ] {
        let problem = tenant
            .client
            .post(PATH)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    let dashboard = made(&tenant.client, &json!({"name": "Own", "tiles": []})).await;
    // Another tenant's dashboard does not exist, whatever is sent.
    stranger
        .client
        .get(&at(&dashboard))
        .call()
        .await
        .expect(404);
    let body = json!({"name": " ", "tiles": []});
    stranger
        .client
        .put(&at(&dashboard))
        .json(&body)
        .call()
        .await
        .expect(404);
    stranger
        .client
        .delete(&at(&dashboard))
        .call()
        .await
        .expect(404);
    let viewer = tenant.member(Role::Viewer).await;
    viewer.get(&at(&dashboard)).call().await.expect(200);
    let body = json!({"name": "Mine", "tiles": []});
    viewer
        .put(&at(&dashboard))
        .json(&body)
        .call()
        .await
        .expect(403);
    for _ in 0..49 {
        made(&tenant.client, &body).await;
    }
    let full = tenant
        .client
        .post(PATH)
        .json(&body)
        .call()
        .await
        .expect(409);
    assert_eq!(full.problem().code, "TOO_MANY_DASHBOARDS");
}
