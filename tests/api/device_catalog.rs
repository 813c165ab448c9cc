//! `/tenant/device-catalog`, `/tenant/device-protocols` and `/tenant/device-versions`: the device
//! models of a tenant, how they are recognised and how they are read.

use futures_util::future::join_all;
use hub_base::db::sql;
use hub_devices::device_catalog;
use hub_identity::authz::Scope;
use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, Client, Reply, Tenant, TestApp, devices, on_each_database};
use serde_json::{Value, json};
use uuid::Uuid;

pub const MODELS: &str = "/tenant/device-catalog";
pub const PROTOCOLS: &str = "/tenant/device-protocols";
pub const TEST_RUN: &str = "/tenant/device-protocols/test-run";
pub const VERSIONS: &str = "/tenant/device-versions";

/// A decoder of one byte, and a frame that it reads.
pub fn battery() -> Value {
    json!({"match": {"manufacturer": "0499", "length": 1}, "read": [{"quantity": "battery", "at": 0}]})
}

pub async fn post(client: &Client, path: &str, body: &Value) -> Value {
    client.post(path).json(body).call().await.expect(200).data()
}

pub async fn patch(client: &Client, path: &str, body: &Value) -> Value {
    client
        .patch(path)
        .json(body)
        .call()
        .await
        .expect(200)
        .data()
}

pub async fn get(client: &Client, path: &str) -> Value {
    client.get(path).call().await.expect(200).data()
}

/// A new model; answers its path.
pub async fn model(client: &Client, name: &str) -> String {
    format!(
        "{MODELS}/{}",
        text(&post(client, MODELS, &json!({"name": name})).await["deviceUuid"])
    )
}

pub fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

fn uuid_in(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

async fn revision(app: &TestApp, tenant: &Tenant) -> i64 {
    let mut conn = app.app.db.read().await.expect("a connection");
    let found: Option<i64> = sql("SELECT revision FROM catalog_revisions WHERE tenant_uuid = $1")
        .bind(tenant.tenant_uuid)
        .optional_scalar(&mut conn)
        .await
        .expect("a revision");
    found.unwrap_or_default()
}

on_each_database!(model_of_the_library_comes_with_everything);
async fn model_of_the_library_comes_with_everything(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let body = json!({"template": "ruuvi/ruuvitag", "name": " Tag ", "autoRegister": true, "category": ""});
    let made = post(client, MODELS, &body).await;
    assert_eq!(
        (
            text(&made["name"]),
            text(&made["brand"]),
            text(&made["template"])
        ),
        ("Tag", "Ruuvi", "ruuvi/ruuvitag")
    );
    assert_eq!(
        (&made["autoRegister"], &made["expectedIntervalSeconds"]),
        (&json!(true), &json!(10))
    );
    assert_eq!(
        (&made["category"], &made["aliases"]),
        (&Value::Null, &json!(["RuuviTag Pro"]))
    );
    assert_eq!(
        made["metrics"][0],
        json!({"quantity": "temperature", "unit": "Cel", "kind": "MEASUREMENT", "min": null, "max": null})
    );
    assert_eq!(
        (&made["identifierCount"], &made["instanceCount"]),
        (&json!(3), &json!(0))
    );
    let path = format!("{MODELS}/{}", text(&made["deviceUuid"]));
    assert_eq!(get(client, &path).await, made);

    let identifiers = get(client, &format!("{path}/identifiers")).await;
    assert_eq!(
        identifiers[0]["conditions"],
        json!([{"kind": "MANUFACTURER_PREFIX", "value": "0499:05"}])
    );
    assert_eq!(identifiers[0]["specificity"], 24);
    let of_model = format!("{PROTOCOLS}?deviceUuid={}", text(&made["deviceUuid"]));
    let protocols = get(client, &of_model).await;
    assert_eq!(
        (&protocols[0]["kind"], &protocols[0]["definition"]),
        (&json!("BUILTIN"), &json!({"decoder": "ruuvi"}))
    );
    assert_eq!(
        get(
            client,
            &format!("{PROTOCOLS}/devices/{}", text(&made["deviceUuid"]))
        )
        .await,
        made
    );

    // All of it can be changed.
    let changed = patch(
        client,
        &path,
        &json!({"metrics": [{"quantity": "humidity", "min": 0}], "brand": "", "name": null}),
    )
    .await;
    assert_eq!(
        changed["metrics"],
        json!([{"quantity": "humidity", "unit": "%RH", "kind": "MEASUREMENT", "min": 0.0, "max": null}])
    );
    assert_eq!(
        (&changed["brand"], &changed["name"]),
        (&Value::Null, &json!("Tag"))
    );
    let unknown = json!({"expectedIntervalSeconds": 0, "referencePowerDbm": -59});
    let changed = patch(client, &path, &unknown).await;
    assert_eq!(
        (
            &changed["expectedIntervalSeconds"],
            &changed["referencePowerDbm"]
        ),
        (&Value::Null, &json!(-59))
    );
    assert_eq!(
        patch(client, &path, &json!({"referencePowerDbm": 127})).await["referencePowerDbm"],
        Value::Null
    );

    // The same frames would be of either model.
    let problem = client
        .post(MODELS)
        .json(&json!({"template": "ruuvi/ruuvitag"}))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "IDENTIFIER_TIE");
    assert!(
        problem.message.contains(text(&made["deviceUuid"])),
        "{}",
        problem.message
    );
    let listed = client.get(MODELS).call().await.expect(200);
    assert_eq!(
        listed.header("x-total-count"),
        "1",
        "nothing of the refused model stays"
    );
}

