//! `hub export tenant` and `hub import tenant`: releases of apps, own advisories and statements go
//! along, and what the new service refuses stops nothing else.

use std::path::Path;

use hub_core::config::Settings;
use hub_protocol::release::SignedDocument;
use hub_tests::release::{sha256, upload};
use hub_tests::{
    Backend, Call, Client, Maker, Options, Recipe, SimulatedHub, TestApp, on_each_database,
};
use serde_json::{Value, json};

use super::Terminal;
use super::switching::{claim, client, get, person, post, put};
use crate::api::vulnerabilities::{image_with, import, match_lists, record, runs};

const CVE: &str = "CVE-2023-5678";
const SBOM: &str = r#"{"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
    "components": [{"type": "library", "name": "serde", "version": "1.0.1",
    "purl": "pkg:cargo/serde@1.0.1"}]}"#;
const KEY: &str = "odt_key_of_dependency_track";

async fn service(backend: Backend, maker: &Maker) -> TestApp {
    let settings = Settings {
        release_keys: Some(maker.keys()),
        ..Settings::default()
    };
    let options = Options {
        settings,
        ..Options::default()
    };
    TestApp::with(backend, options).await
}

/// Publishes releases of an app; one has a version below that of the one before it, and one has a
/// bill of materials. Returns the app and the releases.
async fn publish(api: &Client, maker: &Maker) -> (Value, Vec<Value>) {
    let app = post(api, "/tenant/apps", json!({"name": "logger"})).await["appUuid"].clone();
    let path = format!("/tenant/apps/{}/releases", text(&app));
    let mut made = Vec::new();
    for (version, counter) in [("1.0.0", 1), ("2.0.0", 2), ("1.1.0", 3)] {
        let recipe = Recipe::app("logger", version, counter);
        let mut manifest = recipe.parsed();
        manifest.sbom = (counter == 2).then(|| SignedDocument {
            format: "CYCLONEDX".to_owned(),
            size_bytes: SBOM.len() as u64,
            sha256: sha256(SBOM.as_bytes()),
        });
        let manifest = serde_json::to_string_pretty(&manifest).expect("JSON");
        let body = json!({"manifest": manifest, "signature": maker.sign(&manifest)});
        let release = post(api, &path, body).await;
        upload(api, &release, &recipe.file).await.expect(200);
        made.push(release);
    }
    let second = format!("{path}/{}", text(&made[1]["releaseUuid"]));
    let sbom = format!("{second}/documents/sbom");
    api.put(&sbom).body(SBOM).call().await.expect(200);
    let support = json!({"supportedUntil": "2030-06-30"});
    api.patch(&second).json(&support).call().await.expect(200);
    // One whose file never came is not published.
    let recipe = Recipe::app("logger", "3.0.0", 4);
    post(api, &path, maker.body(&recipe, json!({}))).await;
    (app, made)
}

fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

async fn state(api: &Client, about: &str, statement: Value) {
    let path = format!("/tenant/vulnerabilities/{about}/statement");
    put(api, &path, statement).await;
}

async fn found_by_feed(app: &TestApp, hub: &SimulatedHub) {
    let openssl = record(CVE, "openssl", Some("3.0.13-1"), "2026-01-02T00:00:00Z");
    import(app, &openssl).await;
    runs(hub, &image_with("3.0.11-1")).await;
    match_lists(app).await;
}

/// An advisory about the app, and what is stated about it.
async fn advise(api: &Client, app: &Value, release: &Value) {
    let advisory = json!({
        "id": "ACME-2026-1", "title": "The logger logs secrets",
        "cvssVector": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H",
        "references": ["https://example.com/1"],
        "affected": [{"appUuid": app, "versions": [{"fixed": "1.1.0"}]}],
    });
    post(api, "/tenant/advisories", advisory).await;
    let update = json!({"status": "affected", "actionStatement": "Update."});
    state(api, "ACME-2026-1", update).await;
    let of_release = json!({"status": "not_affected", "releaseUuid": release["releaseUuid"],
        "justification": "vulnerable_code_not_present"});
    state(api, "ACME-2026-1", of_release).await;
}

/// The statements of the tenant, without what another service has otherwise.
async fn stated(api: &Client) -> Vec<(String, String, String)> {
    let reply = api.get("/tenant/vulnerabilities/openvex").call().await;
    let document = reply.expect(200).json();
    let statements = document["statements"].as_array().expect("a list").iter();
    statements
        .map(|one| {
            let about = text(&one["products"][0]["@id"]).to_owned();
            let vulnerability = text(&one["vulnerability"]["name"]).to_owned();
            (vulnerability, text(&one["status"]).to_owned(), about)
        })
        .collect()
}

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// The release of a version, as it is listed.
async fn release(api: &Client, app: &Value, version: &str) -> Value {
    let listed = get(api, &format!("/tenant/apps/{}/releases", text(app))).await;
    let mut listed = listed.as_array().expect("a list").iter();
    let found = listed.find(|one| one["version"] == version);
    found.expect("the release").clone()
}

