//! `/tenant/device-ui-schemas`, `/tenant/manuals` and `/tenant/action-definitions`: what people see
//! of a device model, and what can be done with its devices.

use futures_util::future::join_all;
use hub_tests::{Backend, Call, Client, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::device_catalog::{get, model, patch, post, text};

pub const UIS: &str = "/tenant/device-ui-schemas";
pub const MANUALS: &str = "/tenant/manuals";
pub const ACTIONS: &str = "/tenant/action-definitions";

/// A new model; answers its uuid.
pub async fn device(client: &Client) -> String {
    let path = model(client, "Lamp").await;
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// An action over GATT.
pub fn dim(action_id: &str) -> Value {
    json!({
        "actionId": action_id, "name": "Dim",
        "parameters": {"type": "object", "properties": {"level": {"type": "integer"}}},
        "transport": {"kind": "GATT", "steps": [
            {"service": "180f", "characteristic": "2a19", "operation": "WRITE", "value": "01{level}", "timeoutMillis": 120_000}
        ]}
    })
}

/// An action of an external endpoint.
pub fn on(action_id: &str, endpoint: Uuid) -> Value {
    let transport =
        json!({"kind": "HTTP", "externalEndpointId": endpoint, "path": "/on", "method": "POST"});
    json!({"actionId": action_id, "name": "On", "transport": transport})
}

/// A new external endpoint.
pub async fn endpoint(client: &Client) -> Uuid {
    let body =
        json!({"name": "Lamps", "baseUrl": "https://lamps.invalid/", "verify_method": "DNS_TXT"});
    let made: Value = client
        .post("/tenant/external-endpoints")
        .json(&body)
        .call()
        .await
        .expect(200)
        .data();
    made["id"]
        .as_str()
        .and_then(|id| id.parse().ok())
        .expect("a uuid")
}

pub async fn define(client: &Client, body: &Value) -> Value {
    client
        .post(ACTIONS)
        .json(body)
        .call()
        .await
        .expect(201)
        .data()
}

on_each_database!(form_is_kept_in_its_order_and_counts_its_revisions);
async fn form_is_kept_in_its_order_and_counts_its_revisions(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let device_uuid = device(client).await;
    let endpoint = endpoint(client).await;
    // Members are shown in the order of the text, so it is sent and compared as text.
    let fields = r#"{"type":"object","properties":{"zone":{"type":"string"},"area":true},"required":["zone"]}"#;
    let body = format!(
        r#"{{"deviceUuid": "{device_uuid}", "kind": "SETUP", "name": " Set up ", "locale": "pt-BR", "configJson": {{
            "more": 1, "steps": [{{"id": "a", "title": "Where?", "more": 1, "fields": {fields},
            "submit": {{"externalEndpointId": "{endpoint}", "path": "/v1/a?b=c", "method": "PATCH", "more": 1}},
            "external_headers": {{"X-Form": "a", "AUTHORIZATION": "Bearer x", "authorization": "y"}}}}]}}}}"#
    );
    let request = client
        .post(UIS)
        .header("content-type", "application/json")
        .body(body);
    let reply = request.call().await.expect(200);
    assert!(reply.body.contains(fields), "{}", reply.body);
    let made: Value = reply.data();
    assert_eq!(
        (&made["name"], &made["locale"], &made["revision"]),
        (&json!("Set up"), &json!("pt-BR"), &json!(1))
    );
    let step = &made["configJson"]["steps"][0];
    let submit = json!({"externalEndpointId": endpoint, "path": "/v1/a?b=c", "method": "PATCH"});
    assert_eq!(step["submit"], submit, "what is not known is left out");
    assert_eq!(
        step["external_headers"],
        json!({"X-Form": "a"}),
        "the credential of the supplier takes its place"
    );

    let one = format!("{UIS}/{}", made["deviceUiId"]);
    assert_eq!(get(client, &one).await, made);
    let same = patch(
        client,
        &one,
        &json!({"configJson": made["configJson"], "kind": null, "locale": null}),
    )
    .await;
    assert_eq!(
        (&same["kind"], &same["locale"]),
        (&json!("SETUP"), &json!("pt-BR"))
    );
    let named = patch(
        client,
        &one,
        &json!({"name": "Start", "kind": "CONTROL", "locale": ""}),
    )
    .await;
    assert_eq!(
        (&named["kind"], &named["locale"]),
        (&json!("CONTROL"), &Value::Null)
    );
    assert_eq!(named["revision"], same["revision"], "the form is the same");
    let config = json!({"steps": [{"id": "b", "title": "What?"}]});
    let other = patch(client, &one, &json!({"configJson": config})).await;
    assert_eq!(other["configJson"], config);
    assert_eq!(
        other["revision"].as_i64(),
        named["revision"].as_i64().map(|revision| revision + 1)
    );

    let second = device(client).await;
    let body =
        json!({"deviceUuid": second, "kind": "DASHBOARD", "name": "Values", "configJson": config});
    let newest = post(client, UIS, &body).await;
    assert_eq!(get(client, UIS).await, json!([newest, other]));
    assert_eq!(
        get(client, &format!("{UIS}?deviceUuid={device_uuid}")).await,
        json!([other])
    );
    let page = client
        .get(&format!("{UIS}?size=1&page=2"))
        .call()
        .await
        .expect(200);
    assert_eq!(
        (page.header("x-total-count"), page.json()["data"][0].clone()),
        ("2", other)
    );
    client.delete(&one).call().await.expect(200);
    client.get(&one).call().await.expect(404);
}

