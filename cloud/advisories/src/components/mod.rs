//! What software consists of, by its bill of materials: CycloneDX 1.5 to 1.7 and SPDX 2.2 and 2.3,
//! as JSON.

mod cyclonedx;
mod spdx;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::DocumentError;
use crate::json;
use crate::purl;
use crate::text;
use crate::versions::Ecosystem;

const MAX_DOCUMENT_BYTES: usize = 32 * 1024 * 1024;
const MAX_COMPONENTS: usize = 100_000;
const MAX_NAME_CHARS: usize = 500;
const MAX_ID_CHARS: usize = 2_000;

/// A part of the software.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// None if its versions have no order here.
    pub ecosystem: Option<Ecosystem>,
    /// Such as `Debian:12`.
    pub distribution: Option<String>,
    /// As advisories of its ecosystem name it.
    pub name: String,
    pub version: String,
    /// Name and version of the source package of Debian, where they differ from those of this one.
    pub source: Option<(String, Option<String>)>,
    pub purl: Option<String>,
    /// What the document refers to it by.
    pub id: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// With its `specVersion`.
    CycloneDx(String),
    Spdx,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub form: Form,
    pub components: Vec<Component>,
    /// Entries without a name or a version, which are left out.
    pub cut: usize,
    /// What others may call the document, or the software that it is about: IRIs.
    pub names: Vec<String>,
}

/// The members that tell what a document is, and those with its parts.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(rename = "bomFormat")]
    bom_format: Option<String>,
    #[serde(rename = "specVersion")]
    spec_version: Option<String>,
    #[serde(rename = "spdxVersion")]
    spdx_version: Option<String>,
    #[serde(rename = "@context", borrow)]
    context: Option<&'a RawValue>,
    #[serde(rename = "serialNumber")]
    serial_number: Option<String>,
    #[serde(borrow)]
    version: Option<&'a RawValue>,
    #[serde(rename = "documentNamespace")]
    namespace: Option<String>,
    #[serde(borrow)]
    metadata: Option<cyclonedx::Metadata<'a>>,
    #[serde(borrow)]
    components: Option<&'a RawValue>,
    #[serde(borrow)]
    packages: Option<&'a RawValue>,
}

/// Reads a bill of materials.
pub fn read(json: &[u8]) -> Result<Document, DocumentError> {
    if json.len() > MAX_DOCUMENT_BYTES {
        return Err(DocumentError::of("", "the document is longer than 32 MiB"));
    }
    if let Some(other) = other_form(json) {
        let fault = format!("is {other}: only JSON of CycloneDX or SPDX can be read");
        return Err(DocumentError::of("", format_args!("the document {fault}")));
    }
    let whole: Whole = json::read(json)?;
    match (&whole.bom_format, &whole.spdx_version) {
        (Some(format), _) if format == "CycloneDX" => {
            let version = whole.spec_version.unwrap_or_default();
            if !["1.5", "1.6", "1.7"].contains(&version.as_str()) {
                let fault = format!("is {version:?}, not 1.5, 1.6 or 1.7");
                return Err(DocumentError::of("specVersion", fault));
            }
            let serial_number = whole.serial_number.as_deref();
            let names = cyclonedx::names(whole.metadata.as_ref(), serial_number, whole.version);
            let found = cyclonedx::read(whole.metadata, whole.components)?;
            Ok(found.into_document(Form::CycloneDx(version), names))
        }
        (Some(format), _) => {
            let fault = format!("is {format:?}, not \"CycloneDX\"");
            Err(DocumentError::of("bomFormat", fault))
        }
        (None, Some(version)) if ["SPDX-2.2", "SPDX-2.3"].contains(&version.as_str()) => {
            let names = spdx::names(whole.namespace.as_deref());
            Ok(spdx::read(whole.packages)?.into_document(Form::Spdx, names))
        }
        (None, Some(version)) => {
            let fault = format!("is {version:?}, not \"SPDX-2.2\" or \"SPDX-2.3\"");
            Err(DocumentError::of("spdxVersion", fault))
        }
        (None, None) => Err(match whole.context {
            Some(context) => {
                let fault = format!("is {}: neither CycloneDX nor SPDX 2", context.get());
                DocumentError::of("@context", fault)
            }
            None => DocumentError::of("", "neither `bomFormat` nor `spdxVersion` is there"),
        }),
    }
}

/// What a text is that is no JSON, where that is easily seen.
fn other_form(bytes: &[u8]) -> Option<&'static str> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bytes = bytes.trim_ascii_start();
    for (beginning, name) in [
        (&b"<"[..], "XML"),
        (
            b"SPDXVersion",
            "SPDX's text of tags and values (SPDXVersion)",
        ),
        (b"PK\x03\x04", "an archive"),
        (b"\x1f\x8b", "compressed"),
        (b"\x0a", "a message of protocol buffers"),
    ] {
        if bytes.starts_with(beginning) {
            return Some(name);
        }
    }
    None
}

/// What was read of a document so far.
#[derive(Default)]
struct Found {
    components: Vec<Component>,
    cut: usize,
}

/// An entry of a document, as it is written there.
#[derive(Default)]
struct Entry {
    name: Option<String>,
    version: Option<String>,
    purl: Option<String>,
    id: Option<String>,
}

impl Found {
    fn into_document(self, form: Form, mut names: Vec<String>) -> Document {
        names.retain(|name| !name.is_empty() && text::fault(name, MAX_ID_CHARS).is_none());
        Document {
            form,
            components: self.components,
            cut: self.cut,
            names,
        }
    }

    fn add(&mut self, entry: Entry) -> Result<(), String> {
        if self.components.len() + self.cut == MAX_COMPONENTS {
            return Err(format!("more than {MAX_COMPONENTS} components"));
        }
        match entry.into_component()? {
            Some(component) => self.components.push(component),
            None => self.cut += 1,
        }
        Ok(())
    }
}

impl Entry {
    /// The package URL counts before what else the entry says. None: a name or a version is
    /// missing.
    fn into_component(self) -> Result<Option<Component>, String> {
        let ids = [("purl", &self.purl), ("id", &self.id)];
        let ids = ids.map(|(field, text)| (field, text.as_deref(), MAX_ID_CHARS));
        check(&ids)?;
        let package = self.purl.as_deref().and_then(purl::read);
        let component = match package {
            Some(package) => Component {
                ecosystem: Some(package.ecosystem),
                distribution: package.distribution,
                name: package.name,
                version: package.version.or(self.version).unwrap_or_default(),
                source: package.source,
                purl: self.purl,
                id: self.id,
            },
            None => Component {
                ecosystem: None,
                distribution: None,
                name: self.name.unwrap_or_default(),
                version: self.version.unwrap_or_default(),
                source: None,
                purl: self.purl,
                id: self.id,
            },
        };
        let source = component.source.as_ref();
        check(&[
            ("name", Some(&component.name), MAX_NAME_CHARS),
            ("version", Some(&component.version), MAX_NAME_CHARS),
            (
                "purl",
                source.map(|(name, _)| name.as_str()),
                MAX_NAME_CHARS,
            ),
            (
                "purl",
                source.and_then(|(_, version)| version.as_deref()),
                MAX_NAME_CHARS,
            ),
        ])?;
        let is_whole = !component.name.is_empty() && !component.version.is_empty();
        Ok(is_whole.then_some(component))
    }
}

fn check(texts: &[(&str, Option<&str>, usize)]) -> Result<(), String> {
    for (field, text, max_chars) in texts {
        if let Some(fault) = text.and_then(|text| text::fault(text, *max_chars)) {
            return Err(format!("{field}: {fault}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
