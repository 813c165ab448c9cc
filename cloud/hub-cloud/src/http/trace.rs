//! The span of a request, as a child of what its `traceparent` names.

use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderValue, Method, StatusCode};
use hub_core::Core;
use hub_protocol::Timestamp;
use hub_protocol::trace_context::{TRACEPARENT, TraceContext};
use hub_traces::{Kind, Program, Span};

/// A request that is recorded.
pub struct Traced {
    core: Core,
    context: TraceContext,
    parent: Option<TraceContext>,
    method: Method,
    route: Option<MatchedPath>,
    began_at: Timestamp,
}

/// None without a collector, and for most requests with one.
pub fn begin(core: &Core, request: &Request) -> Option<Traced> {
    if !core.traces.is_on() {
        return None;
    }
    let header = request.headers().get(TRACEPARENT);
    let parent = header.and_then(|header| header.to_str().ok()?.parse().ok());
    Some(Traced {
        context: core.traces.begin(parent)?,
        core: core.clone(),
        parent,
        method: request.method().clone(),
        route: request.extensions().get().cloned(),
        began_at: core.clock.now(),
    })
}

impl Traced {
    pub fn end(self, id: &HeaderValue, status: StatusCode) {
        let route = self
            .route
            .as_ref()
            .map_or("", MatchedPath::as_str)
            .to_owned();
        let failure = status
            .is_server_error()
            .then(|| status.canonical_reason().unwrap_or_default().to_owned());
        self.core.traces.record(Span {
            program: Program::Service,
            context: self.context,
            parent: self.parent.map(|parent| parent.span_id),
            kind: Kind::Server,
            name: format!("{} {route}", self.method).into(),
            began_at: self.began_at,
            ended_at: self.core.clock.now(),
            attributes: vec![
                ("http.request.method", self.method.to_string().into()),
                ("http.route", route.into()),
                (
                    "http.response.status_code",
                    i64::from(status.as_u16()).into(),
                ),
                ("http.request.header.x-request-id", text(id).into()),
            ],
            failure,
        });
    }
}

fn text(id: &HeaderValue) -> String {
    id.to_str().unwrap_or_default().to_owned()
}
