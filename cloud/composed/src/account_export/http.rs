//! `GET /app/export`.

use std::collections::VecDeque;

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
use hub_core::http::file::{NDJSON, attachment_in_parts, lines_response};
use hub_core::http::operation::operation_failing;
use hub_identity::authz::EndUser;

use super::{Export, Section};
use crate::Parts;

/// The most bytes of a page of lines, of the memory for large responses.
const BYTES: usize = 4 << 20;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/app/export",
        get_with(
            export,
            operation_failing(
                &[503],
                "appExport.get",
                "app",
                "All that is stored of the caller",
            ),
        ),
    )
}

/// Lines of JSON, sent while they are read.
struct Lines(Export);

impl IntoResponse for Lines {
    fn into_response(self) -> Response {
        let lines = stream::try_unfold(self.0, |mut export| async move {
            let lines = export.next().await?;
            Ok::<_, Error>(lines.map(|lines| (lines, export)))
        });
        attachment_in_parts(NDJSON, "export.ndjson", lines)
    }
}

impl OperationOutput for Lines {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "One JSON object a line: `type` says what it is and `data` has what `/app` shows of it. The last \
                           line is of the type `end` and counts the others; without it the export was cut off.";
        let types = [
            "profile",
            "membership",
            "hub",
            "device",
            "sensorData",
            "consent",
            "mandate",
            "supplierLink",
            "deviceCommand",
            "notification",
            "end",
        ];
        let response = lines_response(description, &types, "As `/app` shows it.");
        vec![(Some(200), response)]
    }
}

async fn export(EndUser { scope, .. }: EndUser, State(core): State<Core>) -> Result<Lines> {
    let holder = Holder {
        group: scope.user_uuid().0,
        member: None,
    };
    let held = hold_answer(&core, holder, BYTES)?;
    Ok(Lines(Export {
        core,
        scope,
        section: Some(Section::Profile),
        devices: VecDeque::new(),
        lines: 0,
        _held: held,
    }))
}
