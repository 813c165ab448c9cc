//! `/platform/agent-releases`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, patch_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::{Answer, Created};
use hub_core::http::check::filled;
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::PlatformAdmin;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::agent_releases::{self, NewRelease};
use super::super::store::agent_releases::{self as store, Filter};
use super::super::{Category, Signed};
use super::apps::check_day;
use super::tenant::AgentReleaseResponse;
use crate::Parts;
use crate::releases::Releases;
use crate::releases::http::ReleasePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/platform/agent-releases",
            get_with(
                list,
                operation(
                    "platformAgentReleases.list",
                    "platform",
                    "Agent releases, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[409],
                    "platformAgentReleases.create",
                    "platform",
                    "Add a signed release, whose file is uploaded next",
                ),
            ),
        )
        .api_route(
            "/platform/agent-releases/{releaseUuid}",
            patch_with(
                update,
                operation(
                    "platformAgentReleases.update",
                    "platform",
                    "Activate or deactivate a release, or change its channel or end of support",
                ),
            ),
        )
}

/// Filters of the releases.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListQuery {
    /// Only releases of this channel, such as `stable` or `beta`.
    #[schemars(regex(pattern = hub_protocol::patterns::WORD))]
    channel: Option<String>,
    /// Only releases whose support ends before this day, such as 2026-01-31.
    #[schemars(length(max = 10))]
    support_ends_before: Option<String>,
}

/// Returns the releases newest first, including those that await their file.
async fn list(
    _: PlatformAdmin,
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
        support_ends_before: query.support_ends_before,
        ..Filter::default()
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

/// A signed release of the platform.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateAgentReleaseRequest {
    /// The release channel, such as `stable` or `beta`.
    #[schemars(regex(pattern = hub_protocol::patterns::WORD))]
    channel: String,
    /// The text of the manifest that was signed, byte for byte: FILE.manifest.json of `hub-cloud
    /// release sign`. Its kind is AGENT.
    manifest: String,
    /// The text of its minisign signature, by one of the keys that the service trusts:
    /// FILE.manifest.json.minisig.
    signature: String,
    /// Whether it is offered as soon as its file is stored; true when absent.
    active: Option<bool>,
    /// The category; HUB_AGENT when absent. The manifest is named `hub-agent` in that case alone.
    category: Option<Category>,
    /// The last day on which the release is supported, such as 2026-01-31.
    #[schemars(length(max = 10))]
    supported_until: Option<String>,
}

async fn create(
    PlatformAdmin(admin): PlatformAdmin,
    State(releases): State<Releases>,
    Json(request): Json<CreateAgentReleaseRequest>,
) -> Result<Created<AgentReleaseResponse>> {
    check_day("supportedUntil", filled(request.supported_until.as_deref()))?;
    let new = NewRelease {
        category: request.category.unwrap_or(Category::HubAgent),
        channel: request.channel,
        active: request.active.unwrap_or(true),
        supported_until: request.supported_until,
        signed: Signed {
            manifest: request.manifest,
            signature: request.signature,
        },
    };
    let (row, upload) = agent_releases::create(&releases, &admin, new).await?;
    Ok(Created(AgentReleaseResponse::new(row, upload)))
}

/// Changes to make. An absent or null member leaves the stored value unchanged.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateAgentReleaseRequest {
    /// Whether it is offered.
    active: Option<bool>,
    /// The channel to move it to: a release that proved itself in `beta` becomes `stable` this way.
    #[schemars(regex(pattern = hub_protocol::patterns::WORD))]
    channel: Option<String>,
    /// The last day on which the release is supported, such as 2026-01-31. Empty text removes it.
    #[schemars(length(max = 10))]
    supported_until: Option<String>,
}

async fn update(
    PlatformAdmin(admin): PlatformAdmin,
    State(releases): State<Releases>,
    Path(ReleasePath { release_uuid }): Path<ReleasePath>,
    Json(request): Json<UpdateAgentReleaseRequest>,
) -> Result<Answer<AgentReleaseResponse>> {
    check_day("supportedUntil", filled(request.supported_until.as_deref()))?;
    let row = agent_releases::update(
        &releases,
        &admin,
        release_uuid,
        request.active,
        request.channel,
        request.supported_until,
    )
    .await?;
    Ok(Answer(AgentReleaseResponse::new(row, None)))
}
