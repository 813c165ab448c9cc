//! `/platform/agent-releases`.

use axum::extract::State;
use hub_protocol::ReleaseUuid;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::agent_releases::{self, NewRelease};
use super::super::store::agent_releases::{self as store, Filter};
use super::super::{Category, Signed};
use super::tenant::AgentReleaseResponse;
use crate::app::App;
use crate::authz::PlatformAdmin;
use crate::error::Result;
use crate::http::answer::{Answer, Created};
use crate::http::extract::{Json, Path, Query};
use crate::http::page::{Listed, Page};

#[derive(Debug, Deserialize, JsonSchema)]
pub struct ListQuery {
    /// Such as stable or beta; all when absent.
    channel: Option<String>,
}

/// Those that await their file too, newest first.
pub async fn list(
    _: PlatformAdmin,
    State(app): State<App>,
    Query(query): Query<ListQuery>,
    page: Page,
) -> Result<Listed<AgentReleaseResponse>> {
    let channel = query.channel.map(|channel| agent_releases::checked_word("channel", channel)).transpose()?;
    let filter = Filter { channel, ..Filter::default() };
    let (rows, total) = store::list(&mut app.db.read().await?, &filter, &page).await?;
    Ok(page.listed(rows.into_iter().map(|row| AgentReleaseResponse::new(row, None)).collect(), total))
}

/// A release to be taken in.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct CreateAgentReleaseRequest {
    /// Such as stable or beta: 1 to 64 lower-case letters, digits, dashes and underscores.
    channel: String,
    /// The text of the manifest that was signed, byte for byte: FILE.manifest.json of `hub-cloud release sign`. Its kind is AGENT.
    manifest: String,
    /// The text of the minisign signature of it, by one of the keys that the service trusts: FILE.manifest.json.minisig.
    signature: String,
    /// Whether it is offered as soon as its file is there; true when absent.
    active: Option<bool>,
    /// HUB_AGENT when absent; the manifest's name is `hub-agent` then, and another else.
    category: Option<Category>,
}

pub async fn create(
    PlatformAdmin(admin): PlatformAdmin,
    State(app): State<App>,
    Json(request): Json<CreateAgentReleaseRequest>,
) -> Result<Created<AgentReleaseResponse>> {
    let new = NewRelease {
        category: request.category.unwrap_or(Category::HubAgent),
        channel: request.channel,
        active: request.active.unwrap_or(true),
        signed: Signed { manifest: request.manifest, signature: request.signature },
    };
    let (row, upload) = agent_releases::create(&app, &admin, new).await?;
    Ok(Created(AgentReleaseResponse::new(row, upload)))
}

/// What to change; absent or null stays.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct UpdateAgentReleaseRequest {
    /// Whether it is offered.
    active: Option<bool>,
    /// Moves it there: this is how what proved itself in beta becomes stable.
    channel: Option<String>,
}

pub async fn update(
    PlatformAdmin(admin): PlatformAdmin,
    State(app): State<App>,
    Path(release_uuid): Path<ReleaseUuid>,
    Json(request): Json<UpdateAgentReleaseRequest>,
) -> Result<Answer<AgentReleaseResponse>> {
    let row = agent_releases::update(&app, &admin, release_uuid, request.active, request.channel).await?;
    Ok(Answer(AgentReleaseResponse::new(row, None)))
}
