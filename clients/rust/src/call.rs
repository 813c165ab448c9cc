//! A call of the service: its operation, parameters and body.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An operation of the API, with the parameters and members that are used.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub method: &'static str,
    /// As in the OpenAPI document: `/tenant/hubs/{hubUuid}`.
    pub path: &'static str,
    pub query: &'static [&'static str],
    pub request: Shape,
    pub response: Shape,
    /// The number of records requested for each page.
    pub page_size: usize,
}

/// The maximum of the service.
const PAGE_SIZE: usize = 100;

/// The members of a body that are used.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Nothing,
    /// These members, and possibly others.
    Members(&'static [&'static str]),
    /// The members of a record of this crate: the function deserializes and serializes a value.
    Record(fn(Value) -> serde_json::Result<Value>),
}

/// Deserializes a value as a record and serializes it: only the members of the record remain.
pub fn record<T: DeserializeOwned + Serialize>(value: Value) -> serde_json::Result<Value> {
    serde_json::to_value(serde_json::from_value::<T>(value)?)
}

impl Operation {
    pub const fn new(method: &'static str, path: &'static str) -> Self {
        Self {
            method,
            path,
            query: &[],
            request: Shape::Nothing,
            response: Shape::Nothing,
            page_size: PAGE_SIZE,
        }
    }

    pub const fn query(self, query: &'static [&'static str]) -> Self {
        Self { query, ..self }
    }

    /// Requests fewer records for each page: the service limits the bytes of a page.
    pub const fn large_records(self) -> Self {
        Self {
            page_size: 50,
            ..self
        }
    }

    pub const fn request(self, members: &'static [&'static str]) -> Self {
        Self {
            request: Shape::Members(members),
            ..self
        }
    }

    pub const fn response(self, response: Shape) -> Self {
        Self { response, ..self }
    }

    pub fn call(&'static self) -> Call {
        Call {
            operation: self,
            path: self.path.to_owned(),
            query: Vec::new(),
            body: None,
            bytes: None,
        }
    }
}

/// A call that was not sent yet.
#[derive(Clone, Debug)]
pub struct Call {
    pub operation: &'static Operation,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Option<Value>,
    pub(crate) bytes: Option<Vec<u8>>,
}

impl Call {
    /// Sets a path parameter, such as `hubUuid`.
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

    /// Adds a query parameter if it has a value.
    pub fn query(mut self, name: &str, value: Option<impl ToString>) -> Self {
        if let Some(value) = value {
            self.query.push((name.to_owned(), value.to_string()));
        }
        self
    }

    pub fn body(mut self, body: Value) -> Self {
        self.body = Some(body);
        self
    }

    /// A body that is no JSON of this client.
    pub fn bytes(mut self, bytes: Vec<u8>) -> Self {
        self.bytes = Some(bytes);
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