on_each_database!(every_template_makes_a_model);
async fn every_template_makes_a_model(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let mut keys = Vec::new();
    for page in 1..=2 {
        let listed = get(
            &tenant.client,
            &format!("/public/device-library?size=100&page={page}"),
        )
        .await;
        keys.extend(
            listed
                .as_array()
                .into_iter()
                .flatten()
                .map(|model| text(&model["key"]).to_owned()),
        );
    }
    assert!(keys.len() > 100, "{} models", keys.len());
    for key in keys {
        let made = post(&tenant.client, MODELS, &json!({"template": key})).await;
        let known = get(&tenant.client, &format!("/public/device-library/{key}")).await;
        assert_eq!(
            Some(&made["identifierCount"]),
            known["identifiers"]
                .as_array()
                .map(|all| json!(all.len()))
                .as_ref()
        );
        // What came with it is as a request may have it.
        let of_model = format!("{PROTOCOLS}?deviceUuid={}", text(&made["deviceUuid"]));
        let protocol = get(&tenant.client, &of_model).await[0].clone();
        assert_eq!(
            protocol["definition"], known["protocol"]["definition"],
            "{key}"
        );
        let body = json!({
            "deviceUuid": made["deviceUuid"], "name": "again", "kind": protocol["kind"], "definition": protocol["definition"]
        });
        post(&tenant.client, PROTOCOLS, &body).await;
    }
}

