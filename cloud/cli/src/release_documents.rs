//! The documents that come with a release of an app: read, checked against its manifest, uploaded.

use std::path::{Path, PathBuf};

use hub_advisories::documents;
pub use hub_advisories::documents::Kind as DocumentKind;
use hub_client::{Client, operations};
use hub_protocol::release::{ReleaseManifest, SignedDocument};
use hub_protocol::{AppUuid, ReleaseUuid};
use sha2::{Digest, Sha256};

use crate::apps::args::PublishOptions;
use crate::failure::Failure;

/// What a person gave.
#[derive(Default)]
pub struct Documents(Vec<Document>);

struct Document {
    kind: DocumentKind,
    path: PathBuf,
    bytes: Vec<u8>,
    signed: SignedDocument,
}

fn failed(path: &Path, what: impl std::fmt::Display) -> Failure {
    Failure::failed(format!("{}: {what}", path.display()))
}

/// As paths of the API and options of the command line have it.
fn name_of(kind: DocumentKind) -> &'static str {
    match kind {
        DocumentKind::Sbom => "sbom",
        DocumentKind::Vex => "vex",
    }
}

impl Document {
    fn read(kind: DocumentKind, path: &Path) -> Result<Self, Failure> {
        let bytes = std::fs::read(path);
        let bytes = bytes.map_err(|error| failed(path, format!("cannot read: {error}")))?;
        let content = documents::read(kind, &bytes).map_err(|error| failed(path, error))?;
        let signed = SignedDocument {
            format: content.format().to_owned(),
            size_bytes: bytes.len() as u64,
            sha256: hex::encode(Sha256::digest(&bytes)),
        };
        Ok(Self {
            kind,
            path: path.to_owned(),
            bytes,
            signed,
        })
    }
}

impl Documents {
    /// Fails if one cannot be read by the service either.
    pub fn read(options: &PublishOptions) -> Result<Self, Failure> {
        let given = [
            (DocumentKind::Sbom, &options.sbom),
            (DocumentKind::Vex, &options.vex),
        ];
        let mut documents = Vec::new();
        for (kind, path) in given {
            if let Some(path) = path {
                documents.push(Document::read(kind, path)?);
            }
        }
        Ok(Self(documents))
    }

    fn of(&self, kind: DocumentKind) -> Option<&Document> {
        self.0.iter().find(|document| document.kind == kind)
    }

    /// What a manifest says of a document.
    pub fn signed(&self, kind: DocumentKind) -> Option<SignedDocument> {
        self.of(kind).map(|document| document.signed.clone())
    }

    /// Fails unless these are the documents that were signed.
    pub fn check(&self, manifest: &ReleaseManifest) -> Result<(), Failure> {
        for (kind, signed) in [
            (DocumentKind::Sbom, &manifest.sbom),
            (DocumentKind::Vex, &manifest.vex),
        ] {
            match (self.of(kind), signed) {
                (Some(document), Some(signed)) if document.signed == *signed => {}
                (Some(document), _) => {
                    let what = "this is not the document that was signed; sign the release again";
                    return Err(failed(&document.path, what));
                }
                (None, Some(_)) => {
                    let name = name_of(kind);
                    let message = format!("the release was signed with a document: give --{name}");
                    return Err(Failure::usage(message));
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    pub async fn upload(
        self,
        client: &Client,
        app_uuid: AppUuid,
        release_uuid: ReleaseUuid,
    ) -> Result<(), Failure> {
        for document in self.0 {
            let call = operations::PUT_RELEASE_DOCUMENT
                .call()
                .path("appUuid", app_uuid)
                .path("releaseUuid", release_uuid)
                .path("document", name_of(document.kind))
                .bytes(document.bytes);
            client.run(call).await?;
        }
        Ok(())
    }
}
