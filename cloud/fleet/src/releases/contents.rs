//! What is in a release: the documents that its manifest names, and of what it consists. The
//! documents themselves are kept by who reads them.

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::tasks::NewTask;
use hub_identity::authz::Scope;
use hub_protocol::release::{self, SignedDocument};
use hub_protocol::{AppUuid, ReleaseUuid, Timestamp, text_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::store::agent_releases::{self, AgentReleaseRow};
use super::store::app_releases::{self, AppReleaseRow};
use super::store::shared::{self, Table};
use super::{Status, apps};

/// The lane of the task that looks for components in the files of releases.
pub const LANE: &str = "release-contents";
/// The kind of that task.
pub const FIND: &str = "release.find_components";

/// What follows the arrival of the file of an app's release that was signed without a bill of
/// materials. The payload names the release.
pub(super) fn finding(row: &AppReleaseRow, now: Timestamp) -> Option<NewTask> {
    let manifest = release::parse(row.manifest.as_bytes()).ok()?;
    manifest.sbom.is_none().then(|| NewTask {
        lane: LANE,
        kind: FIND,
        payload: json!({"tenantUuid": row.tenant_uuid, "appUuid": row.app_uuid,
            "releaseUuid": row.release_uuid}),
        due_at: now,
        dedup_key: None,
    })
}

/// A document about a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReleaseDocument {
    /// The bill of materials.
    Sbom,
    /// Statements of the maker about vulnerabilities.
    Vex,
}

text_enum!(ReleaseDocument { Sbom = "sbom", Vex = "vex" });

/// How it is known of what a release consists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ComponentSource {
    /// Its bill of materials says so.
    Declared,
    /// It was found in the file.
    Found,
    /// It is not known.
    None,
}

text_enum!(ComponentSource { Declared = "DECLARED", Found = "FOUND", None = "NONE" });

/// What has arrived of a release beside its file.
#[derive(Clone, Debug, Default, sqlx::FromRow)]
pub struct Arrived {
    sbom_at: Option<Timestamp>,
    vex_at: Option<Timestamp>,
    component_source: Option<String>,
    component_count: Option<i64>,
}

/// Products that an answer names.
pub const MAX_UNMATCHED: usize = 20;

/// A document that the manifest of a release names.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseDocumentResponse {
    /// Which document.
    document: ReleaseDocument,
    /// `CYCLONEDX` or `SPDX` of a bill of materials, `OPENVEX` of statements.
    format: String,
    /// The size of the document.
    #[schemars(range(min = 1))]
    size_bytes: u64,
    /// The SHA-256 digest of the document, in lower-case hex.
    #[schemars(regex(pattern = hub_protocol::patterns::SHA256))]
    sha256: String,
    /// When it was uploaded; null before.
    uploaded_at: Option<Timestamp>,
    /// Products that statements name and that are neither the release nor a component of it, as far
    /// as it is known at the upload. Returned when statements are uploaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_UNMATCHED))]
    unmatched_products: Option<Vec<String>>,
}

impl ReleaseDocumentResponse {
    pub fn with_unmatched(self, products: Vec<String>) -> Self {
        Self {
            unmatched_products: Some(products),
            ..self
        }
    }
}

/// Of what a release consists.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseComponentsResponse {
    /// How it is known.
    source: ComponentSource,
    /// The number of components.
    #[schemars(range(min = 0))]
    count: i64,
}

impl Arrived {
    fn source(&self) -> ComponentSource {
        let source = self.component_source.as_deref();
        let source = source.and_then(ComponentSource::from_name);
        source.unwrap_or(ComponentSource::None)
    }

    pub fn components(&self) -> ReleaseComponentsResponse {
        ReleaseComponentsResponse {
            source: self.source(),
            count: self.component_count.unwrap_or(0),
        }
    }

    /// The documents that a manifest names.
    pub fn documents(&self, manifest: &str) -> Vec<ReleaseDocumentResponse> {
        // The manifest was read before it was stored.
        let Ok(manifest) = release::parse(manifest.as_bytes()) else {
            return Vec::new();
        };
        let named = [
            (ReleaseDocument::Sbom, manifest.sbom, self.sbom_at),
            (ReleaseDocument::Vex, manifest.vex, self.vex_at),
        ];
        let shown = named.into_iter().filter_map(|(document, signed, at)| {
            let signed = signed?;
            Some(ReleaseDocumentResponse {
                document,
                format: signed.format,
                size_bytes: signed.size_bytes,
                sha256: signed.sha256,
                uploaded_at: at,
                unmatched_products: None,
            })
        });
        shown.collect()
    }
}

/// A release that documents belong to.
#[derive(Clone, Debug)]
pub struct Documented {
    pub release_uuid: ReleaseUuid,
    /// Whether it is of the platform; else of an app.
    of_platform: bool,
    pub name: String,
    pub version: String,
    /// The architecture as in `uname -m`, or `any`.
    pub architecture: String,
    pub size_bytes: i64,
    pub source: ComponentSource,
    status: Status,
    manifest: String,
    sbom_at: Option<Timestamp>,
    vex_at: Option<Timestamp>,
}