on_each_database!(identifiers_are_made_in_both_forms_and_described);
async fn identifiers_are_made_in_both_forms_and_described(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = format!("{}/identifiers", model(client, "Door sensor").await);
    let short = json!({"kind": "SERVICE_DATA_PREFIX", "value": "fcd2:40", "mask": "e0", "label": "BTHome", "notes": "a\nb"});
    let short = post(client, &path, &short).await;
    assert_eq!(
        short["conditions"],
        json!([{"kind": "SERVICE_DATA_PREFIX", "value": "fcd2:40", "mask": "e0"}])
    );
    assert_eq!(
        (&short["specificity"], &short["label"], &short["notes"]),
        (&json!(19), &json!("BTHome"), &json!("a\nb"))
    );
    let conditions = json!([
        {"kind": "MANUFACTURER_ID", "value": "0499"}, {"kind": "PAYLOAD_LENGTH", "value": "0499:24"},
        {"kind": "SERVICE_UUID", "value": "180f"}, {"kind": "NAME_PREFIX", "value": "Ruuvi", "mask": null},
        {"kind": "ADDRESS_PREFIX", "value": "C4:11"}
    ]);
    let long = post(client, &path, &json!({"conditions": conditions})).await;
    assert_eq!(long["specificity"], 16 + 8 + 16 + 5 * 8 + 16);
    for (kind, value) in [
        ("SERVICE_DATA_UUID", "0000fcd2-0000-1000-8000-00805f9b34fb"),
        ("NAME", "P-Touch"),
        ("IBEACON", "01020304-0506-0708-090a-0b0c0d0e0f10/1/2"),
        ("EDDYSTONE_UID", "0102030405060708090a/010203040506"),
    ] {
        post(client, &path, &json!({"kind": kind, "value": value})).await;
    }
    let listed = get(client, &path).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(6));
    assert_eq!(
        (&listed[0], &listed[1]),
        (&short, &long),
        "in the order of their creation"
    );

    let one = format!("{path}/{}", short["id"]);
    let described = patch(
        client,
        &one,
        &json!({"label": "all", "kind": "NAME", "value": "x"}),
    )
    .await;
    assert_eq!(
        (&described["label"], &described["notes"]),
        (&json!("all"), &json!("a\nb"))
    );
    assert_eq!(
        described["conditions"], short["conditions"],
        "other conditions are another identifier"
    );
    assert_eq!(
        patch(client, &one, &json!({"notes": ""})).await["notes"],
        Value::Null
    );
    client.delete(&one).call().await.expect(200);
    client.delete(&one).call().await.expect(404);
    client
        .patch(&one)
        .json(&json!({"label": "x"}))
        .call()
        .await
        .expect(404);
}

on_each_database!(tie_with_another_model_is_refused);
async fn tie_with_another_model_is_refused(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let (first, second) = (model(client, "First").await, model(client, "Second").await);
    let one = json!({"kind": "MANUFACTURER_PREFIX", "value": "0499:05"});
    let identifier = post(client, &format!("{first}/identifiers"), &one).await;
    // Other bits of the same payload, as many: a frame can have both.
    let tie = json!({"conditions": [{"kind": "MANUFACTURER_PREFIX", "value": "0499:0007", "mask": "00ff"}]});
    let path = format!("{second}/identifiers");
    let problem = client
        .post(&path)
        .json(&tie)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "IDENTIFIER_TIE");
    for part in ["First", uuid_in(&first), &identifier["id"].to_string()] {
        assert!(problem.message.contains(part), "{}", problem.message);
    }
    // Another value, more bits, another part of the frame: no frame is undecided.
    for (kind, value) in [
        ("MANUFACTURER_PREFIX", "0499:06"),
        ("MANUFACTURER_PREFIX", "0499:0507"),
        ("NAME_PREFIX", "abc"),
    ] {
        post(client, &path, &json!({"kind": kind, "value": value})).await;
    }
    // Within one model it does not matter, and other tenants have catalogs of their own.
    post(client, &format!("{first}/identifiers"), &one).await;
    let other = Tenant::create(&app.client()).await;
    let foreign = model(&other.client, "First").await;
    post(&other.client, &format!("{foreign}/identifiers"), &one).await;
    client.delete(&first).call().await.expect(200);
    post(client, &path, &tie).await;
}

on_each_database!(of_two_identifiers_that_tie_one_is_made);
async fn of_two_identifiers_that_tie_one_is_made(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    for round in 0..5 {
        let paths = [
            model(client, "First").await,
            model(client, "Second").await,
            model(client, "Third").await,
        ];
        let body = json!({"kind": "MANUFACTURER_PREFIX", "value": format!("0499:0{round}")});
        let requests = paths.iter().map(|path| {
            client
                .post(&format!("{path}/identifiers"))
                .json(&body)
                .call()
        });
        let mut statuses: Vec<u16> = join_all(requests)
            .await
            .iter()
            .map(|reply: &Reply| reply.status.as_u16())
            .collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409, 409]);
    }
}

