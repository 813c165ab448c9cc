//! Reading JSON from outside: lists are read element by element, so that what a list may have is
//! judged before it is held in memory.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor,
};
use serde_path_to_error::Track;

use crate::error::Fault;

/// Reads a whole text.
pub(crate) fn read<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Result<T, Fault> {
    read_with(json, PhantomData)
}

pub(crate) fn read_with<'de, S: DeserializeSeed<'de>>(
    json: &'de [u8],
    seed: S,
) -> Result<S::Value, Fault> {
    let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let mut track = Track::new();
    let tracked = serde_path_to_error::Deserializer::new(&mut deserializer, &mut track);
    let value = match seed.deserialize(tracked) {
        Ok(value) => value,
        Err(error) => return Err(Fault::of_json(&track.path().to_string(), error)),
    };
    deserializer
        .end()
        .map_err(|error| Fault::of("", format_args!("after the end: {error}")))?;
    Ok(value)
}

/// Passes on the elements of a list one by one. An absent list is empty.
pub(crate) fn each<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
    max_elements: usize,
    take: impl FnMut(T) -> Result<(), String>,
) -> Result<(), D::Error> {
    deserializer.deserialize_any(Elements {
        max_elements,
        take,
        element: PhantomData,
    })
}

struct Elements<T, F> {
    max_elements: usize,
    take: F,
    element: PhantomData<T>,
}

impl<'de, T, F> Visitor<'de> for Elements<T, F>
where
    T: Deserialize<'de>,
    F: FnMut(T) -> Result<(), String>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        for index in 0..self.max_elements {
            let Some(element) = list.next_element()? else {
                return Ok(());
            };
            let taken = (self.take)(element);
            taken.map_err(|fault| A::Error::custom(format!("element {index}: {fault}")))?;
        }
        match list.next_element::<IgnoredAny>()? {
            Some(_) => Err(A::Error::custom(format!(
                "more than {} elements",
                self.max_elements
            ))),
            None => Ok(()),
        }
    }
}
