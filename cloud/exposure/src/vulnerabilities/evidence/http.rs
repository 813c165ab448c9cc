//! `GET /tenant/vulnerabilities/{vulnerabilityId}/evidence`.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hub_base::budget::Holder;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::hold_answer;
use hub_core::http::extract::Path;
use hub_core::http::file::{NDJSON, attachment_in_parts, lines_response};
use hub_core::http::operation::operation_failing;
use hub_identity::authn::Authn;
use hub_identity::authz::{Authorized, permission as perm};

use super::super::http::VulnerabilityPath;
use super::Evidence;
use crate::Parts;

/// The memory of a statement that is being sent, of that for large responses.
const BYTES: usize = 4 << 20;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/vulnerabilities/{vulnerabilityId}/evidence",
        get_with(
            evidence,
            operation_failing(
                &[503],
                "vulnerabilities.getEvidence",
                "tenant-vulnerabilities",
                "Which hub had what of a vulnerability when, signed",
            ),
        ),
    )
}

/// Lines of JSON, sent while they are read.
struct Lines(Evidence);

impl IntoResponse for Lines {
    fn into_response(self) -> Response {
        let lines = stream::try_unfold(self.0, |mut evidence| async move {
            let lines = evidence.next().await?;
            Ok::<_, Error>(lines.map(|lines| (lines, evidence)))
        });
        attachment_in_parts(NDJSON, "evidence.ndjson", lines)
    }
}

impl OperationOutput for Lines {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "One JSON object a line: `type` says what it is and `data` has it. The last line is of the \
                           type `signature` and has a JWS (ES256) with the SHA-256 of all lines before it; without it \
                           the statement was cut off.";
        let types = [
            "head",
            "advisory",
            "statement",
            "exposure",
            "fixed",
            "job",
            "signature",
        ];
        let response = lines_response(description, &types, "What it says.");
        vec![(Some(200), response)]
    }
}

async fn evidence(
    auth: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
    State(authn): State<Authn>,
    Path(path): Path<VulnerabilityPath>,
) -> Result<Lines> {
    let id = path.checked()?;
    let holder = Holder {
        group: auth.scope.tenant_uuid().0,
        member: None,
    };
    let held = hold_answer(&core, holder, BYTES)?;
    Evidence::begin(core, authn, auth.scope, &id, held)
        .await
        .map(Lines)
}