on_each_database!(protocols_are_tried_and_have_revisions);
async fn protocols_are_tried_and_have_revisions(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = model(client, "Button").await;
    let device_uuid = uuid_in(&path);
    let tests = json!([{"manufacturerData": {"0499": "64"}, "expect": {"battery": 100, "temperature": null}}]);
    let body = json!({"deviceUuid": device_uuid, "name": "One", "kind": "DECLARATIVE", "definition": battery(), "tests": tests});
    let made = post(client, PROTOCOLS, &body).await;
    assert_eq!(
        (&made["revision"], &made["definition"], &made["tests"]),
        (&json!(1), &battery(), &tests)
    );
    let one = format!("{PROTOCOLS}/{}", made["deviceProtocolId"]);
    assert_eq!(get(client, &one).await, made);

    // A name and tests read nothing otherwise.
    let renamed = patch(client, &one, &json!({"name": "Two", "tests": []})).await;
    assert_eq!(
        (&renamed["revision"], &renamed["name"], &renamed["tests"]),
        (&json!(1), &json!("Two"), &json!([]))
    );
    let before = revision(&app, &tenant).await;
    let another = json!({"match": {"manufacturer": "0499"}, "read": [{"quantity": "battery", "at": 0, "scale": 0.5}]});
    let changed = patch(client, &one, &json!({"definition": another})).await;
    assert_eq!(
        (&changed["revision"], &changed["definition"]),
        (&json!(2), &another)
    );
    assert_eq!(revision(&app, &tenant).await, before + 1);
    assert_eq!(
        patch(client, &one, &json!({"definition": another})).await,
        changed,
        "the same again changes nothing"
    );
    let problem = client
        .patch(&one)
        .json(&json!({"tests": tests}))
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors[0].field, "tests[0].expect.battery");
    assert_eq!(problem.errors[0].message, "battery is 50, expected is 100");
    let problem = client
        .patch(&one)
        .json(&json!({"kind": "BUILTIN"}))
        .call()
        .await
        .expect(400)
        .problem();
    assert!(
        problem.errors[0].field.starts_with("definition/"),
        "{problem:?}"
    );
    assert_eq!(get(client, &one).await, changed);

    let newer = json!({"deviceUuid": device_uuid, "name": "Three", "kind": "BUILTIN", "definition": {"decoder": "bthome"}});
    let newer = post(client, PROTOCOLS, &newer).await;
    assert_eq!(
        get(client, PROTOCOLS).await,
        json!([newer, changed]),
        "newest first"
    );
    assert_eq!(
        get(
            client,
            &format!("{PROTOCOLS}?deviceUuid={}", Uuid::new_v4())
        )
        .await,
        json!([])
    );
    client.delete(&one).call().await.expect(200);
    client.get(&one).call().await.expect(404);
}

on_each_database!(a_protocol_is_tried_without_being_stored);
async fn a_protocol_is_tried_without_being_stored(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let before = revision(&app, &tenant).await;
    let two = json!({"match": {"manufacturer": "0499"}, "read": [
        {"quantity": "battery", "at": 0},
        {"quantity": "temperature", "at": 1, "index": 0},
        {"quantity": "temperature", "at": 2, "index": 1},
    ]});
    let frame = |expect: Value| json!({"manufacturerData": {"0499": "641415"}, "expect": expect});
    let tests = json!([
        frame(json!({})),
        frame(json!({"battery": 100, "temperature[1]": 21, "humidity": null})),
        frame(json!({"battery": 99, "temperature[0]": null})),
        {"manufacturerData": {"0498": "64"}, "expect": {}},
    ]);
    let run = post(
        client,
        TEST_RUN,
        &json!({"kind": "DECLARATIVE", "definition": two, "tests": tests}),
    )
    .await;
    let read = json!({"battery": 100, "temperature[0]": 20, "temperature[1]": 21});
    let not_mine = "the decoder does not take this frame for one of its own";
    assert_eq!(
        run["tests"],
        json!([
            {"passed": true, "values": read, "differing": [], "problem": null},
            {"passed": true, "values": read, "differing": [], "problem": null},
            {"passed": false, "values": read, "differing": ["battery", "temperature[0]"], "problem": null},
            {"passed": true, "values": {}, "differing": [], "problem": not_mine},
        ])
    );
    let source = "function decode(frame) { if (frame.name === 'null') return null; return { battery: frame.name.length }; }";
    let script = json!({"kind": "SCRIPT", "definition": {"source": source}, "tests": [
        {"name": "four", "expect": {}}, {"name": "null", "expect": {}}, {"expect": {}},
    ]});
    let run = post(client, TEST_RUN, &script).await;
    assert_eq!(run["tests"][0]["values"], json!({"battery": 4}));
    assert_eq!(
        run["tests"][1]["problem"],
        "decode returns null for this frame"
    );
    assert_eq!(
        (&run["tests"][2]["passed"], &run["tests"][2]["values"]),
        (&json!(false), &json!({}))
    );
    assert!(!text(&run["tests"][2]["problem"]).is_empty(), "{run}");
    assert_eq!(
        post(
            client,
            TEST_RUN,
            &json!({"kind": "BUILTIN", "definition": {"decoder": "ruuvi"}})
        )
        .await["tests"],
        json!([])
    );

    assert_eq!(get(client, PROTOCOLS).await, json!([]));
    assert_eq!(revision(&app, &tenant).await, before);
    let viewer = tenant.member(Role::Viewer).await;
    viewer.post(TEST_RUN).json(&script).call().await.expect(403);
}