#[track_caller]
fn contains(output: &str, texts: &[&str]) {
    for text in texts {
        assert!(output.contains(text), "no `{text}` in: {output}");
    }
}

on_each_database!(releases_advisories_and_statements_go_along);
async fn releases_advisories_and_statements_go_along(backend: Backend) {
    let maker = Maker::new();
    let (old, new) = (
        service(backend, &maker).await,
        service(backend, &maker).await,
    );
    let leaving = person(&old).await;
    let before = client(&old, &leaving).await;
    let (app, made) = publish(&before, &maker).await;
    advise(&before, &app, &made[0]).await;
    let hub = claim(&old, &leaving, "hardware-1").await;
    found_by_feed(&old, &hub).await;
    let harmless = json!({"status": "not_affected", "impactStatement": "Nothing speaks TLS."});
    state(&before, CVE, harmless).await;
    let server = json!({"url": "https://dtrack.example.com", "project": "hubs", "apiKey": KEY});
    put(&before, "/tenant/dependency-track", server).await;
    let bundle = json!({"name": "Logging", "description": "Logs"});
    let bundle = post(&before, "/tenant/supplier-bundles", bundle).await["bundleUuid"].clone();
    let pinned = json!([{"appUuid": app, "appReleaseUuid": made[1]["releaseUuid"]}]);
    let path = format!("/tenant/supplier-bundles/{}/apps", text(&bundle));
    put(&before, &path, pinned).await;

    leaving
        .run(&["export", "tenant", "--out", "out"])
        .await
        .expect(0);
    let folder = leaving.home.path().join("out");
    assert_eq!(count(&folder.join("release-files")), 3);
    let first = folder.join(format!("release-files/{}", text(&made[0]["releaseUuid"])));
    let bytes = std::fs::read(&first).expect("a file");
    assert_eq!(bytes, Recipe::app("logger", "1.0.0", 1).file);
    let sbom = text(&made[1]["releaseUuid"]);
    let sbom = folder.join(format!("release-documents/{sbom}.sbom.json"));
    assert_eq!(std::fs::read_to_string(sbom).expect("a file"), SBOM);
    let server = std::fs::read_to_string(folder.join("dependency-track.ndjson")).expect("a file");
    assert!(server.contains("dtrack.example.com") && !server.contains(KEY));

    // Nothing is changed by a dry run.
    let arriving = person(&new).await;
    let api = client(&new, &arriving).await;
    let place = folder.display().to_string();
    let planned = arriving
        .run(&["import", "tenant", &place, "--dry-run"])
        .await
        .expect(0);
    let kinds = [
        "releases: 3",
        "documents of releases: 1",
        "support periods of releases: 1",
        "advisories: 1",
        "statements: 2",
    ];
    let will = kinds.map(|kind| format!("+ create {kind}\n"));
    contains(&planned.stdout, &will.each_ref().map(String::as_str));
    assert_eq!(get(&api, "/tenant/apps").await, json!([]));

    let arguments = ["import", "tenant", &place, "--yes"];
    let imported = arriving.run(&arguments).await.expect(0);
    let did = kinds.map(|kind| format!("created {kind}\n"));
    contains(&imported.stdout, &did.each_ref().map(String::as_str));
    let left = [CVE, "HUB_SECRET_DEPENDENCY_TRACK"];
    contains(&imported.stdout, &left);
    let app = get(&api, "/tenant/apps").await[0]["appUuid"].clone();
    for one in &made {
        let here = release(&api, &app, text(&one["version"])).await;
        assert_eq!(here["status"], "READY");
        for member in ["manifest", "signature", "sha256"] {
            assert_eq!(here[member], one[member], "{member}");
        }
    }
    let second = release(&api, &app, "2.0.0").await;
    assert_eq!(second["supportedUntil"], "2030-06-30");
    assert_eq!(second["components"]["source"], "DECLARED");
    let bundles = get(&api, "/tenant/supplier-bundles").await;
    let path = format!(
        "/tenant/supplier-bundles/{}/apps",
        text(&bundles[0]["bundleUuid"])
    );
    let pinned = get(&api, &path).await;
    assert_eq!(pinned[0]["appReleaseUuid"], second["releaseUuid"]);

    // The release can be installed.
    let hub = claim(&new, &arriving, "hardware-1").await;
    let path = format!("/tenant/hubs/{}/jobs/app-install", hub.hub_uuid);
    let job = json!({"appReleaseUuid": second["releaseUuid"]});
    post(&api, &path, job).await;
    let path = format!("/v1/apps/{}/manifest", text(&second["releaseUuid"]));
    let offer = get(&hub.client, &path).await;
    let url = text(&offer["downloadUrl"]);
    let file = new.client().get(url).call().await.expect(200);
    assert_eq!(file.body.as_bytes(), Recipe::app("logger", "2.0.0", 2).file);

    let advisory = get(&api, "/tenant/advisories/ACME-2026-1").await;
    assert_eq!(advisory["affected"][0]["appUuid"], app);
    assert_eq!(advisory["severity"], "CRITICAL");
    let first = release(&api, &app, "1.0.0").await;
    let about = format!("urn:uuid:{}", text(&first["releaseUuid"]));
    let statements = stated(&api).await;
    assert_eq!(statements.len(), 2, "{statements:?}");
    let of_release = statements.iter().find(|(_, _, of)| *of == about);
    let (_, status, _) = of_release.expect("a statement about the release");
    assert_eq!(status, "not_affected");

    // What a hub reports makes the vulnerability known, and the key comes from the environment.
    found_by_feed(&new, &hub).await;
    let arriving = arriving.with("HUB_SECRET_DEPENDENCY_TRACK", KEY);
    let further = arriving.run(&arguments).await.expect(0);
    let further = further.stdout;
    contains(
        &further,
        &["created statements: 1\n", "created Dependency-Track: 1\n"],
    );
    let statements = stated(&api).await;
    assert!(statements.iter().any(|(id, _, _)| id == CVE));
    let server = get(&api, "/tenant/dependency-track").await;
    assert_eq!(server["url"], "https://dtrack.example.com");
    let again = arriving.run(&arguments).await.expect(0).stdout;
    assert!(again.ends_with("Nothing to create.\n"), "{again}");
    let listed = get(&api, &format!("/tenant/apps/{}/releases", text(&app))).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(3));
}

