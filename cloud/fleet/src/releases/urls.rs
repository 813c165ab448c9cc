//! URLs that carry their own credential: a file name, an expiry time, and a MAC of both under a key
//! that only the replicas of this service have. The URL authorizes its holder for exactly one use.

use hub_base::error::{Error, Result};
use hub_protocol::release::ReleaseManifest;
use hub_protocol::{ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::files::Files;
use crate::releases::Releases;

const DOWNLOAD_SECS: i64 = 300;
const UPLOAD_SECS: i64 = 3600;
const UUID_CHARS: usize = 36;

/// The use that a URL authorizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Upload,
    Download,
}

impl Use {
    /// The purpose of the MAC, so that a URL for one use is invalid for the other.
    const fn purpose(self) -> &'static str {
        match self {
            Self::Upload => "url-upload",
            Self::Download => "url-download",
        }
    }
}

/// The signature of a file's URL.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SignedQuery {
    /// The end of the URL's validity: seconds since 1970, UTC.
    expires: Option<i64>,
    /// The signature of the URL, issued by the service.
    #[schemars(regex(pattern = hub_protocol::patterns::SHA256))]
    signature: Option<String>,
}

/// A URL and its expiry time.
#[derive(Clone, Debug)]
pub struct SignedUrl {
    pub url: String,
    pub expires_at: Timestamp,
}

/// The name of a release's file in URLs, which shows a downloader what it is.
#[derive(Clone, Debug)]
pub struct FileName(String);

impl FileName {
    pub fn new(release_uuid: ReleaseUuid, name: &str, version: &str, architecture: &str) -> Self {
        Self(format!("{release_uuid}-{name}-{version}-{architecture}"))
    }

    pub fn of(release_uuid: ReleaseUuid, manifest: &ReleaseManifest) -> Self {
        Self::new(
            release_uuid,
            &manifest.name,
            &manifest.version,
            &manifest.architecture,
        )
    }
}

/// The release that a file name belongs to, and the file name without its uuid; None if it is not
/// such a name.
pub fn parts_of(file_name: &str) -> Option<(ReleaseUuid, &str)> {
    let (uuid, rest) = file_name.split_at_checked(UUID_CHARS)?;
    let name = rest.strip_prefix('-').filter(|name| !name.is_empty())?;
    Some((uuid.parse().ok()?, name))
}

/// The URL to upload the file to, valid for an hour.
pub fn upload_url(releases: &Releases, file: &FileName) -> SignedUrl {
    sign(releases, Use::Upload, file, UPLOAD_SECS)
}

/// The URL to download the file from, valid for five minutes: a presigned URL of the store if it
/// supports them.
pub async fn download_url(
    releases: &Releases,
    release_uuid: ReleaseUuid,
    file: &FileName,
) -> Result<SignedUrl> {
    let files: &Files = &releases.files;
    let valid_for = std::time::Duration::from_secs(DOWNLOAD_SECS.unsigned_abs());
    let at_store = files.download_url(release_uuid, valid_for).await?;
    Ok(match at_store {
        Some(url) => SignedUrl {
            url,
            expires_at: releases.core.clock.now().plus_secs(DOWNLOAD_SECS),
        },
        None => sign(releases, Use::Download, file, DOWNLOAD_SECS),
    })
}

fn sign(
    releases: &Releases,
    used_for: Use,
    FileName(file): &FileName,
    valid_secs: i64,
) -> SignedUrl {
    let expires = releases.core.clock.now().as_secs() + valid_secs;
    let mac = releases
        .core
        .sealer
        .mac(used_for.purpose(), &message(file, expires));
    let base = releases
        .core
        .config
        .public_url
        .as_deref()
        .unwrap_or_default();
    let url = format!(
        "{base}/installer/{file}?expires={expires}&signature={}",
        hex::encode(mac)
    );
    SignedUrl {
        url,
        expires_at: Timestamp::from_micros(expires * 1_000_000),
    }
}

/// The signed text, which is unambiguous: a time contains no line break.
fn message(file: &str, expires: i64) -> String {
    format!("{expires}\n{file}")
}

/// The release whose file the URL authorizes to use. Fails with 403 if the signature is invalid or
/// expired.
pub fn check(
    releases: &Releases,
    used_for: Use,
    file: &str,
    query: &SignedQuery,
) -> Result<ReleaseUuid> {
    let invalid = || {
        Error::forbidden(
            "INVALID_URL_SIGNATURE",
            "the signature of this URL is invalid; request another URL",
        )
    };
    let (Some(expires), Some(signature)) = (query.expires, &query.signature) else {
        return Err(invalid());
    };
    let mac = hex::decode(signature).map_err(|_| invalid())?;
    if !releases
        .core
        .sealer
        .is_mac(used_for.purpose(), &message(file, expires), &mac)
    {
        return Err(invalid());
    }
    if expires <= releases.core.clock.now().as_secs() {
        return Err(Error::forbidden(
            "URL_EXPIRED",
            "this URL has expired; request another",
        ));
    }
    parts_of(file)
        .map(|(release_uuid, _)| release_uuid)
        .ok_or_else(invalid)
}
