//! `/tenant/agent-releases`: what the platform offers, as tenants see it.

use axum::extract::State;
use hub_protocol::{ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::store::agent_releases::{self as store, AgentReleaseRow, Filter};
use super::super::urls::SignedUrl;
use super::super::{Category, Status, agent_releases};
use crate::app::App;
use crate::authz::{Authorized, permission as perm};
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::extract::{Path, Query};
use crate::http::page::{Listed, Page};

/// A release of the platform.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentReleaseResponse {
    release_uuid: ReleaseUuid,
    /// The same release where a number is asked for.
    asset_id: i64,
    category: Category,
    /// Such as stable or beta.
    channel: String,
    /// As its manifest names it; `hub-agent` where the category is HUB_AGENT.
    name: String,
    version: String,
    /// As `uname -m` names it, or `any`.
    architecture: String,
    /// Grows with every release of the name.
    counter: i64,
    size_bytes: i64,
    /// Of the file, in lower-case hex.
    sha256: String,
    status: Status,
    /// Whether it is offered: hubs are only told to become what is active and READY.
    active: bool,
    /// The manifest, byte for byte as it was signed.
    manifest: String,
    /// A minisign signature of `manifest`.
    signature: String,
    created_at: Timestamp,
    /// When its file was there.
    ready_at: Option<Timestamp>,
    /// `PUT` the file here. A path of this service while it has no `public-url`. Given when the release is made; the same manifest sent again gives
    /// another while the file is awaited, and none once it is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url: Option<String>,
    /// An hour later.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url_expires_at: Option<Timestamp>,
}

impl AgentReleaseResponse {
    pub fn new(row: AgentReleaseRow, upload: Option<SignedUrl>) -> Self {
        let (upload_url, upload_url_expires_at) = upload.map(|upload| (upload.url, upload.expires_at)).unzip();
        Self {
            release_uuid: row.release_uuid,
            asset_id: row.asset_id,
            category: row.category,
            channel: row.channel,
            name: row.name,
            version: row.version,
            architecture: row.architecture,
            counter: row.counter,
            size_bytes: row.size_bytes,
            sha256: row.sha256,
            status: row.status,
            active: row.active,
            manifest: row.manifest,
            signature: row.signature,
            created_at: row.created_at,
            ready_at: row.ready_at,
            upload_url,
            upload_url_expires_at,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListQuery {
    /// Such as stable or beta; all when absent.
    channel: Option<String>,
    /// Leaves out what is not offered; false when absent.
    active_only: Option<bool>,
}

/// Those that are READY, newest first.
pub async fn list(
    _: Authorized<perm::ReleasesRead>,
    State(app): State<App>,
    Query(query): Query<ListQuery>,
    page: Page,
) -> Result<Listed<AgentReleaseResponse>> {
    let channel = query.channel.map(|channel| agent_releases::checked_word("channel", channel)).transpose()?;
    let filter = Filter { channel, only_ready: true, only_active: query.active_only.unwrap_or(false) };
    let (rows, total) = store::list(&mut app.db.read().await?, &filter, &page).await?;
    Ok(page.listed(rows.into_iter().map(|row| AgentReleaseResponse::new(row, None)).collect(), total))
}

pub async fn get(
    _: Authorized<perm::ReleasesRead>,
    State(app): State<App>,
    Path(release_uuid): Path<ReleaseUuid>,
) -> Result<Answer<AgentReleaseResponse>> {
    let row = agent_releases::get_ready(&mut app.db.read().await?, release_uuid).await?;
    Ok(Answer(AgentReleaseResponse::new(row, None)))
}