on_each_database!(versions_may_have_a_protocol_of_their_own);
async fn versions_may_have_a_protocol_of_their_own(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let (path, other) = (model(client, "Button").await, model(client, "Other").await);
    let protocol = async |path: &str| {
        let body = json!({"deviceUuid": uuid_in(path), "name": "x", "kind": "BUILTIN", "definition": {"decoder": "ruuvi"}});
        post(client, PROTOCOLS, &body).await["deviceProtocolId"].clone()
    };
    let (own, foreign) = (protocol(&path).await, protocol(&other).await);
    let body = json!({"deviceUuid": uuid_in(&path), "version": "1.0", "firmwareVersion": "7", "deviceProtocolId": own, "notes": "n"});
    let made = post(client, VERSIONS, &body).await;
    assert_eq!(
        (
            &made["version"],
            &made["released"],
            &made["deviceProtocolId"]
        ),
        (&json!("1.0"), &json!(false), &own)
    );
    let again = client
        .post(VERSIONS)
        .json(&body)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(again.code, "VERSION_EXISTS");
    let problem = client
        .delete(&format!("{PROTOCOLS}/{own}"))
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(problem.code, "PROTOCOL_IN_USE");
    assert!(problem.message.contains("1.0"), "{}", problem.message);

    let one = format!("{VERSIONS}/{}", text(&made["deviceVersionUuid"]));
    let refused = client
        .patch(&one)
        .json(&json!({"deviceProtocolId": foreign}))
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(refused.errors[0].field, "deviceProtocolId");
    let before = revision(&app, &tenant).await;
    let changed = patch(
        client,
        &one,
        &json!({"released": true, "notes": "", "version": "1.1"}),
    )
    .await;
    assert_eq!(
        (
            &changed["released"],
            &changed["notes"],
            &changed["firmwareVersion"]
        ),
        (&json!(true), &Value::Null, &json!("7"))
    );
    assert_eq!(
        revision(&app, &tenant).await,
        before,
        "nothing is read otherwise"
    );
    assert_eq!(
        patch(client, &one, &json!({"deviceProtocolId": 0})).await["deviceProtocolId"],
        Value::Null
    );
    assert_eq!(revision(&app, &tenant).await, before + 1);
    assert_eq!(get(client, &one).await["version"], "1.1");
    let second = post(
        client,
        VERSIONS,
        &json!({"deviceUuid": uuid_in(&path), "version": "2.0"}),
    )
    .await;
    let taken = json!({"version": "1.1"});
    let second = format!("{VERSIONS}/{}", text(&second["deviceVersionUuid"]));
    client.patch(&second).json(&taken).call().await.expect(409);
    let listed = get(client, &format!("{VERSIONS}?deviceUuid={}", uuid_in(&path))).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    client.delete(&one).call().await.expect(200);
    client.get(&one).call().await.expect(404);
}

