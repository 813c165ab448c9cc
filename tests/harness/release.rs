//! Somebody who makes releases: keys of their own, manifests, signatures, and the requests that
//! bring a release into a service.

use std::path::{Path, PathBuf};

use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine;
use bytes::Bytes;
use hub_protocol::AppUuid;
use hub_protocol::release::{AppRun, ReleaseKind, ReleaseManifest};
use minisign::{KeyPair, PublicKey, SecretKey};
use reqwest::header::CONTENT_LENGTH;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::client::{Call, Client, Reply};
use crate::people::Tenant;

/// Has a key that a service trusts which is given the directory of keys.
pub struct Maker {
    key: SecretKey,
    dir: TempDir,
}

impl Default for Maker {
    fn default() -> Self {
        Self::new()
    }
}

impl Maker {
    pub fn new() -> Self {
        let pair = KeyPair::generate_unencrypted_keypair().expect("a key");
        let dir = tempfile::tempdir().expect("a directory");
        let text = pair.pk.to_box().expect("a public key").to_string();
        for folder in ["agent", "app"] {
            let folder = dir.path().join(folder);
            std::fs::create_dir(&folder).expect("a directory");
            std::fs::write(folder.join("maker.pub"), &text).expect("a file");
        }
        Self { key: pair.sk, dir }
    }

    /// What the setting `release-keys` has to name.
    pub fn keys(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    pub fn sign(&self, manifest: &str) -> String {
        minisign::sign(None, &self.key, manifest.as_bytes(), None, None)
            .expect("a signature")
            .into_string()
    }

    /// As minisign did before it hashed what it signs, and `minisign -S -l` does.
    pub fn sign_unhashed(&self, manifest: &str) -> String {
        let secret = self.key.to_bytes();
        let (number, seed, public) = (&secret[54..62], &secret[62..94], &secret[94..126]);
        let key = Ed25519KeyPair::from_seed_and_public_key(seed, public).expect("a key");
        let signature = key.sign(manifest.as_bytes());
        let comment = "signed the old way";
        let both = key.sign(&[signature.as_ref(), comment.as_bytes()].concat());
        let base64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        let first = base64(&[b"Ed", number, signature.as_ref()].concat());
        format!(
            "untrusted comment: x\n{first}\ntrusted comment: {comment}\n{}\n",
            base64(both.as_ref())
        )
    }

    /// What the key is checked with.
    pub fn public_key(&self) -> PublicKey {
        PublicKey::from_secret_key(&self.key).expect("a public key")
    }

    /// The body of the request that creates this release, with the fields of `more`.
    pub fn body(&self, recipe: &Recipe, more: Value) -> Value {
        let manifest = recipe.manifest();
        let mut body = json!({"manifest": manifest, "signature": self.sign(&manifest)});
        let members = body.as_object_mut().expect("an object");
        members.extend(more.as_object().cloned().unwrap_or_default());
        body
    }
}

/// A release to create.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub kind: ReleaseKind,
    pub name: String,
    pub version: String,
    pub architecture: String,
    pub counter: u64,
    pub downgrade: bool,
    pub file: Vec<u8>,
}

impl Recipe {
    /// The agent; no two have the same file.
    pub fn agent(version: &str, counter: u64) -> Self {
        Self {
            kind: ReleaseKind::Agent,
            name: "hub-agent".to_owned(),
            version: version.to_owned(),
            architecture: "x86_64".to_owned(),
            counter,
            downgrade: false,
            file: format!("the agent of version {version}, {counter}").into_bytes(),
        }
    }

    pub fn app(name: &str, version: &str, counter: u64) -> Self {
        Self {
            kind: ReleaseKind::App,
            name: name.to_owned(),
            architecture: "any".to_owned(),
            ..Self::agent(version, counter)
        }
    }

    pub fn parsed(&self) -> ReleaseManifest {
        let app = (self.kind == ReleaseKind::App).then(|| {
            serde_json::from_value::<AppRun>(json!({"entryPoint": "bin/app", "ble": true}))
                .expect("a way to run")
        });
        ReleaseManifest {
            name: self.name.clone(),
            kind: self.kind,
            architecture: self.architecture.clone(),
            version: self.version.clone(),
            size_bytes: self.file.len() as u64,
            sha256: sha256(&self.file),
            counter: self.counter,
            downgrade: self.downgrade,
            app,
            sbom: None,
            vex: None,
        }
    }

    /// As it is signed.
    pub fn manifest(&self) -> String {
        serde_json::to_string_pretty(&self.parsed()).expect("JSON")
    }
}

pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Sends a file to the URL that making its release gave.
pub async fn upload(client: &Client, made: &Value, file: &[u8]) -> Reply {
    let url = made["uploadUrl"].as_str().expect("an upload URL");
    client.put(url).body(file.to_vec()).call().await
}

/// Creates a release and uploads its file; returns the release as created.
pub async fn make_at(client: &Client, path: &str, body: &Value, file: &[u8]) -> Value {
    let made: Value = client.post(path).json(body).call().await.expect(201).data();
    upload(client, &made, file).await.expect(200);
    made
}

/// An agent's release that is READY.
pub async fn make_agent(admin: &Client, maker: &Maker, recipe: &Recipe, more: Value) -> Value {
    let mut body = maker.body(recipe, json!({"channel": "stable"}));
    body.as_object_mut()
        .expect("an object")
        .extend(more.as_object().cloned().unwrap_or_default());
    make_at(admin, "/platform/agent-releases", &body, &recipe.file).await
}

/// A tenant's new app.
pub async fn make_app(tenant: &Tenant, name: &str) -> AppUuid {
    let made: Value = tenant
        .client
        .post("/tenant/apps")
        .json(&json!({"name": name}))
        .call()
        .await
        .expect(201)
        .data();
    made["appUuid"]
        .as_str()
        .and_then(|uuid| uuid.parse().ok())
        .expect("an app's uuid")
}

/// An app's release that is READY.
pub async fn make_app_release(
    tenant: &Tenant,
    app_uuid: AppUuid,
    maker: &Maker,
    recipe: &Recipe,
) -> Value {
    let path = format!("/tenant/apps/{app_uuid}/releases");
    make_at(
        &tenant.client,
        &path,
        &maker.body(recipe, json!({})),
        &recipe.file,
    )
    .await
}

/// A file that is generated, so that nothing holds it in memory: the same bytes each time.
#[derive(Clone, Copy, Debug)]
pub struct LargeFile {
    pub mebibytes: u32,
}

const MEBIBYTE: usize = 1 << 20;

impl LargeFile {
    /// A mebibyte each.
    pub fn parts(self) -> impl Iterator<Item = Bytes> + Send + 'static {
        (0..self.mebibytes).map(|number| {
            let mut part = vec![0; MEBIBYTE];
            part.chunks_mut(4)
                .zip(number..)
                .for_each(|(word, value)| word.copy_from_slice(&value.to_le_bytes()));
            Bytes::from(part)
        })
    }

    pub fn size_bytes(self) -> u64 {
        u64::from(self.mebibytes) * MEBIBYTE as u64
    }

    pub fn sha256(self) -> String {
        let mut digest = Sha256::new();
        self.parts().for_each(|part| digest.update(&part));
        hex::encode(digest.finalize())
    }

    /// The body of the request that creates a release of it.
    pub fn release(self, maker: &Maker, recipe: &Recipe) -> Value {
        let manifest = ReleaseManifest {
            size_bytes: self.size_bytes(),
            sha256: self.sha256(),
            ..recipe.parsed()
        };
        let manifest = serde_json::to_string(&manifest).expect("JSON");
        json!({"manifest": manifest, "signature": maker.sign(&manifest)})
    }

    /// Sends it as it is generated. The client needs a long timeout.
    pub async fn upload(self, http: &reqwest::Client, url: &str) {
        let parts = self.parts().map(Ok::<_, std::io::Error>);
        let body = reqwest::Body::wrap_stream(futures_util::stream::iter(parts));
        let request = http
            .put(url)
            .header(CONTENT_LENGTH, self.size_bytes())
            .body(body);
        let response = request.send().await.expect("an answer");
        assert_eq!(
            response.status(),
            200,
            "{}",
            response.text().await.unwrap_or_default()
        );
    }

    /// Downloads it and returns its digest.
    pub async fn download(self, http: &reqwest::Client, url: &str) -> String {
        let mut response = http.get(url).send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        let mut digest = Sha256::new();
        while let Some(part) = response.chunk().await.expect("the next bytes") {
            digest.update(&part);
        }
        hex::encode(digest.finalize())
    }
}

/// A client with a timeout that is long enough for a large file.
pub fn patient_client() -> reqwest::Client {
    crate::client::install_tls();
    reqwest::Client::builder()
        .no_proxy()
        .build()
        .expect("a client")
}

/// What lies in a service's directory of files, in a data directory of its default layout.
pub fn stored_files(data_dir: &Path) -> Vec<String> {
    let entries =
        std::fs::read_dir(data_dir.join("files/releases")).expect("the directory of files");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}
