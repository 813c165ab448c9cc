//! The signed evidence of which hub had what of a vulnerability when.

use std::sync::atomic::Ordering;

use hub_identity::authz::permission::Role;
use hub_tests::app::set_clock;
use hub_tests::release::{make_app, make_app_release};
use hub_tests::{
    Backend, Call, Client, Maker, Options, Recipe, SimulatedHub, Tenant, TestApp, on_each_database,
};
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::vulnerabilities::{LIST, image_with, import, match_lists, record, runs};

const CVE: &str = "CVE-2023-5678";
const SIX_MINUTES_MICROS: i64 = 360_000_000;

/// The lines before the signature, and its claims, checked with the keys that the service
/// publishes.
async fn verified(client: &Client, id: &str) -> (Vec<Value>, Value) {
    let reply = client.get(&format!("{LIST}/{id}/evidence")).call().await;
    let reply = reply.expect(200);
    assert_eq!(reply.header("content-type"), "application/x-ndjson");
    let text = reply.body.strip_suffix('\n').expect("a last line");
    let (_, last) = text.rsplit_once('\n').expect("several lines");
    let before = &reply.body[..text.len() - last.len()];
    let last: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(last["type"], "signature");
    let jws = last["data"]["jws"].as_str().expect("a JWS");
    let keys = client.get("/.well-known/jwks.json").call().await;
    let keys: JwkSet = serde_json::from_value(keys.expect(200).json()).expect("keys");
    let kid = jsonwebtoken::decode_header(jws).expect("a head").kid;
    let key = keys.find(&kid.expect("a key id")).expect("a served key");
    let mut validation = Validation::new(Algorithm::ES256);
    validation.set_audience(&["hub-cloud/vulnerability-evidence"]);
    validation.set_issuer(&["hub-cloud"]);
    validation.required_spec_claims.remove("exp");
    validation.validate_exp = false;
    let key = DecodingKey::from_jwk(key).expect("a key");
    let claims = jsonwebtoken::decode::<Value>(jws, &key, &validation).expect("signed");
    let claims = claims.claims;
    assert_eq!(claims["sha256"], hex::encode(Sha256::digest(before)));
    assert_eq!(claims["bytes"], before.len());
    assert_eq!(claims["lines"], before.lines().count());
    let lines = before.lines();
    let lines = lines.map(|line| serde_json::from_str(line).expect("a line of JSON"));
    (lines.collect(), claims)
}

fn of_type(lines: &[Value], kind: &str) -> Vec<Value> {
    let lines = lines.iter().filter(|line| line["type"] == kind);
    lines.map(|line| line["data"].clone()).collect()
}

