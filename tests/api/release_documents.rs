//! What comes with a release: a bill of materials, statements of its maker, and what follows.

use hub_base::db::sql;
use hub_identity::authz::permission::Role;
use hub_protocol::AppUuid;
use hub_protocol::release::SignedDocument;
use hub_tests::app::perform;
use hub_tests::release::{make_app, sha256, upload};
use hub_tests::{
    Backend, Call, Maker, Options, Recipe, Reply, SimulatedHub, Tenant, TestApp, on_each_database,
};
use serde_json::{Value, json};

use super::vulnerabilities::{self, LIST, get, image, import, match_lists, package, runs};

const NEW: &str = "2026-01-02T00:00:00Z";

pub struct Place {
    pub app: TestApp,
    maker: Maker,
    pub tenant: Tenant,
    app_uuid: AppUuid,
}

/// A release, and the path of what is below it.
pub struct Made {
    uuid: Value,
    version: String,
    path: String,
}

impl Place {
    async fn new(backend: Backend) -> Self {
        Self::with(backend, Options::default()).await
    }

    pub async fn with(backend: Backend, mut options: Options) -> Self {
        let maker = Maker::new();
        options.settings.release_keys = Some(maker.keys());
        let app = TestApp::with(backend, options).await;
        let tenant = Tenant::create(&app.client()).await;
        let app_uuid = make_app(&tenant, "logger").await;
        Self {
            app,
            maker,
            tenant,
            app_uuid,
        }
    }

    /// A release that was signed with these documents, whose file is not uploaded yet.
    async fn sign(&self, counter: u64, sbom: Option<&Value>, vex: Option<&Value>) -> (Made, Value) {
        let version = format!("1.0.{counter}");
        self.sign_recipe(&Recipe::app("logger", &version, counter), sbom, vex)
            .await
    }

    async fn sign_recipe(
        &self,
        recipe: &Recipe,
        sbom: Option<&Value>,
        vex: Option<&Value>,
    ) -> (Made, Value) {
        let mut manifest = recipe.parsed();
        manifest.sbom = sbom.map(|sbom| signed(&sbom.to_string(), format_of(sbom)));
        manifest.vex = vex.map(|vex| signed(&vex.to_string(), "OPENVEX"));
        let manifest = serde_json::to_string(&manifest).expect("JSON");
        let body = json!({"manifest": manifest, "signature": self.maker.sign(&manifest)});
        let path = format!("/tenant/apps/{}/releases", self.app_uuid);
        let made: Value = self
            .tenant
            .client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(201)
            .data();
        let release = Made {
            uuid: made["releaseUuid"].clone(),
            version: recipe.version.clone(),
            path: format!("{path}/{}", made["releaseUuid"].as_str().expect("a uuid")),
        };
        (release, made)
    }

    /// A READY release with its documents.
    pub async fn release(&self, counter: u64, sbom: Option<&Value>, vex: Option<&Value>) -> Made {
        let (release, made) = self.sign(counter, sbom, vex).await;
        let file = Recipe::app("logger", &release.version, counter).file;
        upload(&self.tenant.client, &made, &file).await.expect(200);
        for (document, content) in [("sbom", sbom), ("vex", vex)] {
            if let Some(content) = content {
                self.put(&release, document, content.to_string())
                    .await
                    .expect(200);
            }
        }
        release
    }

    async fn put(&self, release: &Made, document: &str, body: impl Into<Vec<u8>>) -> Reply {
        let path = format!("{}/documents/{document}", release.path);
        self.tenant.client.put(&path).body(body.into()).call().await
    }

    pub async fn install(&self, hub: &SimulatedHub, release: &Made) {
        let installed = json!({"apps": [{"appUuid": self.app_uuid, "releaseUuid": release.uuid,
            "version": release.version, "state": "RUNNING", "since": "2026-01-31T08:00:00Z"}]});
        let path = format!("/v1/hubs/{}/installed-apps", hub.hub_uuid);
        let put = hub.client.put(&path).json(&installed);
        put.call().await.expect(204);
    }

