//! What may be installed on hubs: a manifest that says which file it is, and a signature of the manifest's exact bytes, made offline. The service
//! checks both when a release is uploaded, and the hub checks them again with the keys it was installed with.

use std::collections::BTreeMap;

pub use minisign_verify::PublicKey;
use minisign_verify::Signature;
use serde::{Deserialize, Serialize};

/// Most bytes a manifest may have.
pub const MAX_MANIFEST_BYTES: usize = 64 * 1024;

/// What a release is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReleaseKind {
    /// The `hub-agent` program itself.
    Agent,
    /// A supplier's app: a tar archive compressed with zstd.
    App,
}

/// A manifest, as it is signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReleaseManifest {
    /// `hub-agent`, or the app's name: lower-case letters, digits and dashes.
    pub name: String,
    pub kind: ReleaseKind,
    /// As `uname -m` names it, such as `x86_64` or `aarch64`; `any` for an app that is only scripts and data.
    pub architecture: String,
    /// A semantic version (semver.org), such as `1.4.2`.
    pub version: String,
    pub size_bytes: u64,
    /// Of the file, in lower-case hex.
    pub sha256: String,
    /// Grows with every release of this name. A hub does not go back below the highest it has seen.
    pub counter: u64,
    /// Says that hubs may install this although they have seen a higher counter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub downgrade: bool,
    /// How the app runs; for apps, and there it is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppRun>,
}

/// How a hub runs an app: all that a supplier may say about its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppRun {
    /// The program, as a path inside the archive such as `bin/logger`.
    pub entry_point: String,
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Variables by name: `[A-Z_][A-Z0-9_]*`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// What the app and its children may use together: 4 MiB to 4 GiB.
    #[serde(default = "AppRun::default_memory_bytes")]
    pub memory_bytes: u64,
    /// Of one processor: 1 to 400.
    #[serde(default = "AppRun::default_cpu_percent")]
    pub cpu_percent: u32,
    /// Whether it may use the network; without, it has not even a loopback device of the hub's.
    #[serde(default)]
    pub network: bool,
    /// Whether it has a folder that outlives restarts and updates, named by `STATE_DIRECTORY`.
    #[serde(default)]
    pub keeps_files: bool,
    /// Whether it gets what the hub hears, as JSON lines from the socket that `HUB_BLE_SOCKET` names.
    #[serde(default)]
    pub ble: bool,
    /// For so long it has to run without ending before a new version is kept: 1 to 600.
    #[serde(default = "AppRun::default_health_secs")]
    pub health_secs: u32,
}

impl AppRun {
    const fn default_memory_bytes() -> u64 {
        64 << 20
    }

    const fn default_cpu_percent() -> u32 {
        50
    }

    const fn default_health_secs() -> u32 {
        30
    }
}

/// Why a release is not to be trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    #[error("the signature is not a minisign signature: {0}")]
    MalformedSignature(String),
    #[error("the manifest is signed with none of the {0} trusted keys")]
    UnknownKey(usize),
    #[error("the signature does not fit the manifest")]
    WrongSignature,
    #[error("the manifest cannot be read: {0}")]
    MalformedManifest(String),
    #[error("the manifest's {field} {problem}")]
    Field { field: &'static str, problem: String },
}

/// The manifest, if one of the keys signed these exact bytes and everything in it is within bounds.
pub fn verify(manifest: &[u8], signature: &str, keys: &[PublicKey]) -> Result<ReleaseManifest, Distrust> {
    let signature = Signature::decode(signature).map_err(|error| Distrust::MalformedSignature(error.to_string()))?;
    let mut wrong = Distrust::UnknownKey(keys.len());
    for key in keys {
        // Signatures of the text itself count as well as those of its hash: `minisign -S -l` makes them, as all of minisign did once. A manifest is short.
        match key.verify(manifest, &signature, true) {
            Ok(()) => return parse(manifest),
            Err(minisign_verify::Error::UnexpectedKeyId) => {}
            Err(_) => wrong = Distrust::WrongSignature,
        }
    }
    Err(wrong)
}

