//! The keys whose signatures are trusted: minisign public keys in the directory of the setting
//! `release-keys`, `agent/*.pub` for the platform's releases and `app/*.pub` for apps. They are
//! read at each use, so that adding or removing a key needs no restart.

use std::io::Read;
use std::path::{Path, PathBuf};

use hub_base::error::{Error, Result};
use hub_core::http::check::Check;
use hub_protocol::release::{
    Distrust, PublicKey, ReleaseKind, ReleaseManifest, public_key, verify,
};

use crate::releases::Releases;

/// Files read from a directory, and bytes of each: a minisign public key is two short lines.
const MAX_FILES: usize = 100;
const MAX_FILE_BYTES: u64 = 4096;
/// A minisign signature is four lines, of which two are comments.
const MAX_SIGNATURE_CHARS: usize = 4096;

/// The manifest, if a trusted key signed it; otherwise an error that names the invalid field.
pub async fn verified(
    releases: &Releases,
    kind: ReleaseKind,
    manifest: &str,
    signature: &str,
) -> Result<ReleaseManifest> {
    let mut check = Check::new();
    check.lines("signature", Some(signature), MAX_SIGNATURE_CHARS);
    check.done()?;
    let keys = read_keys(releases, kind).await?;
    let parsed = verify(manifest.as_bytes(), signature, &keys).map_err(refused)?;
    match parsed.kind == kind {
        true => Ok(parsed),
        false => Err(Error::field(
            "manifest.kind",
            format!("must be {}", kind_name(kind)),
        )),
    }
}

fn refused(distrust: Distrust) -> Error {
    let field = match &distrust {
        Distrust::MalformedSignature(_) | Distrust::UnknownKey(_) | Distrust::WrongSignature => {
            "signature".to_owned()
        }
        Distrust::MalformedManifest(_) => "manifest".to_owned(),
        Distrust::Field { field, .. } => format!("manifest.{field}"),
    };
    Error::field(field, distrust.to_string())
}

const fn kind_name(kind: ReleaseKind) -> &'static str {
    match kind {
        ReleaseKind::Agent => "AGENT",
        ReleaseKind::App => "APP",
    }
}

async fn read_keys(releases: &Releases, kind: ReleaseKind) -> Result<Vec<PublicKey>> {
    let folder = match kind {
        ReleaseKind::Agent => "agent",
        ReleaseKind::App => "app",
    };
    let dir = releases.core.config.release_keys.join(folder);
    let keys = tokio::task::spawn_blocking(move || usable_keys(&dir))
        .await
        .map_err(Error::internal)?;
    match keys.is_empty() {
        false => Ok(keys),
        true => {
            let message = format!(
                "releases cannot be verified: add a key {folder}/*.pub to the directory of the setting `release-keys`"
            );
            Err(Error::unavailable("NO_RELEASE_KEYS", message))
        }
    }
}

/// The valid keys of a directory. Invalid files are skipped.
pub fn usable_keys(dir: &Path) -> Vec<PublicKey> {
    let mut keys = Vec::new();
    for (file, key) in keys_in(dir) {
        match key {
            Ok(key) => keys.push(key),
            Err(error) => {
                tracing::warn!(file = %file.display(), error, "not a minisign public key; the file is skipped")
            }
        }
    }
    keys
}

/// The key in each `*.pub` file of a directory, or why the file is not a key.
pub fn keys_in(dir: &Path) -> Vec<(PathBuf, Result<PublicKey, String>)> {
    let files = match std::fs::read_dir(dir) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())),
        Err(error) => {
            tracing::debug!(dir = %dir.display(), %error, "cannot read the directory of release keys");
            return Vec::new();
        }
    };
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|end| end == "pub"))
        .collect();
    files.sort();
    files.truncate(MAX_FILES);
    files
        .into_iter()
        .map(|file| (file.clone(), key_in(&file)))
        .collect()
}

fn key_in(file: &Path) -> Result<PublicKey, String> {
    let mut text = String::new();
    let read = std::fs::File::open(file)
        .and_then(|file| file.take(MAX_FILE_BYTES).read_to_string(&mut text));
    read.map_err(|error| error.to_string())?;
    public_key(&text).map_err(|error| error.to_string())
}
