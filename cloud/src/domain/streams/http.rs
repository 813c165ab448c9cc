//! `/tenant/stream/**`: server-sent events (WHATWG HTML, 9.2).

use std::convert::Infallible;

use aide::OperationOutput;
use aide::openapi::MediaType;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use hub_protocol::{HubUuid, Timestamp};

use super::subscription::{Subject, Subscription};
use crate::app::App;
use crate::authz::{Authorized, permission as perm};
use crate::domain::hubs;
use crate::error::{Error, Result};
use crate::http::extract::Path;

/// A stream of events, open until its time is over.
pub struct EventStream(Subscription);

impl IntoResponse for EventStream {
    fn into_response(self) -> Response {
        let events = futures_util::stream::unfold(self.0, |mut subscription| async {
            let bytes = subscription.next().await?;
            Some((Ok::<_, Infallible>(bytes), subscription))
        });
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-store"),
            // Proxies that gather answers would hold events back.
            (header::HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        (headers, Body::from_stream(events)).into_response()
    }
}

impl OperationOutput for EventStream {
    type Inner = ();
    fn inferred_responses(
        _: &mut aide::generate::GenContext,
        _: &mut aide::openapi::Operation,
    ) -> Vec<(Option<u16>, aide::openapi::Response)> {
        let response = aide::openapi::Response {
            description: "Events as they are stored. An event's id is the time it was received; send it as `Last-Event-ID` to resume after it. \
                          A comment `ping` comes every 20 seconds; the stream ends after 5 minutes."
                .to_owned(),
            content: [("text/event-stream".to_owned(), MediaType::default())].into_iter().collect(),
            ..Default::default()
        };
        vec![(Some(200), response)]
    }
}

/// The id after which to resume, in microseconds.
fn resume_after(headers: &HeaderMap) -> Result<Option<i64>> {
    let Some(value) = headers.get("last-event-id") else { return Ok(None) };
    let time: Option<Timestamp> = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    match time {
        Some(time) => Ok(Some(time.as_micros())),
        None => Err(Error::field("Last-Event-ID", "must be the id of an event: an RFC 3339 time")),
    }
}

pub async fn ble_events(
    auth: Authorized<perm::BleRead>,
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<EventStream> {
    let resume_after = resume_after(&headers)?;
    Ok(EventStream(Subscription::open(app, auth.scope, auth.caller, Subject::BleEvents, resume_after).await?))
}

pub async fn hub_logs(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    headers: HeaderMap,
) -> Result<EventStream> {
    of_hub(app, auth, hub_uuid, &headers, Subject::LogsOf(hub_uuid)).await
}

pub async fn hub_job_events(
    auth: Authorized<perm::HubsRead>,
    State(app): State<App>,
    Path(hub_uuid): Path<HubUuid>,
    headers: HeaderMap,
) -> Result<EventStream> {
    of_hub(app, auth, hub_uuid, &headers, Subject::JobEventsOf(hub_uuid)).await
}

async fn of_hub(
    app: App,
    auth: Authorized<perm::HubsRead>,
    hub_uuid: HubUuid,
    headers: &HeaderMap,
    subject: Subject,
) -> Result<EventStream> {
    let resume_after = resume_after(headers)?;
    hubs::require(&mut app.db.read().await?, &auth.scope, hub_uuid).await?;
    Ok(EventStream(Subscription::open(app, auth.scope, auth.caller, subject, resume_after).await?))
}
