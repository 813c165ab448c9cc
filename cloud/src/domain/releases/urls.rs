//! URLs that are their own credential: a file's name, until when the URL is good, and a MAC of both under a key that only the replicas of this service
//! have. Whoever has the URL may do the one thing it is for.

use hub_protocol::release::ReleaseManifest;
use hub_protocol::{ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

use super::files::Files;
use crate::app::App;
use crate::error::{Error, Result};

const DOWNLOAD_SECS: i64 = 300;
const UPLOAD_SECS: i64 = 3600;
const UUID_CHARS: usize = 36;

/// What a URL is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Upload,
    Download,
}

impl Use {
    /// What the MAC is for: a URL for one use is none for another.
    const fn purpose(self) -> &'static str {
        match self {
            Self::Upload => "url-upload",
            Self::Download => "url-download",
        }
    }
}

/// What makes a URL of a file good.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct SignedQuery {
    /// Seconds since 1970, UTC: the URL is good until then.
    expires: Option<i64>,
    /// 64 hex digits, made by the service.
    signature: Option<String>,
}

/// A URL, and until when it is good.
#[derive(Clone, Debug)]
pub struct SignedUrl {
    pub url: String,
    pub expires_at: Timestamp,
}

/// A release's file as URLs call it: who downloads it sees what it is.
#[derive(Clone, Debug)]
pub struct FileName(String);

impl FileName {
    pub fn new(release_uuid: ReleaseUuid, name: &str, version: &str, architecture: &str) -> Self {
        Self(format!("{release_uuid}-{name}-{version}-{architecture}"))
    }

    pub fn of(release_uuid: ReleaseUuid, manifest: &ReleaseManifest) -> Self {
        Self::new(release_uuid, &manifest.name, &manifest.version, &manifest.architecture)
    }
}

/// The release that a file's name belongs to, and what a person would call the file; nothing when it is no such name.
pub fn parts_of(file_name: &str) -> Option<(ReleaseUuid, &str)> {
    let (uuid, rest) = file_name.split_at_checked(UUID_CHARS)?;
    let name = rest.strip_prefix('-').filter(|name| !name.is_empty())?;
    Some((uuid.parse().ok()?, name))
}

/// Where the file is to be sent, for the next hour.
pub fn upload_url(app: &App, file: &FileName) -> SignedUrl {
    sign(app, Use::Upload, file, UPLOAD_SECS)
}

/// Where the file is, for the next five minutes: at the store itself where that takes requests.
pub async fn download_url(app: &App, release_uuid: ReleaseUuid, file: &FileName) -> Result<SignedUrl> {
    let files: &Files = &app.files;
    let valid_for = std::time::Duration::from_secs(DOWNLOAD_SECS.unsigned_abs());
    let at_store = files.download_url(release_uuid, valid_for).await?;
    Ok(match at_store {
        Some(url) => SignedUrl { url, expires_at: app.clock.now().plus_secs(DOWNLOAD_SECS) },
        None => sign(app, Use::Download, file, DOWNLOAD_SECS),
    })
}

fn sign(app: &App, used_for: Use, FileName(file): &FileName, valid_secs: i64) -> SignedUrl {
    let expires = app.clock.now().as_secs() + valid_secs;
    let mac = app.sealer.mac(used_for.purpose(), &message(file, expires));
    let base = app.config.public_url.as_deref().unwrap_or_default();
    let url = format!("{base}/installer/{file}?expires={expires}&signature={}", hex::encode(mac));
    SignedUrl { url, expires_at: Timestamp::from_micros(expires * 1_000_000) }
}

/// The two parts cannot run into each other: a time has no line break.
fn message(file: &str, expires: i64) -> String {
    format!("{expires}\n{file}")
}

/// The release whose file may be used so; 403 when the URL is not as the service made it, or no longer good.
pub fn check(app: &App, used_for: Use, file: &str, query: &SignedQuery) -> Result<ReleaseUuid> {
    let forged =
        || Error::forbidden("INVALID_URL_SIGNATURE", "this URL is not one that the service made; ask for another");
    let (Some(expires), Some(signature)) = (query.expires, &query.signature) else { return Err(forged()) };
    let mac = hex::decode(signature).map_err(|_| forged())?;
    if !app.sealer.is_mac(used_for.purpose(), &message(file, expires), &mac) {
        return Err(forged());
    }
    if expires <= app.clock.now().as_secs() {
        return Err(Error::forbidden("URL_EXPIRED", "this URL is no longer good; ask for another"));
    }
    parts_of(file).map(|(release_uuid, _)| release_uuid).ok_or_else(forged)
}
