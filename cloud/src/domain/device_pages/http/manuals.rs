//! `/tenant/manuals`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::{FromRef, State};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::manuals::{self, Given, ManualFormat};
use super::super::store::{self, manuals::ManualRow};
use super::super::{
    LOCALE, MAX_DOCUMENT_BYTES, MAX_LOCALE_CHARS, MAX_NAME_CHARS, MAX_TEXT_CHARS, check_locale,
};
use super::{OfModelQuery, TAG};
use crate::authn::Authn;
use crate::authz::{Authorized, permission as perm};
use crate::core::Core;
use crate::error::Result;
use crate::http::answer::{Answer, Empty};
use crate::http::check::{Check, filled, is_web_address};
use crate::http::extract::{Json, Path, Query};
use crate::http::operation::{operation, operation_failing};
use crate::http::page::{Listed, Page};
use crate::http::paths::DeviceManualPath;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
    ApiRouter::new()
        .api_route(
            "/tenant/manuals",
            get_with(
                list,
                operation(
                    "deviceManuals.list",
                    TAG,
                    "Manuals of device models, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[404, 409],
                    "deviceManuals.create",
                    TAG,
                    "Create a manual of a device model",
                ),
            ),
        )
        .api_route(
            "/tenant/manuals/{deviceManualId}",
            get_with(get, operation("deviceManuals.get", TAG, "One manual"))
                .patch_with(
                    update,
                    operation("deviceManuals.update", TAG, "Change a manual"),
                )
                .delete_with(
                    delete,
                    operation("deviceManuals.delete", TAG, "Delete a manual"),
                ),
        )
}

/// A manual of a device model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceManualResponse {
    /// The id of the manual.
    #[schemars(range(min = 1))]
    device_manual_id: i64,
    /// The model.
    device_uuid: Uuid,
    /// What it is called.
    title: String,
    /// The language of it, such as `pt-BR`.
    locale: Option<String>,
    /// Where its text is.
    format: ManualFormat,
    /// Its text in Markdown; null for a LINK.
    content: Option<String>,
    /// Where its text is; null for MARKDOWN.
    url: Option<String>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl From<ManualRow> for DeviceManualResponse {
    fn from(row: ManualRow) -> Self {
        Self {
            device_manual_id: row.device_manual_id,
            device_uuid: row.device_uuid,
            title: row.title,
            locale: row.locale,
            format: row.format,
            content: row.content,
            url: row.url,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// A manual to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeviceManualRequest {
    /// The model.
    device_uuid: Uuid,
    /// What it is called.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    title: String,
    /// The language of it, such as `pt-BR`.
    #[schemars(length(max = MAX_LOCALE_CHARS), regex(pattern = LOCALE))]
    locale: Option<String>,
    /// Where its text is: MARKDOWN needs `content`, LINK needs `url`, and neither takes the other.
    format: ManualFormat,
    /// Its text in Markdown, of 64 KiB at most.
    #[schemars(length(max = MAX_DOCUMENT_BYTES), regex(pattern = hub_protocol::patterns::LINES))]
    content: Option<String>,
    /// Where its text is: a URL with `https` or `http`.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    url: Option<String>,
}

/// What to change; a member that is absent or null leaves the stored value alone, an empty locale
/// removes it. Another format needs its text or URL, and removes that of the format before.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateDeviceManualRequest {
    /// What it is called.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    title: Option<String>,
    /// The language of it, such as `pt-BR`.
    #[schemars(length(max = MAX_LOCALE_CHARS), regex(pattern = LOCALE))]
    locale: Option<String>,
    /// Where its text is.
    format: Option<ManualFormat>,
    /// Its text in Markdown, of 64 KiB at most.
    #[schemars(length(max = MAX_DOCUMENT_BYTES), regex(pattern = hub_protocol::patterns::LINES))]
    content: Option<String>,
    /// Where its text is: a URL with `https` or `http`.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    url: Option<String>,
}

impl UpdateDeviceManualRequest {
    fn checked(self) -> Result<Given> {
        let mut check = Check::new();
        if let Some(title) = &self.title {
            check.required("title", title, MAX_NAME_CHARS);
        }
        check_locale(&mut check, self.locale.as_deref());
        check.lines("content", self.content.as_deref(), MAX_DOCUMENT_BYTES);
        let bytes = self.content.as_deref().map_or(0, str::len);
        let message = format!("must have at most {} KiB", MAX_DOCUMENT_BYTES / 1024);
        check.that(bytes <= MAX_DOCUMENT_BYTES, "content", message);
        check.line("url", self.url.as_deref(), MAX_TEXT_CHARS);
        let is_link = filled(self.url.as_deref()).is_none_or(is_web_address);
        check.that(is_link, "url", "must be a URL with https or http");
        check.done()?;
        let Self {
            title,
            locale,
            format,
            content,
            url,
        } = self;
        Ok(Given {
            title,
            locale,
            format,
            content,
            url,
        })
    }
}

/// A page has at most 8 MiB of texts.
async fn list(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Query(OfModelQuery { device_uuid }): Query<OfModelQuery>,
    page: Page,
) -> Result<Listed<DeviceManualResponse>> {
    let mut conn = core.db.read().await?;
    let bytes =
        store::manuals::page_bytes(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    let _held = page.hold(&core, auth.scope.tenant_uuid(), bytes, "manuals")?;
    let (rows, total) =
        store::manuals::list(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    Ok(page.listed(
        rows.into_iter().map(DeviceManualResponse::from).collect(),
        total,
    ))
}

async fn create(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Json(request): Json<CreateDeviceManualRequest>,
) -> Result<Answer<DeviceManualResponse>> {
    let CreateDeviceManualRequest {
        device_uuid,
        title,
        locale,
        format,
        content,
        url,
    } = request;
    let given = UpdateDeviceManualRequest {
        title: Some(title),
        locale,
        format: Some(format),
        content,
        url,
    };
    let row = manuals::create(&core, &auth.scope, device_uuid, given.checked()?).await?;
    Ok(Answer(row.into()))
}

async fn get(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Path(DeviceManualPath { device_manual_id }): Path<DeviceManualPath>,
) -> Result<Answer<DeviceManualResponse>> {
    let row = manuals::get(&mut core.db.read().await?, &auth.scope, device_manual_id).await?;
    Ok(Answer(row.into()))
}

async fn update(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceManualPath { device_manual_id }): Path<DeviceManualPath>,
    Json(request): Json<UpdateDeviceManualRequest>,
) -> Result<Answer<DeviceManualResponse>> {
    let row = manuals::update(&core, &auth.scope, device_manual_id, request.checked()?).await?;
    Ok(Answer(row.into()))
}

async fn delete(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceManualPath { device_manual_id }): Path<DeviceManualPath>,
) -> Result<Empty> {
    manuals::delete(&core, &auth.scope, device_manual_id).await?;
    Ok(Empty)
}
