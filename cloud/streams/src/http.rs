//! `/tenant/stream/**`: server-sent events (WHATWG HTML, 9.2).

use std::convert::Infallible;
use std::marker::PhantomData;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::body::Body;
use axum::extract::{FromRequestParts, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use hub_adverts::advertisement::address_of;
use hub_base::error::{Error, Result};
use hub_core::http::answer::typed_response;
use hub_core::http::check::Check;
use hub_core::http::connection::Connection;
use hub_core::http::describe::{header_parameter, headers, may_fail};
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation_failing;
use hub_devices::ble::{BleEventResponse, View};
use hub_fleet::hubs;
use hub_fleet::hubs::http::HubPath;
use hub_fleet::jobs::HubJobEventResponse;
use hub_fleet::telemetry::HubLogResponse;
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{HubUuid, Timestamp};
use schemars::{JsonSchema, json_schema};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Streams;
use super::filter::Wanted;
use super::kinds::Streamed;
use super::subscription::{Subject, Subscription};

pub fn routes() -> ApiRouter<Streams> {
    ApiRouter::new()
        .api_route(
            "/tenant/stream/ble/events",
            get_with(
                ble_events,
                operation_failing(
                    &[429],
                    "streams.bleEvents",
                    "tenant-streams",
                    "BLE events, live",
                ),
            ),
        )
        .api_route(
            "/tenant/stream/hubs/{hubUuid}/logs",
            get_with(
                hub_logs,
                operation_failing(
                    &[429],
                    "streams.hubLogs",
                    "tenant-streams",
                    "Log entries of a hub, live",
                ),
            ),
        )
        .api_route(
            "/tenant/stream/hubs/{hubUuid}/jobs",
            get_with(
                hub_job_events,
                operation_failing(
                    &[429],
                    "streams.hubJobEvents",
                    "tenant-streams",
                    "Job events of a hub, live",
                ),
            ),
        )
}

const MEDIA_TYPE: &str = "text/event-stream";

/// A stream of events that hold `T`, open until its time is over.
pub struct EventStream<T>(Subscription, PhantomData<fn() -> T>);

impl<T> EventStream<T> {
    const fn new(subscription: Subscription) -> Self {
        Self(subscription, PhantomData)
    }
}

impl<T> IntoResponse for EventStream<T> {
    fn into_response(self) -> Response {
        let events = futures_util::stream::unfold(self.0, |mut subscription| async {
            let bytes = subscription.next().await?;
            Some((bytes, subscription))
        });
        response(events)
    }
}

/// The response whose body are these events.
pub fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [
        (header::CONTENT_TYPE, MEDIA_TYPE),
        (header::CACHE_CONTROL, "no-store"),
        // Proxies that buffer responses would delay events.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let events = events.map(Ok::<_, Infallible>);
    (headers, Body::from_stream(events)).into_response()
}

/// The description of that response: schemas of an event's id and data, and the names of events.
pub fn described(description: &str, id: Value, names: &[&str], data: Value) -> ApiResponse {
    let schema = json!({
        "type": "object",
        "description": "One event.",
        "properties": {
            "id": id,
            "event": {"type": "string", "enum": names, "description": "The name of the event."},
            "data": data,
        },
        "required": ["id", "event", "data"],
    });
    ApiResponse {
        headers: headers(&["X-Accel-Buffering"]),
        ..typed_response(MEDIA_TYPE, description, schema)
    }
}

impl<T: Streamed> OperationOutput for EventStream<T> {
    type Inner = T;
    fn inferred_responses(
        ctx: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "Server-sent events, as records are stored. The schema is that of one event; `data` is sent as one \
                           line of JSON. A comment `ping` comes every 20 seconds; of a filtered \
                           stream with the id up to which nothing is left to send. The stream ends after 5 minutes; resume it \
                           with `Last-Event-ID`.";
        let id = json!({"type": "string", "format": "date-time", "description": "When the service received the record."});
        let data = json!(ctx.schema.subschema_for::<T>());
        vec![(Some(200), described(description, id, &[T::EVENT], data))]
    }
}

/// The `Last-Event-ID` header: the id of a record after which to resume, in microseconds.
struct ResumeAfter(Option<i64>);

impl<S: Sync> FromRequestParts<S> for ResumeAfter {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        let Some(value) = parts.headers.get("last-event-id") else {
            return Ok(Self(None));
        };
        let time: Option<Timestamp> = value
            .to_str()
            .ok()
            .and_then(|text| text.trim().parse().ok());
        match time {
            Some(time) => Ok(Self(Some(time.as_micros()))),
            None => Err(Error::field(
                "Last-Event-ID",
                "must be the id of an event: an RFC 3339 time",
            )),
        }
    }
}

impl OperationInput for ResumeAfter {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        let description = "The id of the last event that the client has: the stream begins after it. Without it, the stream \
                           begins with what is received from now on.";
        header_parameter(
            operation,
            "Last-Event-ID",
            description,
            json_schema!({"type": "string", "examples": ["2026-01-31T09:30:00.123456Z"]}),
        );
        may_fail(operation, &[400]);
    }
}