    /// How many hubs are exposed, not affected and fixed.
    async fn counts(&self, cve: &str) -> [i64; 3] {
        let found = get(&self.tenant.client, &format!("{LIST}?q={cve}")).await;
        ["exposed", "notAffected", "fixed"]
            .map(|standing| found[0]["hubs"][standing].as_i64().unwrap_or(-1))
    }

    async fn shown(&self, release: &Made) -> Value {
        let path = format!("/tenant/apps/{}/releases", self.app_uuid);
        let listed = get(&self.tenant.client, &path).await;
        let mut listed = listed.as_array().expect("a list").iter();
        let found = listed.find(|one| one["releaseUuid"] == release.uuid);
        found.expect("the release").clone()
    }
}

fn signed(document: &str, format: &str) -> SignedDocument {
    SignedDocument {
        format: format.to_owned(),
        size_bytes: document.len() as u64,
        sha256: sha256(document.as_bytes()),
    }
}

fn format_of(sbom: &Value) -> &'static str {
    match sbom["spdxVersion"].is_string() {
        true => "SPDX",
        false => "CYCLONEDX",
    }
}

pub fn cyclonedx(purls: &[&str]) -> Value {
    let component = |purl: &&str| json!({"type": "library", "name": "x", "version": "0", "purl": purl, "bom-ref": purl});
    let components: Vec<Value> = purls.iter().map(component).collect();
    json!({"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": components})
}

fn openvex(statements: Value) -> Value {
    json!({
        "@context": "https://openvex.dev/ns/v0.2.0", "@id": "https://example.com/vex/1",
        "author": "Example Ltd.", "timestamp": "2026-01-01T00:00:00Z", "version": 1,
        "statements": statements,
    })
}

/// An advisory about versions of a package before `fixed`.
fn advisory(cve: &str, ecosystem: &str, package: &str, fixed: &str) -> Value {
    let mut record = vulnerabilities::record(cve, package, Some(fixed), NEW);
    record["id"] = json!(format!("{}-{cve}", ecosystem.replace(['.', ':'], "-")));
    record["affected"][0]["package"]["ecosystem"] = json!(ecosystem);
    record["affected"][0]["ranges"][0]["type"] = match ecosystem {
        "crates.io" | "npm" | "Go" => json!("SEMVER"),
        _ => json!("ECOSYSTEM"),
    };
    record
}

