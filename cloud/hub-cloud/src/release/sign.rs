//! `hub-cloud release sign`: writes the manifest of a file and its signature.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hub_advisories::documents::{self, Kind as DocumentKind};
use hub_protocol::release::{
    AppRun, Distrust, ReleaseKind, ReleaseManifest, SignedDocument, parse,
};
use hub_protocol::signing::{self, secret_key};
use minisign::SecretKey;
use sha2::{Digest, Sha256};

use super::{
    Failure, Result, failed, manifest_of, password, signature_of, size_and_digest, write_atomically,
};

pub const HELP: &str = "\
Writes FILE.manifest.json and FILE.manifest.json.minisig. The counter must increase with every
release of the name: a hub refuses a release whose counter is below the highest it has kept,
unless the release is signed with --downgrade. The version of an agent release must be the output of
hub-agent --version.

The run configuration of an app is a TOML file (--app). Only entryPoint is required. Defaults:

  memoryBytes = 67108864     # 64 MiB, for the app and its children together; 4 MiB to 4 GiB
  cpuPercent = 50            # of one processor; 1 to 400
  network = false            # whether the app may use the network
  keepsFiles = false         # whether it has a persistent directory, named by STATE_DIRECTORY
  ble = false                # whether it may read BLE events from the socket HUB_BLE_SOCKET
  healthSecs = 30            # a new version must run this long, or it is rolled back; 1 to 600

At most 64 arguments and 64 variables, of up to 1,024 characters each. Example:

  entryPoint = \"bin/logger\"  # path of the program inside the archive
  arguments = [\"--interval\", \"10\"]
  keepsFiles = true
  ble = true
  [environment]              # names: [A-Z_][A-Z0-9_]*, up to 64 characters
  LOG_LEVEL = \"info\"

A bill of materials (--sbom) and statements about vulnerabilities (--vex) are signed with the
release: the manifest names their digests. Both are uploaded beside the file.

Examples:
  hub-cloud release sign --key agent.key --kind agent --name hub-agent --version 1.4.2 \\
      --architecture aarch64 --counter 42 hub-agent
  hub-cloud release sign --key app.key --kind app --name logger --version 2.0.0 \\
      --architecture any --counter 7 --app logger.toml --sbom logger.cdx.json logger.tar.zst";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Secret key to sign with, created by `release keygen` or minisign
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    /// Read the password of the key from the first line of standard input; omit it for a key
    /// without a password
    #[arg(long)]
    password_stdin: bool,

    /// Kind of the release
    #[arg(long)]
    kind: Kind,

    /// `hub-agent`, or the name of the app
    #[arg(long)]
    name: String,

    /// Semantic version, such as 1.4.2
    #[arg(long)]
    version: String,

    /// Architecture as printed by `uname -m`, such as x86_64 or aarch64; `any` for an app without
    /// native code
    #[arg(long)]
    architecture: String,

    /// A number above the counter of every earlier release of this name
    #[arg(long, value_name = "NUMBER")]
    counter: u64,

    /// Allow hubs to install this release although they have kept a higher counter
    #[arg(long)]
    downgrade: bool,

    /// Run configuration of the app (TOML); required with --kind app, refused otherwise
    #[arg(long, value_name = "FILE")]
    app: Option<PathBuf>,

    /// Bill of materials of the file: JSON of CycloneDX 1.5 to 1.7, or of SPDX 2.2 or 2.3
    #[arg(long, value_name = "FILE")]
    sbom: Option<PathBuf>,

    /// Statements about vulnerabilities of the file: JSON of OpenVEX 0.2.0
    #[arg(long, value_name = "FILE")]
    vex: Option<PathBuf>,

    /// File to release
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// The hub-agent program
    Agent,
    /// An app: a tar archive compressed with zstd
    App,
}

