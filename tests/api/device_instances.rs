//! `/tenant/devices`: single devices, what identifies them, and their status.

use std::sync::atomic::Ordering;

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_protocol::{TenantUuid, Timestamp};
use hub_tests::app::set_clock;
use hub_tests::devices::{make_device, make_model, make_version};
use hub_tests::{Backend, Call, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

const DEVICES: &str = "/tenant/devices";
const UUID: &str = "e2c56db5-dffb-48d2-b060-d0f5a71096e0";

/// A tenant with a model.
async fn tenant_with_model(app: &TestApp) -> (Tenant, Uuid) {
    let tenant = Tenant::create(&app.client()).await;
    let device_uuid = make_model(&tenant, "Thermometer").await;
    (tenant, device_uuid)
}

fn path(device: &Value) -> String {
    format!("{DEVICES}/{}", device["deviceInstanceId"])
}

async fn revision(app: &TestApp, tenant_uuid: TenantUuid) -> i64 {
    let mut conn = app.app.db.read().await.expect("a connection");
    let statement =
        sql("SELECT revision FROM catalog_revisions WHERE tenant_uuid = $1").bind(tenant_uuid);
    statement
        .optional_scalar(&mut conn)
        .await
        .expect("a revision")
        .unwrap_or_default()
}

/// The actions of the tenant's audit log that are about devices, latest first.
async fn audited(tenant: &Tenant) -> Vec<Value> {
    let page: Value = tenant
        .client
        .get("/tenant/audit-logs?objectType=device")
        .call()
        .await
        .expect(200)
        .data();
    page["content"].as_array().expect("entries").clone()
}

async fn actions(tenant: &Tenant) -> Vec<String> {
    audited(tenant)
        .await
        .iter()
        .map(|entry| entry["action"].as_str().expect("an action").to_owned())
        .collect()
}

async fn listed(tenant: &Tenant, query: &str) -> Vec<String> {
    let list: Vec<Value> = tenant
        .client
        .get(&format!("{DEVICES}?{query}"))
        .call()
        .await
        .expect(200)
        .data();
    list.iter()
        .map(|device| device["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

on_each_database!(device_is_registered_shown_and_deleted);
async fn device_is_registered_shown_and_deleted(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(1_800_014_400_000_000));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let (tenant, device_uuid) = tenant_with_model(&app).await;
    let version = make_version(&tenant, device_uuid, "1.2").await;
    let now = app.app.clock.now();
    let full = make_device(
        &tenant,
        device_uuid,
        json!({
            "name": " Freezer 2 ", "address": "c4:11:7d:da:71:13", "addressType": "RANDOM", "serialNumber": "S-7",
            "beacon": {"namespace": "0123456789ABCDEF0123", "instance": "ABCDEF012345"}, "deviceVersionUuid": version,
            "labels": {"room": "kitchen", "shelf": ""}, "bindKey": "00".repeat(16), "identityResolvingKey": "aB".repeat(16),
            "calibration": {"temperature": {"offset": -0.5}, "humidity": {"scale": 1.5, "offset": 2}},
        }),
    )
    .await;
    let id = full["deviceInstanceId"].clone();
    assert_eq!(
        full,
        json!({
            "deviceInstanceId": id, "deviceUuid": device_uuid, "deviceName": "Thermometer", "deviceVersionUuid": version,
            "name": "Freezer 2", "displayName": "Freezer 2", "address": "C4:11:7D:DA:71:13", "addressType": "RANDOM", "serialNumber": "S-7",
            "beacon": {"namespace": "0123456789abcdef0123", "instance": "abcdef012345"},
            "labels": {"room": "kitchen", "shelf": ""},
            "calibration": {"temperature": {"offset": -0.5, "scale": null}, "humidity": {"offset": 2.0, "scale": 1.5}},
            "activationStatus": "REGISTERED", "bindKeyStatus": "SET", "identityResolvingKeySet": true, "nearestHub": null,
            "lastSeenAt": null, "lastRssiDbm": null, "online": false, "state": {}, "createdAt": now, "activatedAt": null,
            "retiredAt": null,
        })
    );
    let shown: Value = tenant
        .client
        .get(&path(&full))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(shown, full);

    micros.fetch_add(1_000_000, Ordering::Relaxed);
    let bare = make_device(&tenant, device_uuid, json!({})).await;
    for (member, value) in [
        ("name", json!(null)),
        (
            "displayName",
            json!(format!("Thermometer {}", bare["deviceInstanceId"])),
        ),
        ("address", json!(null)),
        ("addressType", json!(null)),
        ("beacon", json!(null)),
        ("labels", json!({})),
        ("calibration", json!({})),
        ("bindKeyStatus", json!("NONE")),
        ("identityResolvingKeySet", json!(false)),
    ] {
        assert_eq!(bare[member], value, "{member}");
    }
    let list: Vec<Value> = tenant.client.get(DEVICES).call().await.expect(200).data();
    assert_eq!(list, [bare.clone(), full.clone()], "newest first");

    let reply = tenant.client.delete(&path(&full)).call().await.expect(200);
    assert_eq!(reply.body, "");
    tenant.client.get(&path(&full)).call().await.expect(404);
    tenant.client.delete(&path(&full)).call().await.expect(404);
    assert_eq!(
        actions(&tenant).await,
        ["device.delete", "device.create", "device.create"]
    );
    let again = make_device(&tenant, device_uuid, json!({"address": full["address"]})).await;
    assert_eq!(again["displayName"], "Thermometer DA7113");
    assert!(
        again["deviceInstanceId"].as_i64() > bare["deviceInstanceId"].as_i64(),
        "no id is used twice"
    );
}

on_each_database!(patch_changes_what_is_given_and_clears_what_it_names);
async fn patch_changes_what_is_given_and_clears_what_it_names(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (tenant, device_uuid) = tenant_with_model(&app).await;
    let version = make_version(&tenant, device_uuid, "1.2").await;
    let made = make_device(
        &tenant,
        device_uuid,
        json!({"name": "one", "address": "C4:11:7D:DA:71:13", "labels": {"a": "b"}, "calibration": {"temperature": {"offset": 1.0}}}),
    )
    .await;
    let patch = async |body: Value| -> Value {
        tenant
            .client
            .patch(&path(&made))
            .json(&body)
            .call()
            .await
            .expect(200)
            .data()
    };
    let mut expected = made.clone();
    let first = revision(&app, tenant.tenant_uuid).await;
    for (body, raises) in [
        (json!({}), false),
        (json!({"name": "two"}), true),
        (json!({"name": "two"}), false),
        (json!({"serialNumber": "S-1"}), false),
        (json!({"labels": {"c": "d", "e": "f"}}), false),
        (
            json!({"calibration": {"humidity": {"offset": null, "scale": 2.0}}}),
            true,
        ),
        (json!({"deviceVersionUuid": version}), true),
        (
            json!({"name": null, "serialNumber": null, "deviceVersionUuid": null, "labels": null,
            "calibration": null, "bindKey": null, "identityResolvingKey": null, "clear": null}),
            false,
        ),
        (
            json!({"clear": ["name", "serialNumber", "deviceVersionUuid"]}),
            true,
        ),
    ] {
        let before = revision(&app, tenant.tenant_uuid).await;
        for (member, value) in body.as_object().expect("members") {
            match (member.as_str(), value) {
                (_, Value::Null) => {}
                ("clear", members) => {
                    for member in members.as_array().expect("members") {
                        expected[member.as_str().expect("a name")] = Value::Null;
                    }
                }
                _ => expected[member] = value.clone(),
            }
        }
        expected["displayName"] = match &expected["name"] {
            Value::Null => json!("Thermometer DA7113"),
            name => name.clone(),
        };
        assert_eq!(patch(body.clone()).await, expected, "{body}");
        assert_eq!(
            revision(&app, tenant.tenant_uuid).await > before,
            raises,
            "{body}"
        );
    }
    for (body, field) in [
        (json!({"clear": ["address"]}), "clear[0]"),
        (json!({"clear": ["name", "deviceUuid"]}), "clear[1]"),
        (
            json!({"clear": ["labels", "name"], "name": "x"}),
            "clear[1]",
        ),
        (json!({"clear": "name"}), "clear"),
        (json!({"clear": vec!["name"; 8]}), "clear"),
    ] {
        let request = tenant.client.patch(&path(&made)).json(&body);
        let problem = request.call().await.expect(400).problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    let cleared = patch(json!({"clear": ["labels", "calibration"]})).await;
    assert_eq!(
        (&cleared["labels"], &cleared["calibration"]),
        (&json!({}), &json!({}))
    );
    assert_eq!(
        patch(json!({"name": "  "})).await["name"],
        json!(null),
        "blank text is none"
    );
    let entry = &audited(&tenant).await[0];
    let calibration = json!({"humidity": {"offset": null, "scale": 2.0}});
    assert_eq!(
        entry["before"],
        json!({"labels": {"c": "d", "e": "f"}, "calibration": calibration})
    );
    assert_eq!(
        entry["after"],
        json!({"labels": {}, "calibration": {}}),
        "what has changed, and no more"
    );
    // Four changed nothing, and left no entry.
    assert_eq!(actions(&tenant).await.len(), 1 + 6 + 1);
    assert_eq!(revision(&app, tenant.tenant_uuid).await, first + 5);
    // What cannot be changed is no member.
    assert_eq!(
        patch(json!({"address": "C4:11:7D:DA:71:14", "deviceUuid": Uuid::new_v4()})).await["address"],
        made["address"]
    );
}

on_each_database!(status_moves_as_the_table_says);
async fn status_moves_as_the_table_says(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(1_800_014_400_000_000));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let (tenant, device_uuid) = tenant_with_model(&app).await;
    let mut activations = 0;
    for from in ["REGISTERED", "ACTIVE", "SUSPENDED", "RETIRED"] {
        for (step, to) in [
            ("activate", "ACTIVE"),
            ("suspend", "SUSPENDED"),
            ("retire", "RETIRED"),
        ] {
            let device = make_device(&tenant, device_uuid, json!({})).await;
            let go = async |step: &str| {
                tenant
                    .client
                    .post(&format!("{}/{step}", path(&device)))
                    .call()
                    .await
            };
            match from {
                "ACTIVE" => drop(go("activate").await.expect(200)),
                "SUSPENDED" => drop(go("suspend").await.expect(200)),
                "RETIRED" => drop(go("retire").await.expect(200)),
                _ => {}
            }
            let (entries, raised) = (
                actions(&tenant).await,
                revision(&app, tenant.tenant_uuid).await,
            );
            let before: Value = tenant
                .client
                .get(&path(&device))
                .call()
                .await
                .expect(200)
                .data();
            assert_eq!(before["activationStatus"], from);
            let reply = go(step).await;
            let after: Value = tenant
                .client
                .get(&path(&device))
                .call()
                .await
                .expect(200)
                .data();
            activations += usize::from(from == "ACTIVE")
                + usize::from(to == "ACTIVE" && ["REGISTERED", "SUSPENDED"].contains(&from));
            if from == "RETIRED" {
                let problem = reply.expect(409).problem();
                assert!(
                    problem.code == "DEVICE_RETIRED" && problem.message.contains("final"),
                    "{problem:?}"
                );
                assert_eq!(after, before);
                continue;
            }
            assert_eq!(reply.expect(200).data::<Value>(), after);
            assert_eq!(after["activationStatus"], to);
            assert_eq!(after["retiredAt"].is_null(), to != "RETIRED");
            let changed = from != to;
            assert_eq!(
                revision(&app, tenant.tenant_uuid).await - raised,
                i64::from(changed),
                "{from} {step}"
            );
            let now = actions(&tenant).await;
            assert_eq!(
                now.first().cloned() == Some(format!("device.{step}")) && now != entries,
                changed,
                "{from} {step}"
            );
        }
    }
    // The response has the time of the first activation.
    let device = make_device(&tenant, device_uuid, json!({})).await;
    let first = app.app.clock.now();
    for step in ["activate", "suspend", "activate"] {
        tenant
            .client
            .post(&format!("{}/{step}", path(&device)))
            .call()
            .await
            .expect(200);
        micros.fetch_add(1_000_000, Ordering::Relaxed);
    }
    let shown: Value = tenant
        .client
        .get(&path(&device))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(shown["activatedAt"], json!(first));
    activations += 2;

    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let reply = admin
        .get("/platform/activation-events?size=100")
        .call()
        .await
        .expect(200);
    let events: Vec<Value> = reply.data();
    assert_eq!(
        (events.len(), reply.header("x-total-count")),
        (activations, activations.to_string().as_str())
    );
    let latest = &events[0];
    let expected = json!({
        "id": latest["id"], "tenantUuid": tenant.tenant_uuid, "hubUuid": null, "deviceInstanceId": device["deviceInstanceId"],
        "kind": "OPERATOR", "occurredAt": first.plus_secs(2),
    });
    assert_eq!(*latest, expected);
    tenant
        .client
        .delete(&path(&device))
        .call()
        .await
        .expect(200);
    let left: Vec<Value> = admin
        .get("/platform/activation-events?size=100")
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(left.len(), activations, "they outlive the device");

    // A retired device is deleted, and changed no more.
    let retired = make_device(&tenant, device_uuid, json!({"name": "old"})).await;
    tenant
        .client
        .post(&format!("{}/retire", path(&retired)))
        .call()
        .await
        .expect(200);
    for body in [
        json!({"name": "new"}),
        json!({}),
        json!({"clear": ["bindKey"]}),
    ] {
        let refused = tenant
            .client
            .patch(&path(&retired))
            .json(&body)
            .call()
            .await
            .expect(409);
        assert_eq!(refused.problem().code, "DEVICE_RETIRED");
    }
    tenant
        .client
        .delete(&path(&retired))
        .call()
        .await
        .expect(200);
}

on_each_database!(an_identity_belongs_to_one_device_that_is_not_retired);
async fn an_identity_belongs_to_one_device_that_is_not_retired(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (tenant, device_uuid) = tenant_with_model(&app).await;
    let (stranger, foreign_model) = tenant_with_model(&app).await;
    let other_model = make_model(&tenant, "Another").await;
    let identities = [
        (
            json!({"address": "c4:11:7D:DA:71:13"}),
            json!({"address": "C4:11:7d:da:71:13", "addressType": "public"}),
            "address",
        ),
        (
            json!({"beacon": {"uuid": UUID, "major": 1, "minor": 2}}),
            json!({"beacon": {"uuid": UUID.to_uppercase(), "major": 1, "minor": 2}}),
            "beacon",
        ),
        (
            json!({"beacon": {"namespace": "ab".repeat(10), "instance": "0123456789ab"}}),
            json!({"beacon": {"namespace": "AB".repeat(10), "instance": "0123456789AB"}, "address": "C4:11:00:00:00:01"}),
            "beacon",
        ),
        (
            json!({"identityResolvingKey": "ab".repeat(16)}),
            json!({"identityResolvingKey": "AB".repeat(16)}),
            "identity resolving key",
        ),
    ];
    for (body, same, what) in identities {
        let first = make_device(&tenant, device_uuid, body.clone()).await;
        let id = first["deviceInstanceId"].to_string();
        for model in [device_uuid, other_model] {
            let mut body = same.clone();
            body["deviceUuid"] = json!(model);
            let problem = tenant
                .client
                .post(DEVICES)
                .json(&body)
                .call()
                .await
                .expect(409)
                .problem();
            assert_eq!(problem.code, "DEVICE_IDENTITY_TAKEN");
            assert!(
                problem
                    .message
                    .contains(&format!("device {id} has this {what}")),
                "{}",
                problem.message
            );
        }
        // Another tenant has its own.
        make_device(&stranger, foreign_model, same.clone()).await;
        tenant
            .client
            .post(&format!("{}/retire", path(&first)))
            .call()
            .await
            .expect(200);
        let second = make_device(&tenant, device_uuid, same.clone()).await;
        tenant
            .client
            .delete(&path(&second))
            .call()
            .await
            .expect(200);
        make_device(&tenant, device_uuid, same).await;
    }
    // One more, which differs in a part.
    make_device(
        &tenant,
        device_uuid,
        json!({"beacon": {"uuid": UUID, "major": 1, "minor": 3}}),
    )
    .await;
    // Serial numbers identify nothing.
    for _ in 0..2 {
        make_device(&tenant, device_uuid, json!({"serialNumber": "S-1"})).await;
    }
    // A key that is given later.
    let late = make_device(&tenant, device_uuid, json!({"name": "late"})).await;
    let key = json!({"identityResolvingKey": "ab".repeat(16), "name": "changed"});
    let refused = tenant
        .client
        .patch(&path(&late))
        .json(&key)
        .call()
        .await
        .expect(409);
    assert_eq!(refused.problem().code, "DEVICE_IDENTITY_TAKEN");
    let shown: Value = tenant
        .client
        .get(&path(&late))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&shown["name"], &shown["identityResolvingKeySet"]),
        (&json!("late"), &json!(false)),
        "nothing of it"
    );
    for _ in 0..2 {
        let key = json!({"identityResolvingKey": "cd".repeat(16)});
        tenant
            .client
            .patch(&path(&late))
            .json(&key)
            .call()
            .await
            .expect(200);
    }
}

on_each_database!(of_concurrent_registrations_of_one_identity_one_wins);
async fn of_concurrent_registrations_of_one_identity_one_wins(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (tenant, device_uuid) = tenant_with_model(&app).await;
    for body in [
        json!({"address": "C4:11:7D:DA:71:13"}),
        json!({"beacon": {"uuid": UUID, "major": 1, "minor": 2}}),
        json!({"identityResolvingKey": "ab".repeat(16)}),
    ] {
        let mut body = body;
        body["deviceUuid"] = json!(device_uuid);
        let idle = make_device(&tenant, device_uuid, json!({})).await;
        let mut registering = JoinSet::new();
        for _ in 0..10 {
            let request = tenant.client.post(DEVICES).json(&body);
            registering.spawn(async move { request.call().await });
        }
        // Others change meanwhile.
        for name in ["a", "b", "c"] {
            let request = tenant
                .client
                .patch(&path(&idle))
                .json(&json!({"name": name, "bindKey": "ab".repeat(16)}));
            registering.spawn(async move { request.call().await.expect(200) });
        }
        let replies = registering.join_all().await;
        let refused = replies.iter().filter(|reply| reply.status == 409);
        assert_eq!(refused.clone().count(), 9);
        assert!(
            refused
                .into_iter()
                .all(|reply| reply.problem().code == "DEVICE_IDENTITY_TAKEN")
        );
    }
    assert_eq!(listed(&tenant, "").await.len(), 6);
}

on_each_database!(bad_input_is_refused_naming_the_field);
async fn bad_input_is_refused_naming_the_field(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (tenant, device_uuid) = tenant_with_model(&app).await;
    let labels = |number: usize| -> Value {
        (0..number)
            .map(|n| (format!("l{n}"), json!("x")))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    // 40 of 256 bytes.
    let long_labels: Value = {
        let pairs = (0..40).map(|n| (format!("l{n}"), json!("x".repeat(256))));
        pairs.collect::<serde_json::Map<_, _>>().into()
    };
    let both = [
        (json!({"name": "x".repeat(201)}), "name"),
        (json!({"name": "two\nlines"}), "name"),
        (json!({"name": 7}), "name"),
        (json!({"serialNumber": "x".repeat(101)}), "serialNumber"),
        (json!({"serialNumber": "\u{7}"}), "serialNumber"),
        (json!({"bindKey": ""}), "bindKey"),
        (json!({"bindKey": "ab".repeat(15)}), "bindKey"),
        (json!({"bindKey": "ab".repeat(17)}), "bindKey"),
        (json!({"bindKey": "xy".repeat(16)}), "bindKey"),
        (json!({"bindKey": 5}), "bindKey"),
        (
            json!({"identityResolvingKey": "ab".repeat(12)}),
            "identityResolvingKey",
        ),
        (
            json!({"identityResolvingKey": "0x".to_owned() + &"ab".repeat(15)}),
            "identityResolvingKey",
        ),
        (json!({"deviceVersionUuid": "1.0"}), "deviceVersionUuid"),
        (json!({"labels": ["a"]}), "labels"),
        (json!({"labels": {"a": 1}}), "labels.a"),
        (json!({"labels": {"": "x"}}), "labels"),
        (json!({"labels": {" a": "x"}}), "labels"),
        (json!({"labels": {"x".repeat(65): "x"}}), "labels"),
        (json!({"labels": {"a": "x".repeat(257)}}), "labels.a"),
        (json!({"labels": {"a": "\0"}}), "labels.a"),
        (json!({"labels": labels(65)}), "labels"),
        (json!({"labels": long_labels}), "labels"),
        (
            json!({"calibration": {"temprature": {"offset": 1}}}),
            "calibration",
        ),
        (
            json!({"calibration": {"button": {"offset": 1}}}),
            "calibration",
        ),
        (
            json!({"calibration": {"temperature": {}}}),
            "calibration.temperature",
        ),
        (
            json!({"calibration": {"temperature": 1}}),
            "calibration.temperature",
        ),
        (
            json!({"calibration": {"temperature": {"offset": "1"}}}),
            "calibration.temperature.offset",
        ),
        (
            json!({"calibration": {"temperature": {"offset": 2e9}}}),
            "calibration.temperature.offset",
        ),
        (
            json!({"calibration": {"temperature": {"scale": -2e9}}}),
            "calibration.temperature.scale",
        ),
        (
            json!({"calibration": {"temperature": {"scale": 0}}}),
            "calibration.temperature.scale",
        ),
    ];
    let at_creation = [
        (json!({"deviceUuid": "x"}), "deviceUuid"),
        (json!({"deviceUuid": null}), "deviceUuid"),
        (json!({"address": "C4:11:7D:DA:71"}), "address"),
        (json!({"address": "C4-11-7D-DA-71-13"}), "address"),
        (json!({"addressType": "RANDOM"}), "addressType"),
        (
            json!({"address": "C4:11:7D:DA:71:13", "addressType": "STATIC"}),
            "addressType",
        ),
        (json!({"beacon": {}}), "beacon.uuid"),
        (json!({"beacon": "x"}), "beacon"),
        (
            json!({"beacon": {"uuid": "x", "major": 1, "minor": 1}}),
            "beacon.uuid",
        ),
        (
            json!({"beacon": {"uuid": UUID, "major": 1}}),
            "beacon.minor",
        ),
        (
            json!({"beacon": {"uuid": UUID, "major": -1, "minor": 1}}),
            "beacon.major",
        ),
        (
            json!({"beacon": {"uuid": UUID, "major": 1, "minor": 65536}}),
            "beacon.minor",
        ),
        (
            json!({"beacon": {"namespace": "ab".repeat(9), "instance": "0123456789ab"}}),
            "beacon.namespace",
        ),
        (
            json!({"beacon": {"namespace": "ab".repeat(10)}}),
            "beacon.instance",
        ),
        (
            json!({"beacon": {"namespace": "ab".repeat(10), "instance": "0123456789ab", "major": 1}}),
            "beacon.major",
        ),
    ];
    let device = make_device(&tenant, device_uuid, json!({"labels": labels(64)})).await;
    let refused = |reply: hub_tests::Reply, body: &Value, field: &str| {
        let problem = reply.expect(400).problem();
        assert!(
            problem.errors.iter().any(|error| error.field == field),
            "{body}: {problem:?}"
        );
    };
    for (body, field) in both.iter().chain(&at_creation) {
        let mut body = body.clone();
        if body.get("deviceUuid").is_none() {
            body["deviceUuid"] = json!(device_uuid);
        }
        refused(
            tenant.client.post(DEVICES).json(&body).call().await,
            &body,
            field,
        );
    }
    for (body, field) in &both {
        refused(
            tenant.client.patch(&path(&device)).json(body).call().await,
            body,
            field,
        );
    }
    // Numbers that JSON admits and no machine holds.
    let huge = r#"{"calibration":{"temperature":{"offset":1e999}}}"#;
    let request = tenant
        .client
        .patch(&path(&device))
        .header("content-type", "application/json")
        .body(huge);
    refused(
        request.call().await,
        &json!(huge),
        "calibration.temperature.offset",
    );
    for (query, field) in [
        ("activationStatus=GONE", "activationStatus"),
        ("deviceUuid=7", "deviceUuid"),
        ("hubUuid=7", "hubUuid"),
        ("online=maybe", "online"),
        ("q=a%0Ab", "q"),
        ("size=0", "size"),
    ] {
        refused(
            tenant
                .client
                .get(&format!("{DEVICES}?{query}"))
                .call()
                .await,
            &json!(query),
            field,
        );
    }
    let long = format!("{DEVICES}?q={}", "x".repeat(201));
    refused(tenant.client.get(&long).call().await, &json!("q"), "q");
    tenant
        .client
        .get(&format!("{DEVICES}/x"))
        .call()
        .await
        .expect(400);
    // Models and versions of others do not exist.
    let (stranger, foreign_model) = tenant_with_model(&app).await;
    let foreign_version = make_version(&stranger, foreign_model, "1").await;
    let other_model = make_model(&tenant, "Another").await;
    let other_version = make_version(&tenant, other_model, "1").await;
    for model in [Uuid::new_v4(), foreign_model] {
        let refused = tenant
            .client
            .post(DEVICES)
            .json(&json!({"deviceUuid": model}))
            .call()
            .await
            .expect(404);
        assert!(refused.problem().message.contains("device model"));
    }
    for version in [Uuid::new_v4(), foreign_version, other_version] {
        let body = json!({"deviceUuid": device_uuid, "deviceVersionUuid": version});
        tenant
            .client
            .post(DEVICES)
            .json(&body)
            .call()
            .await
            .expect(404);
        let refused = tenant
            .client
            .patch(&path(&device))
            .json(&json!({"deviceVersionUuid": version}))
            .call()
            .await;
        assert!(
            refused
                .expect(404)
                .problem()
                .message
                .contains("device version")
        );
    }
    assert_eq!(listed(&tenant, "").await.len(), 1, "nothing was registered");
}

on_each_database!(lists_are_narrowed_and_paged);
async fn lists_are_narrowed_and_paged(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (tenant, device_uuid) = tenant_with_model(&app).await;
    let other_model = make_model(&tenant, "Another").await;
    let (stranger, foreign_model) = tenant_with_model(&app).await;
    let foreign = make_device(&stranger, foreign_model, json!({"name": "foreign freezer"})).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let first = make_device(
        &tenant,
        device_uuid,
        json!({"name": "Kühlraum", "address": "C4:11:7D:DA:71:13"}),
    )
    .await;
    let second = make_device(
        &tenant,
        device_uuid,
        json!({"name": "100%_sure!", "serialNumber": "KÜ-7"}),
    )
    .await;
    make_device(&tenant, other_model, json!({"name": "freezer"})).await;
    tenant
        .client
        .post(&format!("{}/activate", path(&second)))
        .call()
        .await
        .expect(200);
    hear(&app, &tenant, &first, &hub).await;

    let all = ["freezer", "100%_sure!", "Kühlraum"];
    for (query, expected) in [
        (String::new(), &all[..]),
        ("activationStatus=ACTIVE".to_owned(), &all[1..2]),
        ("activationStatus=RETIRED".to_owned(), &[]),
        (format!("deviceUuid={device_uuid}"), &all[1..]),
        (format!("deviceUuid={foreign_model}"), &[]),
        (format!("hubUuid={}", hub.hub_uuid), &all[2..]),
        (format!("hubUuid={}", Uuid::new_v4()), &[]),
        (
            format!(
                "deviceInstanceIds={},{},{}",
                first["deviceInstanceId"], foreign["deviceInstanceId"], second["deviceInstanceId"]
            ),
            &all[1..],
        ),
        ("deviceInstanceIds=999999999".to_owned(), &[]),
        ("online=true".to_owned(), &all[2..]),
        ("online=false".to_owned(), &all[..2]),
        ("q=K%C3%BC".to_owned(), &all[1..]),
        ("q=k%C3%BChlR".to_owned(), &all[2..]),
        ("q=da:71".to_owned(), &all[2..]),
        ("q=%25_".to_owned(), &all[1..2]),
        ("q=!".to_owned(), &all[1..2]),
        ("q=_".to_owned(), &all[1..2]),
        ("q=zz".to_owned(), &[]),
        (
            "q=ree&online=false&activationStatus=REGISTERED".to_owned(),
            &all[..1],
        ),
        ("size=1&page=2".to_owned(), &all[1..2]),
        ("size=2&page=2".to_owned(), &all[2..]),
        ("page=4".to_owned(), &[]),
    ] {
        assert_eq!(listed(&tenant, &query).await, expected, "{query}");
    }
    for ids in [
        "1,".to_owned(),
        "x".to_owned(),
        "1,,2".to_owned(),
        ["1"; 101].join(","),
    ] {
        let url = format!("{DEVICES}?deviceInstanceIds={ids}");
        let problem = tenant.client.get(&url).call().await.expect(400).problem();
        assert_eq!(problem.errors[0].field, "deviceInstanceIds", "{ids}");
    }
    let reply = tenant
        .client
        .get(&format!("{DEVICES}?size=1&deviceUuid={device_uuid}"))
        .call()
        .await
        .expect(200);
    assert_eq!(reply.header("x-total-count"), "2");

    let shown: Value = tenant
        .client
        .get(&path(&first))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(shown["nearestHub"]["hubUuid"], json!(hub.hub_uuid));
    assert_eq!(
        (
            &shown["nearestHub"]["rssiDbm"],
            &shown["lastRssiDbm"],
            &shown["online"]
        ),
        (&json!(-60), &json!(-61), &json!(true))
    );
    assert_eq!(
        (
            &shown["state"]["temperature"]["value"],
            &shown["state"]["temperature"]["unit"]
        ),
        (&json!(4.5), &json!("Cel"))
    );
    tenant.client.delete(&path(&first)).call().await.expect(200);
    assert_eq!(listed(&tenant, "online=true").await.len(), 0);
    // A name that changes is found by the new one.
    tenant
        .client
        .patch(&path(&second))
        .json(&json!({"name": "Door"}))
        .call()
        .await
        .expect(200);
    assert_eq!(listed(&tenant, "q=doo").await, ["Door"]);
    assert_eq!(listed(&tenant, "q=sure").await.len(), 0);
}

/// As if the hub had just heard the device.
async fn hear(app: &TestApp, tenant: &Tenant, device: &Value, hub: &SimulatedHub) {
    let now = app.app.clock.now();
    let state = json!({"temperature": {"value": 4.5, "unit": "Cel", "at": now}}).to_string();
    let mut tx = app.app.db.begin().await.expect("a transaction");
    sql(
        "INSERT INTO device_states (device_instance_id, tenant_uuid, last_seen_at, last_rssi_dbm, \
         nearest_hub_uuid, nearest_rssi_dbm, nearest_since, online_until, state) \
         VALUES ($1, $2, $3, -61, $4, -60, $3, $5, $6)",
    )
    .bind((
        device["deviceInstanceId"].as_i64().expect("an id"),
        tenant.tenant_uuid,
        now,
        hub.hub_uuid,
        now.plus_secs(600),
        state,
    ))
    .run(&mut tx)
    .await
    .expect("a row");
    tx.commit_unaudited("a test's own set-up")
        .await
        .expect("a commit");
}

on_each_database!(only_those_with_rights_reach_devices);
async fn only_those_with_rights_reach_devices(backend: Backend) {
    let app = TestApp::new(backend).await;
    let (tenant, device_uuid) = tenant_with_model(&app).await;
    let device = make_device(&tenant, device_uuid, json!({"name": "one"})).await;
    let viewer = tenant.member(Role::Viewer).await;
    let reader = tenant
        .api_key(json!({"scopes": ["devices:read"]}))
        .await
        .client;
    let elsewhere = tenant
        .api_key(json!({"scopes": ["hubs:*", "catalog:*"]}))
        .await
        .client;
    let stranger = Tenant::create(&app.client()).await.client;
    let one = path(&device);
    for (who, client, reads, status) in [
        ("viewer", &viewer, 200, 403),
        ("a key that reads", &reader, 200, 403),
        ("a key for other things", &elsewhere, 403, 403),
        ("another tenant", &stranger, 404, 404),
    ] {
        client.get(&one).call().await.expect(reads);
        let requests = [
            client.patch(&one).json(&json!({"name": "two"})),
            client.delete(&one),
            client.post(&format!("{one}/activate")),
            client.post(&format!("{one}/suspend")),
            client.post(&format!("{one}/retire")),
            client
                .post(DEVICES)
                .json(&json!({"deviceUuid": device_uuid})),
        ];
        for request in requests {
            let reply = request.call().await;
            assert_eq!(reply.status.as_u16(), status, "{who}: {}", reply.asked);
        }
    }
    let shown: Value = tenant.client.get(&one).call().await.expect(200).data();
    assert_eq!(shown, device);
    assert_eq!(listed(&tenant, "").await, ["one"]);
    tenant
        .client
        .get("/platform/activation-events")
        .call()
        .await
        .expect(403);
}
