//! `release sign`.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hub_protocol::release::{AppRun, Distrust, ReleaseKind, ReleaseManifest, parse};
use minisign::{SecretKey, SecretKeyBox};

use super::{Failure, Result, failed, manifest_of, measure, password, signature_of, write_whole};

pub const HELP: &str = "\
Writes FILE.manifest.json and FILE.manifest.json.minisig. The counter must grow with every release
of the name: a hub takes none below the highest it has seen, unless the release is signed with
--downgrade. The version of an agent is what the program itself says (hub-agent --version).

How an app runs is a TOML file (--app); only entryPoint must be there. What is not said is:

  memoryBytes = 67108864     # 64 MiB, for the app and its children together; 4 MiB to 4 GiB
  cpuPercent = 50            # of one processor; 1 to 400
  network = false            # whether it may use the network
  keepsFiles = false         # a folder that outlives updates, named by STATE_DIRECTORY
  ble = false                # what the hub hears, from the socket HUB_BLE_SOCKET names
  healthSecs = 30            # so long it has to run before a new version is kept; 1 to 600

There may be 64 arguments and 64 variables, of up to 1,024 characters. An example:

  entryPoint = \"bin/logger\"  # the program, as a path inside the archive
  arguments = [\"--interval\", \"10\"]
  keepsFiles = true
  ble = true
  [environment]              # names: [A-Z_][A-Z0-9_]*, up to 64 characters
  LOG_LEVEL = \"info\"

Examples:
  hub-cloud release sign --key agent.key --kind agent --name hub-agent --version 1.4.2 \\
      --architecture aarch64 --counter 42 hub-agent
  hub-cloud release sign --key app.key --kind app --name logger --version 2.0.0 \\
      --architecture any --counter 7 --app logger.toml logger.tar.zst";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// The key to sign with, as `release keygen` or minisign made it
    #[arg(long, value_name = "FILE")]
    key: PathBuf,

    /// Read the key's password from the first line of standard input; a key without one needs none
    #[arg(long)]
    password_stdin: bool,

    /// What the file is
    #[arg(long)]
    kind: Kind,

    /// `hub-agent`, or the app's name
    #[arg(long)]
    name: String,

    /// Semantic version, such as 1.4.2
    #[arg(long)]
    version: String,

    /// As `uname -m` names it, such as x86_64 or aarch64; `any` for an app that is only scripts and data
    #[arg(long)]
    architecture: String,

    /// Above the counter of every release of this name before
    #[arg(long, value_name = "NUMBER")]
    counter: u64,

    /// Hubs may install this although they have seen a higher counter
    #[arg(long)]
    downgrade: bool,

    /// How the app runs (TOML); needed with --kind app, and only there
    #[arg(long, value_name = "FILE")]
    app: Option<PathBuf>,

    /// The file of the release
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// The hub-agent program
    Agent,
    /// An app: a tar archive compressed with zstd
    App,
}

/// Answers what was done, in words.
pub fn run(options: &Options) -> Result<String> {
    let (kind, app) = match (options.kind, &options.app) {
        (Kind::Agent, None) => (ReleaseKind::Agent, None),
        (Kind::App, Some(path)) => (ReleaseKind::App, Some(read_app(path)?)),
        (Kind::App, None) => return Err(Failure::WrongUsage("--kind app needs --app; see --help".to_owned())),
        (Kind::Agent, Some(_)) => return Err(Failure::WrongUsage("--app is only for --kind app".to_owned())),
    };
    let (size_bytes, sha256) = measure(&options.file)?;
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
    };
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| Failure::Failed(error.to_string()))? + "\n";
    // What the service and the hubs would refuse is not signed.
    parse(text.as_bytes()).map_err(refused)?;
    let key = read_key(&options.key, password(options.password_stdin)?)?;
    let path = manifest_of(&options.file);
    let signature = signature(&key, &text, &path).map_err(|error| failed(&options.key, error))?;
    write_whole(&path, &text, 0o644)?;
    write_whole(&signature_of(&path), &signature, 0o644)?;
    let ReleaseManifest { name, version, architecture, counter, .. } = manifest;
    Ok(format!("{name} {version} {architecture}, counter {counter}: {}", signature_of(&path).display()))
}

fn refused(distrust: Distrust) -> Failure {
    match distrust {
        Distrust::Field { field, problem } => Failure::WrongUsage(format!("{} {problem}", flag_of(field))),
        other => Failure::Failed(other.to_string()),
    }
}

/// What a field of the manifest is made from.
fn flag_of(field: &str) -> String {
    match field {
        "sizeBytes" | "sha256" => format!("the file's {field}"),
        _ => match field.strip_prefix("app.") {
            Some(key) => format!("{key} in the file of --app"),
            None => format!("--{field}"),
        },
    }
}

fn read_app(path: &Path) -> Result<AppRun> {
    let text = std::fs::read_to_string(path).map_err(|error| failed(path, format!("cannot be read: {error}")))?;
    toml::from_str(&text).map_err(|error| Failure::WrongUsage(format!("{}: {error}", path.display())))
}

fn read_key(path: &Path, password: Option<String>) -> Result<SecretKey> {
    let text = std::fs::read_to_string(path).map_err(|error| failed(path, format!("cannot be read: {error}")))?;
    let Some(password) = password else {
        let key = SecretKeyBox::from(text.clone()).into_unencrypted_secret_key();
        return key.or_else(|error| without_checksum(&text).ok_or(error)).map_err(|error| {
            failed(path, format!("the key cannot be opened without a password (--password-stdin): {error}"))
        });
    };
    let key = SecretKeyBox::from(text).into_secret_key(Some(password));
    key.map_err(|error| failed(path, format!("the key cannot be opened with this password: {error}")))
}

/// The minisign program leaves the checksum of a key without a password empty, which its library takes for damage.
fn without_checksum(text: &str) -> Option<SecretKey> {
    let bytes = STANDARD.decode(text.lines().nth(1)?.trim()).ok()?;
    let (_, checksum) = bytes.split_last_chunk::<32>()?;
    let key = SecretKey::from_bytes(&bytes).ok()?;
    (*checksum == [0; 32] && !key.is_encrypted()).then_some(key)
}

fn signature(key: &SecretKey, text: &str, path: &Path) -> minisign::Result<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let name = path.file_name().unwrap_or_default().to_string_lossy().replace(char::is_control, "?");
    let trusted = format!("timestamp:{now}\tfile:{name}\thashed");
    let signature =
        minisign::sign(None, key, text.as_bytes(), Some(&trusted), Some("signature of a release's manifest"))?;
    Ok(signature.into_string())
}