on_each_database!(evidence_says_who_had_what_when_and_is_signed);
async fn evidence_says_who_had_what_when_and_is_signed(backend: Backend) {
    let maker = Maker::new();
    let start = "2026-01-31T08:00:00Z".parse().expect("a time");
    let (clock, micros) = set_clock(start);
    let mut options = Options {
        clock: Some(clock),
        ..Options::default()
    };
    options.settings.release_keys = Some(maker.keys());
    options.settings.hub_token_lifetime = Some("1000d".to_owned());
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let (fixed, still, never) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    import(
        &app,
        &record(CVE, "openssl", Some("3.0.13-1"), "2026-01-02T00:00:00Z"),
    )
    .await;
    for hub in [&fixed, &still] {
        runs(hub, &image_with("3.0.11-1")).await;
    }
    runs(&never, &image_with("3.0.13-1")).await;
    match_lists(&app).await;
    let app_uuid = make_app(&tenant, "logger").await;
    let recipe = Recipe::app("logger", "1.0.0", 1);
    let release = make_app_release(&tenant, app_uuid, &maker, &recipe).await;
    let release_uuid = release["releaseUuid"].clone();
    let job = tenant
        .install(
            &fixed,
            serde_json::from_value(release_uuid.clone()).expect("a uuid"),
        )
        .await;
    for text in ["We look at it.", "Nothing here speaks TLS."] {
        let body = json!({"status": "not_affected", "impactStatement": text});
        let path = format!("{LIST}/{CVE}/statement");
        tenant
            .client
            .put(&path)
            .json(&body)
            .call()
            .await
            .expect(200);
    }
    micros.fetch_add(SIX_MINUTES_MICROS, Ordering::Relaxed);
    runs(&fixed, &image_with("3.0.13-1")).await;
    match_lists(&app).await;
    micros.fetch_add(1_000_000, Ordering::Relaxed);

    let (lines, claims) = verified(&tenant.client, CVE).await;
    assert_eq!(claims["sub"], json!(tenant.tenant_uuid));
    assert_eq!(claims["vulnerabilityId"], CVE);
    let head = &of_type(&lines, "head")[0];
    assert_eq!(
        (&head["severity"], &head["asOf"]),
        (&json!("CRITICAL"), &claims["asOf"])
    );
    let mut exposures = of_type(&lines, "exposure");
    exposures.sort_by_key(|line| line["until"].is_null());
    assert_eq!(exposures.len(), 2, "{exposures:?}");
    assert_eq!(exposures[0]["hubUuid"], json!(fixed.hub_uuid));
    assert_eq!(exposures[0]["version"], "3.0.11-1");
    assert_eq!(exposures[0]["fixedIn"], "3.0.13-1");
    assert_eq!(exposures[0]["from"], "2026-01-31T08:00:00.000000Z");
    assert_eq!(exposures[0]["until"], "2026-01-31T08:06:00.000000Z");
    assert_eq!(exposures[1]["hubUuid"], json!(still.hub_uuid));
    let ends = of_type(&lines, "fixed");
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0]["hubUuid"], json!(fixed.hub_uuid));
    assert_eq!(ends[0]["versions"], json!(["3.0.13-1"]));
    assert_eq!(ends[0]["since"], exposures[0]["until"]);
    let jobs = of_type(&lines, "job");
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0]["hubJobUuid"], json!(job));
    assert_eq!(jobs[0]["releaseUuid"], release_uuid);
    assert_eq!(
        (&jobs[0]["version"], &jobs[0]["status"]),
        (&json!("1.0.0"), &json!("PENDING"))
    );
    let statements = of_type(&lines, "statement");
    assert_eq!(statements.len(), 2);
    assert!(
        statements[0]["author"]
            .as_str()
            .is_some_and(|author| author.starts_with("USER:"))
    );
    let said = &statements[1]["afterState"]["impactStatement"];
    assert_eq!(said, "Nothing here speaks TLS.");

    // Whoever may read may have it; nobody of another tenant.
    let reader = tenant.member(Role::Viewer).await;
    verified(&reader, CVE).await;
    let other = Tenant::create(&app.client()).await;
    let path = format!("{LIST}/{CVE}/evidence");
    other.client.get(&path).call().await.expect(404);
}

