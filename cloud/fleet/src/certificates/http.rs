//! `/v1/hubs/{hubUuid}/certificates` and `/v1/hubs/ca-bundle`. Both accept hubs without a valid
//! certificate, because this is where a hub gets its first one and renews an expired one.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::{Answer, typed_response};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::hub::EnrollingHub;
use hub_protocol::certificate::{CertificateIssueRequest, CertificateIssueResponse};
use serde_json::json;

use super::Trust;
use crate::Parts;
use crate::hubs::http::HubPath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/v1/hubs/{hubUuid}/certificates",
            post_with(
                issue,
                operation_failing(
                    &[429],
                    "hub.issueCertificate",
                    "hub-api",
                    "Issue a client certificate for the hub's own key",
                ),
            ),
        )
        .api_route(
            "/v1/hubs/ca-bundle",
            get_with(
                ca_bundle,
                operation(
                    "hub.getCaBundle",
                    "hub-api",
                    "The authorities of hubs' certificates, in PEM form",
                ),
            ),
        )
}

async fn issue(
    hub: EnrollingHub,
    State(core): State<Core>,
    Path(_): Path<HubPath>,
    Json(request): Json<CertificateIssueRequest>,
) -> Result<Answer<CertificateIssueResponse>> {
    super::issue(&core, &hub, &request).await.map(Answer)
}

/// Certificates in PEM form.
struct Pem(Vec<u8>);

impl IntoResponse for Pem {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/x-pem-file")], self.0).into_response()
    }
}

impl OperationOutput for Pem {
    type Inner = String;
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let schema = json!({"type": "string"});
        vec![(
            Some(200),
            typed_response(
                "application/x-pem-file",
                "Certificates, one after another.",
                schema,
            ),
        )]
    }
}

/// The roots, newest first: more than one while certificates below an older one are valid. The
/// issuing authorities follow, so that the bundle is sufficient to verify a hub's certificate.
async fn ca_bundle(_: EnrollingHub, State(core): State<Core>) -> Result<Pem> {
    let Trust { roots, issuers } = super::trust(&core).await?;
    let bundle = [roots, issuers].concat().concat();
    Ok(Pem(bundle.into()))
}
