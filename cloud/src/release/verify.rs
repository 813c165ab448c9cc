//! `release verify`.

use std::path::{Path, PathBuf};

use hub_protocol::release::{self, PublicKey, ReleaseKind, ReleaseManifest};

use super::{Failure, Result, failed, manifest_of, measure, signature_of};
use crate::domain::releases::usable_keys;

pub const HELP: &str = "\
Reads FILE, FILE.manifest.json and FILE.manifest.json.minisig, and checks them as the service and the hubs do. --keys is a minisign public key file, a
directory of such files (*.pub), or a directory with agent/*.pub and app/*.pub.

Example: hub-cloud release verify --keys /etc/hub-agent/release-keys hub-agent";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Public keys to believe
    #[arg(long, value_name = "DIR|FILE")]
    keys: PathBuf,

    /// The file of the release
    file: PathBuf,
}

/// Answers what was found, in words.
pub fn run(options: &Options) -> Result<String> {
    let path = manifest_of(&options.file);
    let text = read(&path)?;
    let signature = read(&signature_of(&path))?;
    let unchecked = release::parse(text.as_bytes()).map_err(|error| failed(&path, error))?;
    let keys = keys(&options.keys, unchecked.kind)?;
    let manifest = release::verify(text.as_bytes(), &signature, &keys).map_err(|error| failed(&path, error))?;
    let (size_bytes, sha256) = measure(&options.file)?;
    if size_bytes != manifest.size_bytes {
        let message = format!("it has {size_bytes} bytes, and the manifest says {}", manifest.size_bytes);
        return Err(failed(&options.file, message));
    }
    if sha256 != manifest.sha256 {
        return Err(failed(
            &options.file,
            format!("its SHA-256 is {sha256}, and the manifest says {}", manifest.sha256),
        ));
    }
    let ReleaseManifest { name, version, architecture, counter, .. } = manifest;
    Ok(format!("{} is {name} {version} {architecture}, counter {counter}, as it was signed", options.file.display()))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| failed(path, format!("cannot be read: {error}")))
}

fn keys(path: &Path, kind: ReleaseKind) -> Result<Vec<PublicKey>> {
    if !path.is_dir() {
        let key = release::public_key(&read(path)?);
        return key.map(|key| vec![key]).map_err(|error| failed(path, format!("is no minisign public key: {error}")));
    }
    let folder = match kind {
        ReleaseKind::Agent => "agent",
        ReleaseKind::App => "app",
    };
    let mut keys = usable_keys(path);
    keys.extend(usable_keys(&path.join(folder)));
    match keys.is_empty() {
        true => Err(Failure::Failed(format!("{}: there is no key in *.pub or {folder}/*.pub", path.display()))),
        false => Ok(keys),
    }
}
