//! The rollout of the sample: a signed release of the agent, which the platform offers and the
//! tenant's hubs get in steps. It is for the machine of the hubs that are played, so that the real
//! agent stays as it is.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use hub_client::{Client, Credential, Operation, ServiceUrl, Session, SessionTokens};
use hub_protocol::release::{ReleaseKind, ReleaseManifest};
use hub_protocol::signing;
use minisign::KeyPair;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::super::Failure;
use super::super::client::Api;
use super::super::demo_dir::{self, Account, DemoDir};
use super::{Made, failed};

/// The machine of the played hubs, which is not this one.
pub const MACHINE: &str = if cfg!(target_arch = "aarch64") {
    "x86_64"
} else {
    "aarch64"
};
/// Nobody runs it: it stands for a program.
const FILE: &[u8] = b"the agent that the demo offers\n";
const NAME: &str = "hub-agent";

static CREATE_RELEASE: Operation = Operation::new("POST", "/platform/agent-releases");
static PUT_POLICY: Operation = Operation::new("PUT", "/tenant/agent-update-policies");

/// A release as it was created. There is no URL if its file was uploaded before.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Release {
    upload_url: Option<String>,
}

/// Publishes the release as the platform does, and rolls it out as the tenant does. Both can be
/// repeated.
pub async fn begin(api: &Api, demo_dir: &DemoDir, made: &Made) -> Result<(), Failure> {
    let manifest = ReleaseManifest {
        name: NAME.to_owned(),
        kind: ReleaseKind::Agent,
        architecture: MACHINE.to_owned(),
        version: next_version(),
        size_bytes: FILE.len() as u64,
        sha256: hex::encode(Sha256::digest(FILE)),
        counter: 1,
        downgrade: false,
        app: None,
        sbom: None,
        vex: None,
    };
    let manifest = serde_json::to_string_pretty(&manifest).map_err(failed)?;
    let key = signing::secret_key(&release_key(demo_dir)?, None).map_err(Failure)?;
    let signature = signing::sign(&key, &manifest, NAME, made.start).map_err(Failure)?;

    let platform = sign_in(api.client.service(), api.account.operator()).await?;
    let body = json!({"channel": "stable", "manifest": manifest, "signature": signature});
    let release: Release = platform.call(CREATE_RELEASE.call().body(body)).await?;
    if let Some(url) = release.upload_url {
        let size = FILE.len() as u64;
        let _: Value = platform.put_file(&url, size, FILE.into()).await?;
    }
    let policy = json!({
        "scope": "UNIT", "channel": "stable",
        "rollout": {"percent": 50, "stepPercent": 25, "stepIntervalSeconds": 3600},
    });
    Ok(api.client.run(PUT_POLICY.call().body(policy)).await?)
}

/// The version after this one.
pub fn next_version() -> String {
    let patch: u64 = env!("CARGO_PKG_VERSION_PATCH").parse().unwrap_or_default();
    let (major, minor) = (
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR"),
    );
    format!("{major}.{minor}.{}", patch + 1)
}

async fn sign_in(service: &ServiceUrl, operator: Account) -> Result<Client, Failure> {
    let Account { email, password } = operator;
    let session = Session::log_in(service, &email, &password, None).await?;
    let tokens = Arc::new(SessionTokens::new(service.clone(), session));
    Ok(Client::new(service.clone(), Credential::User(tokens))?)
}

/// The text of the secret key, whose public key the service trusts from now on.
fn release_key(demo_dir: &DemoDir) -> Result<String, Failure> {
    if let Some(text) = demo_dir.read(demo_dir::RELEASE_KEY)? {
        return String::from_utf8(text).map_err(failed);
    }
    let pair = KeyPair::generate_unencrypted_keypair().map_err(failed)?;
    let secret = pair.sk.to_box(None).map_err(failed)?.to_string();
    let public = pair.pk.to_box().map_err(failed)?.to_string();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(demo_dir.path(demo_dir::TRUSTED_KEYS))
        .map_err(failed)?;
    let trusted = format!("{}/demo.pub", demo_dir::TRUSTED_KEYS);
    demo_dir.write(&trusted, public.as_bytes())?;
    demo_dir.write(demo_dir::RELEASE_KEY, secret.as_bytes())?;
    Ok(secret)
}
