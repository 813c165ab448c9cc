//! What forms, manuals and actions must not be, that the answer says which member is at fault, and
//! how many there may be.

use hub_base::db::sql;
use hub_tests::{Backend, Call, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::device_catalog::post;
use super::device_pages::{ACTIONS, MANUALS, UIS, define, device, dim, on};

on_each_database!(bad_forms_are_refused_with_the_place);
async fn bad_forms_are_refused_with_the_place(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let device_uuid = device(client).await;
    let good = json!({"id": "a", "title": "A"});
    let body = |member: &str, value: Value| {
        let mut body = json!({"deviceUuid": device_uuid, "kind": "SETUP", "name": "x", "configJson": {"steps": [good]}});
        body[member] = value;
        body
    };
    let step = |member: &str, value: Value| {
        let mut step = json!({"id": "b", "title": "B"});
        step[member] = value;
        body("configJson", json!({"steps": [good, step]}))
    };
    let submit = |member: &str, value: Value| {
        let mut submit =
            json!({"externalEndpointId": Uuid::new_v4(), "path": "/", "method": "GET"});
        submit[member] = value;
        step("submit", submit)
    };
    let one = format!(
        "{UIS}/{}",
        post(client, UIS, &body("name", json!("x"))).await["deviceUiId"]
    );
    for (body, field) in [
        (body("name", json!(" ")), "name"),
        (body("name", json!("x".repeat(201))), "name"),
        (body("kind", json!("OTHER")), "kind"),
        (body("locale", json!("de_DE")), "locale"),
        (body("locale", json!("d")), "locale"),
        (body("configJson", json!([])), "configJson"),
        (body("configJson", json!({})), "configJson.steps"),
        (body("configJson", json!({"steps": []})), "configJson.steps"),
        (
            body("configJson", json!({"steps": vec![&good; 65]})),
            "configJson.steps",
        ),
        (
            body("configJson", json!({"steps": [good, good]})),
            "configJson.steps[1].id",
        ),
        (step("id", json!("")), "configJson.steps[1].id"),
        (step("id", json!("a\nb")), "configJson.steps[1].id"),
        (step("title", json!(" ")), "configJson.steps[1].title"),
        (step("title", json!(1)), "configJson.steps[1].title"),
        (
            step("description", json!("x".repeat(2001))),
            "configJson.steps[1].description",
        ),
        (step("fields", json!("x")), "configJson.steps[1].fields"),
        (step("fields", json!([])), "configJson.steps[1].fields"),
        (step("fields", json!({})), "configJson.steps[1].fields"),
        (
            step("fields", json!({"type": "string"})),
            "configJson.steps[1].fields",
        ),
        (
            step("fields", json!({"properties": {"a": 1}})),
            "configJson.steps[1].fields",
        ),
        (
            step(
                "fields",
                json!({"type": "object", "title": "x".repeat(65_536)}),
            ),
            "configJson.steps[1].fields",
        ),
        (
            submit("externalEndpointId", json!("x")),
            "configJson.steps[1].submit.externalEndpointId",
        ),
        (
            submit("path", json!("v1")),
            "configJson.steps[1].submit.path",
        ),
        (
            submit("path", json!("//example.com")),
            "configJson.steps[1].submit.path",
        ),
        (
            submit("path", Value::Null),
            "configJson.steps[1].submit.path",
        ),
        (
            submit("method", json!("TRACE")),
            "configJson.steps[1].submit.method",
        ),
        (
            submit("method", json!("get")),
            "configJson.steps[1].submit.method",
        ),
        (
            step("external_headers", json!([])),
            "configJson.steps[1].external_headers",
        ),
        (
            step("external_headers", json!({"a b": "x"})),
            "configJson.steps[1].external_headers",
        ),
        (
            step("external_headers", json!({"x": "a\r\nb: c"})),
            "configJson.steps[1].external_headers.x",
        ),
        (
            step("external_headers", json!({"x": 1})),
            "configJson.steps[1].external_headers.x",
        ),
    ] {
        for request in [client.post(UIS).json(&body), client.patch(&one).json(&body)] {
            assert_eq!(
                request.call().await.expect(400).problem().errors[0].field,
                field,
                "{body}"
            );
        }
    }
    // Each step may be as large as this, all of them together may not.
    let large = |id: &str| json!({"id": id, "title": "x", "fields": {"type": "object", "title": "x".repeat(40_000)}});
    let body = body("configJson", json!({"steps": [large("a"), large("b")]}));
    assert_eq!(
        client
            .post(UIS)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem()
            .errors[0]
            .field,
        "configJson"
    );
    let headers: Value = (0..65)
        .map(|at| (format!("x-{at}"), json!("x")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let body = step("external_headers", headers);
    let refused = client
        .post(UIS)
        .json(&body)
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(
        refused.errors[0].field,
        "configJson.steps[1].external_headers"
    );
}

on_each_database!(bad_manuals_are_refused_with_the_member);
async fn bad_manuals_are_refused_with_the_member(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let device_uuid = device(client).await;
    let base =
        json!({"deviceUuid": device_uuid, "title": "x", "format": "MARKDOWN", "content": "x"});
    let link = json!({"deviceUuid": device_uuid, "title": "x", "format": "LINK", "url": "https://example.com"});
    post(client, MANUALS, &link).await;
    for (base, member, value, field) in [
        (&base, "title", json!(""), "title"),
        (&base, "title", json!("x".repeat(201)), "title"),
        (&base, "locale", json!("english"), ""),
        (&base, "locale", json!("en_GB"), "locale"),
        (&base, "format", json!("PDF"), "format"),
        (&base, "content", Value::Null, "content"),
        (&base, "content", json!(" \n"), "content"),
        (&base, "content", json!("\u{0}"), "content"),
        (&base, "content", json!("x".repeat(65_537)), "content"),
        (&base, "content", json!("ä".repeat(32_769)), "content"),
        (&base, "url", json!("https://example.com"), "url"),
        (&link, "url", Value::Null, "url"),
        (&link, "url", json!("javascript:alert(1)"), "url"),
        (&link, "url", json!("ftp://example.com"), "url"),
        (
            &link,
            "url",
            json!(format!("https://example.com/{}", "x".repeat(2000))),
            "url",
        ),
        (&link, "content", json!("x"), "content"),
    ] {
        let mut body = base.clone();
        body[member] = value;
        let reply = client.post(MANUALS).json(&body).call().await;
        match field {
            // Up to eight letters have the shape of a language.
            "" => drop(reply.expect(200)),
            field => assert_eq!(reply.expect(400).problem().errors[0].field, field, "{body}"),
        }
    }
}

on_each_database!(bad_actions_are_refused_with_the_place);
async fn bad_actions_are_refused_with_the_place(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let with = |base: Value, pointer: &str, value: Value| {
        let mut body = base;
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        body.pointer_mut(parent).expect("a parent")[name] = value;
        body
    };
    let http = |member: &str, value: Value| {
        with(on("a", Uuid::nil()), &format!("/transport/{member}"), value)
    };
    let gatt =
        |member: &str, value: Value| with(dim("a"), &format!("/transport/steps/0/{member}"), value);
    let step = json!({"service": "180f", "characteristic": "2a19", "operation": "READ"});
    let third = |member: &str, value: Value| {
        let mut last = step.clone();
        last[member] = value;
        with(dim("a"), "/transport/steps", json!([step, step, last]))
    };
    for (body, field) in [
        (
            with(on("a", Uuid::nil()), "/actionId", json!("")),
            "actionId",
        ),
        (
            with(on("a", Uuid::nil()), "/actionId", json!("A")),
            "actionId",
        ),
        (
            with(on("a", Uuid::nil()), "/actionId", json!("a/b")),
            "actionId",
        ),
        (
            with(on("a", Uuid::nil()), "/actionId", json!("a".repeat(65))),
            "actionId",
        ),
        (with(on("a", Uuid::nil()), "/name", json!(" ")), "name"),
        (
            with(
                on("a", Uuid::nil()),
                "/description",
                json!("x".repeat(2001)),
            ),
            "description",
        ),
        (
            with(on("a", Uuid::nil()), "/deviceUuid", json!("x")),
            "deviceUuid",
        ),
        (
            with(on("a", Uuid::nil()), "/confirm", json!("yes")),
            "confirm",
        ),
        (
            with(
                on("a", Uuid::nil()),
                "/parameters",
                json!({"type": "array"}),
            ),
            "parameters",
        ),
        (
            with(on("a", Uuid::nil()), "/parameters", json!([])),
            "parameters",
        ),
        (
            with(
                on("a", Uuid::nil()),
                "/parameters",
                json!({"type": "object", "title": "x".repeat(65_536)}),
            ),
            "parameters",
        ),
        (
            with(on("a", Uuid::nil()), "/transport", Value::Null),
            "transport",
        ),
        (http("kind", json!("SMS")), "transport.kind"),
        (http("methd", json!("GET")), "transport.methd"),
        (http("method", json!("HEAD")), "transport.method"),
        (http("method", Value::Null), "transport.method"),
        (http("path", json!("a")), "transport.path"),
        (http("path", Value::Null), "transport.path"),
        (
            http("externalEndpointId", Value::Null),
            "transport.externalEndpointId",
        ),
        (
            http("externalEndpointId", json!(7)),
            "transport.externalEndpointId",
        ),
        (http("steps", json!([step])), "transport.steps"),
        (
            with(dim("a"), "/transport/path", json!("/")),
            "transport.path",
        ),
        (
            with(dim("a"), "/transport/steps", Value::Null),
            "transport.steps",
        ),
        (
            with(dim("a"), "/transport/steps", json!([])),
            "transport.steps",
        ),
        (
            with(dim("a"), "/transport/steps", json!(vec![&step; 65])),
            "transport.steps",
        ),
        (gatt("service", json!("180")), "transport.steps[0].service"),
        (
            gatt("characteristic", json!("xxxx")),
            "transport.steps[0].characteristic",
        ),
        (
            gatt("operation", json!("ERASE")),
            "transport.steps[0].operation",
        ),
        (
            gatt("timeoutMillis", json!(0)),
            "transport.steps[0].timeoutMillis",
        ),
        (
            gatt("timeoutMillis", json!(120_001)),
            "transport.steps[0].timeoutMillis",
        ),
        (
            gatt("timeoutMilis", json!(1)),
            "transport.steps[0].timeoutMilis",
        ),
        (gatt("value", Value::Null), "transport.steps[0].value"),
        (gatt("value", json!("0")), "transport.steps[0].value"),
        (gatt("value", json!("{levl}")), "transport.steps[0].value"),
        (gatt("value", json!(7)), "transport.steps[0].value"),
        (gatt("value", json!([])), "transport.steps[0].value"),
        (
            gatt("value", json!([{"hex": "01"}, {"hex": "0"}])),
            "transport.steps[0].value[1].hex",
        ),
        (
            gatt("value", json!([{"hex": "{level}"}])),
            "transport.steps[0].value[0].hex",
        ),
        (
            gatt("value", json!([{"hex": "01", "type": "u8"}])),
            "transport.steps[0].value[0].type",
        ),
        (
            gatt("value", json!([{"parameter": "levl", "type": "u8"}])),
            "transport.steps[0].value[0].parameter",
        ),
        (
            gatt("value", json!([{"parameter": "level", "type": "u9"}])),
            "transport.steps[0].value[0].type",
        ),
        (
            gatt("value", json!([{"parameter": "level"}])),
            "transport.steps[0].value[0].type",
        ),
        (
            gatt("value", json!([{"hex": "01", "more": 1}])),
            "transport.steps[0].value[0].more",
        ),
        (gatt("value", json!(["01"])), "transport.steps[0].value[0]"),
        (third("value", json!("01")), "transport.steps[2].value"),
        (
            third("operation", json!("WRITE_WITHOUT_RESPONSE")),
            "transport.steps[2].value",
        ),
    ] {
        let refused = client
            .post(ACTIONS)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, field, "{body}");
    }
    let parts = json!([{"hex": "01ff"}, {"parameter": "level", "type": "u16le"}]);
    let made = define(client, &gatt("value", parts.clone())).await;
    assert_eq!(made["transport"]["steps"][0]["value"], parts);
    let one = format!("{ACTIONS}/a");
    for (body, field) in [
        (json!({"name": ""}), "name"),
        (
            json!({"parameters": {"type": "object"}}),
            "transport.steps[0].value[1].parameter",
        ),
        (
            json!({"transport": {"kind": "HTTP"}}),
            "transport.externalEndpointId",
        ),
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
}

on_each_database!(a_tenant_has_so_many_pages);
async fn a_tenant_has_so_many_pages(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let device_uuid: Uuid = device(client).await.parse().expect("a uuid");
    let now = app.app.clock.now();
    let mut tx = app.app.db.begin().await.expect("a transaction");
    for number in 0..1000_i64 {
        sql(
            "INSERT INTO device_ui_schemas (tenant_uuid, device_uuid, kind, name, config, \
             revision, created_at, updated_at) VALUES ($1, $2, 'SETUP', 'x', $4, 1, $3, $3)",
        )
        .bind((tenant.tenant_uuid, device_uuid, now, r#"{"steps": []}"#))
        .execute(&mut tx)
        .await
        .expect("a form");
        let content = if number < 50 {
            "x".repeat(200_000)
        } else {
            "x".to_owned()
        };
        sql(
            "INSERT INTO device_manuals (tenant_uuid, device_uuid, title, format, content, \
             created_at, updated_at) VALUES ($1, $2, 'x', 'MARKDOWN', $4, $3, $3)",
        )
        .bind((tenant.tenant_uuid, device_uuid, now, content))
        .execute(&mut tx)
        .await
        .expect("a manual");
        sql(
            "INSERT INTO action_definitions (tenant_uuid, action_id, name, confirm, transport, \
             created_at, updated_at) VALUES ($1, $2, 'x', $4, '{}', $3, $3)",
        )
        .bind((tenant.tenant_uuid, number.to_string(), now, false))
        .execute(&mut tx)
        .await
        .expect("an action");
    }
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    let config = json!({"steps": [{"id": "a", "title": "A"}]});
    for (path, body, code) in [
        (
            UIS,
            json!({"deviceUuid": device_uuid, "kind": "SETUP", "name": "x", "configJson": config}),
            "TOO_MANY_UI_SCHEMAS",
        ),
        (
            MANUALS,
            json!({"deviceUuid": device_uuid, "title": "x", "format": "MARKDOWN", "content": "x"}),
            "TOO_MANY_MANUALS",
        ),
        (ACTIONS, on("on", Uuid::nil()), "TOO_MANY_ACTIONS"),
    ] {
        assert_eq!(
            client
                .post(path)
                .json(&body)
                .call()
                .await
                .expect(409)
                .problem()
                .code,
            code
        );
    }
    // The oldest ones are large: a page of them is asked for in parts.
    let refused = client
        .get(&format!("{MANUALS}?size=100&page=10"))
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(refused.errors[0].field, "size");
    client
        .get(&format!("{MANUALS}?size=10&page=100"))
        .call()
        .await
        .expect(200);
}
