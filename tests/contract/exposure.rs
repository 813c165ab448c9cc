//! A hub that is exposed to a vulnerability, a server that is to get what hubs run, and releases
//! that come with a document.

use std::io::Write;

use hub_exposure::feeds;
use hub_protocol::release::{ReleaseKind, SignedDocument};
use hub_tests::release::{sha256, upload};
use hub_tests::{Call, Client, Recipe, SimulatedHub, Tenant, TestApp, app::perform};
use serde_json::{Value, json};

use super::document::Operation;
use super::world::{SAMPLES, World};

pub const VULNERABILITY: &str = "CVE-2023-5678";

/// Has the hub report a package of which an advisory is there, and sets the server.
pub async fn expose(app: &TestApp, tenant: &Tenant, hub: &SimulatedHub) {
    let server = &SAMPLES["PUT /tenant/dependency-track"];
    let set = tenant.client.put("/tenant/dependency-track").json(server);
    set.call().await.expect(200);
    let path = format!("/v1/hubs/{}/packages", hub.hub_uuid);
    let report = &SAMPLES["POST /v1/hubs/{hubUuid}/packages"];
    hub.client.post(&path).json(report).call().await.expect(200);
    let record = json!({
        "id": format!("DEBIAN-{VULNERABILITY}"),
        "upstream": [VULNERABILITY],
        "summary": "Excessive time in checks of keys",
        "modified": "2026-01-01T00:00:00Z",
        "affected": [{
            "package": {"ecosystem": "Debian:12", "name": "openssl"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.0.13-1"}]}],
        }],
    });
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(record.to_string().as_bytes())
        .expect("written");
    feeds::import(&app.app, file.path(), |_| {})
        .await
        .expect("an import");
    perform(&app.app, "exposure.match", json!({})).await;
    let path = format!("/tenant/vulnerabilities/{VULNERABILITY}/statement");
    let stated = json!({"status": "under_investigation"});
    let put = tenant.client.put(&path).json(&stated);
    put.call().await.expect(200);
}

/// What releases consist of here.
pub const SBOM: &[u8] = br#"{"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
    "components": [{"type": "library", "name": "serde", "version": "1.0.1",
    "purl": "pkg:cargo/serde@1.0.1"}]}"#;

impl World {
    /// A release of the app that was signed with a bill of materials, and has it unless the
    /// operation uploads it.
    pub async fn documented_app_release(&self, operation: &Operation) -> String {
        let path = format!("/tenant/apps/{}/releases", self.app_uuid);
        let recipe = self.recipe(ReleaseKind::App);
        let release = self
            .documented(&self.tenant.client, &path, &recipe, json!({}))
            .await;
        if operation.method != "PUT" {
            let path = format!("{path}/{release}/documents/sbom");
            let put = self.tenant.client.put(&path).body(SBOM);
            put.call().await.expect(200);
        }
        release
    }

    /// As `documented_app_release`, of the agent.
    pub async fn documented_agent_release(&self, operation: &Operation) -> String {
        let path = "/platform/agent-releases";
        let recipe = self.recipe(ReleaseKind::Agent);
        let channel = json!({"channel": "documented"});
        let release = self.documented(&self.admin, path, &recipe, channel).await;
        if operation.method != "PUT" {
            let path = format!("{path}/{release}/documents/sbom");
            self.admin.put(&path).body(SBOM).call().await.expect(200);
        }
        release
    }

    async fn documented(
        &self,
        client: &Client,
        path: &str,
        recipe: &Recipe,
        mut body: Value,
    ) -> String {
        let mut manifest = recipe.parsed();
        manifest.sbom = Some(SignedDocument {
            format: "CYCLONEDX".to_owned(),
            size_bytes: SBOM.len() as u64,
            sha256: sha256(SBOM),
        });
        let manifest = serde_json::to_string(&manifest).expect("JSON");
        body["signature"] = json!(self.maker.sign(&manifest));
        body["manifest"] = json!(manifest);
        let made: Value = client
            .post(path)
            .json(&body)
            .call()
            .await
            .expect(201)
            .data();
        upload(client, &made, &recipe.file).await.expect(200);
        made["releaseUuid"].as_str().expect("a uuid").to_owned()
    }
}
