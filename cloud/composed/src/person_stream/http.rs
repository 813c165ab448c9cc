//! `GET /app/stream` and `GET /mandate/v1/stream`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts as RequestParts;
use axum::response::{IntoResponse, Response};
use hub_base::error::{Error, Result};
use hub_core::http::connection::Connection;
use hub_core::http::describe::{header_parameter, may_fail};
use hub_core::http::extract::Query;
use hub_core::http::operation::operation_failing;
use hub_identity::authz::{EndUser, MandateBearer};
use hub_protocol::HubUuid;
use hub_streams::Streams;
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde_json::json;

use super::position::Position;
use super::view::View;
use super::{COMMAND, DEVICE, DEVICE_REMOVED, PersonStream, VALUES};
use crate::Parts;
use crate::mandates::access::{self, Calls};

/// The longest `Last-Event-ID`.
const MAX_POSITION_BYTES: usize = 2048;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/stream",
            get_with(
                stream,
                operation_failing(
                    &[404, 409, 429],
                    "appStream.get",
                    "app",
                    "Values, devices and commands of the caller, live",
                ),
            ),
        )
        .api_route(
            "/mandate/v1/stream",
            get_with(
                recipient_stream,
                operation_failing(
                    &[409, 429],
                    "mandate.stream",
                    "mandate",
                    "Values and devices of the mandate, live",
                ),
            ),
        )
}

impl IntoResponse for PersonStream {
    fn into_response(self) -> Response {
        let events = futures_util::stream::unfold(self, |mut stream| async {
            let bytes = stream.next().await?;
            Some((bytes, stream))
        });
        hub_streams::http::response(events)
    }
}

impl OperationOutput for PersonStream {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "Server-sent events. The schema is that of one event; `data` is sent as one line of JSON. A comment \
                           `ping` comes every 20 seconds. The stream ends after 5 minutes; resume it with `Last-Event-ID`.";
        let id = json!({"type": "string", "description": "The position behind the event, for `Last-Event-ID`."});
        let data = json!({
            "type": "object",
            "description": "Of `values` an item of the list of `sensor-data` with its `deviceInstanceId`; of `device` an item \
                            of the list of `devices`; of `device_removed` its `deviceInstanceId`; of `command`, to a person \
                            alone, an item of `/app/devices/{deviceInstanceId}/commands`.",
        });
        let names = [VALUES, DEVICE, DEVICE_REMOVED, COMMAND];
        let response = hub_streams::http::described(description, id, &names, data);
        vec![(Some(200), response)]
    }
}

/// The `Last-Event-ID` header.
struct ResumeAfter(Option<Position>);

impl<S: Sync> FromRequestParts<S> for ResumeAfter {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut RequestParts, _: &S) -> Result<Self> {
        let Some(value) = parts.headers.get("last-event-id") else {
            return Ok(Self(None));
        };
        let text = value.to_str().unwrap_or_default().trim();
        if text.is_empty() {
            return Ok(Self(None));
        }
        match text.parse() {
            Ok(position) if text.len() <= MAX_POSITION_BYTES => Ok(Self(Some(position))),
            _ => Err(Error::field(
                "Last-Event-ID",
                "must be the id of an event of this stream",
            )),
        }
    }
}

impl OperationInput for ResumeAfter {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let description = "The id of the last event that the client has: values begin after it. Without it, they begin with \
                           what is received from now on.";
        let schema = json_schema!({"type": "string", "maxLength": MAX_POSITION_BYTES});
        header_parameter(operation, "Last-Event-ID", description, schema);
        may_fail(operation, &[400]);
    }
}

/// Filters of the stream.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PersonStreamQuery {
    /// Only devices of this hub.
    hub_uuid: Option<HubUuid>,
}

async fn stream(
    EndUser { scope, user }: EndUser,
    State(streams): State<Streams>,
    connection: Connection,
    Query(PersonStreamQuery { hub_uuid }): Query<PersonStreamQuery>,
    ResumeAfter(position): ResumeAfter,
) -> Result<PersonStream> {
    let view = View::Person {
        scope,
        user,
        hub_uuid,
    };
    PersonStream::open(streams, view, connection, position).await
}

async fn recipient_stream(
    bearer: MandateBearer,
    State(streams): State<Streams>,
    State(calls): State<Calls>,
    connection: Connection,
    ResumeAfter(position): ResumeAfter,
) -> Result<PersonStream> {
    let recipient = access::recipient(&streams.core, &calls, &bearer).await?;
    PersonStream::open(streams, View::Recipient(recipient), connection, position).await
}