/// A public key from the text of a minisign `.pub` file, or its second line alone.
pub fn public_key(text: &str) -> Result<PublicKey, minisign_verify::Error> {
    let text = text.trim();
    if text.contains('\n') { PublicKey::decode(text) } else { PublicKey::from_base64(text) }
}

/// Reads a manifest and holds it to its bounds. It says nothing about who made it: see [`verify`].
pub fn parse(manifest: &[u8]) -> Result<ReleaseManifest, Distrust> {
    if manifest.len() > MAX_MANIFEST_BYTES {
        return Err(Distrust::MalformedManifest(format!("it is longer than {MAX_MANIFEST_BYTES} bytes")));
    }
    let parsed: ReleaseManifest =
        serde_json::from_slice(manifest).map_err(|error| Distrust::MalformedManifest(error.to_string()))?;
    parsed.check()?;
    Ok(parsed)
}

const MAX_ARGUMENTS: usize = 64;
const MAX_TEXT_CHARS: usize = 1024;

/// What [`is_name`] asks for.
pub const NAME_FORM: &str = "must be 1 to 64 lower-case letters, digits and dashes, and not begin with a dash";

/// Whether a release, and so an app, may be called this.
pub fn is_name(text: &str) -> bool {
    is_word(text, "-") && !text.starts_with('-')
}

fn is_word(text: &str, more: &str) -> bool {
    let is_char = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || more.contains(char::from(b));
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_char)
}

impl ReleaseManifest {
    fn check(&self) -> Result<(), Distrust> {
        let wrong = |field, problem: &str| Err(Distrust::Field { field, problem: problem.to_owned() });
        if !is_name(&self.name) {
            return wrong("name", NAME_FORM);
        }
        if !is_word(&self.architecture, "_") {
            return wrong("architecture", "must be as `uname -m` says it, such as x86_64 or aarch64, or any");
        }
        if semver::Version::parse(&self.version).is_err() || self.version.len() > 64 {
            return wrong("version", "must be a semantic version of at most 64 characters, such as 1.4.2");
        }
        if self.sha256.len() != 64 || !self.sha256.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return wrong("sha256", "must be 64 lower-case hexadecimal digits");
        }
        if self.size_bytes == 0 || self.size_bytes > i64::MAX.unsigned_abs() {
            return wrong("sizeBytes", "must be the file's size, and more than 0");
        }
        if self.counter == 0 || self.counter > i64::MAX.unsigned_abs() {
            return wrong("counter", "must be 1 or more");
        }
        match (self.kind, &self.app) {
            (ReleaseKind::App, Some(run)) => run.check(),
            (ReleaseKind::App, None) => wrong("app", "is missing: it says how the app runs"),
            (ReleaseKind::Agent, Some(_)) => wrong("app", "is only for apps"),
            (ReleaseKind::Agent, None) => Ok(()),
        }
    }

    /// Whether a machine, as `uname -m` names it, can run the file.
    pub fn fits(&self, machine: &str) -> bool {
        architectures(Some(machine)).contains(&self.architecture.as_str())
    }
}

/// The architectures that releases may be built for if a machine is to run them, as `uname -m` names both: the best fit first, `any` last. A machine that says
/// nothing runs what all can.
pub fn architectures(machine: Option<&str>) -> Vec<&str> {
    let Some(machine) = machine else { return vec!["any"] };
    let more: &[&str] = match machine {
        "armv8l" => &["armv7l", "armv6l"],
        "armv7l" => &["armv6l"],
        "i686" => &["i586", "i486", "i386"],
        "i586" => &["i486", "i386"],
        "i486" => &["i386"],
        // Only the family is told: the hub finds out by itself which of them it runs. What is built for the least of its machines runs on all.
        "arm" => &["armv6l", "armv7l", "armv8l"],
        "x86" => &["i386", "i486", "i586", "i686"],
        // Two names of one thing.
        "x86_64" => &["amd64"],
        "amd64" => &["x86_64"],
        "aarch64" => &["arm64"],
        "arm64" => &["aarch64"],
        _ => &[],
    };
    let mut fitting = vec![machine];
    fitting.extend(more);
    fitting.push("any");
    fitting
}

