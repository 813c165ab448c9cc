//! `/tenant/apps`.

use axum::extract::State;
use hub_protocol::{AppUuid, ReleaseUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::store::app_releases::AppReleaseRow;
use super::super::store::{self, apps::AppRow};
use super::super::urls::SignedUrl;
use super::super::{Signed, Status, app_releases, apps};
use crate::app::App;
use crate::authz::{Authorized, permission as perm};
use crate::error::Result;
use crate::http::answer::{Answer, Created};
use crate::http::check::{Check, filled};
use crate::http::extract::{Json, Path};
use crate::http::page::{Listed, Page};

const MAX_DESCRIPTION_CHARS: usize = 2000;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppResponse {
    app_uuid: AppUuid,
    /// As its releases' manifests name it.
    name: String,
    description: Option<String>,
    created_at: Timestamp,
}

impl From<AppRow> for AppResponse {
    fn from(AppRow { app_uuid, name, description, created_at }: AppRow) -> Self {
        Self { app_uuid, name, description, created_at }
    }
}

/// An app to be made.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AppCreateRequest {
    /// As the manifests of its releases name it: 1 to 64 lower-case letters, digits and dashes, not beginning with a dash. No two apps of a tenant
    /// have the same.
    name: String,
    /// At most 2,000 characters.
    description: Option<String>,
}

/// A release of an app.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppReleaseResponse {
    release_uuid: ReleaseUuid,
    app_uuid: AppUuid,
    version: String,
    /// As `uname -m` names it, or `any`.
    architecture: String,
    /// Grows with every release of the app.
    counter: i64,
    size_bytes: i64,
    /// Of the file, in lower-case hex.
    sha256: String,
    status: Status,
    /// The manifest, byte for byte as it was signed.
    manifest: String,
    /// A minisign signature of `manifest`.
    signature: String,
    created_at: Timestamp,
    /// When its file was there.
    ready_at: Option<Timestamp>,
    /// `PUT` the file here. A path of this service while it has no `public-url`. Given when the release is made; the same manifest sent again gives
    /// another while the file is awaited, and none once it is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url: Option<String>,
    /// An hour later.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload_url_expires_at: Option<Timestamp>,
}

impl AppReleaseResponse {
    fn new(row: AppReleaseRow, upload: Option<SignedUrl>) -> Self {
        let (upload_url, upload_url_expires_at) = upload.map(|upload| (upload.url, upload.expires_at)).unzip();
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

/// A release to be taken in.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AppReleaseCreateRequest {
    /// The text of the manifest that was signed, byte for byte: FILE.manifest.json of `hub-cloud release sign`. Its kind is APP, its name the app's.
    manifest: String,
    /// The text of the minisign signature of it, by one of the keys that the service trusts: FILE.manifest.json.minisig.
    signature: String,
}

pub async fn list(
    auth: Authorized<perm::ReleasesRead>,
    State(app): State<App>,
    page: Page,
) -> Result<Listed<AppResponse>> {
    let mut conn = app.db.read().await?;
    let rows = store::apps::list(&mut conn, &auth.scope, &page).await?;
    let total = store::apps::count(&mut conn, &auth.scope).await?;
    Ok(page.listed(rows.into_iter().map(AppResponse::from).collect(), total))
}

pub async fn create(
    auth: Authorized<perm::ReleasesWrite>,
    State(app): State<App>,
    Json(request): Json<AppCreateRequest>,
) -> Result<Created<AppResponse>> {
    let mut check = Check::new();
    check.lines("description", request.description.as_deref(), MAX_DESCRIPTION_CHARS);
    check.done()?;
    let description = filled(request.description.as_deref()).map(str::to_owned);
    let made = apps::create(&app, &auth.scope, request.name, description).await?;
    Ok(Created(made.into()))
}

pub async fn get(
    auth: Authorized<perm::ReleasesRead>,
    State(app): State<App>,
    Path(app_uuid): Path<AppUuid>,
) -> Result<Answer<AppResponse>> {
    let row = apps::get(&mut app.db.read().await?, &auth.scope, app_uuid).await?;
    Ok(Answer(row.into()))
}

pub async fn list_releases(
    auth: Authorized<perm::ReleasesRead>,
    State(app): State<App>,
    Path(app_uuid): Path<AppUuid>,
    page: Page,
) -> Result<Listed<AppReleaseResponse>> {
    let mut conn = app.db.read().await?;
    apps::get(&mut conn, &auth.scope, app_uuid).await?;
    let rows = store::app_releases::list(&mut conn, &auth.scope, app_uuid, &page).await?;
    let total = store::app_releases::count(&mut conn, &auth.scope, app_uuid).await?;
    Ok(page.listed(rows.into_iter().map(|row| AppReleaseResponse::new(row, None)).collect(), total))
}

pub async fn create_release(
    auth: Authorized<perm::ReleasesWrite>,
    State(app): State<App>,
    Path(app_uuid): Path<AppUuid>,
    Json(request): Json<AppReleaseCreateRequest>,
) -> Result<Created<AppReleaseResponse>> {
    let signed = Signed { manifest: request.manifest, signature: request.signature };
    let (row, upload) = app_releases::create(&app, &auth.scope, app_uuid, signed).await?;
    Ok(Created(AppReleaseResponse::new(row, upload)))
}