impl Documented {
    fn of_app(row: AppReleaseRow, name: String) -> Self {
        Self {
            release_uuid: row.release_uuid,
            of_platform: false,
            name,
            version: row.version,
            architecture: row.architecture,
            size_bytes: row.size_bytes,
            source: row.arrived.source(),
            status: row.status,
            manifest: row.manifest,
            sbom_at: row.arrived.sbom_at,
            vex_at: row.arrived.vex_at,
        }
    }

    fn of_agent(row: AgentReleaseRow) -> Self {
        Self {
            release_uuid: row.release_uuid,
            of_platform: true,
            name: row.name,
            version: row.version,
            architecture: row.architecture,
            size_bytes: row.size_bytes,
            source: row.arrived.source(),
            status: row.status,
            manifest: row.manifest,
            sbom_at: row.arrived.sbom_at,
            vex_at: row.arrived.vex_at,
        }
    }

    pub fn is_ready(&self) -> bool {
        self.status == Status::Ready
    }

    /// What the manifest says of a document; None if it names none.
    pub fn signed(&self, document: ReleaseDocument) -> Option<SignedDocument> {
        let manifest = release::parse(self.manifest.as_bytes()).ok()?;
        match document {
            ReleaseDocument::Sbom => manifest.sbom,
            ReleaseDocument::Vex => manifest.vex,
        }
    }

    /// When a document arrived.
    pub fn uploaded_at(&self, document: ReleaseDocument) -> Option<Timestamp> {
        match document {
            ReleaseDocument::Sbom => self.sbom_at,
            ReleaseDocument::Vex => self.vex_at,
        }
    }

    /// As it is shown; None if the manifest names no such document.
    pub fn shown(
        &self,
        document: ReleaseDocument,
        at: Timestamp,
    ) -> Option<ReleaseDocumentResponse> {
        let signed = self.signed(document)?;
        Some(ReleaseDocumentResponse {
            document,
            format: signed.format,
            size_bytes: signed.size_bytes,
            sha256: signed.sha256,
            uploaded_at: Some(at),
            unmatched_products: None,
        })
    }

    fn table(&self) -> Table {
        match self.of_platform {
            true => Table::AgentReleases,
            false => Table::AppReleases,
        }
    }

    /// Notes when a document arrived.
    pub async fn note_document(
        &self,
        tx: &mut Tx,
        document: ReleaseDocument,
        at: Timestamp,
    ) -> Result<()> {
        shared::note_document(tx, self.table(), self.release_uuid, document, at).await
    }

    /// Notes of how many components the release consists of, and how that is known.
    pub async fn note_components(
        &self,
        tx: &mut Tx,
        source: ComponentSource,
        count: i64,
    ) -> Result<()> {
        shared::note_components(tx, self.table(), self.release_uuid, source, count).await
    }
}

/// A release of one of the tenant's apps, or 404.
pub async fn of_app(
    conn: &mut Conn,
    scope: &Scope,
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
) -> Result<Documented> {
    let name = apps::get(conn, scope, app_uuid).await?.name;
    let row = app_releases::get(conn, scope, app_uuid, release_uuid).await?;
    let row = row.ok_or_else(super::unknown)?;
    Ok(Documented::of_app(row, name))
}

/// As [`of_app`]. The release does not change until the transaction ends.
pub async fn lock_of_app(
    tx: &mut Tx,
    scope: &Scope,
    app_uuid: AppUuid,
    release_uuid: ReleaseUuid,
) -> Result<Documented> {
    let name = apps::get(tx, scope, app_uuid).await?.name;
    let row = app_releases::lock(tx, scope, app_uuid, release_uuid).await?;
    let row = row.ok_or_else(super::unknown)?;
    Ok(Documented::of_app(row, name))
}

/// A release of the platform, or 404.
pub async fn of_platform(conn: &mut Conn, release_uuid: ReleaseUuid) -> Result<Documented> {
    let row = agent_releases::get(conn, release_uuid).await?;
    row.map(Documented::of_agent).ok_or_else(super::unknown)
}

/// As [`of_platform`]. The release does not change until the transaction ends.
pub async fn lock_of_platform(tx: &mut Tx, release_uuid: ReleaseUuid) -> Result<Documented> {
    let row = agent_releases::lock_one(tx, release_uuid).await?;
    row.map(Documented::of_agent).ok_or_else(super::unknown)
}

/// 404 that says which document is missing.
pub fn no_document(document: ReleaseDocument) -> Error {
    Error::not_found(match document {
        ReleaseDocument::Sbom => "bill of materials of the release",
        ReleaseDocument::Vex => "document of statements of the release",
    })
}