impl AppRun {
    /// What is in it ends up in a unit file: nothing may begin a line or a section of its own.
    fn check(&self) -> Result<(), Distrust> {
        let wrong = |field, problem: &str| Err(Distrust::Field { field, problem: problem.to_owned() });
        let is_plain = |text: &str| text.chars().count() <= MAX_TEXT_CHARS && !text.chars().any(char::is_control);
        let path = self.entry_point.as_str();
        let in_bounds = path.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        let is_path_char = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if path.is_empty() || path.len() > 255 || !in_bounds || !path.chars().all(is_path_char) {
            return wrong(
                "app.entryPoint",
                "must be a path inside the archive, such as bin/logger, of letters, digits and . _ - + /",
            );
        }
        if self.arguments.len() > MAX_ARGUMENTS || !self.arguments.iter().all(|argument| is_plain(argument)) {
            return wrong(
                "app.arguments",
                "must be at most 64, of at most 1,024 characters, without control characters",
            );
        }
        let is_name = |name: &str| {
            name.len() <= 64
                && name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
                && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        };
        let environment_fits = self.environment.len() <= MAX_ARGUMENTS
            && self.environment.iter().all(|(name, value)| is_name(name) && is_plain(value));
        if !environment_fits {
            return wrong(
                "app.environment",
                "must be at most 64 variables named in capitals, of at most 1,024 characters, without control characters",
            );
        }
        if !(4 << 20..=4 << 30).contains(&self.memory_bytes) {
            return wrong("app.memoryBytes", "must be from 4 MiB to 4 GiB");
        }
        if !(1..=400).contains(&self.cpu_percent) {
            return wrong("app.cpuPercent", "must be from 1 to 400");
        }
        if !(1..=600).contains(&self.health_secs) {
            return wrong("app.healthSecs", "must be from 1 to 600");
        }
        Ok(())
    }
}

/// `GET /v1/apps/{appReleaseUuid}/manifest` and `GET /v1/agent/releases/latest`: a release, and where its file is for the next minutes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReleaseOffer {
    pub release_uuid: crate::ReleaseUuid,
    /// Of an app's release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_uuid: Option<crate::AppUuid>,
    pub version: String,
    /// The manifest, byte for byte as it was signed.
    pub manifest: String,
    /// A minisign signature of `manifest`.
    pub signature: String,
    /// Takes range requests, and no credentials. A path of this service, or another store's URL.
    pub download_url: String,
    /// Ask again for another URL after this.
    pub download_url_expires_at: crate::Timestamp,
}

#[cfg(test)]
mod tests {
    use super::architectures;

    #[test]
    fn a_machine_runs_what_is_built_for_it_and_for_less() {
        for (machine, expected) in [
            (None, vec!["any"]),
            (Some("x86_64"), vec!["x86_64", "amd64", "any"]),
            (Some("aarch64"), vec!["aarch64", "arm64", "any"]),
            (Some("armv7l"), vec!["armv7l", "armv6l", "any"]),
            (Some("armv6l"), vec!["armv6l", "any"]),
            (Some("arm"), vec!["arm", "armv6l", "armv7l", "armv8l", "any"]),
            (Some("i686"), vec!["i686", "i586", "i486", "i386", "any"]),
            (Some("riscv64"), vec!["riscv64", "any"]),
        ] {
            assert_eq!(architectures(machine), expected, "{machine:?}");
        }
    }

    /// A release that is the best for some machine is the best for the one it is built for: so it is known from the release alone whether it is wanted.
    #[test]
    fn what_a_machine_runs_runs_less_than_it() {
        for machine in ["armv8l", "armv7l", "armv6l", "arm", "i686", "i586", "i486", "i386", "x86", "x86_64", "arm64"] {
            let fitting = architectures(Some(machine));
            for built_for in fitting.iter().filter(|one| **one != "any") {
                let less = architectures(Some(built_for));
                assert!(less.iter().all(|one| fitting.contains(one)), "{built_for} on {machine}");
                assert_eq!(less.first(), Some(built_for));
            }
        }
    }
}
