//! Releases that can be installed on hubs: a manifest that identifies a file, and a signature of
//! the manifest's exact bytes, created offline. The service verifies both when a release is
//! uploaded, and the hub verifies both with the keys that it was installed with.

use std::collections::BTreeMap;

pub use minisign_verify::PublicKey;
use minisign_verify::Signature;
use serde::{Deserialize, Serialize};

/// The largest manifest.
pub const MAX_MANIFEST_BYTES: usize = 64 * 1024;

/// The kind of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReleaseKind {
    /// The `hub-agent` program itself.
    Agent,
    /// A supplier's app: a tar archive compressed with zstd.
    App,
}

/// A manifest, as it was signed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReleaseManifest {
    /// `hub-agent`, or the app's name: lower-case letters, digits and dashes.
    pub name: String,
    pub kind: ReleaseKind,
    /// The architecture as named by `uname -m`, such as `x86_64` or `aarch64`; `any` for an app
    /// that consists only of scripts and data.
    pub architecture: String,
    /// A semantic version (semver.org), such as `1.4.2`.
    pub version: String,
    pub size_bytes: u64,
    /// The digest of the file, in lower-case hex.
    pub sha256: String,
    /// Grows with every release of this name. A hub does not go below the highest counter it has
    /// seen.
    pub counter: u64,
    /// Whether hubs may install this release although they have seen a higher counter.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub downgrade: bool,
    /// How the app runs; required for apps, and only allowed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppRun>,
    /// The bill of materials: what the file consists of. Hubs do not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sbom: Option<SignedDocument>,
    /// What its maker states about vulnerabilities. Hubs do not read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vex: Option<SignedDocument>,
}

/// A document about a release, which the signature of the manifest covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SignedDocument {
    /// `CYCLONEDX` or `SPDX` of a bill of materials, `OPENVEX` of statements.
    pub format: String,
    pub size_bytes: u64,
    /// The digest of the document, in lower-case hex.
    pub sha256: String,
}

/// How a hub runs an app: everything that a tenant may specify about its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppRun {
    /// The program, as a path inside the archive such as `bin/logger`.
    pub entry_point: String,
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Environment variables by name: `[A-Z_][A-Z0-9_]*`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The memory limit of the app and its children together: 4 MiB to 4 GiB.
    #[serde(default = "AppRun::default_memory_bytes")]
    pub memory_bytes: u64,
    /// The limit in percent of one processor: 1 to 400.
    #[serde(default = "AppRun::default_cpu_percent")]
    pub cpu_percent: u32,
    /// Whether it may use the network. Without it, the app cannot even reach the loopback device of
    /// the hub.
    #[serde(default)]
    pub network: bool,
    /// Whether it has a folder that is kept over restarts and updates, named by `STATE_DIRECTORY`.
    #[serde(default)]
    pub keeps_files: bool,
    /// Whether it receives the hub's advertisements, as JSON lines from the socket named by
    /// `HUB_BLE_SOCKET`.
    #[serde(default)]
    pub ble: bool,
    /// How long a new version must run without exiting before it is kept: 1 to 600.
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

/// Why a release is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    #[error("the signature is not a minisign signature: {0}")]
    MalformedSignature(String),
    #[error("the manifest is signed with none of the {0} trusted keys")]
    UnknownKey(usize),
    #[error("the signature does not match the manifest")]
    WrongSignature,
    #[error("the manifest cannot be read: {0}")]
    MalformedManifest(String),
    #[error("the manifest's {field} {problem}")]
    Field {
        field: &'static str,
        problem: String,
    },
}

/// Returns the manifest if one of the keys signed these exact bytes and everything in it is within
/// its limits.
pub fn verify(
    manifest: &[u8],
    signature: &str,
    keys: &[PublicKey],
) -> Result<ReleaseManifest, Distrust> {
    let signature = Signature::decode(signature)
        .map_err(|error| Distrust::MalformedSignature(error.to_string()))?;
    let mut wrong = Distrust::UnknownKey(keys.len());
    for key in keys {
        // Signatures of the text are accepted as well as those of its hash: `minisign -S -l`
        // creates them, as all of minisign once did. That is acceptable, since a manifest is short.
        match key.verify(manifest, &signature, true) {
            Ok(()) => return parse(manifest),
            Err(minisign_verify::Error::UnexpectedKeyId) => {}
            Err(_) => wrong = Distrust::WrongSignature,
        }
    }
    Err(wrong)
}

/// Parses a public key from the text of a minisign `.pub` file, or from its second line alone.
pub fn public_key(text: &str) -> Result<PublicKey, minisign_verify::Error> {
    let text = text.trim();
    if text.contains('\n') {
        PublicKey::decode(text)
    } else {
        PublicKey::from_base64(text)
    }
}