on_each_database!(model_is_deleted_with_all_that_belongs_to_it);
async fn model_is_deleted_with_all_that_belongs_to_it(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let made = post(client, MODELS, &json!({"template": "bthome/v2"})).await;
    let path = format!("{MODELS}/{}", text(&made["deviceUuid"]));
    let protocols = get(client, PROTOCOLS).await;
    let version = json!({"deviceUuid": made["deviceUuid"], "version": "1", "deviceProtocolId": protocols[0]["deviceProtocolId"]});
    let version = post(client, VERSIONS, &version).await;

    // What other subjects ask.
    let scope = Scope::system("test", tenant.tenant_uuid);
    let uuid = |value: &Value| text(value).parse::<Uuid>().expect("a uuid");
    let (device_uuid, version_uuid) = (
        uuid(&made["deviceUuid"]),
        uuid(&version["deviceVersionUuid"]),
    );
    let mut conn = app.app.db.read().await.expect("a connection");
    let name = device_catalog::name_of(&mut conn, &scope, device_uuid)
        .await
        .expect("a name");
    assert_eq!(name.as_deref(), made["name"].as_str());
    assert!(
        device_catalog::version_exists(&mut conn, &scope, device_uuid, version_uuid)
            .await
            .expect("an answer")
    );
    assert!(
        !device_catalog::version_exists(&mut conn, &scope, version_uuid, version_uuid)
            .await
            .expect("an answer")
    );
    drop(conn);

    let before = revision(&app, &tenant).await;
    client.delete(&path).call().await.expect(200);
    assert_eq!(revision(&app, &tenant).await, before + 1);
    for path in [
        path.clone(),
        format!("{path}/identifiers"),
        format!("{PROTOCOLS}/devices/{device_uuid}"),
    ] {
        client.get(&path).call().await.expect(404);
    }
    for path in [MODELS, PROTOCOLS, VERSIONS] {
        assert_eq!(get(client, path).await, json!([]), "{path}");
    }
    client.delete(&path).call().await.expect(404);
    let audit = get(client, "/tenant/audit-logs").await;
    let actions: Vec<&str> = audit["content"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| text(&entry["action"]))
        .collect();
    assert_eq!(
        actions[..3],
        [
            "device_model.delete",
            "device_version.create",
            "device_model.create"
        ]
    );
}

on_each_database!(revision_rises_with_what_recognises_and_reads);
async fn revision_rises_with_what_recognises_and_reads(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let path = model(client, "Button").await;
    let first = revision(&app, &tenant).await;
    let identifier = post(
        client,
        &format!("{path}/identifiers"),
        &json!({"kind": "NAME", "value": "x"}),
    )
    .await;
    assert_eq!(revision(&app, &tenant).await, first + 1);
    let one = format!("{path}/identifiers/{}", identifier["id"]);
    patch(client, &one, &json!({"label": "x"})).await;
    patch(client, &path, &json!({"description": "x"})).await;
    assert_eq!(
        revision(&app, &tenant).await,
        first + 1,
        "labels and descriptions recognise nothing"
    );
    patch(client, &path, &json!({"name": "Knob"})).await;
    assert_eq!(revision(&app, &tenant).await, first + 2, "hubs show names");
    patch(client, &path, &json!({"autoRegister": true})).await;
    client.delete(&one).call().await.expect(200);
    assert_eq!(revision(&app, &tenant).await, first + 4);
    let bad = json!({"kind": "NAME", "value": ""});
    client
        .post(&format!("{path}/identifiers"))
        .json(&bad)
        .call()
        .await
        .expect(400);
    assert_eq!(revision(&app, &tenant).await, first + 4);
}

