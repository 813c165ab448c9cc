//! Files as bodies: received whole, with the memory that they take, or sent while they are read.

use aide::openapi::{Operation, ReferenceOr, RequestBody, Response as ApiResponse};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, TryStreamExt};
use hub_base::budget::{Held, Holder};
use hub_base::error::{Error, Result};
use serde_json::{Value, json};

use super::answer::typed_response;
use super::describe::{headers, may_fail};
use super::{body, client_address};
use crate::Core;

/// Lines of JSON.
pub const NDJSON: &str = "application/x-ndjson";

/// Memory for a body that arrives, of the share of the caller's address.
pub fn hold_arriving(core: &Core) -> Held {
    let holder = Holder::address(client_address::current());
    core.bodies.arriving.hold(holder)
}

/// A file that was received, with the memory that it takes.
pub struct ReceivedFile {
    pub bytes: Bytes,
    _held: Held,
}

impl ReceivedFile {
    /// Reads a body of any type of at most `limit` bytes.
    pub async fn read(core: &Core, request: Request, limit: usize) -> Result<Self> {
        let mut held = hold_arriving(core);
        let bytes = body::read_file(request, limit, &mut held).await?;
        Ok(Self { bytes, _held: held })
    }
}

/// Describes that an operation receives a file.
pub fn describe_received(operation: &mut Operation, description: &str) {
    let schema = json!({"type": "string", "format": "binary"});
    let body = RequestBody {
        description: Some(description.to_owned()),
        content: typed_response("application/octet-stream", "", schema).content,
        required: true,
        ..RequestBody::default()
    };
    operation.request_body = Some(ReferenceOr::Item(body));
    may_fail(operation, &[400, 408, 413, 415, 429, 503]);
}

/// A response that a browser stores as a file of this name, which has no character to be escaped.
pub fn attachment(media_type: &str, name: &str, body: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{name}\""),
        ),
    ];
    (headers, body.into()).into_response()
}

/// The same, sent while it is read. The status is sent first, so that a failure cuts the file off.
pub fn attachment_in_parts(
    media_type: &str,
    name: &str,
    parts: impl Stream<Item = Result<Bytes>> + Send + 'static,
) -> Response {
    let file = name.to_owned();
    let parts = parts.inspect_err(move |error: &Error| {
        tracing::error!(%error, file, "a file was cut off");
    });
    attachment(media_type, name, Body::from_stream(parts))
}

/// A documented attachment.
pub fn attachment_response(media_type: &str, description: &str, schema: Value) -> ApiResponse {
    ApiResponse {
        headers: headers(&["Content-Disposition"]),
        ..typed_response(media_type, description, schema)
    }
}

/// A documented attachment of lines of JSON, each with `type`, one of `types`, and `data`.
pub fn lines_response(description: &str, types: &[&str], data: &str) -> ApiResponse {
    let schema = json!({
        "type": "object",
        "description": "One line.",
        "properties": {
            "type": {"type": "string", "enum": types, "description": "What it is."},
            "data": {"type": "object", "description": data},
        },
        "required": ["type", "data"],
    });
    attachment_response(NDJSON, description, schema)
}
