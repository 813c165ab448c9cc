//! `/v1/agent/releases/latest`: the release of the agent that a hub should run.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::http::etag::{IfNoneMatch, Tagged};
use hub_core::http::extract::Query;
use hub_core::http::operation::operation_failing;
use hub_identity::authn::hub::Hub;
use hub_protocol::ReleaseUuid;
use hub_protocol::hub::DesiredAgent;
use hub_protocol::release::ReleaseOffer;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::Policies;
use crate::Parts;
use crate::{hubs, releases};

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/v1/agent/releases/latest",
        get_with(
            latest_agent,
            operation_failing(
                &[404],
                "hub.getLatestAgentRelease",
                "hub-api",
                "The newest agent release for the hub",
            ),
        ),
    )
}

/// The requested release.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LatestQuery {
    /// The release channel; when absent, that of the update policy of the hub, or `stable` without
    /// one.
    #[schemars(regex(pattern = hub_protocol::patterns::WORD))]
    channel: Option<String>,
    /// The architecture in `uname -m` form; when absent, that of the hub's claim.
    #[schemars(regex(pattern = hub_protocol::patterns::WORD))]
    architecture: Option<String>,
    /// This release and no other, whether it is active or not.
    release_uuid: Option<ReleaseUuid>,
}

async fn latest_agent(
    hub: Hub,
    State(policies): State<Policies>,
    Query(query): Query<LatestQuery>,
    known: IfNoneMatch,
) -> Result<Tagged<ReleaseOffer>> {
    let release_uuid = match query.release_uuid {
        Some(release_uuid) => release_uuid,
        None => newest_for(&mut policies.core.db.read().await?, &hub, query).await?,
    };
    Ok(releases::tagged(
        releases::offer(&policies.releases, release_uuid).await?,
        &known,
    ))
}

async fn newest_for(conn: &mut Conn, hub: &Hub, query: LatestQuery) -> Result<ReleaseUuid> {
    let requested = query
        .channel
        .map(|channel| releases::checked_word("channel", channel))
        .transpose()?;
    let machine = match query.architecture {
        Some(architecture) => Some(releases::checked_word("architecture", architecture)?),
        None => hubs::architecture(conn, hub.hub_uuid).await?,
    };
    let policy = match requested {
        Some(channel) => DesiredAgent {
            channel: Some(channel),
            ..DesiredAgent::default()
        },
        None => super::super::desired_agent(conn, hub.hub_uuid).await?,
    };
    let release = match &policy.version {
        Some(version) => releases::agent_release_of_version(conn, version, machine.as_deref())
            .await?
            .map(|(release, _)| release),
        None => {
            let channel = policy
                .channel
                .as_deref()
                .unwrap_or(releases::DEFAULT_CHANNEL);
            releases::newest_agent_release(conn, channel, machine.as_deref()).await?
        }
    };
    Ok(release.ok_or_else(releases::unknown)?.release_uuid)
}
