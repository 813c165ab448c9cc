//! What a platform administrator finds and limits.

use std::sync::atomic::Ordering;

use hub_protocol::Timestamp;
use hub_tests::app::set_clock;
use hub_tests::{
    Backend, Call, Client, Options, Person, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};

/// 2026-06-01, a quarter of a minute after noon.
const START: i64 = 1_780_315_215_000_000;

async fn found(admin: &Client, path: &str, member: &str) -> Vec<String> {
    let listed: Vec<Value> = admin.get(path).call().await.expect(200).data();
    listed
        .iter()
        .map(|item| item[member].as_str().expect("a text").to_owned())
        .collect()
}

on_each_database!(administrator_finds_tenants_by_name_and_uuid);
async fn administrator_finds_tenants_by_name_and_uuid(backend: Backend) {
    let app = TestApp::new(backend).await;
    let person = Person::register(&app.client()).await;
    let admin = person.as_platform_admin(&app);
    for name in ["Acme Lighting", "100% Sensors", "Söhne_1"] {
        person
            .client
            .post("/tenant/tenants")
            .json(&json!({"name": name}))
            .call()
            .await
            .expect(200);
    }
    for (q, expected) in [
        ("", vec!["Söhne_1", "100% Sensors", "Acme Lighting"]),
        ("acme", vec!["Acme Lighting"]),
        ("LIGHT", vec!["Acme Lighting"]),
        ("Söhne", vec!["Söhne_1"]),
        ("%25", vec!["100% Sensors"]),
        ("_", vec!["Söhne_1"]),
        ("!", vec![]),
        ("%27%20OR%201=1", vec![]),
    ] {
        assert_eq!(
            found(&admin, &format!("/platform/tenants?q={q}"), "name").await,
            expected,
            "{q}"
        );
    }
    let uuid = found(&admin, "/platform/tenants?q=acme", "tenantUuid")
        .await
        .remove(0);
    assert_eq!(
        found(&admin, &format!("/platform/tenants?q={uuid}"), "name").await,
        ["Acme Lighting"]
    );
    let second = admin
        .get("/platform/tenants?page=2&size=2")
        .call()
        .await
        .expect(200);
    assert_eq!(
        (
            second.header("x-total-count"),
            second.json()["data"][0]["name"].as_str()
        ),
        ("3", Some("Acme Lighting"))
    );
    let detail: Value = admin
        .get(&format!("/platform/tenants/{uuid}"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&detail["members"], &detail["limits"]["hubs"]),
        (&json!(1), &Value::Null)
    );

    person
        .client
        .delete(&format!("/tenant/tenants/{uuid}"))
        .call()
        .await
        .expect(200);
    let detail: Value = admin
        .get(&format!("/platform/tenants/{uuid}"))
        .call()
        .await
        .expect(200)
        .data();
    assert!(detail["deletedAt"].is_string(), "{detail}");
}

