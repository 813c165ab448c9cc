//! Spans of events that are traced: of the hub, from the radio on, and of storing them. The context
//! of a trace stays in the stored event, where deliveries find it.

use std::borrow::Cow;

use hub_core::Core;
use hub_identity::authn::hub::Hub;
use hub_protocol::Timestamp;
use hub_protocol::trace_context::{TRACEPARENT, TraceContext};
use hub_traces::{Kind, Program, Span};
use serde_json::value::RawValue;

use super::check::Checked;

/// Of an upload, so many events at most are traced.
const MAX_TRACED: usize = 64;

/// The traced events of one upload.
pub struct Spans {
    is_on: bool,
    /// What the upload itself is part of.
    parent: Option<TraceContext>,
    began_at: Timestamp,
    events: Vec<Traced>,
}

struct Traced {
    context: TraceContext,
    observed_at: Timestamp,
    /// Whether the hub began the trace with this event, and not with the upload.
    is_of_event: bool,
}

/// The context that an event names. Anything else is none.
pub fn context_of(member: &RawValue) -> Option<TraceContext> {
    serde_json::from_str::<String>(member.get())
        .ok()?
        .parse()
        .ok()
}

impl Spans {
    /// Begins with an upload; `header` is its `traceparent`.
    pub fn begin(core: &Core, header: Option<&str>) -> Self {
        let is_on = core.traces.is_on();
        let parent = header.filter(|_| is_on).and_then(|text| text.parse().ok());
        Self {
            is_on,
            parent: parent.filter(|parent: &TraceContext| parent.is_sampled),
            began_at: core.clock.now(),
            events: Vec::new(),
        }
    }

    /// Notes an event. Returns its text, which names the trace of the upload where it named none.
    pub fn note<'a>(&mut self, text: &'a str, checked: &Checked) -> Cow<'a, str> {
        if !self.is_on || self.events.len() >= MAX_TRACED {
            return text.into();
        }
        let named = checked.traceparent.as_deref();
        let context = match named {
            Some(member) => context_of(member).filter(|context| context.is_sampled),
            None => self.parent,
        };
        let Some(context) = context else {
            return text.into();
        };
        self.events.push(Traced {
            context,
            observed_at: checked.observed_at,
            is_of_event: named.is_some(),
        });
        match (named, text.strip_prefix('{')) {
            (None, Some(rest)) => format!("{{\"{TRACEPARENT}\":\"{context}\",{rest}").into(),
            _ => text.into(),
        }
    }

    /// Records the spans, once the events are stored.
    pub fn record(self, core: &Core, hub: &Hub) {
        let now = core.clock.now();
        for traced in self.events {
            let Some(stored) = core.traces.begin(Some(traced.context)) else {
                continue;
            };
            let attributes = || {
                vec![
                    ("hub.uuid", hub.hub_uuid.to_string().into()),
                    ("tenant.uuid", hub.tenant_uuid.to_string().into()),
                ]
            };
            if traced.is_of_event {
                core.traces.record(Span {
                    program: Program::Agent,
                    context: traced.context,
                    parent: None,
                    kind: Kind::Internal,
                    name: "hear".into(),
                    began_at: traced.observed_at,
                    ended_at: self.began_at,
                    attributes: attributes(),
                    failure: None,
                });
            }
            core.traces.record(Span {
                program: Program::Service,
                context: stored,
                parent: Some(traced.context.span_id),
                kind: Kind::Internal,
                name: "store".into(),
                began_at: self.began_at,
                ended_at: now,
                attributes: attributes(),
                failure: None,
            });
        }
    }
}
