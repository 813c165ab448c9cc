//! The context of a trace, as `traceparent` carries it from the hub to the receiver (W3C Trace
//! Context, section 3.2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of the header.
pub const TRACEPARENT: &str = "traceparent";

/// A span of a trace. Ids are never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: u128,
    pub span_id: u64,
    /// Whether the spans of the trace are recorded.
    pub is_sampled: bool,
}

/// A text that is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotTraceparent;

impl fmt::Display for NotTraceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be `00-`, 32 hex digits, `-`, 16 hex digits, `-` and 2 hex digits")
    }
}

impl std::error::Error for NotTraceparent {}

impl TraceContext {
    /// Another span of the same trace.
    pub const fn with_span(self, span_id: u64) -> Self {
        Self { span_id, ..self }
    }

    /// Whether the trace is among this share of all, from 0 to 1. Everybody who knows the id comes
    /// to the same decision (OpenTelemetry, TraceIdRatioBased).
    pub fn is_within(self, ratio: f64) -> bool {
        // The ids are random in their last 56 bits at least (W3C Trace Context, section 3.2.2.3).
        const BITS: u32 = 56;
        let random = self.trace_id & ((1 << BITS) - 1);
        (random as f64) < ratio * 2f64.powi(BITS as i32)
    }
}

impl FromStr for TraceContext {
    type Err = NotTraceparent;

    /// Versions after 00 may have more at the end.
    fn from_str(text: &str) -> Result<Self, NotTraceparent> {
        let mut parts = text.split('-');
        let mut hex = |digits: usize| {
            let part = parts.next().filter(|part| part.len() == digits)?;
            let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            let value = u128::from_str_radix(part, 16).ok()?;
            part.bytes().all(is_hex).then_some(value)
        };
        let read = (hex(2), hex(32), hex(16), hex(2));
        let (Some(version), Some(trace_id), Some(span_id), Some(flags)) = read else {
            return Err(NotTraceparent);
        };
        let is_longer = parts.next().is_some();
        if version == 0xff || (version == 0 && is_longer) || trace_id == 0 || span_id == 0 {
            return Err(NotTraceparent);
        }
        Ok(Self {
            trace_id,
            span_id: u64::try_from(span_id).map_err(|_| NotTraceparent)?,
            is_sampled: flags & 1 == 1,
        })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(
            f,
            "00-{:032x}-{:016x}-{flags:02x}",
            self.trace_id, self.span_id
        )
    }
}

impl Serialize for TraceContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TraceContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of W3C Trace Context, section 3.2.1.
    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn the_published_example_is_read_and_written() {
        let context: TraceContext = EXAMPLE.parse().expect("a context");
        assert_eq!(context.trace_id, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(context.span_id, 0xb7ad_6b71_6920_3331);
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), EXAMPLE);
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        let later = EXAMPLE.replacen("00", "cc", 1) + "-what-the-future-will-be-like";
        assert_eq!(later.parse(), EXAMPLE.parse::<TraceContext>());
    }

    #[test]
    fn what_is_no_context_is_refused() {
        let zero_trace = EXAMPLE.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32));
        let zero_span = EXAMPLE.replace("b7ad6b7169203331", &"0".repeat(16));
        for text in [
            "",
            "00",
            &EXAMPLE.to_uppercase(),
            &EXAMPLE.replacen("00", "ff", 1),
            &format!("{EXAMPLE}-more"),
            &EXAMPLE[..54],
            &EXAMPLE.replace('b', "+"),
            &zero_trace,
            &zero_span,
        ] {
            assert_eq!(text.parse::<TraceContext>(), Err(NotTraceparent), "{text}");
        }
    }

    #[test]
    fn a_share_of_all_traces_is_chosen() {
        let within = |ratio: f64| {
            let ids = (1..=10_000u128).map(|number| number * ((1 << 56) / 10_001));
            let context = |trace_id| TraceContext {
                trace_id,
                span_id: 1,
                is_sampled: true,
            };
            ids.filter(|id| context(*id).is_within(ratio)).count()
        };
        assert_eq!((within(0.0), within(1.0)), (0, 10_000));
        assert_eq!(within(0.25), 2_500);
    }
}