on_each_database!(report_counts_countries_and_names_measures);
async fn report_counts_countries_and_names_measures(backend: Backend) {
    let maker = Maker::new();
    let mut options = Options::default();
    options.settings.release_keys = Some(maker.keys());
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let (german, unknown) = (
        SimulatedHub::claim(&tenant).await,
        SimulatedHub::claim(&tenant).await,
    );
    let path = format!("/tenant/hubs/{}", german.hub_uuid);
    for wrong in ["de", "XX", "Germany"] {
        let body = json!({"country": wrong});
        let problem = tenant.client.patch(&path).json(&body).call().await;
        assert_eq!(problem.expect(400).problem().errors[0].field, "country");
    }
    let changed = tenant.client.patch(&path).json(&json!({"country": "DE"}));
    let changed: Value = changed.call().await.expect(200).data();
    assert_eq!(changed["country"], "DE");
    import(
        &app,
        &record(CVE, "openssl", Some("3.0.13-1"), "2026-01-02T00:00:00Z"),
    )
    .await;
    for hub in [&german, &unknown] {
        runs(hub, &image_with("3.0.11-1")).await;
    }
    match_lists(&app).await;
    let app_uuid = make_app(&tenant, "logger").await;
    let recipe = Recipe::app("logger", "1.0.0", 1);
    let release = make_app_release(&tenant, app_uuid, &maker, &recipe).await;
    let release = serde_json::from_value(release["releaseUuid"].clone()).expect("a uuid");
    tenant.install(&german, release).await;

    let path = format!("{LIST}/{CVE}/report");
    let markdown = tenant.client.get(&path).call().await.expect(200).body;
    for part in [
        "| DE | 0 | 1 | 0 | 0 |",
        "| not stated | 1 | 0 | 0 | 0 |",
        "installation of an app logger 1.0.0, succeeded on 0 of 1 hubs, open on 1",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let csaf = tenant.client.get(&format!("{path}?form=csaf")).call().await;
    let csaf = csaf.expect(200).json();
    let notes = csaf["document"]["notes"].to_string();
    assert!(
        notes.contains(
            "DE: 0 exposed, 1 exposed with an update running, 0 not affected as stated, 0 fixed; \
             not stated: 1 exposed,"
        ),
        "{notes}"
    );
    let remediations = &csaf["vulnerabilities"][0]["remediations"];
    assert_eq!(remediations[1]["category"], "mitigation");
    assert_eq!(remediations[1]["product_ids"], json!(["PACKAGE-0001"]));
    // A country can be taken away.
    let path = format!("/tenant/hubs/{}", german.hub_uuid);
    let cleared = tenant
        .client
        .patch(&path)
        .json(&json!({"clear": ["country"]}));
    let cleared: Value = cleared.call().await.expect(200).data();
    assert_eq!(cleared["country"], Value::Null);
}

on_each_database!(statements_are_a_document_of_openvex);
async fn statements_are_a_document_of_openvex(backend: Backend) {
    let maker = Maker::new();
    let mut options = Options::default();
    options.settings.release_keys = Some(maker.keys());
    let app = TestApp::with(backend, options).await;
    let tenant = Tenant::create(&app.client()).await;
    let path = format!("{LIST}/openvex");
    tenant.client.get(&path).call().await.expect(404);
    let hub = SimulatedHub::claim(&tenant).await;
    import(&app, &record(CVE, "openssl", None, "2026-01-02T00:00:00Z")).await;
    runs(&hub, &image_with("3.0.11-1")).await;
    match_lists(&app).await;
    let app_uuid = make_app(&tenant, "logger").await;
    let recipe = Recipe::app("logger", "1.0.0", 1);
    let release = make_app_release(&tenant, app_uuid, &maker, &recipe).await;
    for body in [
        json!({"status": "affected", "actionStatement": "Update it."}),
        json!({"status": "not_affected", "justification": "component_not_present",
            "releaseUuid": release["releaseUuid"]}),
    ] {
        let path = format!("{LIST}/{CVE}/statement");
        tenant
            .client
            .put(&path)
            .json(&body)
            .call()
            .await
            .expect(200);
    }
    let document = tenant.client.get(&path).call().await.expect(200).json();
    let statements = document["statements"].as_array().expect("a list");
    assert_eq!(statements.len(), 2);
    for one in statements {
        assert_eq!(one["vulnerability"]["name"], CVE);
    }
    assert_eq!(statements[0]["action_statement"], "Update it.");
    assert_eq!(statements[1]["justification"], "component_not_present");
    assert_eq!(document["@context"], "https://openvex.dev/ns/v0.2.0");
    assert_eq!(document["version"], 1);
    let of_release = &document["statements"][1]["products"][0];
    assert_eq!(
        of_release["identifiers"]["purl"],
        "pkg:generic/logger@1.0.0"
    );
    let other = Tenant::create(&app.client()).await;
    other.client.get(&path).call().await.expect(404);
}
