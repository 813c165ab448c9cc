//! Members of a PATCH: absent, null, or a value.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};

use super::check::Check;

/// The change that a member requests. Its structure needs `#[serde(default)]` on the member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// The member is absent or null: the stored value stays.
    #[default]
    Keep,
    /// `clear` names the member: the stored value is removed.
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

    /// Removes the stored value, unless the request has a value: whether it does is returned.
    pub fn clear(&mut self) -> bool {
        let has_value = matches!(self, Self::Set(_));
        if !has_value {
            *self = Self::Clear;
        }
        has_value
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
            None => Self::Keep,
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

/// Removes the members that a request names in `clear`, at most each of `most` once. `remove` says
/// whether the request has a value of the member, which is refused.
pub fn clear<M>(
    check: &mut Check,
    members: Option<Vec<M>>,
    most: usize,
    mut remove: impl FnMut(M) -> bool,
) {
    let members = members.unwrap_or_default();
    let is_short = members.len() <= most;
    check.that(is_short, "clear", "must name each member once");
    for (at, member) in members.into_iter().take(most).enumerate() {
        check.that(
            !remove(member),
            format!("clear[{at}]"),
            "must not name a member that has a value in the same request",
        );
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
    fn absent_and_null_keep_and_a_value_replaces() {
        for (json, change, after) in [
            ("{}", Change::Keep, Some("old")),
            (r#"{"name":null}"#, Change::Keep, Some("old")),
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
        let (mut kept, mut set) = (Change::Keep, Change::Set("new".to_owned()));
        assert!(!kept.clear() && set.clear());
        assert_eq!(
            (kept.of(Some("old".to_owned())), set.of(None)),
            (None, Some("new".to_owned()))
        );
    }
}
