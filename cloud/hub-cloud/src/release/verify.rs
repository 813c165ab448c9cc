//! `hub-cloud release verify`: checks a file against its manifest and signature.

use std::path::{Path, PathBuf};

use hub_fleet::releases::usable_keys;
use hub_protocol::release::{self, PublicKey, ReleaseKind, ReleaseManifest};

use super::{Failure, Result, failed, manifest_of, signature_of, size_and_digest};

pub const HELP: &str = "\
Reads FILE, FILE.manifest.json and FILE.manifest.json.minisig and verifies them as the service and
the hubs do. --keys names a minisign public key file, a directory of such files (*.pub), or a
directory with agent/*.pub and app/*.pub.

Example: hub-cloud release verify --keys /etc/hub-agent/release-keys hub-agent";

#[derive(Debug, clap::Args)]
pub struct Options {
    /// Trusted public keys
    #[arg(long, value_name = "DIR|FILE")]
    keys: PathBuf,

    /// File to verify
    file: PathBuf,
}

/// Returns a message for the operator.
pub fn run(options: &Options) -> Result<String> {
    let path = manifest_of(&options.file);
    let text = read(&path)?;
    let signature = read(&signature_of(&path))?;
    let unchecked = release::parse(text.as_bytes()).map_err(|error| failed(&path, error))?;
    let keys = keys(&options.keys, unchecked.kind)?;
    let manifest = release::verify(text.as_bytes(), &signature, &keys)
        .map_err(|error| failed(&path, error))?;
    let (size_bytes, sha256) = size_and_digest(&options.file)?;
    if size_bytes != manifest.size_bytes {
        let message = format!(
            "the file has {size_bytes} bytes, but the manifest states {}",
            manifest.size_bytes
        );
        return Err(failed(&options.file, message));
    }
    if sha256 != manifest.sha256 {
        return Err(failed(
            &options.file,
            format!(
                "the SHA-256 of the file is {sha256}, but the manifest states {}",
                manifest.sha256
            ),
        ));
    }
    let ReleaseManifest {
        name,
        version,
        architecture,
        counter,
        ..
    } = manifest;
    let file = options.file.display();
    Ok(format!(
        "{file} is {name} {version} {architecture}, counter {counter}; the signature is valid"
    ))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| failed(path, format!("cannot read: {error}")))
}

fn keys(path: &Path, kind: ReleaseKind) -> Result<Vec<PublicKey>> {
    if !path.is_dir() {
        let key = release::public_key(&read(path)?);
        return key
            .map(|key| vec![key])
            .map_err(|error| failed(path, format!("not a minisign public key: {error}")));
    }
    let subdirectory = match kind {
        ReleaseKind::Agent => "agent",
        ReleaseKind::App => "app",
    };
    let mut keys = usable_keys(path);
    keys.extend(usable_keys(&path.join(subdirectory)));
    match keys.is_empty() {
        true => Err(Failure::Failed(format!(
            "{}: no key found in *.pub or {subdirectory}/*.pub",
            path.display()
        ))),
        false => Ok(keys),
    }
}