on_each_database!(document_is_stored_as_it_was_signed);
async fn document_is_stored_as_it_was_signed(backend: Backend) {
    let place = Place::new(backend).await;
    let sbom = cyclonedx(&["pkg:cargo/serde@1.0.1", "pkg:npm/%40a/b@2.0.0"]);
    let text = sbom.to_string();
    let (release, made) = place.sign(1, Some(&sbom), None).await;
    assert_eq!(made["documents"][0]["uploadedAt"], Value::Null);
    assert_eq!(made["components"], json!({"source": "NONE", "count": 0}));
    let refused = place.put(&release, "sbom", text.clone()).await.expect(409);
    assert_eq!(refused.problem().code, "RELEASE_AWAITS_FILE");
    let file = Recipe::app("logger", &release.version, 1).file;
    upload(&place.tenant.client, &made, &file).await.expect(200);
    // Signed with a bill of materials: nothing is looked for in the file.
    let client = &place.tenant.client;
    let path = format!("{}/documents/sbom", release.path);
    client.get(&path).call().await.expect(404);

    let unsigned = place.put(&release, "vex", "{}").await.expect(409);
    assert_eq!(unsigned.problem().code, "DOCUMENT_NOT_SIGNED");
    let longer = format!("{text} ");
    let other = text.replace("serde", "sErde");
    for (wrong, code) in [(longer, "WRONG_SIZE"), (other, "WRONG_DIGEST")] {
        let refused = place.put(&release, "sbom", wrong).await.expect(400);
        assert_eq!(refused.problem().code, code);
    }
    place
        .put(&release, "sbom", vec![b' '; 17 << 20])
        .await
        .expect(413);
    let reader = place.tenant.member(Role::Viewer).await;
    let packed = place.tenant.client.put(&path).body("packed");
    let packed = packed.header("content-encoding", "gzip");
    packed.call().await.expect(415);
    let put = reader.put(&path).body(text.clone());
    put.call().await.expect(403);

    let stored: Value = place
        .put(&release, "sbom", text.clone())
        .await
        .expect(200)
        .data();
    assert_eq!(
        (&stored["document"], &stored["format"], &stored["sizeBytes"]),
        (&json!("sbom"), &json!("CYCLONEDX"), &json!(text.len()))
    );
    let again: Value = place
        .put(&release, "sbom", text.clone())
        .await
        .expect(200)
        .data();
    assert_eq!(again, stored);
    let got = reader.get(&path).call().await.expect(200);
    assert_eq!(got.body, text);
    assert_eq!(got.header("content-type"), "application/json");
    assert_eq!(
        got.header("content-disposition"),
        "attachment; filename=\"sbom.json\""
    );
    let shown = place.shown(&release).await;
    assert_eq!(shown["documents"][0]["uploadedAt"], stored["uploadedAt"]);
    assert_eq!(
        shown["components"],
        json!({"source": "DECLARED", "count": 2})
    );
    let components = format!("{}/components", release.path);
    let listed = get(&reader, &components).await;
    assert_eq!(
        listed,
        json!([
            {"ecosystem": "npm", "name": "@a/b", "version": "2.0.0", "purl": "pkg:npm/%40a/b@2.0.0", "source": "DECLARED"},
            {"ecosystem": "crates.io", "name": "serde", "version": "1.0.1", "purl": "pkg:cargo/serde@1.0.1", "source": "DECLARED"},
        ])
    );
    let found = get(&reader, &format!("{components}?q=SERDE&size=1")).await;
    assert_eq!(found.as_array().map(Vec::len), Some(1));

    let stranger = Tenant::create(&place.app.client()).await;
    for path in [&path, &components] {
        stranger.client.get(path).call().await.expect(404);
    }
    let put = stranger.client.put(&path).body(text);
    put.call().await.expect(404);
}

on_each_database!(document_that_cannot_be_read_is_refused);
async fn document_that_cannot_be_read_is_refused(backend: Backend) {
    let place = Place::new(backend).await;
    let nested = format!(
        "{{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.6\", \"components\": {}{}}}",
        "[{\"name\": \"a\", \"version\": \"1\", \"components\": ".repeat(5_000),
        "[]".to_owned() + &"}]".repeat(5_000)
    );
    for (counter, (text, format, part)) in (1..).zip([
        (nested, "CYCLONEDX", "components"),
        (cyclonedx(&[]).to_string(), "SPDX", "CYCLONEDX"),
        ("<bom/>".to_owned(), "CYCLONEDX", "XML"),
        (
            json!({"spdxVersion": "SPDX-3.0", "packages": []}).to_string(),
            "SPDX",
            "spdxVersion",
        ),
        (
            json!({"bomFormat": "CycloneDX", "specVersion": "1.6",
                "components": [{"name": "a\u{0}b", "version": "1"}]})
            .to_string(),
            "CYCLONEDX",
            "control character",
        ),
    ]) {
        let recipe = Recipe::app("logger", &format!("1.0.{counter}"), counter);
        let mut manifest = recipe.parsed();
        manifest.sbom = Some(signed(&text, format));
        let manifest = serde_json::to_string(&manifest).expect("JSON");
        let body = json!({"manifest": manifest, "signature": place.maker.sign(&manifest)});
        let path = format!("/tenant/apps/{}/releases", place.app_uuid);
        let client = &place.tenant.client;
        let made: Value = client
            .post(&path)
            .json(&body)
            .call()
            .await
            .expect(201)
            .data();
        upload(client, &made, &recipe.file).await.expect(200);
        let uuid = made["releaseUuid"].as_str().expect("a uuid");
        let path = format!("{path}/{uuid}/documents/sbom");
        let refused = client.put(&path).body(text).call().await.expect(400);
        let message = refused.problem().message;
        assert!(message.contains(part), "{part}: {message}");
    }

    // What is hostile and well-formed stays text.
    let sbom = json!({"bomFormat": "CycloneDX", "specVersion": "1.5", "components": [
        {"name": "<script>alert(1)</script>", "version": "'; DROP TABLE apps; --"}]});
    let release = place.release(9, Some(&sbom), None).await;
    let listed = get(
        &place.tenant.client,
        &format!("{}/components", release.path),
    )
    .await;
    assert_eq!(listed[0]["name"], "<script>alert(1)</script>");
    assert_eq!(listed[0]["ecosystem"], Value::Null);
}

