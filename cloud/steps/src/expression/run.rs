//! Evaluates a compiled expression on an event, within a bounded amount of work.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value as Json;

use super::super::{Event, size};
use super::node::{Arithmetic, Compare, Node};
use super::path::Path;
use super::value::{Types, Val};

/// The limit of an evaluation: about the bytes of texts that it reads and makes.
const WORK: usize = 128 * 1024;
/// The limit of all evaluations for one event.
const WORK_IN_ALL: usize = 512 * 1024;
/// The cost of a node of an expression.
const NODE_WORK: usize = 8;
/// Bytes of a text that an expression makes.
const MAX_TEXT: usize = 64 * 1024;
/// The cost of a measurement or an item of a list.
const ITEM_WORK: usize = 8;

/// The remaining work for an event.
#[derive(Debug)]
pub struct Work {
    left: usize,
}

impl Default for Work {
    fn default() -> Self {
        Self { left: WORK_IN_ALL }
    }
}

pub struct Run<'a> {
    event: &'a Event,
    left: usize,
}

/// Evaluates an expression.
pub fn evaluate<'a>(node: &'a Node, event: &'a Event, work: &mut Work) -> Result<Val<'a>, String> {
    let given = WORK.min(work.left);
    let mut run = Run { event, left: given };
    let value = run.value(node);
    work.left -= given - run.left;
    value
}

