//! The components of a release as a list that is stored like those of hubs: canonical bytes,
//! compressed. The first line of a list of a hub names its distribution, which is never empty; that
//! of a list of components has none.

use hub_advisories::components::Component;
use hub_base::error::{Error, Result};
use hub_protocol::packages::PackageList;
use sha2::{Digest, Sha256};

use super::list::{self, StoredList};

/// The first line.
const HEAD: &str = "\tcomponents";
/// The most bytes of a list that is unpacked.
pub const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Lists are written once and read seldom.
const LEVEL: i32 = 9;
/// Fields of a line.
const FIELDS: usize = 6;

/// A component of a release.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedComponent {
    /// Such as `Debian:12` or `crates.io`; None if its versions have no order here.
    pub ecosystem: Option<String>,
    pub name: String,
    pub version: String,
    /// Name and version of the source package of Debian, where they differ.
    pub source: Option<(String, Option<String>)>,
    pub purl: Option<String>,
}

impl From<Component> for ListedComponent {
    fn from(component: Component) -> Self {
        let ecosystem = component.ecosystem.map(|one| one.name().to_owned());
        Self {
            ecosystem: component.distribution.or(ecosystem),
            name: component.name,
            version: component.version,
            source: component.source,
            purl: component.purl,
        }
    }
}

impl ListedComponent {
    /// Its fields have neither tabs nor ends of lines: documents with such names are refused.
    fn line(&self) -> String {
        let source = self.source.as_ref();
        let version = source.and_then(|(_, version)| version.as_deref());
        let fields: [&str; FIELDS] = [
            self.ecosystem.as_deref().unwrap_or_default(),
            &self.name,
            &self.version,
            source.map(|(name, _)| name.as_str()).unwrap_or_default(),
            version.unwrap_or_default(),
            self.purl.as_deref().unwrap_or_default(),
        ];
        let fields = fields.map(|field| field.replace(['\t', '\n', '\r'], " "));
        fields.join("\t")
    }

    fn read(line: &str) -> Self {
        let mut fields = line.split('\t');
        let mut next = || fields.next().unwrap_or_default().to_owned();
        let optional = |text: String| Some(text).filter(|text| !text.is_empty());
        let ecosystem = optional(next());
        let (name, version) = (next(), next());
        let (source, source_version) = (optional(next()), optional(next()));
        Self {
            ecosystem,
            name,
            version,
            source: source.map(|name| (name, source_version)),
            purl: optional(next()),
        }
    }
}

/// The list of these components, in any order, as it is stored. None: it is too long.
pub fn pack(components: &[ListedComponent]) -> Result<Option<StoredList>> {
    let mut lines: Vec<String> = components.iter().map(ListedComponent::line).collect();
    lines.sort_unstable();
    lines.dedup();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    if bytes + HEAD.len() + 1 > MAX_BYTES {
        return Ok(None);
    }
    let package_count = i64::try_from(lines.len()).unwrap_or(i64::MAX);
    let mut canonical = String::with_capacity(bytes + HEAD.len() + 1);
    for line in std::iter::once(HEAD).chain(lines.iter().map(String::as_str)) {
        canonical.push_str(line);
        canonical.push('\n');
    }
    let canonical = canonical.as_bytes();
    Ok(Some(StoredList {
        sha256: Sha256::digest(canonical).to_vec(),
        distribution: String::new(),
        distribution_version: String::new(),
        package_count,
        packed: zstd::bulk::compress(canonical, LEVEL).map_err(Error::internal)?,
    }))
}

/// What a list is of.
#[derive(Debug)]
pub enum Contents {
    /// What a hub runs.
    Packages(PackageList),
    /// What a release consists of.
    Components(Vec<ListedComponent>),
}

/// The list of these bytes, of a hub or of a release.
pub fn unpack(packed: &[u8]) -> Result<Contents> {
    let canonical = zstd::bulk::decompress(packed, MAX_BYTES).map_err(Error::internal)?;
    let text = String::from_utf8(canonical).map_err(Error::internal)?;
    Ok(match read(&text) {
        Some(components) => Contents::Components(components),
        None => Contents::Packages(list::read(&text)?),
    })
}

/// The components of these bytes; None if they are those of another list.
fn read(canonical: &str) -> Option<Vec<ListedComponent>> {
    let mut lines = canonical.lines();
    (lines.next() == Some(HEAD)).then(|| lines.map(ListedComponent::read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_unpacked_as_it_was() {
        let component =
            |ecosystem: Option<&str>, name: &str, source: Option<&str>| ListedComponent {
                ecosystem: ecosystem.map(str::to_owned),
                name: name.to_owned(),
                version: "1.2.3".to_owned(),
                source: source.map(|name| (name.to_owned(), Some("1.2".to_owned()))),
                purl: source.map(|_| "pkg:deb/debian/libssl3@1.2.3".to_owned()),
            };
        let all = [
            component(Some("crates.io"), "serde", None),
            component(Some("Debian:12"), "libssl3", Some("openssl")),
            component(None, "\u{1f980} of \"quotes\" and <tags>", None),
            component(Some("crates.io"), "serde", None),
        ];
        let stored = pack(&all).expect("packed").expect("a list");
        assert_eq!(
            (stored.package_count, stored.distribution.as_str()),
            (3, "")
        );
        let Ok(Contents::Components(mut read)) = unpack(&stored.packed) else {
            panic!("no components");
        };
        read.sort();
        let mut expected = all[..3].to_vec();
        expected.sort();
        assert_eq!(read, expected);
    }
}
