//! Members of a PATCH: absent, null, or a value.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

/// The change that a member requests. Its structure needs `#[serde(default)]` on the member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// The member is absent: the stored value stays.
    #[default]
    Keep,
    /// The member is null: the stored value is removed.
    Clear,
    Set(T),
}

impl<T> Change<T> {
    /// The value to set, if the change has one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// The stored value after the change.
    pub fn of(self, stored: Option<T>) -> Option<T> {
        match self {
            Self::Keep => stored,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Change<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Option::deserialize(deserializer)? {
            Some(value) => Self::Set(value),
            None => Self::Clear,
        })
    }
}

impl<T: JsonSchema> JsonSchema for Change<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Request {
        #[serde(default)]
        name: Change<String>,
    }

    #[test]
    fn absent_null_and_a_value_differ() {
        for (json, change, after) in [
            ("{}", Change::Keep, Some("old")),
            (r#"{"name":null}"#, Change::Clear, None),
            (
                r#"{"name":"new"}"#,
                Change::Set("new".to_owned()),
                Some("new"),
            ),
        ] {
            let request: Request = serde_json::from_str(json).expect("it is read");
            assert_eq!(request.name, change, "{json}");
            assert_eq!(
                request.name.of(Some("old".to_owned())).as_deref(),
                after,
                "{json}"
            );
        }
        serde_json::from_str::<Request>(r#"{"name":7}"#).expect_err("a number is no name");
    }
}
