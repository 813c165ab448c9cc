//! Values of expressions, and sets of the types that they may have.

use std::borrow::Cow;

use serde_json::Value as Json;

use super::number;

/// A value. Values of the event are borrowed.
#[derive(Clone, Debug, PartialEq)]
pub enum Val<'a> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'a, str>),
    List(Vec<Val<'a>>),
    /// A list or an object of the event.
    Part(&'a Json),
}

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(u8);

impl Types {
    pub const NULL: Self = Self(1);
    pub const BOOL: Self = Self(2);
    pub const NUMBER: Self = Self(4);
    pub const TEXT: Self = Self(8);
    pub const LIST: Self = Self(16);
    pub const OBJECT: Self = Self(32);
    pub const ANY: Self = Self(63);

    const NAMES: [(Self, &'static str); 6] = [
        (Self::NULL, "null"),
        (Self::BOOL, "true or false"),
        (Self::NUMBER, "a number"),
        (Self::TEXT, "a text"),
        (Self::LIST, "a list"),
        (Self::OBJECT, "an object"),
    ];

    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The names of the types, for a message. Null is named only if there is no other.
    pub fn shown(self) -> String {
        let wanted = if self == Self::NULL {
            self
        } else {
            self.without(Self::NULL)
        };
        let names: Vec<&str> = Self::NAMES
            .iter()
            .filter(|(one, _)| wanted.has(*one))
            .map(|(_, name)| *name)
            .collect();
        names.join(" or ")
    }
}

impl<'a> Val<'a> {
    pub fn of(json: &'a Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(value) => value.as_f64().map_or(Self::Null, Self::Number),
            Json::String(text) => Self::Text(Cow::Borrowed(text)),
            Json::Array(_) | Json::Object(_) => Self::Part(json),
        }
    }

    /// Null if it is no finite number.
    pub fn number(value: f64) -> Self {
        if value.is_finite() {
            Self::Number(value)
        } else {
            Self::Null
        }
    }

    pub fn kind(&self) -> Types {
        match self {
            Self::Null => Types::NULL,
            Self::Bool(_) => Types::BOOL,
            Self::Number(_) => Types::NUMBER,
            Self::Text(_) => Types::TEXT,
            Self::List(_) | Self::Part(Json::Array(_)) => Types::LIST,
            Self::Part(_) => Types::OBJECT,
        }
    }

    pub fn into_json(self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(value),
            Self::Number(value) => number(value),
            Self::Text(text) => Json::String(text.into_owned()),
            Self::List(items) => Json::Array(items.into_iter().map(Val::into_json).collect()),
            Self::Part(part) => part.clone(),
        }
    }

    /// The text in a template: a text is itself, everything else is JSON.
    pub fn shown(self) -> String {
        match self {
            Self::Text(text) => text.into_owned(),
            other => other.into_json().to_string(),
        }
    }
}
