//! Reads the members of a definition: each is known, of the right type, and named when it is not.

use serde_json::{Map, Value};

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// A JSON pointer relative to the destination.
    pub pointer: String,
    pub message: String,
}

impl Problem {
    pub fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}

pub struct Members<'a> {
    map: &'a Map<String, Value>,
    /// Where the object is.
    pointer: &'a str,
}

impl<'a> Members<'a> {
    pub fn new(value: &'a Value, pointer: &'a str, known: &[&str]) -> Result<Self, Problem> {
        let map = value
            .as_object()
            .ok_or_else(|| Problem::new(pointer, "must be an object"))?;
        let members = Self { map, pointer };
        match map.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(members.problem(
                name,
                format!("is not known; known are {}", known.join(", ")),
            )),
            None => Ok(members),
        }
    }

    pub fn problem(&self, name: &str, message: impl Into<String>) -> Problem {
        // Escapes of RFC 6901; a name of any length is not repeated in full.
        let name: String = name.chars().take(100).collect();
        Problem::new(
            format!(
                "{}/{}",
                self.pointer,
                name.replace('~', "~0").replace('/', "~1")
            ),
            message,
        )
    }

    /// A member that is null counts as absent.
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    pub fn text(&self, name: &str, max: usize) -> Result<Option<&'a str>, Problem> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let text = value
            .as_str()
            .ok_or_else(|| self.problem(name, "must be a text"))?;
        match text.len() <= max && !text.is_empty() {
            true => Ok(Some(text)),
            false => Err(self.problem(name, format!("must have 1 to {max} bytes"))),
        }
    }

    pub fn required(&self, name: &str, max: usize) -> Result<&'a str, Problem> {
        self.text(name, max)?
            .ok_or_else(|| self.problem(name, "is missing"))
    }

    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.problem(name, "must be true or false")),
        }
    }

    pub fn number(&self, name: &str, least: u64, most: u64, default: u64) -> Result<u64, Problem> {
        let Some(value) = self.get(name) else {
            return Ok(default);
        };
        let number = value
            .as_u64()
            .filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            self.problem(
                name,
                format!("must be a whole number from {least} to {most}"),
            )
        })
    }

    /// One of these words.
    pub fn word(
        &self,
        name: &str,
        words: &[&'static str],
        default: &'static str,
    ) -> Result<&'static str, Problem> {
        let Some(value) = self.get(name) else {
            return Ok(default);
        };
        let found = words.iter().find(|word| value.as_str() == Some(word));
        found
            .copied()
            .ok_or_else(|| self.problem(name, format!("must be one of {}", words.join(", "))))
    }
}
