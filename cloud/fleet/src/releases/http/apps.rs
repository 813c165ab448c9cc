//! `/tenant/apps`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, patch_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::{Answer, Created};
use hub_core::http::check::{Check, filled, is_day};
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::{AppUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::contents::{ReleaseComponentsResponse, ReleaseDocumentResponse};
use super::super::store::app_releases::AppReleaseRow;
use super::super::store::{self, apps::AppRow};
use super::super::urls::SignedUrl;
use super::super::{Signed, Status, app_releases, apps};
use super::downloads::AssetUrl;
use crate::Parts;
use crate::releases::Releases;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/apps",
            get_with(
                list,
                operation("apps.list", "tenant-apps", "Apps, newest first"),
            )
            .post_with(
                create,
                operation_failing(&[409], "apps.create", "tenant-apps", "Create an app"),
            ),
        )
        .api_route(
            "/tenant/apps/{appUuid}",
            get_with(get, operation("apps.get", "tenant-apps", "One app")),
        )
        .api_route(
            "/tenant/apps/{appUuid}/releases",
            get_with(
                list_releases,
                operation(
                    "apps.listReleases",
                    "tenant-apps",
                    "An app's releases, newest first",
                ),
            )
            .post_with(
                create_release,
                operation_failing(
                    &[409],
                    "apps.createRelease",
                    "tenant-apps",
                    "Add a signed release, whose file is uploaded next",
                ),
            ),
        )
        .api_route(
            "/tenant/apps/{appUuid}/releases/{releaseUuid}",
            patch_with(
                update_release,
                operation(
                    "apps.updateRelease",
                    "tenant-apps",
                    "Set until when a release is supported",
                ),
            ),
        )
        .api_route(
            "/tenant/apps/{appUuid}/releases/{releaseUuid}/file-url",
            get_with(
                file_url,
                operation(
                    "apps.getReleaseFileUrl",
                    "tenant-apps",
                    "A URL of a release's file, valid for five minutes",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppPath {
    /// The app.
    pub app_uuid: AppUuid,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppReleasePath {
    /// The app.
    pub app_uuid: AppUuid,
    /// The release.
    pub release_uuid: ReleaseUuid,
}

const MAX_DESCRIPTION_CHARS: usize = 2000;

/// An app to create.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AppCreateRequest {
    /// The name in the manifests of its releases; unique within the tenant.
    #[schemars(regex(pattern = hub_protocol::patterns::APP_NAME))]
    name: String,
    /// Free-text description.
    #[schemars(length(max = MAX_DESCRIPTION_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
}

impl AppCreateRequest {
    fn checked(self) -> Result<Self> {
        let mut check = Check::new();
        check.lines(
            "description",
            self.description.as_deref(),
            MAX_DESCRIPTION_CHARS,
        );
        check.done().map(|()| self)
    }
}

/// A release of an app.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppReleaseResponse {
    /// The release.
    release_uuid: ReleaseUuid,
    /// The app.
    app_uuid: AppUuid,
    /// The version of the release.
    version: String,
    /// The architecture that it is built for, as `uname -m` names it, or `any`.
    architecture: String,
    /// Grows with every release of the same name.
    #[schemars(range(min = 1))]
    counter: i64,
    /// The size of the file.
    #[schemars(range(min = 0))]
    size_bytes: i64,
    /// The SHA-256 digest of the file, in lower-case hex.
    #[schemars(regex(pattern = hub_protocol::patterns::SHA256))]
    sha256: String,
    /// Whether its file is available.
    status: Status,
    /// The manifest, byte for byte as it was signed.
    manifest: String,
    /// A minisign signature of `manifest`.
    signature: String,
    /// When the release was created.
    created_at: Timestamp,
    /// When its file was stored.
    ready_at: Option<Timestamp>,
    /// The last day on which the release is supported.
    supported_until: Option<String>,
    /// The documents that its manifest names.
    #[schemars(length(max = 2))]
    documents: Vec<ReleaseDocumentResponse>,
    /// Of what it consists.
    components: ReleaseComponentsResponse,
    /// The URL to `PUT` the file to: a path of this service while it has no `public-url`. Returned
    /// when the release is created; the same manifest sent again gets another while the file is
    /// missing, and none once it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url: Option<String>,
    /// When that URL expires: an hour later.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url_expires_at: Option<Timestamp>,
}

impl AppReleaseResponse {
    fn new(row: AppReleaseRow, upload: Option<SignedUrl>) -> Self {
        let (upload_url, upload_url_expires_at) =
            upload.map(|upload| (upload.url, upload.expires_at)).unzip();
        Self {
            release_uuid: row.release_uuid,
            app_uuid: row.app_uuid,
            version: row.version,
            architecture: row.architecture,
            counter: row.counter,
            size_bytes: row.size_bytes,
            sha256: row.sha256,
            status: row.status,
            documents: row.arrived.documents(&row.manifest),
            components: row.arrived.components(),
            manifest: row.manifest,
            signature: row.signature,
            created_at: row.created_at,
            ready_at: row.ready_at,
            supported_until: row.supported_until,
            upload_url,
            upload_url_expires_at,
        }
    }
}

/// A signed release of an app.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AppReleaseCreateRequest {
    /// The text of the manifest that was signed, byte for byte: FILE.manifest.json of `hub-cloud
    /// release sign`. Its kind is APP, its name that of the app.
    manifest: String,
    /// The text of its minisign signature, by one of the keys that the service trusts:
    /// FILE.manifest.json.minisig.
    signature: String,
}

/// Changes of a release. An absent or null member leaves the stored value unchanged, and empty text
/// removes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppReleaseUpdateRequest {
    /// The last day on which the release is supported, such as 2026-01-31.
    #[schemars(length(max = 10))]
    supported_until: Option<String>,
}

