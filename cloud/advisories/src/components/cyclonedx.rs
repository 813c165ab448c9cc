//! The components of CycloneDX, which are nested.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Entry, Found};
use crate::error::Fault;
use crate::json;

const MAX_DEPTH: usize = 32;
const MAX_REFERENCES: usize = 10_000;
/// References of the software that are kept.
const KEPT_REFERENCES: usize = 100;

#[derive(Deserialize)]
pub(super) struct Metadata<'a> {
    #[serde(borrow)]
    component: Option<Subject<'a>>,
}

/// The software that the document is about: no component of itself.
#[derive(Deserialize)]
struct Subject<'a> {
    #[serde(borrow)]
    components: Option<&'a RawValue>,
    #[serde(rename = "bom-ref")]
    id: Option<String>,
    purl: Option<String>,
    /// Their URLs.
    #[serde(rename = "externalReferences", default, deserialize_with = "urls")]
    references: Vec<String>,
}

fn urls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    struct Reference {
        url: Option<String>,
    }

    let mut urls = Vec::new();
    json::each(deserializer, MAX_REFERENCES, |reference: Reference| {
        if urls.len() < KEPT_REFERENCES {
            urls.extend(reference.url);
        }
        Ok(())
    })?;
    Ok(urls)
}

/// What others may call the document, or the software that it is about: the number of the document,
/// its BOM-Link (`urn:cdx:`), and what its subject has.
pub(super) fn names(
    metadata: Option<&Metadata>,
    serial_number: Option<&str>,
    version: Option<&RawValue>,
) -> Vec<String> {
    let subject = metadata.and_then(|metadata| metadata.component.as_ref());
    let id = subject.and_then(|subject| subject.id.as_deref());
    let mut names = Vec::new();
    if let Some(serial_number) = serial_number {
        names.push(serial_number.to_owned());
        if let Some(uuid) = serial_number.strip_prefix("urn:uuid:") {
            let version = version.and_then(|version| version.get().parse::<u64>().ok());
            let link = format!("urn:cdx:{uuid}/{}", version.unwrap_or(1));
            names.extend(id.map(|id| format!("{link}#{id}")));
            names.push(link);
        }
    }
    // Other references within the document name nothing outside of it.
    names.extend(id.filter(|id| id.contains(':')).map(str::to_owned));
    if let Some(subject) = subject {
        names.extend(subject.purl.clone());
        names.extend(subject.references.iter().cloned());
    }
    names
}

pub(super) fn read(
    metadata: Option<Metadata>,
    components: Option<&RawValue>,
) -> Result<Found, Fault> {
    let mut found = Found::default();
    let subject = metadata.and_then(|metadata| metadata.component);
    let parts = subject.and_then(|subject| subject.components);
    for (field, json) in [
        ("metadata.component.components", parts),
        ("components", components),
    ] {
        if let Some(json) = json {
            let list = List {
                found: &mut found,
                depth: 1,
            };
            let read = json::read_with(json.get().as_bytes(), list);
            read.map_err(|fault| fault.below(field))?;
        }
    }
    Ok(found)
}

/// A list of components, whose elements are added while they are read.
struct List<'f> {
    found: &'f mut Found,
    depth: usize,
}

/// One component, with those in it.
struct Nested<'f> {
    found: &'f mut Found,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > MAX_DEPTH {
            let fault = format!("nested more than {MAX_DEPTH} deep");
            return Err(D::Error::custom(fault));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        loop {
            let element = Nested {
                found: &mut *self.found,
                depth: self.depth,
            };
            if list.next_element_seed(element)?.is_none() {
                return Ok(());
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Nested<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Nested<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a component")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut entry = Entry::default();
        while let Some(member) = members.next_key::<String>()? {
            match member.as_str() {
                "name" => entry.name = members.next_value()?,
                "version" => entry.version = members.next_value()?,
                "purl" => entry.purl = members.next_value()?,
                "bom-ref" => entry.id = members.next_value()?,
                "components" => members.next_value_seed(List {
                    found: &mut *self.found,
                    depth: self.depth + 1,
                })?,
                _ => {
                    members.next_value::<IgnoredAny>()?;
                }
            }
        }
        self.found.add(entry).map_err(A::Error::custom)
    }
}
