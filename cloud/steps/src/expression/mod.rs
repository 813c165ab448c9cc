//! Expressions: a small total language over one event. An expression is compiled once,
//! which finds its errors. Evaluating one never panics, has no loops, and ends within a bounded
//! amount of work.

mod functions;
mod lex;
mod names;
mod node;
mod parse;
mod path;
mod run;
mod value;

use hub_adverts::rounded;
use serde_json::Value as Json;

use super::Event;
pub use names::{EVENT_MEMBERS, Names, unknown};
use node::Node;
pub use path::{Measured, Path};
pub use run::Work;
use run::evaluate;
use value::{Types, Val};

/// Bytes of an expression.
pub const MAX_SOURCE: usize = 4096;
/// Characters of an expression that a message repeats.
const MAX_SHOWN: usize = 80;
/// Whole numbers below are exact.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A compiled expression.
#[derive(Debug)]
pub struct Expression {
    source: String,
    node: Node,
    types: Types,
}

impl Expression {
    /// The error names the column.
    pub fn compile(source: &str, names: &Names) -> Result<Self, String> {
        let (node, types) = parse::whole(source, names)?;
        Ok(Self {
            source: source.to_owned(),
            node,
            types,
        })
    }

    /// As [`Self::compile`], for a source whose value is true or false.
    pub fn condition(source: &str, names: &Names) -> Result<Self, String> {
        let expression = Self::compile(source, names)?;
        match expression.types.has(Types::BOOL) {
            true => Ok(expression),
            false => Err(format!(
                "must be true or false, and is {}",
                expression.types.shown()
            )),
        }
    }

    /// An expression that is no more than a path.
    pub fn path(source: &str, names: &Names) -> Result<Path, String> {
        match parse::whole(source, names)? {
            (Node::Path(path), _) => Ok(path),
            _ => Err("must be a path such as `rssi` or `values.temperature`".to_owned()),
        }
    }

    /// Whether it holds. Null does not.
    pub fn holds(&self, event: &Event, work: &mut Work) -> Result<bool, String> {
        match evaluate(&self.node, event, work) {
            Ok(Val::Bool(holds)) => Ok(holds),
            Ok(Val::Null) => Ok(false),
            Ok(other) => Err(self.failed(&format!(
                "must be true or false, and is {}",
                other.kind().shown()
            ))),
            Err(problem) => Err(self.failed(&problem)),
        }
    }

    /// The value. A path yields the value of the event, unchanged.
    pub fn json(&self, event: &Event, work: &mut Work) -> Result<Json, String> {
        if let Node::Path(path) = &self.node {
            return Ok(path.get(event).cloned().unwrap_or(Json::Null));
        }
        evaluate(&self.node, event, work)
            .map(Val::into_json)
            .map_err(|problem| self.failed(&problem))
    }

    /// Its value as a template shows it; None for null.
    pub fn text(&self, event: &Event, work: &mut Work) -> Result<Option<String>, String> {
        let value = evaluate(&self.node, event, work).map_err(|problem| self.failed(&problem))?;
        Ok(match value {
            Val::Null => None,
            other => Some(other.shown()),
        })
    }

    /// The constant result, if the expression names no part of an event.
    pub fn constant(&self) -> Option<bool> {
        (!self.node.names_something())
            .then(|| self.holds(&Event::new(), &mut Work::default()).ok())
            .flatten()
    }

    fn failed(&self, problem: &str) -> String {
        format!("`{}`: {problem}", shown(&self.source))
    }
}

/// The beginning of a source.
pub fn shown(source: &str) -> String {
    match source.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", source.get(..end).unwrap_or_default()),
        None => source.to_owned(),
    }
}

/// A computed number in JSON; null if it is not one.
pub fn number(value: f64) -> Json {
    if !value.is_finite() {
        return Json::Null;
    }
    match value.fract() == 0.0 && value.abs() < EXACT {
        true => Json::from(value as i64),
        false => Json::from(rounded(value)),
    }
}
