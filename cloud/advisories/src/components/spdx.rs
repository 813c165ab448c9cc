//! The packages of SPDX.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{Entry, Found, MAX_COMPONENTS};
use crate::error::Fault;
use crate::json;

const MAX_REFERENCES: usize = 10_000;
/// What SPDX writes where nothing is known.
const UNKNOWN: [&str; 2] = ["NOASSERTION", "NONE"];

/// What others may call the document.
pub(super) fn names(namespace: Option<&str>) -> Vec<String> {
    namespace.map_or_else(Vec::new, |namespace| {
        let document = format!("{namespace}#SPDXRef-DOCUMENT");
        vec![namespace.to_owned(), document]
    })
}

pub(super) fn read(packages: Option<&RawValue>) -> Result<Found, Fault> {
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Packages {
        #[serde(deserialize_with = "found")]
        found: Found,
    }

    let Some(json) = packages else {
        return Ok(Found::default());
    };
    let packages: Packages =
        json::read(json.get().as_bytes()).map_err(|fault| fault.below("packages"))?;
    Ok(packages.found)
}

fn found<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Found, D::Error> {
    #[derive(Deserialize)]
    struct Package {
        name: Option<String>,
        #[serde(rename = "versionInfo")]
        version: Option<String>,
        #[serde(rename = "SPDXID")]
        id: Option<String>,
        #[serde(rename = "externalRefs", default, deserialize_with = "package_url")]
        purl: Option<String>,
    }

    let mut found = Found::default();
    json::each(deserializer, MAX_COMPONENTS, |package: Package| {
        let known = |text: &String| !UNKNOWN.contains(&text.as_str());
        found.add(Entry {
            name: package.name.filter(known),
            version: package.version.filter(known),
            purl: package.purl,
            id: package.id,
        })
    })?;
    Ok(found)
}

/// The first package URL among the references.
fn package_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Reference {
        #[serde(rename = "referenceType")]
        kind: Option<String>,
        #[serde(rename = "referenceLocator")]
        locator: Option<String>,
    }

    let mut found = None;
    json::each(deserializer, MAX_REFERENCES, |reference: Reference| {
        if found.is_none() && reference.kind.as_deref() == Some("purl") {
            found = reference.locator;
        }
        Ok(())
    })?;
    Ok(found)
}
