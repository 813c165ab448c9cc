//! `/v1/hubs/{hubUuid}/certificates` and `/v1/hubs/ca-bundle`. Both are open to a hub that shows no certificate, or one that is of no use any more:
//! here it gets another.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub_protocol::HubUuid;
use hub_protocol::certificate::{CertificateIssueRequest, CertificateIssueResponse};

use super::Trust;
use crate::app::App;
use crate::authn::hub::EnrollingHub;
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::extract::{Json, Path};

pub async fn issue(
    EnrollingHub(hub): EnrollingHub,
    State(app): State<App>,
    Path(_): Path<HubUuid>,
    Json(request): Json<CertificateIssueRequest>,
) -> Result<Answer<CertificateIssueResponse>> {
    super::issue(&app, &hub, &request).await.map(Answer)
}

/// The roots, the newest first: more than one while certificates below an older one are valid. Then what issues below them, so that the bundle and a hub's
/// certificate are all it takes to check that.
pub async fn ca_bundle(_: EnrollingHub, State(app): State<App>) -> Result<Response> {
    let Trust { roots, issuers } = super::trust(&app).await?;
    let bundle = [roots, issuers].concat().concat();
    Ok(([(header::CONTENT_TYPE, "application/x-pem-file")], bundle).into_response())
}