on_each_database!(component_exposes_the_hubs_that_run_the_release);
async fn component_exposes_the_hubs_that_run_the_release(backend: Backend) {
    let place = Place::new(backend).await;
    let (runs_it, runs_other) = (
        SimulatedHub::claim(&place.tenant).await,
        SimulatedHub::claim(&place.tenant).await,
    );
    let bad = cyclonedx(&[
        "pkg:cargo/hyper@0.14.9",
        "pkg:npm/left-pad@1.9.0",
        "pkg:pypi/Zope.Interface@5.0rc1",
        "pkg:golang/github.com/a/b@v1.2.2",
        "pkg:deb/debian/libssl3@3.0.11-1?distro=debian-12&upstream=openssl",
    ]);
    let good = json!({"spdxVersion": "SPDX-2.3", "packages": [
        {"SPDXID": "SPDXRef-1", "name": "hyper", "versionInfo": "0.14.10", "externalRefs": [
            {"referenceType": "purl", "referenceLocator": "pkg:cargo/hyper@0.14.10"}]}]});
    let old = place.release(1, Some(&bad), None).await;
    let new = place.release(2, Some(&good), None).await;
    place.install(&runs_it, &old).await;
    place.install(&runs_other, &new).await;
    // Each ecosystem has its own order of versions: 0.14.10 is after 0.14.9.
    for (number, (ecosystem, package, fixed)) in (1..).zip([
        ("crates.io", "hyper", "0.14.10"),
        ("npm", "left-pad", "1.10.0"),
        ("PyPI", "zope-interface", "5.0"),
        ("Go", "github.com/a/b", "1.2.3"),
        ("Debian:12", "openssl", "3.0.13-1"),
    ]) {
        let cve = format!("CVE-2026-000{number}");
        import(&place.app, &advisory(&cve, ecosystem, package, fixed)).await;
        match_lists(&place.app).await;
        assert_eq!(place.counts(&cve).await, [1, 0, 0], "{ecosystem}");
        let hubs = get(&place.tenant.client, &format!("{LIST}/{cve}/hubs")).await;
        assert_eq!(hubs.as_array().map(Vec::len), Some(1), "{ecosystem}");
        assert_eq!(
            (&hubs[0]["hubUuid"], &hubs[0]["status"]),
            (&json!(runs_it.hub_uuid), &json!("EXPOSED"))
        );
        assert_eq!(hubs[0]["packages"][0]["ecosystem"], ecosystem);
        assert_eq!(hubs[0]["packages"][0]["fixedIn"], fixed);
        let found = get(&place.tenant.client, &format!("{LIST}?q={cve}")).await;
        let releases = found[0]["releases"].as_array().expect("a list");
        let named =
            |one: &Value| [&one["appUuid"], &one["releaseUuid"], &one["version"]].map(Clone::clone);
        let of_old = [json!(place.app_uuid), old.uuid.clone(), json!(old.version)];
        assert_eq!(
            releases.iter().map(named).collect::<Vec<_>>(),
            [of_old],
            "{ecosystem}"
        );
    }
    let of = format!("?hubUuid={}", runs_it.hub_uuid);
    let found = get(&place.tenant.client, &format!("{LIST}{of}")).await;
    assert_eq!(found.as_array().map(Vec::len), Some(5));
    let of = format!("?releaseUuid={}", new.uuid.as_str().expect("a uuid"));
    let found = get(&place.tenant.client, &format!("{LIST}{of}")).await;
    assert_eq!(found, json!([]));
    let admin = place.tenant.owner.as_platform_admin(&place.app);
    let of_all = get(&admin, "/platform/vulnerabilities?q=CVE-2026-0001").await;
    assert_eq!(of_all[0]["hubs"], 1);

    // A hub that has the package as well is one hub.
    let debian = image(vec![package("openssl", "3.0.11-1")]);
    runs(&runs_it, &debian).await;
    match_lists(&place.app).await;
    assert_eq!(place.counts("CVE-2026-0005").await, [1, 0, 0]);
    let of_all = get(&admin, "/platform/vulnerabilities?q=CVE-2026-0005").await;
    assert_eq!(of_all[0]["hubs"], 1);
    // It gets the release in which all of it is fixed, and still has the package.
    place.install(&runs_it, &new).await;
    assert_eq!(place.counts("CVE-2026-0001").await, [0, 0, 1]);
    assert_eq!(place.counts("CVE-2026-0005").await, [1, 0, 0]);
    let hubs = get(&place.tenant.client, &format!("{LIST}/CVE-2026-0001/hubs")).await;
    assert_eq!(hubs[0]["status"], "FIXED");
    assert_eq!(hubs[0]["packages"][0]["version"], "0.14.9");

    let path = format!("/tenant/hubs/{}", runs_it.hub_uuid);
    let gone = place.tenant.client.delete(&path);
    gone.call().await.expect(204);
    assert_eq!(place.counts("CVE-2026-0001").await, [0, 0, 0]);
    let stranger = Tenant::create(&place.app.client()).await;
    assert_eq!(get(&stranger.client, LIST).await, json!([]));
}

