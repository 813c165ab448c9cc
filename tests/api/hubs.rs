//! A tenant's hubs and their adapters, as hubs report them and as operators decide about them.

use std::sync::atomic::Ordering;

use hub_identity::authz::permission::Role;
use hub_tests::{Backend, Call, Options, SimulatedHub, Tenant, TestApp, app, on_each_database};
use serde_json::{Value, json};

const ONE: &str = "00:1A:7D:DA:71:13";
const TWO: &str = "00:1A:7D:DA:71:14";

fn adapter(address: &str, name: &str) -> Value {
    json!({"address": address, "name": name, "powered": true})
}

async fn report(hub: &SimulatedHub, adapters: Value) -> Value {
    hub.client
        .post("/v1/hubs/adapters")
        .json(&json!({"adapters": adapters}))
        .call()
        .await
        .expect(200)
        .data()
}

async fn adapters(tenant: &Tenant, hub: &SimulatedHub) -> Vec<Value> {
    tenant
        .client
        .get(&format!("/tenant/hubs/{}/adapters", hub.hub_uuid))
        .call()
        .await
        .expect(200)
        .data()
}

on_each_database!(hubs_are_listed_newest_first_within_their_tenant);
async fn hubs_are_listed_newest_first_within_their_tenant(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let stranger = Tenant::create(&app.client()).await;
    let mut hubs = Vec::new();
    for _ in 0..3 {
        hubs.insert(0, SimulatedHub::claim(&tenant).await.hub_uuid);
    }
    let listed = tenant
        .client
        .get("/tenant/hubs?page=1&size=2")
        .call()
        .await
        .expect(200);
    assert_eq!(listed.header("x-total-count"), "3");
    assert!(
        listed.header("link").contains("page=2&size=2"),
        "{}",
        listed.header("link")
    );
    let next = tenant
        .client
        .get("/tenant/hubs?page=2&size=2")
        .call()
        .await
        .expect(200);
    let uuids: Vec<Value> = [listed, next]
        .iter()
        .flat_map(|page| page.data::<Vec<Value>>())
        .map(|hub| hub["hubUuid"].clone())
        .collect();
    assert_eq!(json!(uuids), json!(hubs));
    assert!(
        stranger
            .client
            .get("/tenant/hubs")
            .call()
            .await
            .expect(200)
            .data::<Vec<Value>>()
            .is_empty()
    );
}

on_each_database!(hub_is_online_for_ten_minutes_after_telemetry);
async fn hub_is_online_for_ten_minutes_after_telemetry(backend: Backend) {
    let (clock, micros) = app::set_clock("2026-03-01T12:00:00Z".parse().expect("a time"));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let path = format!("/tenant/hubs/{}", hub.hub_uuid);
    let status = async || {
        let listed: Vec<Value> = tenant
            .client
            .get("/tenant/hubs")
            .call()
            .await
            .expect(200)
            .data();
        let one: Value = tenant.client.get(&path).call().await.expect(200).data();
        for member in [
            "status",
            "online",
            "lastSeenAt",
            "lastTelemetryAt",
            "hubIdentifier",
        ] {
            assert_eq!(one[member], listed[0][member], "{member}");
        }
        (
            one["status"].as_str().unwrap_or_default().to_owned(),
            one["online"].clone(),
        )
    };
    assert_eq!(
        status().await,
        ("OFFLINE".to_owned(), json!(false)),
        "a claim is no telemetry"
    );
    let telemetry = format!("/v1/hubs/{}/telemetry", hub.hub_uuid);
    hub.client
        .post(&telemetry)
        .json(&json!({"load1m": 0.5}))
        .call()
        .await
        .expect(204);
    micros.fetch_add(10 * 60 * 1_000_000 - 1_000_000, Ordering::Relaxed);
    assert_eq!(status().await, ("ONLINE".to_owned(), json!(true)));
    micros.fetch_add(2_000_000, Ordering::Relaxed);
    assert_eq!(status().await, ("OFFLINE".to_owned(), json!(false)));
}

