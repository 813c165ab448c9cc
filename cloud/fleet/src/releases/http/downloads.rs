//! `/tenant/downloads`: the files that hubs are installed from.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Query;
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::agent_releases::{self, DEFAULT_CHANNEL};
use super::super::store::agent_releases::AgentReleaseRow;
use super::super::urls::SignedUrl;
use super::super::{Category, downloads, precedence};
use super::tenant::AgentReleaseResponse;
use crate::Parts;
use crate::releases::Releases;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/downloads/manifest",
            get_with(
                manifest,
                operation(
                    "downloads.getManifest",
                    "tenant-downloads",
                    "Downloads to install hubs from",
                ),
            ),
        )
        .api_route(
            "/tenant/downloads/asset-url",
            get_with(
                asset_url,
                operation_failing(
                    &[404],
                    "downloads.getAssetUrl",
                    "tenant-downloads",
                    "A download URL, valid for five minutes",
                ),
            ),
        )
}

/// The requested channel.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ManifestQuery {
    /// The release channel, such as `stable` or `beta`; `stable` when absent.
    #[schemars(regex(pattern = hub_protocol::patterns::WORD))]
    channel: Option<String>,
}

/// A file to download; `GET /tenant/downloads/asset-url` returns its URL.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownloadAsset {
    /// The id of the file.
    #[schemars(range(min = 1))]
    asset_id: i64,
    /// The release.
    release_uuid: ReleaseUuid,
    /// The category of the file.
    category: Category,
    /// The name of the release.
    name: String,
    /// The version of the release.
    version: String,
    /// The architecture that it is built for, as `uname -m` names it, or `any`.
    architecture: String,
    /// The size of the file.
    #[schemars(range(min = 0))]
    size_bytes: i64,
    /// The SHA-256 digest of the file, in lower-case hex.
    #[schemars(regex(pattern = hub_protocol::patterns::SHA256))]
    sha256: String,
    /// When the release was created.
    created_at: Timestamp,
}

impl From<&AgentReleaseRow> for DownloadAsset {
    fn from(row: &AgentReleaseRow) -> Self {
        Self {
            asset_id: row.asset_id,
            release_uuid: row.release_uuid,
            category: row.category,
            name: row.name.clone(),
            version: row.version.clone(),
            architecture: row.architecture.clone(),
            size_bytes: row.size_bytes,
            sha256: row.sha256.clone(),
            created_at: row.created_at,
        }
    }
}

/// The newest files of a channel: of each kind, one for each name and architecture, sorted by name.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownloadManifest {
    /// The channel.
    channel: String,
    /// The highest version of the agent, of any architecture; null when there is none.
    latest_release: Option<AgentReleaseResponse>,
    /// Releases of the installer.
    installer: Vec<DownloadAsset>,
    /// Images of a whole system.
    hub_os: Vec<DownloadAsset>,
    /// Releases of the agent.
    hub_agent: Vec<DownloadAsset>,
}

async fn manifest(
    _: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    Query(query): Query<ManifestQuery>,
) -> Result<Answer<DownloadManifest>> {
    let channel = query.channel.unwrap_or_else(|| DEFAULT_CHANNEL.to_owned());
    let channel = agent_releases::checked_word("channel", channel)?;
    let newest = downloads::newest(&mut releases.core.db.read().await?, &channel).await?;
    let assets = |category| {
        newest
            .iter()
            .filter(|row| row.category == category)
            .map(DownloadAsset::from)
            .collect()
    };
    let (installer, hub_os, hub_agent) = (
        assets(Category::Installer),
        assets(Category::HubOs),
        assets(Category::HubAgent),
    );
    let latest_release = newest
        .into_iter()
        .filter(|row| row.category == Category::HubAgent)
        .max_by(|a, b| precedence(&a.version).cmp_precedence(&precedence(&b.version)))
        .map(|row| AgentReleaseResponse::new(row, None));
    Ok(Answer(DownloadManifest {
        channel,
        latest_release,
        installer,
        hub_os,
        hub_agent,
    }))
}

/// The requested file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssetQuery {
    /// The category of the file.
    category: Category,
    /// The id of the file, from `GET /tenant/downloads/manifest`.
    asset_id: i64,
}

/// The URL of a file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssetUrl {
    /// Accepts range requests and needs no credential. A path of this service while it has no
    /// `public-url`, or a URL of another store.
    url: String,
    /// When the URL expires: five minutes later.
    expires_at: Timestamp,
    /// The size of the file.
    #[schemars(range(min = 0))]
    size_bytes: i64,
    /// The SHA-256 digest of the file, in lower-case hex.
    #[schemars(regex(pattern = hub_protocol::patterns::SHA256))]
    sha256: String,
}

impl AssetUrl {
    pub fn new(url: SignedUrl, size_bytes: i64, sha256: String) -> Self {
        Self {
            url: url.url,
            expires_at: url.expires_at,
            size_bytes,
            sha256,
        }
    }
}

async fn asset_url(
    _: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    Query(AssetQuery { category, asset_id }): Query<AssetQuery>,
) -> Result<Answer<AssetUrl>> {
    let (row, url) = downloads::asset_url(&releases, category, asset_id).await?;
    let AgentReleaseRow {
        size_bytes, sha256, ..
    } = row;
    Ok(Answer(AssetUrl::new(url, size_bytes, sha256)))
}
