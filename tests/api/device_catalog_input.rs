//! What the device catalog refuses, and that it says which member is at fault; how much of
//! everything there may be.

use hub_base::db::sql;
use hub_tests::{Backend, Call, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

use super::device_catalog::{
    MODELS, PROTOCOLS, TEST_RUN, VERSIONS, battery, model, patch, post, text,
};

on_each_database!(bad_models_are_refused_with_the_member);
async fn bad_models_are_refused_with_the_member(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = model(client, "Button").await;
    let metric =
        |metric: Value| json!({"name": "x", "metrics": [{"quantity": "humidity"}, metric]});
    for (body, field) in [
        (json!({"name": " "}), "name"),
        (json!({"name": "x".repeat(201)}), "name"),
        (json!({"name": "a\nb"}), "name"),
        (json!({"name": "x", "brand": "x".repeat(201)}), "brand"),
        (
            json!({"name": "x", "description": "x".repeat(2001)}),
            "description",
        ),
        (
            json!({"name": "x", "aliases": ["a", "b\u{7}"]}),
            "aliases[1]",
        ),
        (json!({"name": "x", "aliases": vec!["a"; 257]}), "aliases"),
        (json!({"name": "x", "aliases": [1]}), "aliases[0]"),
        (
            json!({"name": "x", "imageUrl": "javascript:alert(1)"}),
            "imageUrl",
        ),
        (
            json!({"name": "x", "imageUrl": "data:text/html,x"}),
            "imageUrl",
        ),
        (
            json!({"name": "x", "imageUrl": "//example.com/x.png"}),
            "imageUrl",
        ),
        (
            json!({"name": "x", "expectedIntervalSeconds": -1}),
            "expectedIntervalSeconds",
        ),
        (
            json!({"name": "x", "expectedIntervalSeconds": 604_801}),
            "expectedIntervalSeconds",
        ),
        (
            json!({"name": "x", "referencePowerDbm": 21}),
            "referencePowerDbm",
        ),
        (
            json!({"name": "x", "referencePowerDbm": -128}),
            "referencePowerDbm",
        ),
        (json!({"name": "x", "autoRegister": "yes"}), "autoRegister"),
        (
            metric(json!({"quantity": "temperatur"})),
            "metrics[1].quantity",
        ),
        (
            metric(json!({"quantity": "humidity"})),
            "metrics[1].quantity",
        ),
        (
            metric(json!({"quantity": "temperature", "min": 2, "max": 1})),
            "metrics[1].max",
        ),
        (
            metric(json!({"quantity": "temperature", "kind": "GUESS"})),
            "metrics[1].kind",
        ),
        (metric(json!({})), "metrics[1].quantity"),
    ] {
        let refused = client
            .post(MODELS)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, field, "{body}");
        let refused = client
            .patch(&path)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, field, "{body}");
    }
    for (body, field) in [
        (json!({}), "name"),
        (json!({"template": "ruuvi"}), "template"),
        (json!({"template": "ruuvi/none", "name": "x"}), "template"),
        (json!({"template": 1}), "template"),
    ] {
        assert_eq!(
            client
                .post(MODELS)
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

on_each_database!(bad_identifiers_are_refused_with_the_condition);
async fn bad_identifiers_are_refused_with_the_condition(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = format!("{}/identifiers", model(client, "Button").await);
    let name = json!({"kind": "NAME", "value": "x"});
    for (kind, value) in [
        ("MANUFACTURER_ID", "499"),
        ("MANUFACTURER_ID", "0499:"),
        ("MANUFACTURER_PREFIX", "0499"),
        ("MANUFACTURER_PREFIX", "0499:0"),
        ("MANUFACTURER_PREFIX", "0499:xx"),
        ("SERVICE_UUID", "180"),
        ("SERVICE_DATA_UUID", "fcd2-"),
        ("SERVICE_DATA_PREFIX", "fcd2:"),
        ("NAME", ""),
        ("NAME_PREFIX", &"x".repeat(249)),
        ("ADDRESS_PREFIX", "C4:11:22:33:44:55:66"),
        ("IBEACON", "01020304-0506-0708-090a-0b0c0d0e0f10/65536"),
        ("IBEACON", "01020304-0506-0708-090a-0b0c0d0e0f10/1/2/3"),
        ("EDDYSTONE_UID", "010203"),
        ("PAYLOAD_LENGTH", "0499"),
        ("PAYLOAD_LENGTH", "0499:1651"),
    ] {
        let refuse = async |body: Value, field: &str| {
            let refused = client
                .post(&path)
                .json(&body)
                .call()
                .await
                .expect(400)
                .problem();
            assert_eq!(refused.errors[0].field, field, "{body}");
        };
        let second = if kind.starts_with("NAME") {
            json!({"kind": "SERVICE_UUID", "value": "180f"})
        } else {
            name.clone()
        };
        let condition = json!({"kind": kind, "value": value});
        refuse(condition.clone(), "value").await;
        refuse(
            json!({"conditions": [second, condition]}),
            "conditions[1].value",
        )
        .await;
    }
    let prefix =
        |mask: &str| json!({"kind": "MANUFACTURER_PREFIX", "value": "0499:05", "mask": mask});
    for (body, field) in [
        (json!({}), "conditions"),
        (json!({"label": "x"}), "conditions"),
        (json!({"conditions": []}), "conditions"),
        (json!({"conditions": vec![name.clone(); 9]}), "conditions"),
        (json!({"conditions": [name], "kind": "NAME"}), "kind"),
        (json!({"conditions": [name], "value": "x"}), "value"),
        (json!({"conditions": [name], "mask": "ff"}), "mask"),
        (json!({"kind": "NAME"}), "value"),
        (json!({"value": "x"}), "kind"),
        (json!({"kind": "SMELL", "value": "x"}), "kind"),
        (
            json!({"conditions": [{"kind": "SMELL", "value": "x"}]}),
            "conditions[0].kind",
        ),
        (
            json!({"conditions": [{"value": "x"}]}),
            "conditions[0].kind",
        ),
        (
            json!({"conditions": [{"kind": "NAME"}]}),
            "conditions[0].value",
        ),
        (json!({"kind": "NAME", "value": "x", "mask": "ff"}), "mask"),
        (prefix("ffff"), "mask"),
        (prefix("f"), "mask"),
        (
            json!({"conditions": [{"kind": "MANUFACTURER_ID", "value": "0499"}, prefix("xx")]}),
            "conditions[1].mask",
        ),
        (
            json!({"conditions": [prefix("ff"), {"kind": "MANUFACTURER_PREFIX", "value": "0499:06"}]}),
            "conditions[1].value",
        ),
        (
            json!({"conditions": [name, {"kind": "NAME_PREFIX", "value": "y"}]}),
            "conditions[1].value",
        ),
        (
            json!({"kind": "ADDRESS_PREFIX", "value": ":".repeat(301)}),
            "value",
        ),
        (
            json!({"kind": "NAME", "value": "x", "label": "x".repeat(201)}),
            "label",
        ),
        (
            json!({"kind": "NAME", "value": "x", "notes": "x".repeat(2001)}),
            "notes",
        ),
    ] {
        let refused = client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, field, "{body}");
    }
    let made = post(client, &path, &name).await;
    let refused = client
        .patch(&format!("{path}/{}", made["id"]))
        .json(&json!({"label": "\u{0}"}))
        .call()
        .await;
    assert_eq!(refused.expect(400).problem().errors[0].field, "label");
}

on_each_database!(bad_protocols_are_refused_with_the_place);
async fn bad_protocols_are_refused_with_the_place(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = model(client, "Button").await;
    let device_uuid = path.rsplit('/').next().unwrap_or_default();
    let with = |kind: &str, definition: Value, tests: Value| json!({"deviceUuid": device_uuid, "name": "x", "kind": kind, "definition": definition, "tests": tests});
    let declared = |definition: Value| with("DECLARATIVE", definition, json!([]));
    let tested = |test: Value| {
        with(
            "DECLARATIVE",
            battery(),
            json!([{"manufacturerData": {"0499": "01"}, "expect": {}}, test]),
        )
    };
    let reads = |step: Value| {
        declared(
            json!({"match": {"manufacturer": "0499"}, "read": [{"quantity": "battery", "at": 0}, step]}),
        )
    };
    let mut deep = json!(1);
    for _ in 0..70 {
        deep = json!([deep]);
    }
    for (body, field) in [
        (
            with("SCRIPT", json!({"source": "x"}), json!([])),
            "definition/source",
        ),
        (
            with("SCRIPT", json!({"source": 7}), json!([])),
            "definition/source",
        ),
        (
            with(
                "SCRIPT",
                json!({"source": "function decode() {} // \0"}),
                json!([]),
            ),
            "definition/source",
        ),
        (
            with(
                "SCRIPT",
                json!({"source": "function decode() {}", "more": 1}),
                json!([]),
            ),
            "definition/more",
        ),
        (with("SCRIPT", json!({}), json!([])), "definition"),
        (
            with("SCRIPT", json!("function decode() {}"), json!([])),
            "definition",
        ),
        (
            with("SCRIPT", json!({"source": " ".repeat(65_536)}), json!([])),
            "definition",
        ),
        (
            with(
                "SCRIPT",
                json!({"source": "function decode() {}"}),
                json!([{"expect": {"battery": 1}}]),
            ),
            "tests[0].expect.battery",
        ),
        (
            with(
                "SCRIPT",
                json!({"source": "function decode() {}"}),
                json!([{"expect": 1}]),
            ),
            "tests[0].expect",
        ),
        (with("MAGIC", json!({}), json!([])), "kind"),
        (
            with("BUILTIN", json!({"decoder": "none"}), json!([])),
            "definition/decoder",
        ),
        (with("BUILTIN", json!({}), json!([])), "definition"),
        (
            with("BUILTIN", json!({"decoder": "ruuvi", "more": 1}), json!([])),
            "definition/more",
        ),
        (declared(json!({})), "definition"),
        (declared(json!("x")), "definition"),
        (
            declared(json!({"match": {"manufacturer": "0499"}, "raed": []})),
            "definition/raed",
        ),
        (
            reads(json!({"quantity": "temperature", "at": 0, "scal": 2})),
            "definition/read/1/scal",
        ),
        (
            reads(json!({"quantity": "temperatur", "at": 0})),
            "definition/read/1/quantity",
        ),
        (
            declared(json!({"match": {"manufacturer": "0499"}, "comment": "x".repeat(65_536)})),
            "definition",
        ),
        (declared(deep), "definition"),
        (
            with(
                "DECLARATIVE",
                battery(),
                json!([{"expect": {"battery": "x".repeat(65_536)}}]),
            ),
            "tests",
        ),
        (
            with(
                "DECLARATIVE",
                battery(),
                json!(vec![json!({"expect": {}}); 257]),
            ),
            "tests",
        ),
        (with("DECLARATIVE", battery(), json!({})), "tests"),
        (
            tested(json!({"expect": {"battery": 1}})),
            "tests[1].expect.battery",
        ),
        (
            tested(json!({"manufacturerData": {"0499": "02"}, "expect": {"battery": 1}})),
            "tests[1].expect.battery",
        ),
        (
            tested(json!({"manufacturerData": {"0499": "02"}, "expect": {"battery": null}})),
            "tests[1].expect.battery",
        ),
        (
            tested(json!({"manufacturerData": {"0499": "02"}, "expect": {"battery": []}})),
            "tests[1].expect.battery",
        ),
        (
            tested(json!({"manufacturerData": {"0499": "02"}})),
            "tests[1]",
        ),
        (
            tested(json!({"manufacturerDate": {}, "expect": {}})),
            "tests[1].manufacturerDate",
        ),
        (
            tested(json!({"serviceData": {"fcd2": "0"}, "expect": {}})),
            "tests[1].serviceData.fcd2",
        ),
        (
            tested(json!({"secrets": {"bindKey": "00"}, "expect": {}})),
            "tests[1].secrets.bindKey",
        ),
        (tested(json!(7)), "tests[1]"),
    ] {
        let refused = client
            .post(PROTOCOLS)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(refused.errors[0].field, field, "{body}");
        assert!(!refused.errors[0].message.is_empty());
        // To try it is refused at the same place; a test that fails is an answer.
        let mut draft = body.clone();
        draft
            .as_object_mut()
            .expect("an object")
            .retain(|member, _| !["deviceUuid", "name"].contains(&member.as_str()));
        let tried = client.post(TEST_RUN).json(&draft).call().await;
        match tried.status.as_u16() {
            200 => {
                let tried: Value = tried.data();
                let failed = tried["tests"]
                    .as_array()
                    .expect("tests")
                    .iter()
                    .position(|test| test["passed"] == false);
                let (at, quantity) = failed
                    .map(|at| (at, &tried["tests"][at]["differing"][0]))
                    .expect("a failed test");
                assert_eq!(
                    format!(
                        "tests[{at}].expect.{}",
                        quantity.as_str().unwrap_or_default()
                    ),
                    field,
                    "{body}"
                );
            }
            _ => assert_eq!(tried.expect(400).problem().errors[0].field, field, "{body}"),
        }
    }
    let failing = tested(json!({"manufacturerData": {"0498": "02"}, "expect": {"battery": 2}}));
    let message = client
        .post(PROTOCOLS)
        .json(&failing)
        .call()
        .await
        .expect(400)
        .problem()
        .errors[0]
        .message
        .clone();
    assert!(
        message.starts_with("battery is absent, expected is 2; "),
        "{message}"
    );
    for (member, value) in [
        ("name", json!(" ")),
        ("deviceUuid", json!("x")),
        ("definition", Value::Null),
    ] {
        let mut body = declared(battery());
        body[member] = value;
        let refused = client
            .post(PROTOCOLS)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert!(refused.errors[0].field.starts_with(member), "{refused:?}");
    }
    let unknown = json!({"deviceUuid": Uuid::new_v4(), "name": "x", "kind": "DECLARATIVE", "definition": battery()});
    client
        .post(PROTOCOLS)
        .json(&unknown)
        .call()
        .await
        .expect(404);

    let made = post(client, PROTOCOLS, &declared(battery())).await;
    let one = format!("{PROTOCOLS}/{}", made["deviceProtocolId"]);
    for (body, field) in [
        (json!({"kind": "SCRIPT"}), "definition/match"),
        (json!({"definition": {}}), "definition"),
        (json!({"name": ""}), "name"),
        (
            json!({"tests": [{"expect": {"battery": 1}}]}),
            "tests[0].expect.battery",
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
    assert_eq!(
        patch(client, &one, &json!({"definition": null, "tests": null})).await,
        made
    );
}

on_each_database!(bad_versions_are_refused_with_the_member);
async fn bad_versions_are_refused_with_the_member(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = model(client, "Button").await;
    let device_uuid = path.rsplit('/').next().unwrap_or_default();
    let made = post(
        client,
        VERSIONS,
        &json!({"deviceUuid": device_uuid, "version": "1"}),
    )
    .await;
    let one = format!("{VERSIONS}/{}", text(&made["deviceVersionUuid"]));
    for (member, value) in [
        ("version", json!("")),
        ("version", json!("x".repeat(201))),
        ("hardwareVersion", json!("a\tb")),
        ("firmwareVersion", json!(7)),
        ("notes", json!("x".repeat(2001))),
        ("deviceProtocolId", json!(-1)),
        ("deviceProtocolId", json!(4_242_424_242_u64)),
        ("released", json!("no")),
    ] {
        let mut body = json!({"deviceUuid": device_uuid, "version": "2"});
        body[member] = value;
        for request in [
            client.post(VERSIONS).json(&body),
            client.patch(&one).json(&body),
        ] {
            assert_eq!(
                request.call().await.expect(400).problem().errors[0].field,
                member,
                "{body}"
            );
        }
    }
    client
        .post(VERSIONS)
        .json(&json!({"deviceUuid": Uuid::new_v4(), "version": "1"}))
        .call()
        .await
        .expect(404);
}

on_each_database!(a_tenant_has_so_many_models_and_a_model_so_much);
async fn a_tenant_has_so_many_models_and_a_model_so_much(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = model(client, "Button").await;
    let device_uuid: Uuid = path
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .parse()
        .expect("a uuid");
    let now = app.app.clock.now();
    let mut tx = app.app.db.begin().await.expect("a transaction");
    for number in 0..999_i64 {
        sql(
            "INSERT INTO device_models (device_uuid, tenant_uuid, name, aliases, auto_register, \
             metrics, created_at, updated_at) VALUES ($1, $2, 'x', '[]', $4, '[]', $3, $3)",
        )
        .bind((Uuid::new_v4(), tenant.tenant_uuid, now, false))
        .execute(&mut tx)
        .await
        .expect("a model");
        if number < 512 {
            sql(
                "INSERT INTO device_identifiers (tenant_uuid, device_uuid, conditions, \
                 specificity, created_at) VALUES ($1, $2, '[]', 0, $3)",
            )
            .bind((tenant.tenant_uuid, device_uuid, now))
            .execute(&mut tx)
            .await
            .expect("an identifier");
        }
        if number < 32 {
            sql(
                "INSERT INTO device_protocols (tenant_uuid, device_uuid, name, kind, definition, \
                 tests, revision, created_at, updated_at) \
                 VALUES ($1, $2, 'x', 'BUILTIN', '{}', $4, 1, $3, $3)",
            )
            .bind((
                tenant.tenant_uuid,
                device_uuid,
                now,
                json!([{"name": "x".repeat(400_000)}]).to_string(),
            ))
            .execute(&mut tx)
            .await
            .expect("a protocol");
        }
        if number < 256 {
            sql(
                "INSERT INTO device_versions (device_version_uuid, tenant_uuid, device_uuid, \
                 version, released, created_at, updated_at) VALUES ($1, $2, $3, $4, $6, $5, $5)",
            )
            .bind((
                Uuid::new_v4(),
                tenant.tenant_uuid,
                device_uuid,
                number.to_string(),
                now,
                false,
            ))
            .execute(&mut tx)
            .await
            .expect("a version");
        }
    }
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
    let protocol = json!({"deviceUuid": device_uuid, "name": "x", "kind": "BUILTIN", "definition": {"decoder": "ruuvi"}});
    for (path, body, code) in [
        (MODELS, json!({"name": "x"}), "TOO_MANY_MODELS"),
        (
            &format!("{path}/identifiers"),
            json!({"kind": "NAME", "value": "x"}),
            "TOO_MANY_IDENTIFIERS",
        ),
        (PROTOCOLS, protocol, "TOO_MANY_PROTOCOLS"),
        (
            VERSIONS,
            json!({"deviceUuid": device_uuid, "version": "x"}),
            "TOO_MANY_VERSIONS",
        ),
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
    // A page that would be too large is asked for in parts.
    let refused = client
        .get(&format!("{PROTOCOLS}?size=100"))
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(refused.errors[0].field, "size");
    let listed = client
        .get(&format!("{PROTOCOLS}?size=10"))
        .call()
        .await
        .expect(200);
    assert_eq!(listed.header("x-total-count"), "32");
    client.delete(&path).call().await.expect(200);
}