on_each_database!(report_counts_hubs_that_are_exposed_by_a_release);
async fn report_counts_hubs_that_are_exposed_by_a_release(backend: Backend) {
    let place = Place::new(backend).await;
    let client = &place.tenant.client;
    let (german, updated, unknown) = (
        SimulatedHub::claim(&place.tenant).await,
        SimulatedHub::claim(&place.tenant).await,
        SimulatedHub::claim(&place.tenant).await,
    );
    for hub in [&german, &updated] {
        let path = format!("/tenant/hubs/{}", hub.hub_uuid);
        let changed = client.patch(&path).json(&json!({"country": "DE"}));
        changed.call().await.expect(200);
    }
    let bad = cyclonedx(&["pkg:cargo/hyper@0.14.9"]);
    let good = cyclonedx(&["pkg:cargo/hyper@0.14.10"]);
    let old = place.release(1, Some(&bad), None).await;
    let new = place.release(2, Some(&good), None).await;
    for hub in [&german, &updated, &unknown] {
        place.install(hub, &old).await;
    }
    // A machine with other packages does not change how the hub stands.
    runs(&german, &image(vec![package("bash", "5.2.15-2")])).await;
    let cve = "CVE-2026-0001";
    import(&place.app, &advisory(cve, "crates.io", "hyper", "0.14.10")).await;
    match_lists(&place.app).await;
    place.install(&updated, &new).await;
    let release = serde_json::from_value(new.uuid.clone()).expect("a uuid");
    place.tenant.install(&unknown, release).await;

    let report = |query: &'static str| async move {
        let path = format!("{LIST}/{cve}/report{query}");
        client.get(&path).call().await.expect(200).body
    };
    let markdown = report("").await;
    for part in [
        "| DE | 1 | 0 | 0 | 1 |",
        "| not stated | 0 | 1 | 0 | 0 |",
        "installation of an app logger 1.0.2, succeeded on 0 of 1 hubs, open on 1",
    ] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    let csaf = report("?form=csaf").await;
    assert!(csaf.contains("DE: 1 exposed, 0 exposed with"), "{csaf}");

    // What is stated decides how the hubs of a country stand.
    let stated = json!({"status": "not_affected", "justification": "component_not_present"});
    let put = client.put(&format!("{LIST}/{cve}/statement"));
    put.json(&stated).call().await.expect(200);
    let markdown = report("").await;
    for part in ["| DE | 0 | 0 | 1 | 1 |", "| not stated | 0 | 0 | 1 | 0 |"] {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
}

