//! Reads a definition member by member. Everything in it must be known; what is wrong is named by a
//! JSON pointer.

use hub_base::error::{Error, Result};
use hub_core::http::check::Check;
use hub_protocol::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The members of an object in a definition.
pub struct Members<'a> {
    /// The JSON pointer of the object; empty for the whole definition.
    at: &'a str,
    members: &'a Map<String, Value>,
    pub check: &'a mut Check,
}

impl<'a> Members<'a> {
    /// Wraps an object that has no members but these.
    pub fn of(
        at: &'a str,
        members: &'a Map<String, Value>,
        known: &[&str],
        check: &'a mut Check,
    ) -> Self {
        for name in members
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
            .take(MAX_UNKNOWN)
        {
            let at = format!("{at}/{}", escaped(name));
            check.that(
                false,
                at,
                format!("is not known here; known are {}", known.join(", ")),
            );
        }
        Self { at, members, check }
    }

    /// A member that is neither absent nor null.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// `name` may be a path within the object, of names that need no escapes.
    pub fn refuse(&mut self, name: &str, message: impl Into<String>) {
        self.check
            .that(false, format!("{}/{name}", self.at), message);
    }

    /// A member of a type that serde reads. `expected` completes "must be".
    pub fn read<T: DeserializeOwned>(&mut self, name: &str, expected: &str) -> Option<T> {
        let read = T::deserialize(self.get(name)?);
        read.map_err(|_| self.refuse(name, format!("must be {expected}")))
            .ok()
    }

    /// A whole number in a range.
    pub fn whole(&mut self, name: &str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let number = self
            .get(name)?
            .as_u64()
            .filter(|number| range.contains(number));
        if number.is_none() {
            self.refuse(
                name,
                format!(
                    "must be a whole number from {} to {}",
                    range.start(),
                    range.end()
                ),
            );
        }
        number
    }

    pub fn flag(&mut self, name: &str) -> Option<bool> {
        self.read(name, "true or false")
    }

    /// A list, each element of which is read on its own. What is repeated is there once.
    pub fn list<T: DeserializeOwned + PartialEq>(&mut self, name: &str, expected: &str) -> Vec<T> {
        let Some(given) = self.get(name) else {
            return Vec::new();
        };
        let Some(given) = given.as_array() else {
            self.refuse(name, "must be a list");
            return Vec::new();
        };
        if given.len() > MAX_LIST {
            self.refuse(name, format!("must have at most {MAX_LIST} elements"));
            return Vec::new();
        }
        let mut found = Vec::with_capacity(given.len());
        for (place, element) in given.iter().enumerate() {
            match T::deserialize(element) {
                Ok(value) if found.contains(&value) => {}
                Ok(value) => found.push(value),
                Err(_) => self.refuse(&format!("{name}/{place}"), format!("must be {expected}")),
            }
        }
        found
    }
}

/// All steps, or a destination, as JSON.
const MAX_PART_BYTES: usize = 64 * 1024;
/// Elements of a list in a definition.
pub const MAX_LIST: usize = 256;
/// Unknown members that an answer names.
const MAX_UNKNOWN: usize = 16;
/// Characters of an unknown name that an answer repeats.
const MAX_NAME: usize = 100;

/// A name as a JSON pointer has it (RFC 6901).
fn escaped(name: &str) -> String {
    name.chars()
        .take(MAX_NAME)
        .collect::<String>()
        .replace('~', "~0")
        .replace('/', "~1")
}

/// The object in a member, if it is given.
pub fn object<'a>(
    at: &str,
    members: &'a Map<String, Value>,
    name: &str,
    check: &mut Check,
) -> Option<&'a Map<String, Value>> {
    let given = members.get(name).filter(|value| !value.is_null())?;
    let object = given.as_object();
    check.that(
        object.is_some(),
        format!("{at}/{name}"),
        "must be an object",
    );
    object
}

/// A time, or a word that stands for one.
pub fn time_of(text: &str) -> Option<Timestamp> {
    serde_json::from_value(Value::String(text.to_owned())).ok()
}

/// 400 that names a place in a definition.
pub fn refused(at: &str, pointer: &str, message: impl Into<String>) -> Error {
    Error::field(format!("{at}{pointer}"), message)
}

/// 400 for a part that is too large.
pub fn require_small(at: &str, part: &str, value: &Value) -> Result<()> {
    let bytes = serde_json::to_string(value).map_err(Error::internal)?.len();
    let message = || format!("must have at most {} KiB", MAX_PART_BYTES / 1024);
    if bytes > MAX_PART_BYTES {
        Err(refused(at, part, message()))
    } else {
        Ok(())
    }
}
