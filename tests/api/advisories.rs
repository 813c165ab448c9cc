//! Advisories of a tenant about its own apps and device models.

use hub_identity::authz::permission::Role;
use hub_tests::devices::{make_device, make_model};
use hub_tests::release::{make_app, make_app_release};
use hub_tests::{
    Backend, Call, Client, Maker, Options, Recipe, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};

use super::vulnerabilities::{LIST, get, ids};

const ADVISORIES: &str = "/tenant/advisories";

async fn create(client: &Client, body: &Value) -> Value {
    client
        .post(ADVISORIES)
        .json(body)
        .call()
        .await
        .expect(201)
        .data()
}

async fn reports(hub: &SimulatedHub, app_uuid: &Value, release: &Value) {
    let installed = json!({"apps": [{"appUuid": app_uuid, "releaseUuid": release["releaseUuid"],
        "version": release["version"], "state": "RUNNING", "since": "2026-01-31T08:00:00Z"}]});
    let path = format!("/v1/hubs/{}/installed-apps", hub.hub_uuid);
    hub.client
        .put(&path)
        .json(&installed)
        .call()
        .await
        .expect(204);
}

on_each_database!(hubs_that_run_an_affected_release_are_exposed);
async fn hubs_that_run_an_affected_release_are_exposed(backend: Backend) {
    let maker = Maker::new();
    let mut options = Options::default();
    options.settings.release_keys = Some(maker.keys());
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let (old, new) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let app_uuid = make_app(&tenant, "logger").await;
    let mut releases = Vec::new();
    for (version, counter) in [("1.2.0", 1), ("1.10.0", 2)] {
        let recipe = Recipe::app("logger", version, counter);
        releases.push(make_app_release(&tenant, app_uuid, &maker, &recipe).await);
    }
    reports(&old, &json!(app_uuid), &releases[0]).await;
    reports(&new, &json!(app_uuid), &releases[1]).await;
    let body = json!({
        "id": "ACME-2026-1", "title": "The logger logs secrets",
        "cvssVector": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", "aliases": ["CVE-2026-1"],
        "references": ["https://example.com/1"],
        "affected": [{"appUuid": app_uuid,
            "versions": [{"introduced": "1.1.0", "fixed": "1.10.0"}]}],
    });
    let made = create(client, &body).await;
    assert_eq!(
        (&made["id"], &made["severity"]),
        (&json!("ACME-2026-1"), &json!("CRITICAL"))
    );
    assert_eq!(made["affected"], body["affected"]);
    let listed = get(client, LIST).await;
    assert_eq!(listed[0]["id"], "ACME-2026-1");
    assert_eq!(listed[0]["source"], "OWN");
    let hubs = json!({"exposed": 1, "notAffected": 0, "fixed": 0, "updating": 0});
    assert_eq!(listed[0]["hubs"], hubs);
    let package =
        json!({"ecosystem": "APP", "name": "logger", "version": "1.2.0", "fixedIn": "1.10.0"});
    assert_eq!(listed[0]["packages"], json!([package]));
    let hubs = get(client, &format!("{LIST}/ACME-2026-1/hubs")).await;
    assert_eq!(hubs.as_array().map(Vec::len), Some(1));
    assert_eq!(
        (&hubs[0]["hubUuid"], &hubs[0]["status"]),
        (&json!(old.hub_uuid), &json!("EXPOSED"))
    );
    // The list is narrowed by hub, release and source.
    for (query, expected) in [
        (format!("?hubUuid={}", old.hub_uuid), true),
        (format!("?hubUuid={}", new.hub_uuid), false),
        (
            format!("?releaseUuid={}", text(&releases[0]["releaseUuid"])),
            true,
        ),
        (
            format!("?releaseUuid={}", text(&releases[1]["releaseUuid"])),
            false,
        ),
        ("?source=OWN".to_owned(), true),
        ("?source=FEED".to_owned(), false),
    ] {
        let found = ids(client, &query).await;
        assert_eq!(!found.is_empty(), expected, "{query}");
    }
    // An update is on its way, and a statement decides.
    let newer = serde_json::from_value(releases[1]["releaseUuid"].clone()).expect("a uuid");
    tenant.install(&old, newer).await;
    assert_eq!(get(client, LIST).await[0]["hubs"]["updating"], 1);
    let path = format!("{LIST}/ACME-2026-1/statement");
    let stated = json!({"status": "not_affected", "justification": "vulnerable_code_not_present"});
    client.put(&path).json(&stated).call().await.expect(200);
    assert_eq!(get(client, LIST).await[0]["hubs"]["notAffected"], 1);
    // The report and the evidence are of it too.
    let csaf = client
        .get(&format!("{LIST}/ACME-2026-1/report?form=csaf"))
        .call()
        .await;
    let csaf = csaf.expect(200).json();
    assert_eq!(csaf["vulnerabilities"][0]["ids"][0]["text"], "ACME-2026-1");
    let notes = csaf["document"]["notes"].to_string();
    for part in [
        "not stated: 0 exposed, 0 exposed with an update running, 1 not affected as stated",
        "installation of an app logger 1.10.0, succeeded on 0 of 1 hubs, open on 1",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
    let evidence = client
        .get(&format!("{LIST}/ACME-2026-1/evidence"))
        .call()
        .await;
    let evidence = evidence.expect(200).body;
    assert!(
        evidence.contains("\"exposure\"") && evidence.contains("\"job\""),
        "{evidence}"
    );

    let mut wider = body.clone();
    wider["affected"][0]["versions"] = json!([]);
    let one = format!("{ADVISORIES}/ACME-2026-1");
    let replaced = client.put(&one).json(&wider).call().await;
    let replaced: Value = replaced.expect(200).data();
    assert_eq!(replaced["createdAt"], made["createdAt"]);
    assert_eq!(get(client, LIST).await[0]["hubs"]["notAffected"], 2);
    client.delete(&one).call().await.expect(204);
    client
        .get(&format!("{one}/history"))
        .call()
        .await
        .expect(404);
    assert!(ids(client, "").await.is_empty());
    client.get(&one).call().await.expect(404);
    client.put(&one).json(&wider).call().await.expect(404);
    client.delete(&one).call().await.expect(404);
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

on_each_database!(devices_of_an_affected_model_are_counted);
async fn devices_of_an_affected_model_are_counted(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let model = make_model(&tenant, "Sensor").await;
    let mut versions = Vec::new();
    for (version, firmware) in [("r1", "2.0.1"), ("r2", "2.1.0"), ("r3", "nightly")] {
        let body = json!({"deviceUuid": model, "version": version, "firmwareVersion": firmware});
        let made = client.post("/tenant/device-versions").json(&body).call();
        let made: Value = made.await.expect(200).data();
        versions.push(made["deviceVersionUuid"].clone());
    }
    for version in [&versions[0], &versions[0], &versions[1], &versions[2]] {
        make_device(&tenant, model, json!({"deviceVersionUuid": version})).await;
    }
    make_device(&tenant, model, json!({})).await;
    let body = json!({"title": "It forgets its key", "severity": "HIGH",
        "affected": [{"deviceUuid": model, "versions": [{"fixed": "2.1.0"}]}]});
    let made = create(client, &body).await;
    assert!(text(&made["id"]).starts_with("OWN-"));
    let listed = get(client, LIST).await;
    assert_eq!(listed[0]["devices"], json!({"affected": 2, "unknown": 2}));
    let hubs = get(client, &format!("{LIST}/{}/hubs", text(&made["id"]))).await;
    assert_eq!(hubs, json!([]));
}

on_each_database!(advisory_that_is_wrong_names_the_field);
async fn advisory_that_is_wrong_names_the_field(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let other = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let app_uuid = make_app(&tenant, "logger").await;
    let theirs = make_app(&other, "logger").await;
    let model = make_model(&other, "Sensor").await;
    let good = json!({"title": "T", "affected": [{"appUuid": app_uuid}]});
    let with = |name: &str, value: Value| {
        let mut changed = good.clone();
        changed[name] = value;
        changed
    };
    let range = |range: Value| {
        with(
            "affected",
            json!([{"appUuid": app_uuid, "versions": [range]}]),
        )
    };
    for (wrong, field) in [
        (with("id", json!("CVE-2026-1")), "id"),
        (with("id", json!("a b")), "id"),
        (with("title", json!(" ")), "title"),
        (with("cvssVector", json!("CVSS:3.1/AV:N")), "cvssVector"),
        (with("references", json!(["ftp://x"])), "references[0]"),
        (with("aliases", json!(vec!["x"; 21])), "aliases"),
        (with("affected", json!([])), "affected"),
        (with("affected", json!([{}])), "affected[0]"),
        (
            with(
                "affected",
                json!([{"appUuid": app_uuid, "deviceUuid": model}]),
            ),
            "affected[0]",
        ),
        (
            with("affected", json!([{"appUuid": theirs}])),
            "affected[0].appUuid",
        ),
        (
            with("affected", json!([{"deviceUuid": model}])),
            "affected[0].deviceUuid",
        ),
        (
            range(json!({"fixed": "soon"})),
            "affected[0].versions[0].fixed",
        ),
        (
            range(json!({"introduced": "2.0.0", "fixed": "1.0.0"})),
            "affected[0].versions[0].fixed",
        ),
        (
            range(json!({"fixed": "1.0.0", "lastAffected": "1.0.0"})),
            "affected[0].versions[0].lastAffected",
        ),
    ] {
        let problem = client.post(ADVISORIES).json(&wrong).call().await;
        assert_eq!(
            problem.expect(400).problem().errors[0].field,
            field,
            "{wrong}"
        );
    }
    let reader = tenant.member(Role::Viewer).await;
    reader.post(ADVISORIES).json(&good).call().await.expect(403);
    let made = create(client, &with("id", json!("ACME-1"))).await;
    let again = client
        .post(ADVISORIES)
        .json(&with("id", json!("ACME-1")))
        .call()
        .await;
    assert_eq!(again.expect(409).problem().code, "ADVISORY_EXISTS");
    assert_eq!(get(&reader, ADVISORIES).await, json!([made]));
    // Another tenant sees nothing of it, and may use the same id.
    let one = format!("{ADVISORIES}/ACME-1");
    other.client.get(&one).call().await.expect(404);
    let of_other = json!({"id": "ACME-1", "title": "T", "affected": [{"deviceUuid": model}]});
    create(&other.client, &of_other).await;
    assert_eq!(ids(client, "").await, ["ACME-1"]);
}

on_each_database!(history_says_who_changed_what_when);
async fn history_says_who_changed_what_when(backend: Backend) {
    let app = TestApp::new(backend).await;
    let tenant = Tenant::create(&app.client()).await;
    let client = &tenant.client;
    let model = make_model(&tenant, "Sensor").await;
    let body = |title: &str| {
        json!({"id": "ACME-1", "title": title, "description": "It forgets.", "severity": "HIGH",
            "references": ["https://example.com/1"], "affected": [{"deviceUuid": model}]})
    };
    let one = format!("{ADVISORIES}/ACME-1");
    create(client, &body("It forgets its key")).await;
    client.delete(&one).call().await.expect(204);
    create(client, &body("It forgets its key")).await;
    let key = tenant
        .api_key(json!({"scopes": ["*"], "rateLimitPerMinute": 1000}))
        .await;
    let replaced = key.client.put(&one).json(&body("It forgets all keys"));
    replaced.call().await.expect(200);

    let reader = tenant.member(Role::Viewer).await;
    let path = format!("{one}/history");
    let history = get(&reader, &path).await;
    let changes: Vec<&str> = history
        .as_array()
        .expect("a list")
        .iter()
        .map(|change| text(&change["change"]))
        .collect();
    assert_eq!(changes, ["REPLACED", "CREATED", "DELETED", "CREATED"]);
    let last = &history[0];
    assert!(text(&last["author"]).starts_with("API_KEY:"), "{last}");
    assert_eq!(last["beforeState"]["title"], "It forgets its key");
    assert_eq!(last["afterState"]["title"], "It forgets all keys");
    assert_eq!(last["afterState"]["description"], "It forgets.");
    assert_eq!(
        last["afterState"]["references"],
        json!(["https://example.com/1"])
    );
    assert!(text(&history[3]["author"]).starts_with("USER:"));
    assert_eq!(history[3]["beforeState"], Value::Null);
    let found = get(&reader, &format!("{path}?size=1&page=2")).await;
    assert_eq!(found, json!([history[1]]));

    // The evidence has the same, the oldest first.
    let evidence = reader.get(&format!("{LIST}/ACME-1/evidence")).call().await;
    let evidence = evidence.expect(200).body;
    let lines: Vec<Value> = evidence
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .filter(|line: &Value| line["type"] == "advisory")
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[3]["data"]["auditLogId"], last["auditLogId"]);
    assert_eq!(lines[3]["data"]["afterState"], last["afterState"]);

    // Another tenant with an advisory of the same id has its own history.
    let other = Tenant::create(&app.client()).await;
    other.client.get(&path).call().await.expect(404);
    let model = make_model(&other, "Sensor").await;
    let theirs = json!({"id": "ACME-1", "title": "T", "affected": [{"deviceUuid": model}]});
    create(&other.client, &theirs).await;
    let history = get(&other.client, &path).await;
    assert_eq!(history.as_array().map(Vec::len), Some(1));
}