on_each_database!(list_is_narrowed_by_filters);
async fn list_is_narrowed_by_filters(backend: Backend) {
    let (clock, micros) = app::set_clock("2026-03-01T12:00:00Z".parse().expect("a time"));
    let app = TestApp::with(
        backend,
        Options {
            clock: Some(clock),
            ..Options::default()
        },
    )
    .await;
    let tenant = Tenant::create(&app.client()).await;
    let stranger = Tenant::create(&app.client()).await;
    let named = async |tenant: &Tenant, label: &str, version: &str| {
        let hub = SimulatedHub::claim(tenant).await;
        let path = format!("/tenant/hubs/{}", hub.hub_uuid);
        tenant
            .client
            .patch(&path)
            .json(&json!({"hubIdentifier": label}))
            .call()
            .await
            .expect(200);
        let telemetry = format!("/v1/hubs/{}/telemetry", hub.hub_uuid);
        hub.client
            .post(&telemetry)
            .json(&json!({"agentVersion": version}))
            .call()
            .await
            .expect(204);
        hub
    };
    named(&tenant, "Roof 100%", "1.3.9").await;
    named(&tenant, "Roof_2", "1.10.0").await;
    named(&stranger, "Roof of somebody else", "1.3.9").await;
    micros.fetch_add(700_000_000, Ordering::Relaxed);
    named(&tenant, "Cellar", "1.4.0").await;
    let labels = async |query: &str| {
        let listed = tenant
            .client
            .get(&format!("/tenant/hubs?{query}"))
            .call()
            .await
            .expect(200);
        let labels: Vec<String> = listed
            .data::<Vec<Value>>()
            .iter()
            .map(|hub| hub["hubIdentifier"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(
            listed.header("x-total-count"),
            labels.len().to_string(),
            "{query}"
        );
        labels.join(", ")
    };
    for (query, expected) in [
        ("", "Cellar, Roof_2, Roof 100%"),
        ("label=rOOf", "Roof_2, Roof 100%"),
        ("label=100%25", "Roof 100%"),
        ("label=f_2", "Roof_2"),
        ("label=%25", "Roof 100%"),
        ("q=cellar", "Cellar"),
        ("q=%20", "Cellar, Roof_2, Roof 100%"),
        ("status=ONLINE", "Cellar"),
        ("status=OFFLINE", "Roof_2, Roof 100%"),
        ("status=BLOCKED", ""),
        ("version=%3C1.4", "Roof 100%"),
        ("version=%3E1.4", "Roof_2"),
        ("version=%3E%3D1.4", "Cellar, Roof_2"),
        ("version=1.4", "Cellar"),
        ("version=9", ""),
        ("seenFrom=2026-03-01T12:05:00Z", "Cellar"),
        ("seenTo=2026-03-01T12:05:00Z", "Roof_2, Roof 100%"),
        (
            "status=OFFLINE&label=roof&version=%3C1.4&seenTo=2026-03-01T12:05:00Z",
            "Roof 100%",
        ),
    ] {
        assert_eq!(labels(query).await, expected, "{query}");
    }
    for (query, field) in [
        ("version=new", "version"),
        ("status=AWAY", "status"),
        ("seenTo=now", "seenTo"),
        ("q=%0A", "q"),
    ] {
        let refused = tenant
            .client
            .get(&format!("/tenant/hubs?{query}"))
            .call()
            .await
            .expect(400);
        assert_eq!(refused.problem().errors[0].field, field, "{query}");
    }
}

on_each_database!(patch_changes_only_the_fields_it_names);
async fn patch_changes_only_the_fields_it_names(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let path = format!("/tenant/hubs/{}", hub.hub_uuid);
    for (body, identifier, description) in [
        (json!({}), json!(null), json!(null)),
        (
            json!({"hubIdentifier": " Gate 7 "}),
            json!("Gate 7"),
            json!(null),
        ),
        (
            json!({"hubIdentifier": null, "description": "By the\ndoor"}),
            json!("Gate 7"),
            json!("By the\ndoor"),
        ),
        (
            json!({"description": null}),
            json!("Gate 7"),
            json!("By the\ndoor"),
        ),
        (
            json!({"hubIdentifier": "Gate 8", "hubUuid": "ignored"}),
            json!("Gate 8"),
            json!("By the\ndoor"),
        ),
        (json!({"description": ""}), json!("Gate 8"), json!(null)),
        (json!({"hubIdentifier": " "}), json!(null), json!(null)),
    ] {
        let patched: Value = tenant
            .client
            .patch(&path)
            .json(&body)
            .call()
            .await
            .expect(200)
            .data();
        assert_eq!(
            (&patched["hubIdentifier"], &patched["description"]),
            (&identifier, &description),
            "{body}"
        );
        assert_eq!(
            tenant
                .client
                .get(&path)
                .call()
                .await
                .expect(200)
                .data::<Value>(),
            patched
        );
    }
    for (field, body) in [
        ("hubIdentifier", json!({"hubIdentifier": "x".repeat(201)})),
        ("hubIdentifier", json!({"hubIdentifier": "a\u{0}"})),
        ("hubIdentifier", json!({"hubIdentifier": 7})),
        ("description", json!({"description": "x".repeat(2001)})),
        ("description", json!({"description": "\u{0}"})),
        ("body", json!([])),
    ] {
        let problem = tenant
            .client
            .patch(&path)
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
}

on_each_database!(hub_of_another_tenant_is_404);
async fn hub_of_another_tenant_is_404(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let stranger = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    report(&hub, json!([adapter(ONE, "hci0")])).await;
    let viewer = tenant.member(Role::Viewer).await;
    let unknown = uuid::Uuid::new_v4();
    for hub_uuid in [hub.hub_uuid.0, unknown] {
        let path = format!("/tenant/hubs/{hub_uuid}");
        let one = format!("{path}/adapters/{ONE}");
        let client = &stranger.client;
        for request in [
            client.get(&path),
            client.patch(&path).json(&json!({"hubIdentifier": "mine"})),
            client.get(&format!("{path}/adapters")),
            client.patch(&one).json(&json!({"role": "DISABLED"})),
            client.patch(&one).json(&json!({})),
        ] {
            let reply = request.call().await;
            assert_eq!(reply.expect(404).problem().code, "NOT_FOUND");
        }
    }
    let path = format!("/tenant/hubs/{}", hub.hub_uuid);
    viewer.get(&path).call().await.expect(200);
    viewer
        .patch(&path)
        .json(&json!({}))
        .call()
        .await
        .expect(403);
    viewer
        .patch(&format!("{path}/adapters/{ONE}"))
        .json(&json!({}))
        .call()
        .await
        .expect(403);
    let seen: Value = tenant.client.get(&path).call().await.expect(200).data();
    assert_eq!(
        (&seen["hubIdentifier"], &seen["adapters"][0]["role"]),
        (&json!(null), &json!(null))
    );
    let problem = tenant
        .client
        .get("/tenant/hubs/x")
        .call()
        .await
        .expect(400)
        .problem();
    assert_eq!(problem.errors[0].field, "hubUuid");
}

on_each_database!(adapter_snapshot_keeps_the_operators_settings);
async fn adapter_snapshot_keeps_the_operators_settings(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    let other = SimulatedHub::claim(&tenant).await;
    report(&other, json!([adapter(ONE, "hci0")])).await;
    assert!(adapters(&tenant, &hub).await.is_empty());

    let full = json!([
        {"address": ONE.to_lowercase(), "name": "hci0", "alias": "left", "powered": true, "discovering": true,
         "addressType": "public", "manufacturer": "Cambridge Silicon Radio", "modalias": "usb:v1D6Bp0246d0540"},
        adapter(TWO, "hci1"),
    ]);
    for _ in 0..2 {
        assert_eq!(
            report(&hub, full.clone()).await,
            json!({"upserted": 2, "poweredOff": 0})
        );
    }
    let path = |address: &str| format!("/tenant/hubs/{}/adapters/{address}", hub.hub_uuid);
    let decided: Value = tenant
        .client
        .patch(&path(&ONE.to_lowercase()))
        .json(&json!({"role": "CONNECTOR", "supplier_uuid": tenant.tenant_uuid}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&decided["role"], &decided["supplier_uuid"]),
        (&json!("CONNECTOR"), &json!(tenant.tenant_uuid))
    );
    assert_eq!(
        (&decided["address"], &decided["alias"]),
        (&json!(ONE), &json!("left"))
    );
    let kept: Value = tenant
        .client
        .patch(&path(ONE))
        .json(&json!({"role": null, "supplier_uuid": null}))
        .call()
        .await
        .expect(200)
        .data();
    assert_eq!(kept, decided, "null stays");

    for _ in 0..2 {
        assert_eq!(
            report(&hub, json!([adapter(TWO, "hci0")])).await,
            json!({"upserted": 1, "poweredOff": 1})
        );
    }
    let listed = adapters(&tenant, &hub).await;
    let off = json!({"powered": false, "discovering": false, "role": "CONNECTOR", "name": "hci0", "alias": "left"});
    for (name, value) in off.as_object().expect("an object") {
        assert_eq!(&listed[0][name], value, "{name}");
    }
    assert_eq!(
        (&listed[1]["powered"], &listed[1]["name"]),
        (&json!(true), &json!("hci0"))
    );
    assert_eq!(
        report(&hub, json!([])).await,
        json!({"upserted": 0, "poweredOff": 2})
    );
    report(&hub, full).await;
    let listed = adapters(&tenant, &hub).await;
    assert_eq!(
        (&listed[0]["powered"], &listed[0]["role"]),
        (&json!(true), &json!("CONNECTOR"))
    );
    assert_eq!(
        adapters(&tenant, &other).await[0]["powered"],
        json!(true),
        "another hub's are its own"
    );
}

on_each_database!(number_of_adapters_per_hub_is_limited);
async fn number_of_adapters_per_hub_is_limited(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    report(&hub, json!([adapter(ONE, "hci0")])).await;
    let path = format!("/tenant/hubs/{}/adapters/{ONE}", hub.hub_uuid);
    tenant
        .client
        .patch(&path)
        .json(&json!({"role": "DISABLED"}))
        .call()
        .await
        .expect(200);
    for round in 0..6 {
        let many: Vec<Value> = (0..64)
            .map(|index| adapter(&format!("02:00:00:00:{round:02X}:{index:02X}"), "hci0"))
            .collect();
        report(&hub, json!(many)).await;
    }
    let listed = adapters(&tenant, &hub).await;
    assert_eq!(listed.len(), 257);
    assert_eq!(
        listed[0]["role"],
        json!("DISABLED"),
        "what was decided is kept"
    );
}

on_each_database!(invalid_field_of_an_adapter_is_refused_by_name);
async fn invalid_field_of_an_adapter_is_refused_by_name(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let hub = SimulatedHub::claim(&tenant).await;
    report(&hub, json!([adapter(ONE, "hci0")])).await;
    let good = adapter(ONE, "hci0");
    let with = |name: &str, value: Value| {
        let mut changed = adapter(TWO, "hci1");
        changed[name] = value;
        json!({"adapters": [good, changed]})
    };
    let many: Vec<Value> = (0..65)
        .map(|index| adapter(&format!("02:00:00:00:00:{index:02X}"), "x"))
        .collect();
    for (field, body) in [
        ("adapters", json!({})),
        ("adapters", json!({"adapters": {}})),
        ("adapters", json!({"adapters": many})),
        ("adapters[1].address", with("address", json!("00:1A"))),
        (
            "adapters[1].address",
            with("address", json!(ONE.to_lowercase())),
        ),
        ("adapters[1].address", with("address", json!(7))),
        ("adapters[1].name", with("name", json!(""))),
        ("adapters[1].name", with("name", json!("x".repeat(65)))),
        ("adapters[1].powered", with("powered", json!("yes"))),
        ("adapters[1].alias", with("alias", json!("a\u{0}"))),
        (
            "adapters[1].modalias",
            with("modalias", json!("x".repeat(101))),
        ),
    ] {
        let problem = hub
            .client
            .post("/v1/hubs/adapters")
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    assert_eq!(
        adapters(&tenant, &hub).await.len(),
        1,
        "a bad snapshot changes nothing"
    );
    // The others of a report with a bad entry are stored, and nobody is switched off by it.
    let (two, three) = ("02:00:00:00:00:02", "02:00:00:00:00:03");
    let bad =
        json!({"adapters": [adapter(two, "good"), adapter("x", "bad"), adapter(three, "good")]});
    for _ in 0..2 {
        let report = hub.client.post("/v1/hubs/adapters").json(&bad);
        let problem = report.call().await.expect(400).problem();
        assert_eq!(problem.errors[0].field, "adapters[1].address");
        assert_eq!(problem.errors.len(), 1);
    }
    let known = adapters(&tenant, &hub).await;
    assert_eq!(known.len(), 3);
    assert!(known.iter().all(|one| one["powered"] == true), "{known:?}");
    let page: Value = tenant
        .client
        .get("/tenant/audit-logs?action=hub.report_refused")
        .call()
        .await
        .expect(200)
        .data();
    let entries = page["content"].as_array().expect("a list");
    let is_of_address = |entry: &&Value| {
        let error = &entry["detail"]["errors"][0];
        error["field"] == "adapters[1].address"
            && error["message"] == "must be an address such as 00:1A:7D:DA:71:13"
    };
    // Once for each cause, of which there was one before.
    assert_eq!(entries.iter().filter(is_of_address).count(), 1, "{page}");

    let path = |address: &str| format!("/tenant/hubs/{}/adapters/{address}", hub.hub_uuid);
    for (field, body) in [
        ("role", json!({"role": "scanner"})),
        ("role", json!({"role": 1})),
        ("supplier_uuid", json!({"supplier_uuid": "x"})),
    ] {
        let problem = tenant
            .client
            .patch(&path(ONE))
            .json(&body)
            .call()
            .await
            .expect(400)
            .problem();
        assert_eq!(problem.errors[0].field, field, "{body}");
    }
    let foreign = json!({"supplier_uuid": uuid::Uuid::new_v4()});
    tenant
        .client
        .patch(&path(ONE))
        .json(&foreign)
        .call()
        .await
        .expect(403);
    for address in [TWO, "hci0", "%00"] {
        tenant
            .client
            .patch(&path(address))
            .json(&json!({"role": "SCANNER"}))
            .call()
            .await
            .expect(404);
    }
}
