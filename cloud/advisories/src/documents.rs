//! The documents that come with a release: what it consists of, and what its maker states about
//! vulnerabilities.

use crate::components::{self, Form};
use crate::error::DocumentError;
use crate::vex;

/// The largest document.
pub const MAX_BYTES: usize = 16 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sbom,
    Vex,
}

/// A document that was read.
#[derive(Clone, Debug)]
pub enum Content {
    Sbom(components::Document),
    Vex(vex::Document),
}

impl Content {
    /// As manifests of releases name it.
    pub fn format(&self) -> &'static str {
        match self {
            Self::Sbom(document) => match document.form {
                Form::CycloneDx(_) => "CYCLONEDX",
                Form::Spdx => "SPDX",
            },
            Self::Vex(_) => "OPENVEX",
        }
    }
}

/// Reads a document.
pub fn read(kind: Kind, json: &[u8]) -> Result<Content, DocumentError> {
    if json.len() > MAX_BYTES {
        return Err(DocumentError::of("", "the document is longer than 16 MiB"));
    }
    match kind {
        Kind::Sbom => components::read(json).map(Content::Sbom),
        Kind::Vex => vex::read(json).map(Content::Vex),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_of_its_kind_and_has_a_format() {
        let cyclonedx = br#"{"bomFormat": "CycloneDX", "specVersion": "1.6"}"#;
        let spdx = br#"{"spdxVersion": "SPDX-2.3", "packages": []}"#;
        let vex = br#"{"@context": "https://openvex.dev/ns/v0.2.0", "author": "A",
            "timestamp": "2026-01-01T00:00:00Z",
            "statements": [{"vulnerability": {"name": "CVE-2026-1"}, "status": "fixed"}]}"#;
        for (kind, json, format) in [
            (Kind::Sbom, &cyclonedx[..], Some("CYCLONEDX")),
            (Kind::Sbom, &spdx[..], Some("SPDX")),
            (Kind::Vex, &vex[..], Some("OPENVEX")),
            (Kind::Vex, &cyclonedx[..], None),
            (Kind::Sbom, &vex[..], None),
            (Kind::Sbom, &b""[..], None),
        ] {
            let read = read(kind, json).ok();
            assert_eq!(read.map(|read| read.format()), format);
        }
        assert!(read(Kind::Vex, &vec![b' '; MAX_BYTES + 1]).is_err());
    }
}
