//! Long arrays in uploads. Elements are kept as text, to be parsed one by one, and their number is
//! limited.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The elements of an array. Parsing stops at the first element beyond `MAX`, since small bodies
/// can unpack to many millions.
#[derive(Debug)]
pub struct Items<'a, const MAX: usize>(pub Vec<&'a RawValue>);

impl<'de: 'a, 'a, const MAX: usize> Deserialize<'de> for Items<'a, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemsVisitor<const MAX: usize>;
        impl<'de, const MAX: usize> Visitor<'de> for ItemsVisitor<MAX> {
            type Value = Items<'de, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items<'de, MAX>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    if items.len() == MAX {
                        return Err(A::Error::custom(format_args!(
                            "must have at most {MAX} items; send them in parts"
                        )));
                    }
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(ItemsVisitor::<MAX>)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_stops_at_the_first_item_beyond_the_limit() {
        let three: Items<'_, 3> =
            serde_json::from_str("[1, {\"a\": [2]}, \"3\"]").expect("three items");
        assert_eq!(
            three.0.iter().map(|item| item.get()).collect::<Vec<_>>(),
            ["1", "{\"a\": [2]}", "\"3\""]
        );
        // The rest after the limit is not parsed.
        let error = serde_json::from_str::<Items<'_, 3>>("[1,2,3,4,!").expect_err("too many");
        assert!(error.to_string().contains("at most 3"), "{error}");
    }
}
