//! Spans as the service records them, and as the protocol of collectors has them (OTLP 1.5,
//! `opentelemetry/proto/trace/v1/trace.proto`).

use std::borrow::Cow;

use hub_protocol::{Timestamp, TraceContext};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{self as otlp, Status};

/// Whose span it is. The service sends those of hubs as well: their networks rarely reach a
/// collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Service,
    Agent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Server,
    Client,
    Internal,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Text(Cow<'static, str>),
    Number(i64),
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct Span {
    pub program: Program,
    pub context: TraceContext,
    /// The span that caused it, if that is known.
    pub parent: Option<u64>,
    pub kind: Kind,
    pub name: Cow<'static, str>,
    pub began_at: Timestamp,
    pub ended_at: Timestamp,
    /// By their names in OpenTelemetry's semantic conventions, where they have one.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed.
    pub failure: Option<String>,
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl Span {
    pub fn into_otlp(self) -> otlp::Span {
        let kind = match self.kind {
            Kind::Server => SpanKind::Server,
            Kind::Client => SpanKind::Client,
            Kind::Internal => SpanKind::Internal,
        };
        let status = self.failure.map(|message| Status {
            message,
            code: StatusCode::Error.into(),
        });
        otlp::Span {
            trace_id: self.context.trace_id.to_be_bytes().to_vec(),
            span_id: self.context.span_id.to_be_bytes().to_vec(),
            parent_span_id: self
                .parent
                .map(|parent| parent.to_be_bytes().to_vec())
                .unwrap_or_default(),
            // The trace flags of the context.
            flags: u32::from(self.context.is_sampled),
            name: self.name.into_owned(),
            kind: kind.into(),
            start_time_unix_nano: nanos(self.began_at),
            end_time_unix_nano: nanos(self.ended_at.max(self.began_at)),
            attributes: self
                .attributes
                .into_iter()
                .map(|(name, value)| attribute(name, value))
                .collect(),
            status,
            ..otlp::Span::default()
        }
    }
}

pub fn attribute(name: impl Into<String>, value: Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => Any::StringValue(text.into_owned()),
        Value::Number(number) => Any::IntValue(number),
    };
    KeyValue {
        key: name.into(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

pub fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_micros())
        .unwrap_or_default()
        .saturating_mul(1_000)
}
