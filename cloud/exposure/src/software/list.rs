//! A list of packages as it is stored: its canonical bytes, compressed.

use hub_base::error::{Error, Result};
use hub_protocol::packages::{MAX_PACKAGES, Package, PackageList};
use sha2::{Digest, Sha256};

/// The most bytes of a list that is unpacked. What is stored was checked before; this is a list of
/// the most packages with the longest fields.
const MAX_BYTES: usize = MAX_PACKAGES * 1024;
/// Lists are written once and read seldom.
const LEVEL: i32 = 9;

/// A list as it is stored.
#[derive(Debug)]
pub struct StoredList {
    pub sha256: Vec<u8>,
    pub distribution: String,
    pub distribution_version: String,
    pub package_count: i64,
    pub packed: Vec<u8>,
}

impl StoredList {
    pub fn pack(list: &PackageList) -> Result<Self> {
        let canonical = list.canonical();
        let lines = canonical.iter().filter(|byte| **byte == b'\n').count();
        Ok(Self {
            sha256: Sha256::digest(&canonical).to_vec(),
            distribution: list.distribution.clone(),
            distribution_version: list.distribution_version.clone(),
            package_count: i64::try_from(lines.saturating_sub(1)).unwrap_or(i64::MAX),
            packed: zstd::bulk::compress(&canonical, LEVEL).map_err(Error::internal)?,
        })
    }
}

/// The list of a hub of these bytes.
pub fn unpack(packed: &[u8]) -> Result<PackageList> {
    let canonical = zstd::bulk::decompress(packed, MAX_BYTES).map_err(Error::internal)?;
    read(&String::from_utf8(canonical).map_err(Error::internal)?)
}

/// The list of a hub, by its canonical bytes.
pub(super) fn read(text: &str) -> Result<PackageList> {
    let mut lines = text.lines();
    let (distribution, version) = lines
        .next()
        .and_then(|line| line.split_once('\t'))
        .ok_or_else(|| Error::internal("a list of packages has no first line"))?;
    Ok(PackageList {
        distribution: distribution.to_owned(),
        distribution_version: version.to_owned(),
        packages: lines.map(package).collect(),
    })
}

fn package(line: &str) -> Package {
    let mut fields = line.split('\t');
    let mut next = || fields.next().unwrap_or_default().to_owned();
    let (name, version) = (next(), next());
    let mut optional = || Some(next()).filter(|field| !field.is_empty());
    Package {
        name,
        version,
        architecture: optional(),
        source: optional(),
        source_version: optional(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_unpacked_as_it_was() {
        let package = |name: &str, source: Option<&str>| Package {
            name: name.to_owned(),
            version: "1:2.3-4".to_owned(),
            architecture: Some("arm64".to_owned()),
            source: source.map(str::to_owned),
            source_version: source.map(|_| "2.3-4".to_owned()),
        };
        let list = PackageList {
            distribution: "debian".to_owned(),
            distribution_version: String::new(),
            packages: vec![package("libssl3", Some("openssl")), package("zsh", None)],
        };
        let stored = StoredList::pack(&list).expect("a list");
        assert_eq!((stored.package_count, stored.sha256.len()), (2, 32));
        assert_eq!(unpack(&stored.packed).expect("the list"), list);
        assert!(unpack(b"no zstd").is_err());
    }
}