on_each_database!(manual_is_a_text_or_a_link);
async fn manual_is_a_text_or_a_link(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let device_uuid = device(client).await;
    let content = "  # Mounting\n\n    as it is\n";
    let body = json!({"deviceUuid": device_uuid, "title": " Mounting ", "locale": "de", "format": "MARKDOWN", "content": content, "url": null});
    let made = post(client, MANUALS, &body).await;
    assert_eq!(
        (&made["title"], &made["content"], &made["url"]),
        (&json!("Mounting"), &json!(content), &Value::Null)
    );
    let one = format!("{MANUALS}/{}", made["deviceManualId"]);
    assert_eq!(get(client, &one).await, made);
    let same = patch(
        client,
        &one,
        &json!({"content": null, "locale": null, "format": null, "title": null}),
    )
    .await;
    assert_eq!(same, made);

    let link = json!({"format": "LINK", "url": " https://example.com/m.pdf ", "locale": ""});
    let linked = patch(client, &one, &link).await;
    assert_eq!(
        (&linked["url"], &linked["content"]),
        (&json!("https://example.com/m.pdf"), &Value::Null)
    );
    assert_eq!(
        (&linked["title"], &linked["locale"]),
        (&json!("Mounting"), &Value::Null)
    );
    for (body, field) in [
        (json!({"content": "x"}), "content"),
        (json!({"format": "MARKDOWN"}), "content"),
        (
            json!({"format": "MARKDOWN", "content": "x", "url": "https://example.com"}),
            "url",
        ),
        (json!({"url": " "}), "url"),
    ] {
        assert_eq!(
            client
                .patch(&one)
                .json(&body)
                .call()
                .await
                .expect(400)
                .problem()
                .errors[0]
                .field,
            field,
            "{body}"
        );
    }
    let written = patch(client, &one, &json!({"format": "MARKDOWN", "content": "x"})).await;
    assert_eq!(
        (&written["url"], &written["content"]),
        (&Value::Null, &json!("x"))
    );

    let body = json!({"deviceUuid": device(client).await, "title": "Sheet", "format": "LINK", "url": "http://example.com"});
    let newest = post(client, MANUALS, &body).await;
    assert_eq!(get(client, MANUALS).await, json!([newest, written]));
    assert_eq!(
        get(client, &format!("{MANUALS}?deviceUuid={device_uuid}")).await,
        json!([written])
    );
    client.delete(&one).call().await.expect(200);
    client.delete(&one).call().await.expect(404);
}

