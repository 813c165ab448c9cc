//! Members of diagnostics that may have any shape: what cannot be read is absent, and lists are
//! never longer than an advertisement can be.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::python::{from_hex, from_repr};
use crate::advertising_data::MOST_ENTRIES;

/// A text, a number, or something else.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scalar {
    Text(String),
    Number(f64),
    #[default]
    Other,
}

impl Scalar {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number).filter(|number| number.is_finite()),
            _ => None,
        }
    }
}

/// Bytes; absent where they are written in an unknown form.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Binary(pub Option<Vec<u8>>);

/// The items of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct List<T>(pub Vec<T>);

/// The members of an object, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Members<T>(pub Vec<(String, T)>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// What a value makes of each kind of JSON. Each takes a default unless it is overridden.
pub trait Lenient<'de>: Default {
    fn of_text(_: &str) -> Self {
        Self::default()
    }

    fn of_number(_: f64) -> Self {
        Self::default()
    }

    fn of_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }

    fn of_object<A: MapAccess<'de>>(mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::default())
    }
}

impl Lenient<'_> for Scalar {
    fn of_text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    fn of_number(number: f64) -> Self {
        Self::Number(number)
    }
}

impl<'de> Lenient<'de> for Binary {
    fn of_text(text: &str) -> Self {
        Self(from_hex(text))
    }

    /// `{"__type": "<class 'bytes'>", "repr": "b'...'"}`.
    fn of_object<A: MapAccess<'de>>(mut members: A) -> Result<Self, A::Error> {
        let mut bytes = None;
        while let Some(key) = members.next_key::<String>()? {
            let value: Scalar = members.next_value()?;
            if key == "repr" {
                bytes = value.text().and_then(from_repr);
            }
        }
        Ok(Self(bytes))
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for List<T> {
    fn of_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let mut list = Vec::new();
        while list.len() < MOST_ENTRIES {
            match items.next_element()? {
                Some(item) => list.push(item),
                None => return Ok(Self(list)),
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self(list))
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for Members<T> {
    fn of_object<A: MapAccess<'de>>(mut members: A) -> Result<Self, A::Error> {
        let mut list = Vec::new();
        while list.len() < MOST_ENTRIES {
            match members.next_entry()? {
                Some(member) => list.push(member),
                None => return Ok(Self(list)),
            }
        }
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self(list))
    }
}

/// Reads a lenient value of any JSON.
pub fn lenient<'de, D: Deserializer<'de>, T: Lenient<'de>>(json: D) -> Result<T, D::Error> {
    json.deserialize_any(AnyJson(PhantomData))
}

struct AnyJson<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for AnyJson<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_i64<E>(self, number: i64) -> Result<T, E> {
        Ok(T::of_number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(T::of_number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(T::of_number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(T::of_text(text))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<T, A::Error> {
        T::of_list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::of_object(members)
    }
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        lenient(json)
    }
}

impl<'de> Deserialize<'de> for Binary {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        lenient(json)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        lenient(json)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        lenient(json)
    }
}
