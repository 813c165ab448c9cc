//! Documents of releases below `/tenant/apps`, `/platform/agent-releases` and
//! `/tenant/agent-releases`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, put_with};
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use aide::{OperationInput, OperationOutput};
use axum::extract::{FromRef, FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use hub_advisories::documents::MAX_BYTES;
use hub_base::db::Slice;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::searched;
use hub_core::http::extract::{Path, Query};
use hub_core::http::file::{ReceivedFile, attachment, attachment_response, describe_received};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_fleet::releases::contents::{ComponentSource, ReleaseDocument, ReleaseDocumentResponse};
use hub_identity::authz::{Authorized, PlatformAdmin, permission as perm};
use hub_protocol::{AppUuid, ReleaseUuid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Owner;
use crate::Parts;
use crate::software::Packed;
use crate::software::components::ListedComponent;

const JSON: &str = "application/json";
/// Longest text to search for.
const MAX_SEARCH_CHARS: usize = 200;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/apps/{appUuid}/releases/{releaseUuid}/documents/{document}",
            get_with(
                get_of_app,
                operation(
                    "apps.getReleaseDocument",
                    "tenant-apps",
                    "A document of a release, as it was uploaded",
                ),
            )
            .put_with(
                put_of_app,
                operation_failing(
                    &[409],
                    "apps.putReleaseDocument",
                    "tenant-apps",
                    "Upload a document that the manifest of a release names",
                ),
            ),
        )
        .api_route(
            "/tenant/apps/{appUuid}/releases/{releaseUuid}/components",
            get_with(
                list_components,
                operation(
                    "apps.listReleaseComponents",
                    "tenant-apps",
                    "What a release consists of, by name",
                ),
            ),
        )
        .api_route(
            "/tenant/agent-releases/{releaseUuid}/documents/{document}",
            get_with(
                get_of_agent,
                operation(
                    "agentReleases.getDocument",
                    "tenant-releases",
                    "A document of an agent release, as it was uploaded",
                ),
            ),
        )
        .api_route(
            "/platform/agent-releases/{releaseUuid}/documents/{document}",
            put_with(
                put_of_agent,
                operation_failing(
                    &[409],
                    "platformAgentReleases.putDocument",
                    "platform",
                    "Upload a document that the manifest of a release names",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppDocumentPath {
    /// The app.
    pub app_uuid: AppUuid,
    /// The release.
    pub release_uuid: ReleaseUuid,
    /// Which document.
    pub document: ReleaseDocument,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppReleaseContentPath {
    /// The app.
    pub app_uuid: AppUuid,
    /// The release.
    pub release_uuid: ReleaseUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDocumentPath {
    /// The release.
    pub release_uuid: ReleaseUuid,
    /// Which document.
    pub document: ReleaseDocument,
}

/// The components to show.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct ComponentsQuery {
    /// Part of the name of a component, in any case.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
}

/// A component of a release.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseComponentResponse {
    /// Where it is from, such as `Debian:12`, `crates.io`, `PyPI`, `npm` or `Go`; null where its
    /// versions have no order here, so that it is not matched with advisories.
    ecosystem: Option<String>,
    /// Its name.
    name: String,
    /// Its version.
    version: String,
    /// Its package URL.
    purl: Option<String>,
    /// How it is known.
    source: ComponentSource,
}

/// The bytes of a document, with the memory that they take.
pub struct DocumentBody(ReceivedFile);

impl<S> FromRequest<S> for DocumentBody
where
    S: Send + Sync,
    Core: FromRef<S>,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self> {
        let core = Core::from_ref(state);
        ReceivedFile::read(&core, request, MAX_BYTES)
            .await
            .map(Self)
    }
}

impl OperationInput for DocumentBody {
    fn operation_input(_: &mut GenContext, operation: &mut Operation) {
        describe_received(
            operation,
            "The document of at most 16 MiB, byte for byte as its manifest has it, whatever \
             `Content-Type` says.",
        );
    }
}

/// A document as a file.
pub struct DocumentFile {
    document: ReleaseDocument,
    bytes: Vec<u8>,
}

impl IntoResponse for DocumentFile {
    fn into_response(self) -> Response {
        let name = match self.document {
            ReleaseDocument::Sbom => "sbom.json",
            ReleaseDocument::Vex => "vex.json",
        };
        attachment(JSON, name, self.bytes)
    }
}

impl OperationOutput for DocumentFile {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let description = "The document, byte for byte as it was uploaded.";
        let schema = json!({"type": "object", "description": "CycloneDX, SPDX or OpenVEX."});
        vec![(Some(200), attachment_response(JSON, description, schema))]
    }
}

async fn put_of_app(
    auth: Authorized<perm::ReleasesWrite>,
    State(core): State<Core>,
    Path(path): Path<AppDocumentPath>,
    DocumentBody(file): DocumentBody,
) -> Result<Answer<ReleaseDocumentResponse>> {
    let owner = Owner::App(&auth.scope, path.app_uuid);
    let bytes = file.bytes.clone();
    super::put(&core, &owner, path.release_uuid, path.document, bytes)
        .await
        .map(Answer)
}

async fn put_of_agent(
    PlatformAdmin(admin): PlatformAdmin,
    State(core): State<Core>,
    Path(path): Path<AgentDocumentPath>,
    DocumentBody(file): DocumentBody,
) -> Result<Answer<ReleaseDocumentResponse>> {
    let owner = Owner::Platform(&admin);
    let bytes = file.bytes.clone();
    super::put(&core, &owner, path.release_uuid, path.document, bytes)
        .await
        .map(Answer)
}

async fn get_of_app(
    auth: Authorized<perm::ReleasesRead>,
    State(core): State<Core>,
    Path(path): Path<AppDocumentPath>,
) -> Result<DocumentFile> {
    let AppDocumentPath {
        app_uuid,
        release_uuid,
        document,
    } = path;
    let bytes = super::of_app(&core, &auth.scope, app_uuid, release_uuid, document).await?;
    Ok(DocumentFile { document, bytes })
}

async fn get_of_agent(
    _: Authorized<perm::ReleasesRead>,
    State(core): State<Core>,
    Path(path): Path<AgentDocumentPath>,
) -> Result<DocumentFile> {
    let bytes = super::of_platform(&core, path.release_uuid, path.document).await?;
    Ok(DocumentFile {
        document: path.document,
        bytes,
    })
}

async fn list_components(
    auth: Authorized<perm::ReleasesRead>,
    State(core): State<Core>,
    Path(path): Path<AppReleaseContentPath>,
    page: Page,
    Query(query): Query<ComponentsQuery>,
) -> Result<Listed<ReleaseComponentResponse>> {
    let part = searched(query.q.as_deref(), MAX_SEARCH_CHARS)?.map(str::to_lowercase);
    let mut conn = core.db.read().await?;
    let (source, list) =
        super::components(&mut conn, &auth.scope, path.app_uuid, path.release_uuid).await?;
    drop(conn);
    let slice = page.slice();
    let found = core.bodies.work(move || found(list, part, slice));
    let (components, total) = found.await??;
    let shown = components
        .into_iter()
        .map(|component| ReleaseComponentResponse {
            ecosystem: component.ecosystem,
            name: component.name,
            version: component.version,
            purl: component.purl,
            source,
        });
    Ok(page.listed(shown.collect(), total))
}

/// A page of the components whose name has a part in it, by name; and how many there are.
fn found(
    list: Option<Packed>,
    part: Option<String>,
    slice: Slice,
) -> Result<(Vec<ListedComponent>, i64)> {
    let mut components = super::components_in(list)?;
    let fits = |component: &ListedComponent| {
        part.as_deref()
            .is_none_or(|part| component.name.to_lowercase().contains(part))
    };
    components.retain(fits);
    components.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
    let total = i64::try_from(components.len()).unwrap_or(i64::MAX);
    let count = |number: i64| usize::try_from(number).unwrap_or(0);
    let page = components.into_iter().skip(count(slice.offset));
    Ok((page.take(count(slice.size)).collect(), total))
}