/// Filters of an app's releases.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppReleaseQuery {
    /// Only releases whose support ends before this day, such as 2026-01-31.
    #[schemars(length(max = 10))]
    support_ends_before: Option<String>,
}

pub(super) fn check_day(field: &str, day: Option<&str>) -> Result<()> {
    let mut check = Check::new();
    let is_end = day.is_none_or(is_day);
    check.that(is_end, field, "must be a day such as 2026-01-31");
    check.done()
}

async fn list(
    auth: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    page: Page,
) -> Result<Listed<AppRow>> {
    let mut conn = releases.core.db.read().await?;
    let (rows, total) = store::apps::list(&mut conn, &auth.scope, page.slice()).await?;
    Ok(page.listed(rows, total))
}

async fn create(
    auth: Authorized<perm::ReleasesWrite>,
    State(releases): State<Releases>,
    Json(request): Json<AppCreateRequest>,
) -> Result<Created<AppRow>> {
    let AppCreateRequest { name, description } = request.checked()?;
    let description = filled(description.as_deref()).map(str::to_owned);
    let app = apps::create(&releases, &auth.scope, name, description).await?;
    Ok(Created(app))
}

async fn get(
    auth: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    Path(AppPath { app_uuid }): Path<AppPath>,
) -> Result<Answer<AppRow>> {
    let row = apps::get(&mut releases.core.db.read().await?, &auth.scope, app_uuid).await?;
    Ok(Answer(row))
}

async fn list_releases(
    auth: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    Path(AppPath { app_uuid }): Path<AppPath>,
    page: Page,
    Query(query): Query<AppReleaseQuery>,
) -> Result<Listed<AppReleaseResponse>> {
    let ends_before = query.support_ends_before.as_deref();
    check_day("supportEndsBefore", ends_before)?;
    let mut conn = releases.core.db.read().await?;
    apps::get(&mut conn, &auth.scope, app_uuid).await?;
    let (scope, slice) = (&auth.scope, page.slice());
    let (rows, total) =
        store::app_releases::list(&mut conn, scope, app_uuid, ends_before, slice).await?;
    Ok(page.listed(
        rows.into_iter()
            .map(|row| AppReleaseResponse::new(row, None))
            .collect(),
        total,
    ))
}

async fn create_release(
    auth: Authorized<perm::ReleasesWrite>,
    State(releases): State<Releases>,
    Path(AppPath { app_uuid }): Path<AppPath>,
    Json(request): Json<AppReleaseCreateRequest>,
) -> Result<Created<AppReleaseResponse>> {
    let signed = Signed {
        manifest: request.manifest,
        signature: request.signature,
    };
    let (row, upload) = app_releases::create(&releases, &auth.scope, app_uuid, signed).await?;
    Ok(Created(AppReleaseResponse::new(row, upload)))
}

async fn update_release(
    auth: Authorized<perm::ReleasesWrite>,
    State(releases): State<Releases>,
    Path(path): Path<AppReleasePath>,
    Json(request): Json<AppReleaseUpdateRequest>,
) -> Result<Answer<AppReleaseResponse>> {
    let of = (path.app_uuid, path.release_uuid);
    let given = request.supported_until;
    let day = filled(given.as_deref());
    check_day("supportedUntil", day)?;
    let row = match &given {
        Some(_) => {
            let day = day.map(str::to_owned);
            app_releases::set_supported_until(&releases, &auth.scope, of, day).await?
        }
        None => app_releases::get(&releases, &auth.scope, of).await?,
    };
    Ok(Answer(AppReleaseResponse::new(row, None)))
}

async fn file_url(
    auth: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    Path(path): Path<AppReleasePath>,
) -> Result<Answer<AssetUrl>> {
    let of = (path.app_uuid, path.release_uuid);
    let (row, url) = app_releases::file_url(&releases, &auth.scope, of).await?;
    Ok(Answer(AssetUrl::new(url, row.size_bytes, row.sha256)))
}
