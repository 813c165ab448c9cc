//! Texts with expressions in them: `Room {{name}} has {{round(temperature, 1)}} degrees`.

use super::expression::{Expression, Names, Work};
use super::{Event, MAX_EVENT_BYTES, Problem};

/// Bytes of a template.
pub const MAX_TEMPLATE: usize = 64 * 1024;
/// Expressions in a template.
const MAX_EXPRESSIONS: usize = 256;

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Value(Expression, String),
}

impl Template {
    /// Any name is allowed: the members of an event depend on the steps before it.
    pub fn compile(text: &str) -> Result<Self, Problem> {
        Self::with_names(text, &Names::open()).map_err(|message| Problem {
            pointer: String::new(),
            message,
        })
    }

    /// Only what is known may be named in it.
    pub(super) fn with_names(text: &str, names: &Names) -> Result<Self, String> {
        if text.len() > MAX_TEMPLATE {
            return Err(format!("must have {} KiB or less", MAX_TEMPLATE / 1024));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let line = text.len() - after.len();
            let line = text.get(..line).unwrap_or_default().matches('\n').count() + 1;
            let end = end_of(after).ok_or_else(|| format!("line {line}: `{{{{` has no `}}}}`"))?;
            let source = after.get(..end).unwrap_or_default().trim();
            let expression = Expression::compile(source, names);
            parts.push(Part::Value(
                expression
                    .map_err(|problem| format!("line {line}: `{{{{{source}}}}}`: {problem}"))?,
                source.to_owned(),
            ));
            if parts.len() > 2 * MAX_EXPRESSIONS {
                return Err(format!("must have {MAX_EXPRESSIONS} expressions or fewer"));
            }
            rest = after.get(end + 2..).unwrap_or_default();
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }

    /// The text for an event. An expression that is null is an error: what is left out on purpose
    /// is written `coalesce(name, '')`.
    pub fn render(&self, event: &Event) -> Result<String, String> {
        self.render_within(event, &mut Work::default())
    }

    /// The text with the same filling in all places.
    pub fn filled(&self, filling: &str) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Value(..) => filling.to_owned(),
        };
        self.parts.iter().map(part).collect()
    }

    pub(super) fn render_within(&self, event: &Event, work: &mut Work) -> Result<String, String> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Value(expression, source) => match expression.text(event, work)? {
                    Some(value) => text.push_str(&value),
                    None => return Err(format!("`{}` is null", super::expression::shown(source))),
                },
            }
            if text.len() > MAX_EVENT_BYTES {
                return Err(format!(
                    "the text has more than {} KiB",
                    MAX_EVENT_BYTES / 1024
                ));
            }
        }
        Ok(text)
    }
}

/// The end of the expression: the first `}}` outside of a text.
fn end_of(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            _ if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(open), byte) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'}') if text.as_bytes().get(at + 1) == Some(&b'}') => return Some(at),
            (None, _) => {}
        }
    }
    None
}