/// Returns a message for the operator.
pub fn run(options: &Options) -> Result<String> {
    let (kind, app) = match (options.kind, &options.app) {
        (Kind::Agent, None) => (ReleaseKind::Agent, None),
        (Kind::App, Some(path)) => (ReleaseKind::App, Some(read_app(path)?)),
        (Kind::App, None) => {
            return Err(Failure::WrongUsage(
                "--kind app requires --app; see --help".to_owned(),
            ));
        }
        (Kind::Agent, Some(_)) => {
            return Err(Failure::WrongUsage(
                "--app is valid with --kind app only; remove it".to_owned(),
            ));
        }
    };
    let (size_bytes, sha256) = size_and_digest(&options.file)?;
    let manifest = ReleaseManifest {
        name: options.name.clone(),
        kind,
        architecture: options.architecture.clone(),
        version: options.version.clone(),
        size_bytes,
        sha256,
        counter: options.counter,
        downgrade: options.downgrade,
        app,
        sbom: signed_document(DocumentKind::Sbom, options.sbom.as_deref())?,
        vex: signed_document(DocumentKind::Vex, options.vex.as_deref())?,
    };
    let text = serde_json::to_string_pretty(&manifest)
        .map_err(|error| Failure::Failed(error.to_string()))?
        + "\n";
    // Do not sign what the service and the hubs would refuse.
    parse(text.as_bytes()).map_err(invalid_manifest)?;
    let key = read_key(&options.key, password(options.password_stdin)?)?;
    let path = manifest_of(&options.file);
    let signature = signature(&key, &text, &path).map_err(|error| failed(&options.key, error))?;
    write_atomically(&path, &text, 0o644)?;
    write_atomically(&signature_of(&path), &signature, 0o644)?;
    let ReleaseManifest {
        name,
        version,
        architecture,
        counter,
        ..
    } = manifest;
    Ok(format!(
        "{name} {version} {architecture}, counter {counter}: {}",
        signature_of(&path).display()
    ))
}

fn invalid_manifest(distrust: Distrust) -> Failure {
    match distrust {
        Distrust::Field { field, problem } => {
            Failure::WrongUsage(format!("{} {problem}", flag_of(field)))
        }
        other => Failure::Failed(other.to_string()),
    }
}

/// The source of a manifest field, as the operator knows it.
fn flag_of(field: &str) -> String {
    match field {
        "sizeBytes" | "sha256" => format!("the {field} of the file"),
        _ => match field.strip_prefix("app.") {
            Some(key) => format!("{key} in the file of --app"),
            None => format!("--{field}"),
        },
    }
}

/// What the manifest says of a document, which the service would be able to read.
fn signed_document(kind: DocumentKind, path: Option<&Path>) -> Result<Option<SignedDocument>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let bytes =
        std::fs::read(path).map_err(|error| failed(path, format!("cannot read: {error}")))?;
    let content = documents::read(kind, &bytes)
        .map_err(|error| Failure::WrongUsage(format!("{}: {error}", path.display())))?;
    Ok(Some(SignedDocument {
        format: content.format().to_owned(),
        size_bytes: bytes.len() as u64,
        sha256: hex::encode(Sha256::digest(&bytes)),
    }))
}

fn read_app(path: &Path) -> Result<AppRun> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| failed(path, format!("cannot read: {error}")))?;
    toml::from_str(&text)
        .map_err(|error| Failure::WrongUsage(format!("{}: {error}", path.display())))
}

fn read_key(path: &Path, password: Option<String>) -> Result<SecretKey> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| failed(path, format!("cannot read: {error}")))?;
    let how = match &password {
        Some(_) => "with this password",
        None => "without a password; add --password-stdin",
    };
    secret_key(&text, password)
        .map_err(|error| failed(path, format!("cannot open the key {how}: {error}")))
}

fn signature(key: &SecretKey, text: &str, path: &Path) -> std::result::Result<String, String> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    signing::sign(key, text, &name, i64::try_from(now).unwrap_or(i64::MAX))
}