on_each_database!(statement_of_the_maker_counts_below_that_of_the_tenant);
async fn statement_of_the_maker_counts_below_that_of_the_tenant(backend: Backend) {
    let place = Place::new(backend).await;
    let hub = SimulatedHub::claim(&place.tenant).await;
    let sbom = cyclonedx(&["pkg:cargo/hyper@0.14.9", "pkg:npm/left-pad@1.0.0"]);
    let vex = openvex(json!([
        {"vulnerability": {"name": "GHSA-aaaa", "aliases": ["CVE-2026-0001"]},
         "products": [{"@id": "logger", "subcomponents": [{"@id": "pkg:cargo/hyper@0.14.9"}]}],
         "status": "not_affected", "justification": "vulnerable_code_not_in_execute_path"},
        {"vulnerability": {"name": "CVE-2026-0002"}, "products": [{"@id": "pkg:generic/other@1"}],
         "status": "not_affected", "impact_statement": "It is another product."},
    ]));
    let release = place.release(1, Some(&sbom), Some(&vex)).await;
    place.install(&hub, &release).await;
    for (cve, ecosystem, package) in [
        ("CVE-2026-0001", "crates.io", "hyper"),
        ("CVE-2026-0002", "npm", "left-pad"),
    ] {
        import(&place.app, &advisory(cve, ecosystem, package, "9.0.0")).await;
    }
    match_lists(&place.app).await;
    assert_eq!(place.counts("CVE-2026-0001").await, [0, 1, 0]);
    assert_eq!(place.counts("CVE-2026-0002").await, [1, 0, 0]);
    let path = format!("{LIST}/CVE-2026-0001");
    let hubs = get(&place.tenant.client, &format!("{path}/hubs")).await;
    assert_eq!(hubs[0]["status"], "NOT_AFFECTED");
    assert_eq!(hubs[0]["statement"]["author"], "Example Ltd.");
    assert_eq!(hubs[0]["statement"]["releaseUuid"], release.uuid);

    // The tenant knows better.
    let own = json!({"status": "affected", "actionStatement": "Update it."});
    let put = place.tenant.client.put(&format!("{path}/statement"));
    put.json(&own).call().await.expect(200);
    assert_eq!(place.counts("CVE-2026-0001").await, [1, 0, 0]);
    let hubs = get(&place.tenant.client, &format!("{path}/hubs")).await;
    assert_ne!(hubs[0]["statement"]["author"], "Example Ltd.");
}