impl<'a> Run<'a> {
    pub fn work(&mut self, amount: usize) -> Result<(), String> {
        match self.left.checked_sub(amount) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err("the texts and lists are too long for expressions".to_owned())
            }
        }
    }

    /// A text that was made.
    pub fn made(&mut self, text: String) -> Result<Val<'a>, String> {
        self.work(text.len())?;
        if text.len() > MAX_TEXT {
            return Err(format!("makes a text of more than {MAX_TEXT} bytes"));
        }
        Ok(Val::Text(Cow::Owned(text)))
    }

    fn value(&mut self, node: &'a Node) -> Result<Val<'a>, String> {
        self.work(NODE_WORK)?;
        Ok(match node {
            Node::Null => Val::Null,
            Node::Bool(value) => Val::Bool(*value),
            Node::Number(value) => Val::Number(*value),
            Node::Text(text) => Val::Text(Cow::Borrowed(text)),
            Node::List(nodes) => {
                let items = self.values(nodes)?;
                for item in &items {
                    match item {
                        Val::Part(part) => self.work(size::of(part))?,
                        Val::Text(text) => self.work(text.len())?,
                        _ => {}
                    }
                }
                Val::List(items)
            }
            Node::Path(path) => self.get(path)?.map_or(Val::Null, Val::of),
            Node::Has(path) => Val::Bool(self.get(path)?.is_some_and(|found| !found.is_null())),
            Node::Not(node) => Val::Bool(!self.holds(node, "not")?),
            Node::Negative(node) => match self.value(node)? {
                Val::Number(value) => Val::Number(-value),
                Val::Null => Val::Null,
                other => return Err(format!("- needs a number, not {}", other.kind().shown())),
            },
            Node::And(nodes) => {
                for node in nodes {
                    if !self.holds(node, "and")? {
                        return Ok(Val::Bool(false));
                    }
                }
                Val::Bool(true)
            }
            Node::Or(nodes) => {
                for node in nodes {
                    if self.holds(node, "or")? {
                        return Ok(Val::Bool(true));
                    }
                }
                Val::Bool(false)
            }
            Node::Arithmetic(arithmetic, pair) => {
                let (left, right) = (self.value(&pair.0)?, self.value(&pair.1)?);
                self.computed(*arithmetic, left, right)?
            }
            Node::Compare(compare, pair) => {
                let (left, right) = (self.value(&pair.0)?, self.value(&pair.1)?);
                Val::Bool(self.compared(*compare, &left, &right)?)
            }
            Node::IsNull(node, is_opposite) => {
                Val::Bool((self.value(node)? == Val::Null) != *is_opposite)
            }
            Node::In(pair) => {
                let (wanted, all) = (self.value(&pair.0)?, self.value(&pair.1)?);
                Val::Bool(self.is_in(&wanted, &all)?)
            }
            Node::If(three) => match self.holds(&three.0, "if")? {
                true => self.value(&three.1)?,
                false => self.value(&three.2)?,
            },
            Node::Coalesce(nodes) => {
                for node in nodes {
                    let value = self.value(node)?;
                    if value != Val::Null {
                        return Ok(value);
                    }
                }
                Val::Null
            }
            Node::Call(function, nodes) => {
                let arguments = self.values(nodes)?;
                function.call(self, &arguments)?
            }
        })
    }

    fn values(&mut self, nodes: &'a [Node]) -> Result<Vec<Val<'a>>, String> {
        nodes.iter().map(|node| self.value(node)).collect()
    }

    /// The value at a path. Measurements are searched in order.
    fn get(&mut self, path: &'a Path) -> Result<Option<&'a Json>, String> {
        if path.measured().is_some() {
            let all = self
                .event
                .get("measurements")
                .and_then(Json::as_array)
                .map_or(0, Vec::len);
            self.work(all.saturating_mul(ITEM_WORK))?;
        }
        Ok(path.get(self.event))
    }

    /// Null does not hold.
    fn holds(&mut self, node: &'a Node, who: &str) -> Result<bool, String> {
        match self.value(node)? {
            Val::Bool(holds) => Ok(holds),
            Val::Null => Ok(false),
            other => Err(format!(
                "{who} needs true or false, not {}",
                other.kind().shown()
            )),
        }
    }

    fn computed(
        &mut self,
        arithmetic: Arithmetic,
        left: Val<'a>,
        right: Val<'a>,
    ) -> Result<Val<'a>, String> {
        let (left, right) = match (left, right) {
            (Val::Number(left), Val::Number(right)) => (left, right),
            (Val::Null, _) | (_, Val::Null) => return Ok(Val::Null),
            (Val::Text(left), Val::Text(right)) if arithmetic == Arithmetic::Plus => {
                return self.made(left.into_owned() + &right);
            }
            (left, right) => {
                let (sign, left, right) =
                    (arithmetic.sign(), left.kind().shown(), right.kind().shown());
                return Err(format!("{sign} cannot be done with {left} and {right}"));
            }
        };
        // Beyond what a number can be, and by zero, there is none.
        Ok(Val::number(match arithmetic {
            Arithmetic::Plus => left + right,
            Arithmetic::Minus => left - right,
            Arithmetic::Times => left * right,
            Arithmetic::Over => left / right,
            Arithmetic::Rest => left % right,
        }))
    }

    /// A comparison with null is false.
    fn compared(
        &mut self,
        compare: Compare,
        left: &Val<'_>,
        right: &Val<'_>,
    ) -> Result<bool, String> {
        let order = match (left, right) {
            (Val::Null, _) | (_, Val::Null) => return Ok(false),
            // Every number is finite.
            (Val::Number(left), Val::Number(right)) => {
                left.partial_cmp(right).unwrap_or(Ordering::Equal)
            }
            (Val::Text(left), Val::Text(right)) => {
                self.work(left.len().min(right.len()))?;
                left.cmp(right)
            }
            (Val::Bool(left), Val::Bool(right)) if !compare.is_order() => left.cmp(right),
            (
                Val::Bool(_) | Val::Number(_) | Val::Text(_),
                Val::Bool(_) | Val::Number(_) | Val::Text(_),
            ) if !compare.is_order() => {
                return Ok(compare == Compare::NotEqual);
            }
            (left, right) => {
                let (left, right) = (left.kind().shown(), right.kind().shown());
                return Err(format!(
                    "{} cannot compare {left} with {right}",
                    compare.sign()
                ));
            }
        };
        Ok(match compare {
            Compare::Equal => order.is_eq(),
            Compare::NotEqual => order.is_ne(),
            Compare::Less => order.is_lt(),
            Compare::LessOrEqual => order.is_le(),
            Compare::Greater => order.is_gt(),
            Compare::GreaterOrEqual => order.is_ge(),
        })
    }

    /// Whether a value is an item of a list, a part of a text, or the name of a member.
    pub fn is_in(&mut self, wanted: &Val<'_>, all: &Val<'_>) -> Result<bool, String> {
        let kinds = Types::NUMBER
            .or(Types::TEXT)
            .or(Types::BOOL)
            .or(Types::NULL);
        if !kinds.has(wanted.kind()) {
            return Err(format!(
                "in needs a number, a text, true or false, not {}",
                wanted.kind().shown()
            ));
        }
        match (wanted, all) {
            (Val::Null, _) | (_, Val::Null) => Ok(false),
            (Val::Text(wanted), Val::Text(text)) => {
                self.work(text.len().saturating_add(wanted.len()))?;
                Ok(text.contains(wanted.as_ref()))
            }
            (Val::Text(wanted), Val::Part(Json::Object(members))) => {
                Ok(members.contains_key(wanted.as_ref()))
            }
            (_, Val::List(items)) => self.is_any(wanted, items.iter().cloned()),
            (_, Val::Part(Json::Array(items))) => self.is_any(wanted, items.iter().map(Val::of)),
            (_, other) => {
                let (wanted, other) = (wanted.kind().shown(), other.kind().shown());
                Err(format!("in cannot look for {wanted} in {other}"))
            }
        }
    }

    fn is_any<'b>(
        &mut self,
        wanted: &Val<'_>,
        items: impl Iterator<Item = Val<'b>>,
    ) -> Result<bool, String> {
        for item in items {
            self.work(ITEM_WORK)?;
            if wanted.kind() == item.kind() && self.compared(Compare::Equal, wanted, &item)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
