//! What a hub asks: which release there is, and where its file is.

use axum::extract::State;
use hub_protocol::ReleaseUuid;
use hub_protocol::release::ReleaseOffer;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::agent_releases::{self, Wanted};
use super::super::app_releases;
use crate::app::App;
use crate::authn::hub::Hub;
use crate::authz::Scope;
use crate::error::Result;
use crate::http::etag::{IfNoneMatch, Tagged};
use crate::http::extract::{Path, Query};

pub async fn app_manifest(
    hub: Hub,
    State(app): State<App>,
    Path(release_uuid): Path<ReleaseUuid>,
    known: IfNoneMatch,
) -> Result<Tagged<ReleaseOffer>> {
    let offer = app_releases::offer(&app, &Scope::of_hub(&hub), release_uuid).await?;
    Ok(tagged(offer, &known))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LatestQuery {
    /// Such as stable or beta; what the hub's update policy says when absent, and stable where there is none.
    channel: Option<String>,
    /// As `uname -m` names it; what the hub said when it was claimed, when absent.
    architecture: Option<String>,
    /// This release and no other, whether it is active or not.
    release_uuid: Option<ReleaseUuid>,
}

pub async fn latest_agent(
    hub: Hub,
    State(app): State<App>,
    Query(query): Query<LatestQuery>,
    known: IfNoneMatch,
) -> Result<Tagged<ReleaseOffer>> {
    let LatestQuery { channel, architecture, release_uuid } = query;
    let offer = agent_releases::offer(&app, &hub, Wanted { channel, architecture, release_uuid }).await?;
    Ok(tagged(offer, &known))
}

/// A release never changes but for its URL, which is another each time: the tag is weak. Whoever wants the URL does not say what they have.
fn tagged(offer: ReleaseOffer, known: &IfNoneMatch) -> Tagged<ReleaseOffer> {
    let etag = format!("W/\"{}\"", offer.release_uuid);
    let body = (!known.matches(&etag)).then_some(offer);
    Tagged { etag, body }
}
