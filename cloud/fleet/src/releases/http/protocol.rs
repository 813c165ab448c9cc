//! Requests of hubs for a release and the URL of its file.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::etag::{IfNoneMatch, Tagged};
use hub_core::http::extract::Path;
use hub_core::http::operation::operation_failing;
use hub_identity::authn::hub::Hub;
use hub_identity::authz::Scope;
use hub_protocol::ReleaseUuid;
use hub_protocol::release::ReleaseOffer;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::app_releases;
use crate::Parts;
use crate::releases::Releases;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/v1/apps/{appReleaseUuid}/manifest",
        get_with(
            app_manifest,
            operation_failing(
                &[404],
                "hub.getAppManifest",
                "hub-api",
                "A release of an app, with the URL of its file",
            ),
        ),
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppReleasePath {
    /// The release of an app.
    pub app_release_uuid: ReleaseUuid,
}

async fn app_manifest(
    hub: Hub,
    State(releases): State<Releases>,
    Path(AppReleasePath {
        app_release_uuid: release_uuid,
    }): Path<AppReleasePath>,
    known: IfNoneMatch,
) -> Result<Tagged<ReleaseOffer>> {
    let offer = app_releases::offer(&releases, &Scope::of_hub(&hub), release_uuid).await?;
    Ok(tagged(offer, &known))
}

/// The tag is weak: a release never changes except for its URL, which differs in each response. A
/// client that needs the URL sends no `If-None-Match`.
pub fn tagged(offer: ReleaseOffer, known: &IfNoneMatch) -> Tagged<ReleaseOffer> {
    let etag = format!("W/\"{}\"", offer.release_uuid);
    let body = (!known.matches(&etag)).then_some(offer);
    Tagged { etag, body }
}
