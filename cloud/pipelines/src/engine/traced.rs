//! One try of a message, with a span of it in the trace of each event that is traced.

use hub_core::Core;
use hub_destinations::{self as destinations, Attempt, Connections, Message};
use hub_protocol::TraceContext;
use hub_protocol::trace_context::TRACEPARENT;
use hub_traces::{Kind, Program, Span};

use super::super::definition::Compiled;

/// Of a batch, so many events at most are traced.
const MAX_TRACED: usize = 16;

/// Tries once.
pub async fn send(
    core: &Core,
    connections: &Connections,
    compiled: &Compiled,
    message: &Message,
) -> Attempt {
    let began_at = core.clock.now();
    let spans = begin(core, message);
    let traced = spans.first().map(|(context, _)| Message {
        trace: Some(*context),
        ..message.clone()
    });
    let attempt = destinations::send(
        &compiled.destination,
        compiled.auth.as_ref(),
        compiled.signing.as_ref(),
        traced.as_ref().unwrap_or(message),
        connections,
        &core.outgoing,
        compiled.delivery.timeout,
    )
    .await
    .retried_on(&compiled.delivery.retry_on);
    for (context, parent) in spans {
        let mut attributes = vec![
            ("tenant.uuid", compiled.tenant_uuid.to_string().into()),
            ("pipeline.uuid", compiled.pipeline_uuid.to_string().into()),
            ("messaging.message.id", message.id.clone().into()),
            ("delivery.status", attempt.status().into()),
        ];
        if let Some(status) = attempt.response_status {
            attributes.push(("http.response.status_code", i64::from(status).into()));
        }
        core.traces.record(Span {
            program: Program::Service,
            context,
            parent: Some(parent.span_id),
            kind: Kind::Client,
            name: "deliver".into(),
            began_at,
            ended_at: core.clock.now(),
            attributes,
            failure: attempt
                .result
                .as_ref()
                .err()
                .map(|failure| failure.clone().into_reason()),
        });
    }
    attempt
}

/// The span of this try in each trace, and the span that it belongs to.
fn begin(core: &Core, message: &Message) -> Vec<(TraceContext, TraceContext)> {
    if !core.traces.is_on() {
        return Vec::new();
    }
    let parents = message
        .bodies
        .iter()
        .filter_map(|payload| payload.event.get(TRACEPARENT)?.as_str()?.parse().ok());
    parents
        .filter_map(|parent| Some((core.traces.begin(Some(parent))?, parent)))
        .take(MAX_TRACED)
        .collect()
}
