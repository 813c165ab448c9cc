//! `/tenant/downloads`: what people install from.

use axum::extract::State;
use hub_protocol::{ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::agent_releases::{self, DEFAULT_CHANNEL};
use super::super::store::agent_releases::AgentReleaseRow;
use super::super::{Category, downloads, precedence};
use super::tenant::AgentReleaseResponse;
use crate::app::App;
use crate::authz::{Authorized, permission as perm};
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::extract::Query;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ManifestQuery {
    /// Such as stable or beta; stable when absent.
    channel: Option<String>,
}

/// Something to download; `GET /tenant/downloads/asset-url` tells where it is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownloadAsset {
    asset_id: i64,
    release_uuid: ReleaseUuid,
    category: Category,
    name: String,
    version: String,
    /// As `uname -m` names it, or `any`.
    architecture: String,
    size_bytes: i64,
    /// Of the file, in lower-case hex.
    sha256: String,
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

/// The newest of each kind that a channel offers: of each name and architecture one, in the order of their names.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DownloadManifest {
    channel: String,
    /// The agent's highest version, for whichever architecture; nothing when there is none.
    latest_release: Option<AgentReleaseResponse>,
    installer: Vec<DownloadAsset>,
    hub_os: Vec<DownloadAsset>,
    hub_agent: Vec<DownloadAsset>,
}

pub async fn manifest(
    _: Authorized<perm::ReleasesRead>,
    State(app): State<App>,
    Query(query): Query<ManifestQuery>,
) -> Result<Answer<DownloadManifest>> {
    let channel = query.channel.unwrap_or_else(|| DEFAULT_CHANNEL.to_owned());
    let channel = agent_releases::checked_word("channel", channel)?;
    let newest = downloads::newest(&mut app.db.read().await?, &channel).await?;
    let assets = |category| newest.iter().filter(|row| row.category == category).map(DownloadAsset::from).collect();
    let (installer, hub_os, hub_agent) =
        (assets(Category::Installer), assets(Category::HubOs), assets(Category::HubAgent));
    let latest_release = newest
        .into_iter()
        .filter(|row| row.category == Category::HubAgent)
        .max_by(|a, b| precedence(&a.version).cmp_precedence(&precedence(&b.version)))
        .map(|row| AgentReleaseResponse::new(row, None));
    Ok(Answer(DownloadManifest { channel, latest_release, installer, hub_os, hub_agent }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssetQuery {
    category: Category,
    /// From `GET /tenant/downloads/manifest`.
    asset_id: i64,
}

/// Where a file is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssetUrl {
    /// Takes range requests and no credentials. A path of this service while it has no `public-url`, or a URL of another store.
    url: String,
    /// Five minutes later.
    expires_at: Timestamp,
    size_bytes: i64,
    /// Of the file, in lower-case hex.
    sha256: String,
}

pub async fn asset_url(
    _: Authorized<perm::ReleasesRead>,
    State(app): State<App>,
    Query(AssetQuery { category, asset_id }): Query<AssetQuery>,
) -> Result<Answer<AssetUrl>> {
    let (row, url) = downloads::asset_url(&app, category, asset_id).await?;
    let AgentReleaseRow { size_bytes, sha256, .. } = row;
    Ok(Answer(AssetUrl { url: url.url, expires_at: url.expires_at, size_bytes, sha256 }))
}
