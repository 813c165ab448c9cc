//! `/tenant/apps`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::{FromRef, State};
use hub_protocol::{AppUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::store::app_releases::AppReleaseRow;
use super::super::store::{self, apps::AppRow};
use super::super::urls::SignedUrl;
use super::super::{Signed, Status, app_releases, apps};
use crate::authn::Authn;
use crate::authz::{Authorized, permission as perm};
use crate::core::Core;
use crate::domain::releases::Releases;
use crate::error::Result;
use crate::http::answer::{Answer, Created};
use crate::http::check::{Check, filled};
use crate::http::extract::{Json, Path};
use crate::http::operation::{operation, operation_failing};
use crate::http::page::{Listed, Page};
use crate::http::paths::AppPath;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Releases: FromRef<S>,
{
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
}

const MAX_DESCRIPTION_CHARS: usize = 2000;

/// An app of a tenant.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppResponse {
    /// The app.
    app_uuid: AppUuid,
    /// Its name, as the manifests of its releases have it.
    name: String,
    /// A text for people.
    description: Option<String>,
    /// When it was created.
    created_at: Timestamp,
}

impl From<AppRow> for AppResponse {
    fn from(
        AppRow {
            app_uuid,
            name,
            description,
            created_at,
        }: AppRow,
    ) -> Self {
        Self {
            app_uuid,
            name,
            description,
            created_at,
        }
    }
}

/// An app to create.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AppCreateRequest {
    /// As the manifests of its releases have it; unique within the tenant.
    #[schemars(regex(pattern = hub_protocol::patterns::APP_NAME))]
    name: String,
    /// A text for people.
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
    /// `PUT` the file here: a path of this service while it has no `public-url`. Returned when the
    /// release is created; the same manifest sent again gets another while the file is missing, and
    /// none once it is stored.
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
            manifest: row.manifest,
            signature: row.signature,
            created_at: row.created_at,
            ready_at: row.ready_at,
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

async fn list(
    auth: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    page: Page,
) -> Result<Listed<AppResponse>> {
    let mut conn = releases.core.db.read().await?;
    let (rows, total) = store::apps::list(&mut conn, &auth.scope, page.slice()).await?;
    Ok(page.listed(rows.into_iter().map(AppResponse::from).collect(), total))
}

async fn create(
    auth: Authorized<perm::ReleasesWrite>,
    State(releases): State<Releases>,
    Json(request): Json<AppCreateRequest>,
) -> Result<Created<AppResponse>> {
    let AppCreateRequest { name, description } = request.checked()?;
    let description = filled(description.as_deref()).map(str::to_owned);
    let app = apps::create(&releases, &auth.scope, name, description).await?;
    Ok(Created(app.into()))
}

async fn get(
    auth: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    Path(AppPath { app_uuid }): Path<AppPath>,
) -> Result<Answer<AppResponse>> {
    let row = apps::get(&mut releases.core.db.read().await?, &auth.scope, app_uuid).await?;
    Ok(Answer(row.into()))
}

async fn list_releases(
    auth: Authorized<perm::ReleasesRead>,
    State(releases): State<Releases>,
    Path(AppPath { app_uuid }): Path<AppPath>,
    page: Page,
) -> Result<Listed<AppReleaseResponse>> {
    let mut conn = releases.core.db.read().await?;
    apps::get(&mut conn, &auth.scope, app_uuid).await?;
    let (rows, total) =
        store::app_releases::list(&mut conn, &auth.scope, app_uuid, page.slice()).await?;
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
