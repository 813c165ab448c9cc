//! `/tenant/agent-releases`: the platform's releases, as tenants see them.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::contents::{ReleaseComponentsResponse, ReleaseDocumentResponse};
use super::super::store::agent_releases::{self as store, AgentReleaseRow, Filter};
use super::super::urls::SignedUrl;
use super::super::{Category, Status, agent_releases};
use super::apps::check_day;
use crate::Parts;
use crate::releases::Releases;
use crate::releases::http::ReleasePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/agent-releases",
            get_with(
                list,
                operation(
                    "agentReleases.list",
                    "tenant-releases",
                    "Agent releases, newest first",
                ),
            ),
        )
        .api_route(
            "/tenant/agent-releases/{releaseUuid}",
            get_with(
                get,
                operation("agentReleases.get", "tenant-releases", "One agent release"),
            ),
        )
}

/// A release of the platform.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentReleaseResponse {
    /// The release.
    release_uuid: ReleaseUuid,
    /// The same release, where a number is needed.
    #[schemars(range(min = 1))]
    asset_id: i64,
    /// The category of the file.
    category: Category,
    /// The release channel, such as `stable` or `beta`.
    channel: String,
    /// Its name, as its manifest has it; `hub-agent` where the category is HUB_AGENT.
    name: String,
    /// The version of the release.
    version: String,
    /// The architecture that it is built for, as `uname -m` names it, or `any`.
    architecture: String,
    /// Grows with every release of the same name.
    #[schemars(range(min = 1))]
    counter: i64,
    /// The size of the file.
    #[schemars(range(min = 0))]
    size_bytes: i64,
    /// The SHA-256 digest of the file, in lower-case hex.
    #[schemars(regex(pattern = hub_protocol::patterns::SHA256))]
    sha256: String,
    /// Whether its file is available.
    status: Status,
    /// Whether it is offered: hubs are updated only to what is active and READY.
    active: bool,
    /// The manifest, byte for byte as it was signed.
    manifest: String,
    /// A minisign signature of `manifest`.
    signature: String,
    /// When the release was created.
    created_at: Timestamp,
    /// When its file was stored.
    ready_at: Option<Timestamp>,
    /// The last day on which the release is supported.
    supported_until: Option<String>,
    /// The documents that its manifest names.
    #[schemars(length(max = 2))]
    documents: Vec<ReleaseDocumentResponse>,
    /// Of what it consists.
    components: ReleaseComponentsResponse,
    /// The URL to `PUT` the file to: a path of this service while it has no `public-url`. Returned
    /// when the release is created; the same manifest sent again gets another while the file is
    /// missing, and none once it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url: Option<String>,
    /// When that URL expires: an hour later.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url_expires_at: Option<Timestamp>,
}

impl AgentReleaseResponse {
    pub fn new(row: AgentReleaseRow, upload: Option<SignedUrl>) -> Self {
        let (upload_url, upload_url_expires_at) =
            upload.map(|upload| (upload.url, upload.expires_at)).unzip();
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
            documents: row.arrived.documents(&row.manifest),
            components: row.arrived.components(),
            manifest: row.manifest,
            signature: row.signature,
            created_at: row.created_at,
            ready_at: row.ready_at,
            supported_until: row.supported_until,
            upload_url,
            upload_url_expires_at,
        }
    }
}

/// Filters of the releases.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListQuery {
    /// Only releases of this channel, such as `stable` or `beta`.
    #[schemars(regex(pattern = hub_protocol::patterns::WORD))]
    channel: Option<String>,
    /// Whether to leave out what is not offered; false when absent.
    active_only: Option<bool>,
    /// Only releases whose support ends before this day, such as 2026-01-31.
    #[schemars(length(max = 10))]
    support_ends_before: Option<String>,
}

/// The READY releases, newest first.
async fn list(
    _: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    Query(query): Query<ListQuery>,
    page: Page,
) -> Result<Listed<AgentReleaseResponse>> {
    let channel = query
        .channel
        .map(|channel| agent_releases::checked_word("channel", channel))
        .transpose()?;
    check_day("supportEndsBefore", query.support_ends_before.as_deref())?;
    let filter = Filter {
        channel,
        only_ready: true,
        only_active: query.active_only.unwrap_or(false),
        support_ends_before: query.support_ends_before,
    };
    let (rows, total) =
        store::list(&mut releases.core.db.read().await?, &filter, page.slice()).await?;
    Ok(page.listed(
        rows.into_iter()
            .map(|row| AgentReleaseResponse::new(row, None))
            .collect(),
        total,
    ))
}

async fn get(
    _: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    Path(ReleasePath { release_uuid }): Path<ReleasePath>,
) -> Result<Answer<AgentReleaseResponse>> {
    let row = agent_releases::get_ready(&mut releases.core.db.read().await?, release_uuid).await?;
    Ok(Answer(AgentReleaseResponse::new(row, None)))
}