on_each_database!(product_is_named_by_an_iri_of_the_bill_of_materials);
async fn product_is_named_by_an_iri_of_the_bill_of_materials(backend: Backend) {
    let place = Place::new(backend).await;
    let hub = SimulatedHub::claim(&place.tenant).await;
    let number = "3e671687-395b-41f5-a30f-a58921a69b79";
    let mut sbom = cyclonedx(&["pkg:cargo/hyper@0.14.9"]);
    sbom["serialNumber"] = json!(format!("urn:uuid:{number}"));
    let stated = |product: Value| {
        json!({"vulnerability": {"name": "CVE-2026-0001"}, "products": [product],
            "status": "not_affected", "justification": "vulnerable_code_not_present"})
    };
    let vex = openvex(json!([
        stated(json!({"@id": format!("urn:cdx:{number}/1")})),
        stated(json!({"@id": "https://example.com/other"})),
    ]));
    let (release, made) = place.sign(1, Some(&sbom), Some(&vex)).await;
    let file = Recipe::app("logger", &release.version, 1).file;
    upload(&place.tenant.client, &made, &file).await.expect(200);
    let put = place.put(&release, "sbom", sbom.to_string()).await;
    let put: Value = put.expect(200).data();
    assert!(put.get("unmatchedProducts").is_none(), "{put}");
    let put = place.put(&release, "vex", vex.to_string()).await;
    let put: Value = put.expect(200).data();
    assert_eq!(
        put["unmatchedProducts"],
        json!(["https://example.com/other"])
    );
    place.install(&hub, &release).await;
    import(
        &place.app,
        &advisory("CVE-2026-0001", "crates.io", "hyper", "9.0.0"),
    )
    .await;
    match_lists(&place.app).await;
    assert_eq!(place.counts("CVE-2026-0001").await, [0, 1, 0]);
}

on_each_database!(documents_of_the_agent_are_seen_by_tenants);
async fn documents_of_the_agent_are_seen_by_tenants(backend: Backend) {
    let place = Place::new(backend).await;
    let admin = place.tenant.owner.as_platform_admin(&place.app);
    let text = cyclonedx(&["pkg:cargo/serde@1.0.1"]).to_string();
    // The version that hubs report.
    let recipe = Recipe {
        architecture: "any".to_owned(),
        ..Recipe::agent("1.4.0", 1)
    };
    let mut manifest = recipe.parsed();
    manifest.sbom = Some(signed(&text, "CYCLONEDX"));
    let manifest = serde_json::to_string(&manifest).expect("JSON");
    let body = json!({"channel": "stable", "manifest": manifest,
        "signature": place.maker.sign(&manifest)});
    let path = "/platform/agent-releases";
    let made: Value = admin.post(path).json(&body).call().await.expect(201).data();
    let uuid = made["releaseUuid"].as_str().expect("a uuid").to_owned();
    let put = |uuid: &str, document: &str, body: Vec<u8>| {
        let path = format!("{path}/{uuid}/documents/{document}");
        admin.put(&path).body(body).call()
    };
    let early = put(&uuid, "sbom", text.clone().into_bytes()).await;
    assert_eq!(early.expect(409).problem().code, "RELEASE_AWAITS_FILE");
    upload(&admin, &made, &recipe.file).await.expect(200);
    let unknown = place.app_uuid.to_string();
    put(&unknown, "sbom", text.clone().into_bytes())
        .await
        .expect(404);
    let other = put(&uuid, "sbom", text.replace("serde", "sErde").into_bytes()).await;
    assert_eq!(other.expect(400).problem().code, "WRONG_DIGEST");
    put(&uuid, "sbom", vec![b' '; 17 << 20]).await.expect(413);
    let packed = admin.put(&format!("{path}/{uuid}/documents/sbom"));
    let packed = packed.header("content-encoding", "gzip").body("packed");
    packed.call().await.expect(415);
    let shown = format!("/tenant/agent-releases/{uuid}/documents/sbom");
    let client = &place.tenant.client;
    client.get(&shown).call().await.expect(404);
    put(&uuid, "sbom", text.clone().into_bytes())
        .await
        .expect(200);
    assert_eq!(client.get(&shown).call().await.expect(200).body, text);
    let release = get(client, &format!("/tenant/agent-releases/{uuid}")).await;
    assert_eq!(
        release["components"],
        json!({"source": "DECLARED", "count": 1})
    );

    // No hub has it yet.
    adopt(&place, &uuid).await;
    // Hubs that run it are exposed by its components.
    let (hub, silent) = (
        SimulatedHub::claim(&place.tenant).await,
        SimulatedHub::claim(&place.tenant).await,
    );
    runs(&hub, &image(vec![package("bash", "5.2.15-2")])).await;
    import(
        &place.app,
        &advisory("CVE-2026-0001", "crates.io", "serde", "1.0.2"),
    )
    .await;
    match_lists(&place.app).await;
    assert_eq!(adoptions(&place).await, 1, "the first report that names it");
    adopt(&place, &uuid).await;
    match_lists(&place.app).await;
    assert_eq!(place.counts("CVE-2026-0001").await, [1, 0, 0]);
    // The tenant has them: nothing follows from another report.
    runs(&hub, &image(vec![package("bash", "5.2.15-3")])).await;
    assert_eq!(adoptions(&place).await, 0);
    let hubs = get(client, &format!("{LIST}/CVE-2026-0001/hubs")).await;
    assert_eq!(hubs[0]["hubUuid"], json!(hub.hub_uuid));
    assert_ne!(hubs[0]["hubUuid"], json!(silent.hub_uuid));
}

