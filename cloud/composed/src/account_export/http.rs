//! `GET /app/export`.

use std::collections::VecDeque;

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use hub_base::budget::Holder;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::typed_response;
use hub_core::http::describe::headers;
use hub_core::http::operation::operation_failing;
use hub_identity::authz::EndUser;
use serde_json::json;

use super::{Export, Section};
use crate::Parts;

const MEDIA_TYPE: &str = "application/x-ndjson";
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
            let lines = export
                .next()
                .await
                .inspect_err(|error| tracing::error!(%error, "an export was cut off"))?;
            Ok::<_, Error>(lines.map(|lines| (lines, export)))
        });
        let headers = [
            (header::CONTENT_TYPE, MEDIA_TYPE),
            (
                header::CONTENT_DISPOSITION,
                "attachment; filename=\"export.ndjson\"",
            ),
        ];
        (headers, Body::from_stream(lines)).into_response()
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
        let schema = json!({
            "type": "object",
            "description": "One line.",
            "properties": {
                "type": {
                    "type": "string",
                    "enum": ["profile", "membership", "hub", "device", "sensorData", "consent", "supplierLink", "deviceCommand", "notification", "end"],
                    "description": "What it is.",
                },
                "data": {"type": "object", "description": "As `/app` shows it."},
            },
            "required": ["type", "data"],
        });
        let response = typed_response(MEDIA_TYPE, description, schema);
        vec![(
            Some(200),
            ApiResponse {
                headers: headers(&["Content-Disposition"]),
                ..response
            },
        )]
    }
}

async fn export(EndUser { scope, .. }: EndUser, State(core): State<Core>) -> Result<Lines> {
    let holder = Holder {
        group: scope.user_uuid().0,
        member: None,
    };
    let held = core.bodies.answers.reserve(holder, BYTES);
    let held = held.map_err(|_| {
        Error::unavailable(
            "BUSY",
            "too many large answers are being read; try again shortly",
        )
    })?;
    Ok(Lines(Export {
        core,
        scope,
        section: Some(Section::Profile),
        devices: VecDeque::new(),
        lines: 0,
        _held: held,
    }))
}