/// Filters of the streamed events.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct BleEventsQuery {
    /// `receptions`, the default, or `observations`: of a frame that several hubs received, only
    /// the first reception.
    view: Option<View>,
    /// Only events of this hub.
    hub_uuid: Option<HubUuid>,
    /// Only events of this device.
    device_instance_id: Option<i64>,
    /// Only events of this address.
    #[schemars(regex(pattern = hub_protocol::patterns::ADDRESS))]
    address: Option<String>,
    /// The least signal strength in dBm; of a window, the strongest signal counts.
    #[schemars(range(min = -128, max = 126))]
    min_rssi: Option<i32>,
    /// Of each device, and of each address that is no device's, one event in this time: the first.
    /// 100 milliseconds to 1 hour, as `500ms`, `2s` or `1m`.
    #[schemars(regex(pattern = "^[0-9]{1,7}(ms|s|m|h)$"))]
    every: Option<String>,
}

impl BleEventsQuery {
    fn wanted(&self) -> Result<Wanted> {
        let address = self.address.as_deref().map(address_of);
        let min_rssi_dbm = self.min_rssi.map(|dbm| {
            i16::try_from(dbm)
                .ok()
                .filter(|dbm| (-128..=126).contains(dbm))
        });
        let every = self.every.as_deref().map(micros_of);
        let mut check = Check::new();
        check.that(
            address != Some(None),
            "address",
            "must be an address such as AA:BB:CC:DD:EE:FF",
        );
        check.that(
            min_rssi_dbm != Some(None),
            "minRssi",
            "must be -128 to 126 dBm",
        );
        check.that(
            every != Some(None),
            "every",
            "must be 100ms to 1h, such as 500ms, 2s or 1m",
        );
        check.done()?;
        let Self {
            hub_uuid,
            device_instance_id,
            ..
        } = *self;
        Ok(Wanted {
            hub_uuid,
            device_instance_id,
            address: address.flatten(),
            min_rssi_dbm: min_rssi_dbm.flatten(),
            every: every.flatten(),
        })
    }
}

/// Microseconds of a duration such as `500ms`.
fn micros_of(text: &str) -> Option<i64> {
    let units = [
        ("ms", 1_000),
        ("s", 1_000_000),
        ("m", 60_000_000),
        ("h", 3_600_000_000),
    ];
    let (digits, micros) = units
        .iter()
        .find_map(|(unit, micros)| Some((text.strip_suffix(unit)?, micros)))?;
    let is_number =
        (1..=7).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: i64 = digits.parse().ok().filter(|_| is_number)?;
    Some(count * micros).filter(|every| (100_000..=3_600_000_000).contains(every))
}

async fn ble_events(
    auth: Authorized<perm::BleRead>,
    State(streams): State<Streams>,
    connection: Connection,
    Query(query): Query<BleEventsQuery>,
    ResumeAfter(after): ResumeAfter,
) -> Result<EventStream<BleEventResponse>> {
    let Authorized { scope, caller, .. } = auth;
    let subject = Subject::ble_events(query.view.unwrap_or_default(), query.wanted()?);
    let subscription =
        Subscription::open(streams, scope, caller, connection, subject, after).await?;
    Ok(EventStream::new(subscription))
}

async fn hub_logs(
    auth: Authorized<perm::HubsRead>,
    State(streams): State<Streams>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    connection: Connection,
    ResumeAfter(after): ResumeAfter,
) -> Result<EventStream<HubLogResponse>> {
    of_hub(
        streams,
        auth,
        connection,
        hub_uuid,
        after,
        Subject::logs_of(hub_uuid),
    )
    .await
    .map(EventStream::new)
}

async fn hub_job_events(
    auth: Authorized<perm::HubsRead>,
    State(streams): State<Streams>,
    Path(HubPath { hub_uuid }): Path<HubPath>,
    connection: Connection,
    ResumeAfter(after): ResumeAfter,
) -> Result<EventStream<HubJobEventResponse>> {
    of_hub(
        streams,
        auth,
        connection,
        hub_uuid,
        after,
        Subject::job_events_of(hub_uuid),
    )
    .await
    .map(EventStream::new)
}

async fn of_hub(
    streams: Streams,
    auth: Authorized<perm::HubsRead>,
    connection: Connection,
    hub_uuid: HubUuid,
    after: Option<i64>,
    subject: Subject,
) -> Result<Subscription> {
    hubs::require_past_or_present(&mut streams.core.db.read().await?, &auth.scope, hub_uuid)
        .await?;
    Subscription::open(streams, auth.scope, auth.caller, connection, subject, after).await
}

#[cfg(test)]
mod tests {
    use super::micros_of;

    #[test]
    fn durations_have_a_unit_and_bounds() {
        for (text, micros) in [
            ("500ms", 500_000),
            ("2s", 2_000_000),
            ("1m", 60_000_000),
            ("1h", 3_600_000_000),
        ] {
            assert_eq!(micros_of(text), Some(micros), "{text}");
        }
        for text in [
            "",
            "s",
            "2",
            "-2s",
            "+2s",
            "2 s",
            "1.5s",
            "99ms",
            "3601s",
            "2h",
            "1d",
            "99999999999999999999s",
        ] {
            assert_eq!(micros_of(text), None, "{text}");
        }
    }
}
