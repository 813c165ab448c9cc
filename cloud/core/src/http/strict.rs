//! Reads JSON as its schema describes it. Serde's derives also read an array as a structure, its
//! elements as the members in their order, and `{"VIEWER": null}` as the word `VIEWER`. Both would
//! hide a client's mistake, so [`Strict`] refuses them, at any depth.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};

/// A deserializer for which a structure is an object, and an enum is a string.
pub struct Strict<D>(pub D);

/// Passes every kind of value on to the wrapped deserializer, with a visitor that stays strict.
macro_rules! pass_on {
    ($($method:ident($($name:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($name: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($name,)* Passing { visitor, is_structure: false })
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        members: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(
            name,
            members,
            Passing {
                visitor,
                is_structure: true,
            },
        )
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_str(Word(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }

    pass_on! {
        deserialize_any()
        deserialize_bool()
        deserialize_i8()
        deserialize_i16()
        deserialize_i32()
        deserialize_i64()
        deserialize_i128()
        deserialize_u8()
        deserialize_u16()
        deserialize_u32()
        deserialize_u64()
        deserialize_u128()
        deserialize_f32()
        deserialize_f64()
        deserialize_char()
        deserialize_str()
        deserialize_string()
        deserialize_bytes()
        deserialize_byte_buf()
        deserialize_option()
        deserialize_unit()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_seq()
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map()
        deserialize_identifier()
        deserialize_ignored_any()
    }
}

/// A visitor whose nested values are read strictly.
struct Passing<V> {
    visitor: V,
    is_structure: bool,
}

/// Passes plain values on to the wrapped visitor.
macro_rules! visit {
    ($($method:ident($type:ty))*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.visitor.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Passing<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(formatter)
    }

    visit! {
        visit_bool(bool)
        visit_i8(i8)
        visit_i16(i16)
        visit_i32(i32)
        visit_i64(i64)
        visit_i128(i128)
        visit_u8(u8)
        visit_u16(u16)
        visit_u32(u32)
        visit_u64(u64)
        visit_u128(u128)
        visit_f32(f32)
        visit_f64(f64)
        visit_char(char)
        visit_str(&str)
        visit_borrowed_str(&'de str)
        visit_string(String)
        visit_bytes(&[u8])
        visit_borrowed_bytes(&'de [u8])
        visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.visitor.visit_some(Strict(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<V::Value, D::Error> {
        self.visitor.visit_newtype_struct(Strict(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<V::Value, A::Error> {
        if self.is_structure {
            return Err(A::Error::custom("must be an object, not an array"));
        }
        self.visitor.visit_seq(Nested(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(Nested(members))
    }
}

/// The elements of an array, the members of an object, or the type that one of them becomes.
struct Nested<T>(T);

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Nested<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(Nested(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Nested<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(Nested(seed))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(Nested(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Nested<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Strict(deserializer))
    }
}

/// The visitor of an enum without data, which is a string.
struct Word<V>(V);

impl<'de, V: Visitor<'de>> Visitor<'de> for Word<V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<V::Value, E> {
        let word: StrDeserializer<'_, E> = word.into_deserializer();
        self.0.visit_enum(word)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    enum Word {
        Viewer,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        word: Word,
    }

    #[derive(Debug, Deserialize)]
    struct Outer<'a> {
        inner: Option<Inner>,
        list: Vec<Inner>,
        map: BTreeMap<String, Inner>,
        #[serde(borrow)]
        raw: Option<&'a RawValue>,
        pair: Option<(u8, f64)>,
    }

    fn read(json: &str) -> Result<Outer<'_>, serde_json::Error> {
        Outer::deserialize(Strict(&mut serde_json::Deserializer::from_str(json)))
    }

    #[test]
    fn well_formed_values_are_read() {
        let json = r#"{"inner":{"word":"Viewer"},"list":[{"word":"Viewer"}],"map":{"a":{"word":"Viewer"}},"raw":[ 1,{}],"pair":[1,2.5]}"#;
        let outer = read(json).expect("it is read");
        assert_eq!(outer.inner, Some(Inner { word: Word::Viewer }));
        assert_eq!(
            (outer.list.len(), outer.map.len(), outer.pair),
            (1, 1, Some((1, 2.5)))
        );
        assert_eq!(outer.raw.map(RawValue::get), Some("[ 1,{}]"));
        assert_eq!(
            read(r#"{"inner":null,"list":[],"map":{}}"#)
                .expect("it is read")
                .inner,
            None
        );
    }

    #[test]
    fn arrays_are_no_structures_and_objects_no_words() {
        for json in [
            r#"[null,[],{}]"#,
            r#"{"inner":["Viewer"],"list":[],"map":{}}"#,
            r#"{"list":[["Viewer"]],"map":{}}"#,
            r#"{"list":[],"map":{"a":["Viewer"]}}"#,
            r#"{"list":[{"word":{"Viewer":null}}],"map":{}}"#,
            r#"{"list":[{"word":1}],"map":{}}"#,
        ] {
            read(json).expect_err(json);
        }
    }
}