on_each_database!(catalog_is_the_tenants_own);
async fn catalog_is_the_tenants_own(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let stranger = Tenant::create(&app.client()).await;
    let made = post(&tenant.client, MODELS, &json!({"template": "bthome/v2"})).await;
    let device_uuid = text(&made["deviceUuid"]);
    let path = format!("{MODELS}/{device_uuid}");
    let identifier = get(&tenant.client, &format!("{path}/identifiers")).await[0]["id"].clone();
    let protocol = get(&tenant.client, PROTOCOLS).await[0]["deviceProtocolId"].clone();
    let version = post(
        &tenant.client,
        VERSIONS,
        &json!({"deviceUuid": device_uuid, "version": "1"}),
    )
    .await;
    let version = format!("{VERSIONS}/{}", text(&version["deviceVersionUuid"]));
    let protocol = format!("{PROTOCOLS}/{protocol}");
    let identifiers = format!("{path}/identifiers");
    let name = json!({"name": "x", "version": "x", "label": "x"});
    let client = &stranger.client;
    for path in [
        &path,
        &protocol,
        &version,
        &identifiers,
        &format!("{PROTOCOLS}/devices/{device_uuid}"),
    ] {
        client.get(path).call().await.expect(404);
    }
    for path in [
        &path,
        &protocol,
        &version,
        &format!("{identifiers}/{identifier}"),
    ] {
        client.patch(path).json(&name).call().await.expect(404);
        client.delete(path).call().await.expect(404);
    }
    client
        .post(&identifiers)
        .json(&json!({"kind": "NAME", "value": "x"}))
        .call()
        .await
        .expect(404);
    let foreign = json!({"deviceUuid": device_uuid, "name": "x", "version": "2", "kind": "BUILTIN", "definition": {"decoder": "ruuvi"}});
    client
        .post(PROTOCOLS)
        .json(&foreign)
        .call()
        .await
        .expect(404);
    client
        .post(VERSIONS)
        .json(&foreign)
        .call()
        .await
        .expect(404);
    for path in [MODELS, PROTOCOLS, VERSIONS] {
        assert_eq!(get(client, path).await, json!([]));
        assert_eq!(
            get(client, &format!("{path}?deviceUuid={device_uuid}")).await,
            json!([])
        );
    }

    // Who only reads changes nothing.
    let viewer = tenant.member(Role::Viewer).await;
    assert_eq!(get(&viewer, &path).await, made);
    viewer
        .post(MODELS)
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(403);
    viewer.delete(&path).call().await.expect(403);
    viewer.patch(&protocol).json(&name).call().await.expect(403);
    let reader = tenant
        .api_key(json!({"scopes": ["catalog:read"]}))
        .await
        .client;
    get(&reader, MODELS).await;
    reader
        .post(MODELS)
        .json(&json!({"name": "x"}))
        .call()
        .await
        .expect(403);
    let editor = tenant.member(Role::Editor).await;
    model(&editor, "x").await;
}

on_each_database!(what_devices_use_stays);
async fn what_devices_use_stays(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let device_uuid = devices::make_model(&tenant, "Thermometer").await;
    let version = devices::make_version(&tenant, device_uuid, "1").await;
    let first =
        devices::make_device(&tenant, device_uuid, json!({"deviceVersionUuid": version})).await;
    let second = devices::make_device(&tenant, device_uuid, json!({})).await;
    let (model, version) = (
        format!("{MODELS}/{device_uuid}"),
        format!("{VERSIONS}/{version}"),
    );
    assert_eq!(get(&tenant.client, &model).await["instanceCount"], 2);
    let refused = tenant
        .client
        .delete(&model)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "MODEL_IN_USE");
    assert!(refused.message.contains("2 devices"), "{refused:?}");
    let refused = tenant
        .client
        .delete(&version)
        .call()
        .await
        .expect(409)
        .problem();
    assert_eq!(refused.code, "VERSION_IN_USE");
    assert!(refused.message.contains("1 device"), "{refused:?}");
    for device in [first, second] {
        tenant
            .client
            .delete(&format!("/tenant/devices/{}", device["deviceInstanceId"]))
            .call()
            .await
            .expect(200);
    }
    tenant.client.delete(&version).call().await.expect(200);
    tenant.client.delete(&model).call().await.expect(200);
}
