//! What a hub itself calls about its identity: `/v1/hubs/claim`, `/v1/hubs/refresh`.

use axum::extract::State;
use hub_protocol::claim::{HubAccess, HubClaimRequest, HubCredentials, HubRefreshRequest};

use crate::app::App;
use crate::authn::hub::RefreshingHub;
use crate::authz::Public;
use crate::error::Result;
use crate::http::answer::{Answer, Created};
use crate::http::extract::Json;

pub async fn claim(
    _: Public,
    State(app): State<App>,
    Json(request): Json<HubClaimRequest>,
) -> Result<Created<HubCredentials>> {
    super::claim(&app, &request).await.map(Created)
}

pub async fn refresh(
    RefreshingHub(claims): RefreshingHub,
    State(app): State<App>,
    Json(request): Json<HubRefreshRequest>,
) -> Result<Answer<HubAccess>> {
    super::refresh(&app, &claims, &request).await.map(Answer)
}