/// Parses a manifest and checks its limits. Does not verify who signed it: see [`verify`].
pub fn parse(manifest: &[u8]) -> Result<ReleaseManifest, Distrust> {
    if manifest.len() > MAX_MANIFEST_BYTES {
        return Err(Distrust::MalformedManifest(format!(
            "it is longer than {MAX_MANIFEST_BYTES} bytes"
        )));
    }
    let parsed: ReleaseManifest = serde_json::from_slice(manifest)
        .map_err(|error| Distrust::MalformedManifest(error.to_string()))?;
    parsed.check()?;
    Ok(parsed)
}

const MAX_ARGUMENTS: usize = 64;
const MAX_TEXT_CHARS: usize = 1024;

/// The form that [`is_name`] requires.
pub const NAME_FORM: &str =
    "must be 1 to 64 lower-case letters, digits and dashes, and not begin with a dash";

/// Whether this is a valid name of a release, and so of an app.
pub fn is_name(text: &str) -> bool {
    is_word(text, "-") && !text.starts_with('-')
}

fn is_word(text: &str, more: &str) -> bool {
    let is_char =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || more.contains(char::from(b));
    !text.is_empty() && text.len() <= 64 && text.bytes().all(is_char)
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

impl SignedDocument {
    /// Which formats there are is not judged here: hubs accept releases with those to come.
    fn is_valid(&self) -> bool {
        let is_word_char = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
        let is_word = (1..=64).contains(&self.format.len());
        is_word
            && self.format.bytes().all(is_word_char)
            && (1..=i64::MAX.unsigned_abs()).contains(&self.size_bytes)
            && is_sha256(&self.sha256)
    }
}

impl ReleaseManifest {
    fn check(&self) -> Result<(), Distrust> {
        let wrong = |field, problem: &str| {
            Err(Distrust::Field {
                field,
                problem: problem.to_owned(),
            })
        };
        if !is_name(&self.name) {
            return wrong("name", NAME_FORM);
        }
        if !is_word(&self.architecture, "_") {
            return wrong(
                "architecture",
                "must be an architecture as printed by `uname -m`, such as x86_64 or aarch64, or any",
            );
        }
        if semver::Version::parse(&self.version).is_err() || self.version.len() > 64 {
            return wrong(
                "version",
                "must be a semantic version of at most 64 characters, such as 1.4.2",
            );
        }
        if !is_sha256(&self.sha256) {
            return wrong("sha256", "must be 64 lower-case hexadecimal digits");
        }
        for (field, document) in [("sbom", &self.sbom), ("vex", &self.vex)] {
            if document
                .as_ref()
                .is_some_and(|document| !document.is_valid())
            {
                return wrong(
                    field,
                    "must have a format, a size of 1 or more, and a SHA-256 of 64 lower-case \
                     hexadecimal digits",
                );
            }
        }
        if self.size_bytes == 0 || self.size_bytes > i64::MAX.unsigned_abs() {
            return wrong("sizeBytes", "must be the file's size, and more than 0");
        }
        if self.counter == 0 || self.counter > i64::MAX.unsigned_abs() {
            return wrong("counter", "must be 1 or more");
        }
        match (self.kind, &self.app) {
            (ReleaseKind::App, Some(run)) => run.check(),
            (ReleaseKind::App, None) => wrong("app", "is missing; it describes how to run the app"),
            (ReleaseKind::Agent, Some(_)) => wrong("app", "is only allowed for apps"),
            (ReleaseKind::Agent, None) => Ok(()),
        }
    }

    /// Whether a machine can run the file. `machine` is its architecture as named by `uname -m`.
    pub fn fits(&self, machine: &str) -> bool {
        architectures(Some(machine)).contains(&self.architecture.as_str())
    }
}

/// The architectures of releases that a machine can run, both as named by `uname -m`: the best fit
/// first, `any` last. If the machine's architecture is unknown, only what runs everywhere.
pub fn architectures(machine: Option<&str>) -> Vec<&str> {
    let Some(machine) = machine else {
        return vec!["any"];
    };
    let more: &[&str] = match machine {
        "armv8l" => &["armv7l", "armv6l"],
        "armv7l" => &["armv6l"],
        "i686" => &["i586", "i486", "i386"],
        "i586" => &["i486", "i386"],
        "i486" => &["i386"],
        // Only the family is known; the hub finds out itself which of its architectures it has. A
        // file built for the least of them runs on all.
        "arm" => &["armv6l", "armv7l", "armv8l"],
        "x86" => &["i386", "i486", "i586", "i686"],
        // Two names of the same architecture.
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
    /// The content is written into a unit file, so nothing may start a new line or section.
    fn check(&self) -> Result<(), Distrust> {
        let wrong = |field, problem: &str| {
            Err(Distrust::Field {
                field,
                problem: problem.to_owned(),
            })
        };
        let is_plain = |text: &str| {
            text.chars().count() <= MAX_TEXT_CHARS && !text.chars().any(char::is_control)
        };
        let path = self.entry_point.as_str();
        let in_bounds = path
            .split('/')
            .all(|part| !part.is_empty() && part != "." && part != "..");
        let is_path_char = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if path.is_empty() || path.len() > 255 || !in_bounds || !path.chars().all(is_path_char) {
            return wrong(
                "app.entryPoint",
                "must be a path inside the archive, such as bin/logger, of letters, digits and . _ - + /",
            );
        }
        if self.arguments.len() > MAX_ARGUMENTS
            || !self.arguments.iter().all(|argument| is_plain(argument))
        {
            return wrong(
                "app.arguments",
                "must be at most 64, of at most 1,024 characters, without control characters",
            );
        }
        let is_name = |name: &str| {
            name.len() <= 64
                && name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
                && name
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
        };
        let environment_fits = self.environment.len() <= MAX_ARGUMENTS
            && self
                .environment
                .iter()
                .all(|(name, value)| is_name(name) && is_plain(value));
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

/// `GET /v1/apps/{appReleaseUuid}/manifest` and `GET /v1/agent/releases/latest`: a release, and
/// where its file is for the next minutes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReleaseOffer {
    /// The release.
    pub release_uuid: crate::ReleaseUuid,
    /// The app, of the release of an app.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_uuid: Option<crate::AppUuid>,
    /// The version of the release.
    pub version: String,
    /// The manifest, byte for byte as it was signed.
    pub manifest: String,
    /// A minisign signature of `manifest`.
    pub signature: String,
    /// Where the file is: a path of this service, or a URL of another store. It accepts range
    /// requests and needs no credential.
    pub download_url: String,
    /// When the URL expires; ask again for another.
    pub download_url_expires_at: crate::Timestamp,
}

#[cfg(test)]
mod tests {
    use super::{architectures, parse};

    fn manifest(more: &str) -> String {
        let digest = "0a".repeat(32);
        format!(
            "{{\"name\": \"hub-agent\", \"kind\": \"AGENT\", \"architecture\": \"any\", \
             \"version\": \"1.0.0\", \"sizeBytes\": 1, \"sha256\": \"{digest}\", \"counter\": 1{more}}}"
        )
    }

    #[test]
    fn documents_of_formats_to_come_are_accepted_and_what_is_no_document_is_not() {
        let digest = "0b".repeat(32);
        let document = |name: &str, format: &str, size: &str, digest: &str| {
            manifest(&format!(
                ", \"{name}\": {{\"format\": \"{format}\", \"sizeBytes\": {size}, \
                 \"sha256\": \"{digest}\"}}, \"more\": 1"
            ))
        };
        let read = |text: String| parse(text.as_bytes());
        assert_eq!(read(manifest("")).map(|read| read.sbom), Ok(None));
        let read_one = read(document("sbom", "SPDX-4", "9", &digest)).expect("a manifest");
        assert_eq!(read_one.sbom.map(|sbom| sbom.size_bytes), Some(9));
        for wrong in [
            document("vex", "", "9", &digest),
            document("vex", "A B", "9", &digest),
            document("sbom", "SPDX", "0", &digest),
            document("sbom", "SPDX", "-1", &digest),
            document("sbom", "SPDX", "9", "0B"),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn machine_runs_releases_for_it_and_for_lesser_ones() {
        for (machine, expected) in [
            (None, vec!["any"]),
            (Some("x86_64"), vec!["x86_64", "amd64", "any"]),
            (Some("aarch64"), vec!["aarch64", "arm64", "any"]),
            (Some("armv7l"), vec!["armv7l", "armv6l", "any"]),
            (Some("armv6l"), vec!["armv6l", "any"]),
            (
                Some("arm"),
                vec!["arm", "armv6l", "armv7l", "armv8l", "any"],
            ),
            (Some("i686"), vec!["i686", "i586", "i486", "i386", "any"]),
            (Some("riscv64"), vec!["riscv64", "any"]),
        ] {
            assert_eq!(architectures(machine), expected, "{machine:?}");
        }
    }

    /// The best release for a machine is also the best for the architecture that it was built for.
    /// So the release alone decides whether it is a candidate.
    #[test]
    fn best_release_for_a_machine_is_best_for_its_own_architecture() {
        for machine in [
            "armv8l", "armv7l", "armv6l", "arm", "i686", "i586", "i486", "i386", "x86", "x86_64",
            "arm64",
        ] {
            let fitting = architectures(Some(machine));
            for built_for in fitting.iter().filter(|one| **one != "any") {
                let less = architectures(Some(built_for));
                assert!(
                    less.iter().all(|one| fitting.contains(one)),
                    "{built_for} on {machine}"
                );
                assert_eq!(less.first(), Some(built_for));
            }
        }
    }
}
