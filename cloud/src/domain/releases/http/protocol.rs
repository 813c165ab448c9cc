//! Requests of hubs for a release and the URL of its file.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::{FromRef, State};
use hub_protocol::release::ReleaseOffer;

use super::super::app_releases;
use crate::authn::Authn;
use crate::authn::hub::Hub;
use crate::authz::Scope;
use crate::core::Core;
use crate::domain::releases::Releases;
use crate::error::Result;
use crate::http::etag::{IfNoneMatch, Tagged};
use crate::http::extract::Path;
use crate::http::operation::operation_failing;
use crate::http::paths::AppReleasePath;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Releases: FromRef<S>,
{
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