on_each_database!(administrator_finds_hubs_by_the_beginning_of_what_is_written_on_them);
async fn administrator_finds_hubs_by_the_beginning_of_what_is_written_on_them(backend: Backend) {
    let app = TestApp::new(backend).await;
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let (tenant, other) = (
        Tenant::create(&app.client()).await,
        Tenant::create(&app.client()).await,
    );
    let hub = SimulatedHub::claim(&tenant).await;
    let foreign = SimulatedHub::claim(&other).await;
    let hub_uuid = hub.credentials.hub_uuid.to_string();
    let label = json!({"hubIdentifier": "Hall 3, north"});
    tenant
        .client
        .patch(&format!("/tenant/hubs/{hub_uuid}"))
        .json(&label)
        .call()
        .await
        .expect(200);

    let all = found(&admin, "/platform/hubs", "hubUuid").await;
    assert_eq!(
        all,
        [foreign.credentials.hub_uuid.to_string(), hub_uuid.clone()],
        "newest first, of all tenants"
    );
    let listed: Vec<Value> = admin
        .get(&format!("/platform/hubs?q={hub_uuid}"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(listed[0]["tenantUuid"], json!(tenant.tenant_uuid));
    let device = listed[0]["deviceInstanceId"]
        .as_str()
        .expect("its identity")
        .to_owned();
    let (beginning, _) = device.split_at(device.len() - 1);
    for (q, is_found) in [
        ("Hall%203", true),
        ("Hall%203,%20north", true),
        ("north", false),
        ("Hall%204", false),
        (device.as_str(), true),
        (beginning, true),
        (&tenant.tenant_uuid.to_string(), true),
        (&other.tenant_uuid.to_string(), false),
    ] {
        let hubs = found(&admin, &format!("/platform/hubs?q={q}"), "hubUuid").await;
        assert_eq!(hubs.contains(&hub_uuid), is_found, "{q}: {hubs:?}");
    }
}

on_each_database!(a_summary_has_the_numbers_of_all_tenants);
async fn a_summary_has_the_numbers_of_all_tenants(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(START));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let person = Person::register(&app.client()).await;
    let admin = person.as_platform_admin(&app);
    let read = async || -> Value {
        let reply = admin.get("/platform/summary").call().await;
        reply.expect(200).data()
    };
    let none = read().await;
    assert_eq!(
        (&none["hubs"], &none["storedBytes"], &none["nearLimits"]),
        (&json!(0), &json!(0), &json!([]))
    );
    let (full, other) = (
        Tenant::create(&app.client()).await,
        Tenant::create(&app.client()).await,
    );
    let hub = SimulatedHub::claim(&full).await;
    SimulatedHub::claim(&other).await.upload_events(1).await;
    hub.client
        .post(&format!("/v1/hubs/{}/telemetry", hub.hub_uuid))
        .json(&json!({"uptime": 1}))
        .call()
        .await
        .expect(204);
    hub.upload_events(9).await;
    // Minutes are counted a while after they are over.
    micros.fetch_add(180_000_000, Ordering::Relaxed);
    hub_composed::dashboard::roll_up(&app.app)
        .await
        .expect("a run");
    let summary = read().await;
    assert_eq!(
        (
            &summary["hubs"],
            &summary["hubsOnline"],
            &summary["eventsPerMinute"]
        ),
        (&json!(2), &json!(1), &json!(2.0)),
        "ten events of one minute over five minutes: {summary}"
    );
    assert_eq!(summary["replicas"], 1);
    assert_eq!(summary["nearLimits"], json!([]));
    let stored = summary["storedBytes"].as_i64().expect("bytes");
    assert!(stored > 10 * 128, "{summary}");
    // All but a little of what the other tenant stores is what this one does.
    let limits = json!({"storedBytes": stored, "bytesPerDay": stored * 10});
    let path = format!("/platform/tenants/{}/limits", full.tenant_uuid);
    admin.put(&path).json(&limits).call().await.expect(200);
    let near = read().await["nearLimits"].clone();
    assert_eq!(
        (
            &near[0]["tenantUuid"],
            &near[0]["limit"],
            &near[0]["allowed"]
        ),
        (
            &json!(full.tenant_uuid),
            &json!("STORED_BYTES"),
            &json!(stored)
        ),
        "{near}"
    );
    assert_eq!(near.as_array().map(Vec::len), Some(1));
    let used = near[0]["used"].as_i64().expect("bytes");
    assert!(used < stored && used * 10 >= stored * 8, "{near}");
    full.client
        .get("/platform/summary")
        .call()
        .await
        .expect(403);
}

on_each_database!(limits_of_a_tenant_are_replaced_as_a_whole_and_enforced);
async fn limits_of_a_tenant_are_replaced_as_a_whole_and_enforced(backend: Backend) {
    let (clock, micros) = set_clock(Timestamp::from_micros(START));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let admin = Person::register(&app.client())
        .await
        .as_platform_admin(&app);
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let path = format!("/platform/tenants/{}/limits", tenant.tenant_uuid);

    let limits = json!({"uploadsPerMinute": 2, "apiKeys": 1, "retentionDays": {"logs": 3}});
    let set: Value = admin
        .put(&path)
        .json(&limits)
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&set["uploadsPerMinute"], &set["retentionDays"]["logs"]),
        (&json!(2), &json!(3))
    );
    let detail: Value = admin
        .get(path.trim_end_matches("/limits"))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(detail["limits"], set);
    let key = json!({"name": "one", "scopes": ["hubs:read"]});
    tenant
        .client
        .post("/tenant/api-keys")
        .json(&key)
        .call()
        .await
        .expect(201);
    let refused = tenant
        .client
        .post("/tenant/api-keys")
        .json(&key)
        .call()
        .await
        .expect(409);
    assert!(
        refused.body.contains("at most 1 API keys"),
        "{}",
        refused.body
    );
    let upload = async || {
        hub.client
            .post(&format!("/v1/hubs/{}/telemetry", hub.credentials.hub_uuid))
            .json(&json!({"uptime": 1}))
            .call()
            .await
    };
    upload().await.expect(204);
    upload().await.expect(204);
    assert_eq!(upload().await.expect(429).header("ratelimit-limit"), "2");

    let set: Value = admin
        .put(&path)
        .json(&json!({}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (
            &set["uploadsPerMinute"],
            &set["apiKeys"],
            &set["retentionDays"]["logs"]
        ),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    // A limit of uploads applies from the next minute on.
    micros.fetch_add(60_000_000, Ordering::Relaxed);
    upload().await.expect(204);
    upload().await.expect(204);
    upload().await.expect(204);
    tenant
        .client
        .post("/tenant/api-keys")
        .json(&key)
        .call()
        .await
        .expect(201);

    for (body, field) in [
        (json!({"uploadsPerMinute": 0}), "uploadsPerMinute"),
        (json!({"apiKeys": 201}), "apiKeys"),
        (json!({"hubs": -1}), "hubs"),
        (json!({"storedBytes": "1"}), "storedBytes"),
        (
            json!({"retentionDays": {"audit": 3651}}),
            "retentionDays.audit",
        ),
        (json!({"retentionDays": [1]}), "retentionDays"),
        (json!({"retentionDays": null}), "retentionDays"),
    ] {
        let refused = admin.put(&path).json(&body).call().await.expect(400);
        assert!(
            refused.body.contains(&format!("\"field\":\"{field}\"")),
            "{body}: {}",
            refused.body
        );
    }
    let unknown = "/platform/tenants/0190a000-0000-7000-8000-00000000ffff";
    admin.get(unknown).call().await.expect(404);
    admin
        .put(&format!("{unknown}/limits"))
        .json(&json!({}))
        .call()
        .await
        .expect(404);
    let entries: Value = admin
        .get("/platform/audit-logs?action=tenant.set_limits")
        .call()
        .await
        .expect(200)
        .data();
    let entry = &entries["content"][1];
    assert_eq!(
        (&entry["before"]["apiKeys"], &entry["after"]["apiKeys"]),
        (&Value::Null, &json!(1))
    );
}