/// Tasks that give tenants the components of releases of the agent.
async fn adoptions(place: &Place) -> i64 {
    let mut conn = place.app.app.db.read().await.expect("a connection");
    let count = sql("SELECT COUNT(*) FROM tasks WHERE kind = 'exposure.adopt'");
    count.scalar(&mut conn).await.expect("a count")
}

/// Performs the one that is there, of this release.
async fn adopt(place: &Place, release_uuid: &str) {
    assert_eq!(adoptions(place).await, 1);
    let mut tx = place.app.app.db.begin().await.expect("a transaction");
    sql("DELETE FROM tasks WHERE kind = 'exposure.adopt'")
        .run(&mut tx)
        .await
        .expect("deleted");
    tx.commit_unaudited("a test's own").await.expect("a commit");
    let payload = json!({"releaseUuid": release_uuid});
    perform(&place.app.app, "exposure.adopt", payload).await;
}

on_each_database!(components_are_found_in_a_file_without_a_document);
async fn components_are_found_in_a_file_without_a_document(backend: Backend) {
    let place = Place::new(backend).await;
    let hub = SimulatedHub::claim(&place.tenant).await;
    let status = b"Package: libssl3\nStatus: install ok installed\nSource: openssl\n\
        Version: 3.0.11-1\n\n";
    let file = archive(&[
        ("etc/os-release", b"ID=debian\nVERSION_ID=\"12\"\n"),
        ("var/lib/dpkg/status", status),
    ]);
    let recipe = Recipe {
        file,
        ..Recipe::app("logger", "1.0.1", 1)
    };
    let (release, made) = place.sign_recipe(&recipe, None, None).await;
    upload(&place.tenant.client, &made, &recipe.file)
        .await
        .expect(200);
    let payload = json!({"tenantUuid": place.tenant.tenant_uuid, "appUuid": place.app_uuid,
        "releaseUuid": release.uuid});
    perform(&place.app.app, "release.find_components", payload.clone()).await;
    perform(&place.app.app, "release.find_components", payload).await;
    let shown = place.shown(&release).await;
    assert_eq!(shown["documents"], json!([]));
    assert_eq!(shown["components"], json!({"source": "FOUND", "count": 1}));
    let listed = get(
        &place.tenant.client,
        &format!("{}/components", release.path),
    )
    .await;
    assert_eq!(
        (&listed[0]["name"], &listed[0]["source"]),
        (&json!("libssl3"), &json!("FOUND"))
    );
    place.install(&hub, &release).await;
    import(
        &place.app,
        &advisory("CVE-2026-0001", "Debian:12", "openssl", "3.0.13-1"),
    )
    .await;
    match_lists(&place.app).await;
    assert_eq!(place.counts("CVE-2026-0001").await, [1, 0, 0]);
}

/// A tar archive, compressed with zstd.
fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder
            .append_data(&mut header, path, *bytes)
            .expect("an entry");
    }
    let tar = builder.into_inner().expect("an archive");
    zstd::bulk::compress(&tar, 3).expect("compressed")
}