on_each_database!(action_is_defined_once_and_changed);
async fn action_is_defined_once_and_changed(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let device_uuid = device(client).await;
    let mut body = dim("lamp.dim_1-a");
    body["deviceUuid"] = json!(device_uuid);
    let made = define(client, &body).await;
    assert_eq!(
        (&made["supplierUuid"], &made["deviceUuid"]),
        (&json!(tenant.tenant_uuid), &json!(device_uuid))
    );
    assert_eq!(
        (&made["confirm"], &made["transport"]),
        (&json!(false), &body["transport"])
    );
    assert_eq!(made["parameters"], body["parameters"]);
    let one = format!("{ACTIONS}/lamp.dim_1-a");
    assert_eq!(get(client, &one).await, made);
    assert_eq!(
        client
            .post(ACTIONS)
            .json(&body)
            .call()
            .await
            .expect(409)
            .problem()
            .code,
        "ACTION_EXISTS"
    );
    // Another tenant has ids of its own.
    let other = Tenant::create(&app.client()).await;
    define(&other.client, &dim("lamp.dim_1-a")).await;

    let nothing =
        json!({"deviceUuid": null, "parameters": null, "transport": null, "confirm": null});
    assert_eq!(patch(client, &one, &nothing).await, made);
    // Without the parameter, the value of the step would have a place that nothing fills.
    let refused = client
        .patch(&one)
        .json(&json!({"parameters": {}}))
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(refused.errors[0].field, "transport.steps[0].value");
    let http = on("x", endpoint(client).await)["transport"].clone();
    let changes = json!({
        "parameters": {}, "transport": http, "confirm": true, "description": "All", "deviceUuid": Uuid::nil()
    });
    let changed = patch(client, &one, &changes).await;
    assert_eq!(
        (&changed["parameters"], &changed["transport"]),
        (&Value::Null, &http)
    );
    assert_eq!(
        (&changed["deviceUuid"], &changed["confirm"]),
        (&Value::Null, &json!(true))
    );
    assert_eq!(
        patch(client, &one, &json!({"description": ""})).await["description"],
        Value::Null
    );
    client
        .patch(&one)
        .json(&json!({"deviceUuid": Uuid::new_v4()}))
        .call()
        .await
        .expect(404);

    let newest = define(client, &on("z", endpoint(client).await)).await;
    let listed = get(
        client,
        &format!("{ACTIONS}?supplierUuid={}", tenant.tenant_uuid),
    )
    .await;
    assert_eq!(
        (&listed[0], &listed[1]["actionId"]),
        (&newest, &json!("lamp.dim_1-a"))
    );
    assert_eq!(get(client, ACTIONS).await, listed);
    let foreign = format!("{ACTIONS}?supplierUuid={}", other.tenant_uuid);
    assert_eq!(
        client.get(&foreign).call().await.expect(403).problem().code,
        "OTHER_TENANT"
    );
    let deleted = client.delete(&one).call().await.expect(200).json();
    assert_eq!(deleted, json!({"data": null}));
    client.get(&one).call().await.expect(404);
}

on_each_database!(of_two_actions_of_one_id_one_is_made);
async fn of_two_actions_of_one_id_one_is_made(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let endpoint = endpoint(&tenant.client).await;
    for round in 0..5 {
        let body = on(&format!("on-{round}"), endpoint);
        let requests = (0..4).map(|_| tenant.client.post(ACTIONS).json(&body).call());
        let mut statuses: Vec<u16> = join_all(requests)
            .await
            .iter()
            .map(|reply| reply.status.as_u16())
            .collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409, 409, 409]);
    }
}

