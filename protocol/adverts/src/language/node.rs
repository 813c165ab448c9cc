//! A definition's JSON and where in it one is, so that an error names its place.

use std::fmt;

use serde_json::{Map, Value};

/// A mistake in a definition, and its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct DefinitionError {
    /// JSON pointer (RFC 6901) to the member at fault; empty for the whole document.
    pub pointer: String,
    /// A plain sentence without a full stop.
    pub problem: String,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.pointer.is_empty() {
            "the definition"
        } else {
            &self.pointer
        };
        write!(formatter, "{place}: {}", self.problem)
    }
}

/// Items of a list where a single value may stand, too.
const LIST: usize = 32;

pub type Result<T> = std::result::Result<T, DefinitionError>;

/// A value of the document.
#[derive(Debug, Clone)]
pub struct Node<'a> {
    pub value: &'a Value,
    pointer: String,
}

impl<'a> Node<'a> {
    pub fn root(value: &'a Value) -> Node<'a> {
        Node {
            value,
            pointer: String::new(),
        }
    }

    pub fn error(&self, problem: impl Into<String>) -> DefinitionError {
        DefinitionError {
            pointer: self.pointer.clone(),
            problem: problem.into(),
        }
    }

    /// The error of a document that stands here, with its place in this document.
    pub fn within(&self, error: DefinitionError) -> DefinitionError {
        DefinitionError {
            pointer: format!("{}{}", self.pointer, error.pointer),
            problem: error.problem,
        }
    }

    fn below(&self, key: &str, value: &'a Value) -> Node<'a> {
        let key = key.replace('~', "~0").replace('/', "~1");
        Node {
            value,
            pointer: format!("{}/{key}", self.pointer),
        }
    }

    /// The members of an object, all of which must be among `known`.
    pub fn object(&self, known: &[&str]) -> Result<Object<'a>> {
        let object = self.map()?;
        for (key, value) in object.members {
            if !known.contains(&key.as_str()) {
                let problem = format!("is not known here; known are {}", known.join(", "));
                return Err(self.below(key, value).error(problem));
            }
        }
        Ok(object)
    }

    /// An object with any members.
    pub fn map(&self) -> Result<Object<'a>> {
        match self.value {
            Value::Object(members) => Ok(Object {
                node: self.clone(),
                members,
            }),
            _ => Err(self.error("must be an object")),
        }
    }

    pub fn array(&self) -> Result<Vec<Node<'a>>> {
        let Value::Array(items) = self.value else {
            return Err(self.error("must be an array"));
        };
        let item = |(at, value)| Node {
            value,
            pointer: format!("{}/{at}", self.pointer),
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// The items of an array, or the value itself for an array of one. Such lists are searched from
    /// their beginning, so they are short.
    pub fn one_or_list(&self) -> Result<Vec<Node<'a>>> {
        if !self.value.is_array() {
            return Ok(vec![self.clone()]);
        }
        let items = self.array()?;
        if items.is_empty() || items.len() > LIST {
            return Err(self.error(format!("must have 1 to {LIST} items")));
        }
        Ok(items)
    }

    pub fn text(&self) -> Result<&'a str> {
        self.value
            .as_str()
            .ok_or_else(|| self.error("must be a string"))
    }

    pub fn boolean(&self) -> Result<bool> {
        self.value
            .as_bool()
            .ok_or_else(|| self.error("must be true or false"))
    }

    /// An integer from `low` to `high`.
    pub fn integer(&self, low: i64, high: i64) -> Result<i64> {
        let value = self
            .value
            .as_i64()
            .filter(|value| (low..=high).contains(value));
        value.ok_or_else(|| self.error(format!("must be an integer from {low} to {high}")))
    }

    /// The index of the value in `choices`.
    pub fn choice(&self, choices: &[&str]) -> Result<usize> {
        let text = self.text()?;
        let found = choices.iter().position(|choice| *choice == text);
        found.ok_or_else(|| self.error(format!("must be one of {}", choices.join(", "))))
    }

    /// Bytes in hexadecimal digits, `least` to `most` of them.
    pub fn hex(&self, least: usize, most: usize) -> Result<Vec<u8>> {
        let bytes = hex_bytes(self.text()?)
            .ok_or_else(|| self.error("must be bytes in pairs of hexadecimal digits"))?;
        if (least..=most).contains(&bytes.len()) {
            Ok(bytes)
        } else if least == most {
            Err(self.error(format!("must be {least} bytes")))
        } else {
            Err(self.error(format!("must be {least} to {most} bytes")))
        }
    }
}

/// An object of the document.
#[derive(Debug, Clone)]
pub struct Object<'a> {
    pub node: Node<'a>,
    members: &'a Map<String, Value>,
}

impl<'a> Object<'a> {
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        self.members
            .get(key)
            .map(|value| self.node.below(key, value))
    }

    pub fn required(&self, key: &str) -> Result<Node<'a>> {
        self.get(key)
            .ok_or_else(|| self.node.error(format!("needs {key}")))
    }

    pub fn has(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    pub fn entries(&self) -> Vec<(&'a str, Node<'a>)> {
        self.members
            .iter()
            .map(|(key, value)| (key.as_str(), self.node.below(key, value)))
            .collect()
    }
}

/// Bytes of pairs of hexadecimal digits, which may have spaces or colons between them.
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| *byte != b' ' && *byte != b':')
        .collect();
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    pairs
        .iter()
        .map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?))
        .collect()
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
