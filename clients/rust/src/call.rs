//! A call of the service: its operation, and what is put into it.

use hub_protocol::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An operation of the API, with all that this crate knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub method: &'static str,
    /// As in the OpenAPI document: `/tenant/hubs/{hubUuid}`.
    pub path: &'static str,
    pub query: &'static [&'static str],
    pub sends: Shape,
    pub answers: Shape,
    /// Records of a page that are asked for.
    pub page_size: usize,
}

/// The most that the service gives.
const PAGE_SIZE: usize = 100;

/// What a body has.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Nothing,
    /// These members, among others.
    Members(&'static [&'static str]),
    /// What a record of this crate reads: the function reads a value and writes it again.
    Record(fn(Value) -> serde_json::Result<Value>),
}

/// Reads a value as a record and writes it again: what is left are the members that are read.
pub fn record<T: DeserializeOwned + Serialize>(value: Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value)?)
}

impl Operation {
    pub const fn new(method: &'static str, path: &'static str) -> Self {
        Self {
            method,
            path,
            query: &[],
            sends: Shape::Nothing,
            answers: Shape::Nothing,
            page_size: PAGE_SIZE,
        }
    }

    pub const fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// With fewer records on a page: the service refuses a page that is too large in bytes.
    pub const fn large_records(self) -> Self {
        Self {
            page_size: 50,
            ..self
        }
    }

    pub const fn sends(self, members: &'static [&'static str]) -> Self {
        Self {
            sends: Shape::Members(members),
            ..self
        }
    }

    pub const fn answers(self, answers: Shape) -> Self {
        Self { answers, ..self }
    }

    pub fn call(&'static self) -> Call {
        Call {
            operation: self,
            path: self.path.to_owned(),
            query: Vec::new(),
            body: None,
        }
    }
}

/// A call that was not made yet.
#[derive(Clone, Debug)]
pub struct Call {
    pub operation: &'static Operation,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
}

impl Call {
    /// Puts a value into the path, such as `hubUuid`.
    pub fn path(mut self, name: &str, value: impl ToString) -> Self {
        let mut text = String::new();
        for byte in value.to_string().bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
                    text.push(char::from(byte))
                }
                _ => text.push_str(&format!("%{byte:02X}")),
            }
        }
        self.path = self.path.replace(&format!("{{{name}}}"), &text);
        self
    }

    /// Adds a parameter, unless there is no value.
    pub fn query(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.query.push((name.to_owned(), value.to_string()));
        }
        self
    }

    /// Adds the bounds of a time.
    pub fn between(self, from: Option<Timestamp>, to: Option<Timestamp>) -> Self {
        self.query("from", from).query("to", to)
    }

    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_into_a_path_stays_one_segment() {
        static HUB: Operation = Operation::new("GET", "/tenant/hubs/{hubUuid}");
        assert_eq!(
            HUB.call().path("hubUuid", "../a b?c#d/..").path,
            "/tenant/hubs/%2E%2E%2Fa%20b%3Fc%23d%2F%2E%2E"
        );
    }
}