on_each_database!(endpoints_that_are_named_are_the_tenants);
async fn endpoints_that_are_named_are_the_tenants(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let device_uuid = device(client).await;
    let other = Tenant::create(&app.client()).await;
    let (own, foreign) = (endpoint(client).await, endpoint(&other.client).await);
    let form = |endpoint: Uuid| {
        let submit = |id: &str, to: Uuid| json!({"id": id, "title": "x", "submit": {"externalEndpointId": to, "path": "/", "method": "GET"}});
        let config =
            json!({"steps": [submit("a", own), {"id": "b", "title": "x"}, submit("c", endpoint)]});
        json!({"deviceUuid": device_uuid, "kind": "SETUP", "name": "x", "configJson": config})
    };
    let ui = format!(
        "{UIS}/{}",
        post(client, UIS, &form(own)).await["deviceUiId"]
    );
    let action = format!("{ACTIONS}/on");
    define(client, &on("on", own)).await;
    for missing in [foreign, Uuid::new_v4(), Uuid::nil()] {
        let (config, transport) = (
            form(missing)["configJson"].take(),
            on("x", missing)["transport"].take(),
        );
        for (request, field) in [
            (
                client.post(UIS).json(&form(missing)),
                "configJson.steps[2].submit.externalEndpointId",
            ),
            (
                client.patch(&ui).json(&json!({"configJson": config})),
                "configJson.steps[2].submit.externalEndpointId",
            ),
            (
                client.post(ACTIONS).json(&on("off", missing)),
                "transport.externalEndpointId",
            ),
            (
                client.patch(&action).json(&json!({"transport": transport})),
                "transport.externalEndpointId",
            ),
        ] {
            let refused = request.call().await.expect(400).problem();
            assert_eq!(
                (refused.errors.len(), refused.errors[0].field.as_str()),
                (1, field)
            );
        }
    }
    // What uses an endpoint is in the way of its end, one after the other.
    let path = format!("/tenant/external-endpoints/{own}");
    for user in [ui, action] {
        assert_eq!(
            client.delete(&path).call().await.expect(409).problem().code,
            "EXTERNAL_ENDPOINT_IN_USE"
        );
        client.delete(&user).call().await.expect(200);
    }
    client.delete(&path).call().await.expect(200);
}

on_each_database!(pages_go_with_their_model);
async fn pages_go_with_their_model(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = model(client, "Lamp").await;
    let device_uuid = path.rsplit('/').next().unwrap_or_default();
    let config = json!({"steps": [{"id": "a", "title": "A"}]});
    let ui =
        json!({"deviceUuid": device_uuid, "kind": "CONTROL", "name": "x", "configJson": config});
    let ui = post(client, UIS, &ui).await;
    let manual =
        json!({"deviceUuid": device_uuid, "title": "x", "format": "MARKDOWN", "content": "x"});
    let manual = post(client, MANUALS, &manual).await;
    let mut action = on("of-model", endpoint(client).await);
    action["deviceUuid"] = json!(device_uuid);
    define(client, &action).await;
    let of_all = define(client, &on("of-all", endpoint(client).await)).await;
    client.delete(&path).call().await.expect(200);
    client
        .get(&format!("{UIS}/{}", ui["deviceUiId"]))
        .call()
        .await
        .expect(404);
    client
        .get(&format!("{MANUALS}/{}", manual["deviceManualId"]))
        .call()
        .await
        .expect(404);
    // It would be offered for every device if it stayed.
    assert_eq!(get(client, ACTIONS).await, json!([of_all]));
}

on_each_database!(another_tenants_model_has_no_pages_of_this_one);
async fn another_tenants_model_has_no_pages_of_this_one(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let config = json!({"steps": [{"id": "a", "title": "A"}]});
    for device_uuid in [device(&other.client).await, Uuid::new_v4().to_string()] {
        let mut action = on("on", Uuid::new_v4());
        action["deviceUuid"] = json!(device_uuid);
        for (path, body) in [
            (
                UIS,
                json!({"deviceUuid": device_uuid, "kind": "SETUP", "name": "x", "configJson": config}),
            ),
            (
                MANUALS,
                json!({"deviceUuid": device_uuid, "title": "x", "format": "MARKDOWN", "content": "x"}),
            ),
            (ACTIONS, action),
        ] {
            let refused = tenant
                .client
                .post(path)
                .json(&body)
                .call()
                .await
                .expect(404)
                .problem();
            assert_eq!(text(&json!(refused.code)), "NOT_FOUND");
        }
    }
}