/// A tenant with releases and an advisory, in whose home they are exported.
async fn exported(app: &TestApp, maker: &Maker, skip: &[&str]) -> (Terminal, Vec<Value>) {
    let leaving = person(app).await;
    let api = client(app, &leaving).await;
    let (app, made) = publish(&api, maker).await;
    advise(&api, &app, &made[0]).await;
    let arguments = ["export", "tenant", "--out", "out"];
    leaving.run(&[&arguments, skip].concat()).await.expect(0);
    (leaving, made)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_of_a_release_is_refused() {
    let maker = Maker::new();
    let app = service(Backend::Sqlite, &maker).await;
    let (leaving, made) = exported(&app, &maker, &[]).await;
    let name = format!("release-files/{}", text(&made[2]["releaseUuid"]));
    let path = leaving.home.path().join("out").join(&name);
    std::fs::write(&path, "another program").expect("a change");
    let arriving = person(&app).await;
    let place = leaving.home.path().join("out").display().to_string();
    arriving
        .run(&["import", "tenant", &place, "--yes"])
        .await
        .expect(1)
        .says(&name)
        .says("was changed");
    let api = client(&app, &arriving).await;
    assert_eq!(get(&api, "/tenant/apps").await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_that_are_not_trusted_stop_nothing_else() {
    let maker = Maker::new();
    let old = service(Backend::Sqlite, &maker).await;
    let (leaving, _) = exported(&old, &maker, &[]).await;
    let place = leaving.home.path().join("out").display().to_string();
    let arguments = ["import", "tenant", &place, "--yes"];
    // One service trusts somebody else, the other nobody.
    let other = service(Backend::Sqlite, &Maker::new()).await;
    let nobody = TestApp::with(Backend::Sqlite, Options::default()).await;
    for new in [&other, &nobody] {
        let arriving = person(new).await;
        let refused = arriving.run(&arguments).await.expect(1);
        refused.says("3 objects could not be created");
        contains(
            &refused.stdout,
            &[
                "created advisories: 1\n",
                "created statements: 1\n",
                "failed: releases: logger 1.0.0 any",
                "ask the operator of the service to trust the keys that signed 3 releases",
                "are about releases that are not here",
            ],
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_releases_can_be_left_out() {
    let maker = Maker::new();
    let app = service(Backend::Sqlite, &maker).await;
    let (leaving, _) = exported(&app, &maker, &["--skip", "files"]).await;
    let folder = leaving.home.path().join("out");
    assert_eq!(count(&folder.join("release-files")), 0);
    let manifest = std::fs::read(folder.join("manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
    let mut left_out = manifest["leftOut"].as_array().expect("a list").iter();
    assert!(left_out.any(|one| one["part"] == "files"));
    let arriving = person(&app).await;
    let place = folder.display().to_string();
    let imported = arriving
        .run(&["import", "tenant", &place, "--yes"])
        .await
        .expect(0);
    let todo = "publish the releases whose files are not in the export";
    contains(&imported.stdout, &[todo, "created advisories: 1\n"]);
}
