//! `/tenant/manuals`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::{Answer, Empty};
use hub_core::http::check::{Check, filled, is_web_address};
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use super::super::manuals::{self, Given, ManualFormat};
use super::super::store::{self, manuals::ManualRow};
use super::super::{
    LOCALE, MAX_DOCUMENT_BYTES, MAX_LOCALE_CHARS, MAX_NAME_CHARS, MAX_TEXT_CHARS, check_locale,
};
use super::{OfModelQuery, TAG};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceManualPath {
    /// The id of the manual.
    pub device_manual_id: i64,
}

/// A manual to create.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeviceManualRequest {
    /// The model.
    device_uuid: Uuid,
    /// The title.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    title: String,
    /// The language of it, such as `pt-BR`.
    #[schemars(length(max = MAX_LOCALE_CHARS), regex(pattern = LOCALE))]
    locale: Option<String>,
    /// The location of its text: MARKDOWN needs `content`, LINK needs `url`, and neither takes the
    /// other.
    format: ManualFormat,
    /// Its text in Markdown, of 64 KiB at most.
    #[schemars(length(max = MAX_DOCUMENT_BYTES), regex(pattern = hub_protocol::patterns::LINES))]
    content: Option<String>,
    /// The URL of its text, with `https` or `http`.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    url: Option<String>,
}

/// Changes to make. An absent or null member leaves the stored value unchanged, and an empty locale
/// removes it. Another format needs its text or URL, and removes those of the previous format.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateDeviceManualRequest {
    /// The title.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    title: Option<String>,
    /// The language of it, such as `pt-BR`.
    #[schemars(length(max = MAX_LOCALE_CHARS), regex(pattern = LOCALE))]
    locale: Option<String>,
    /// The location of its text.
    format: Option<ManualFormat>,
    /// Its text in Markdown, of 64 KiB at most.
    #[schemars(length(max = MAX_DOCUMENT_BYTES), regex(pattern = hub_protocol::patterns::LINES))]
    content: Option<String>,
    /// The URL of its text, with `https` or `http`.
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
) -> Result<Listed<ManualRow>> {
    let mut conn = core.db.read().await?;
    let bytes =
        store::manuals::page_bytes(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    let _held = page.hold(&core, auth.scope.tenant_uuid(), bytes, "manuals")?;
    let (rows, total) =
        store::manuals::list(&mut conn, &auth.scope, device_uuid, page.slice()).await?;
    Ok(page.listed(rows, total))
}

async fn create(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Json(request): Json<CreateDeviceManualRequest>,
) -> Result<Answer<ManualRow>> {
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
    Ok(Answer(row))
}

async fn get(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Path(DeviceManualPath { device_manual_id }): Path<DeviceManualPath>,
) -> Result<Answer<ManualRow>> {
    let row = manuals::get(&mut core.db.read().await?, &auth.scope, device_manual_id).await?;
    Ok(Answer(row))
}

async fn update(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceManualPath { device_manual_id }): Path<DeviceManualPath>,
    Json(request): Json<UpdateDeviceManualRequest>,
) -> Result<Answer<ManualRow>> {
    let row = manuals::update(&core, &auth.scope, device_manual_id, request.checked()?).await?;
    Ok(Answer(row))
}

async fn delete(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceManualPath { device_manual_id }): Path<DeviceManualPath>,
) -> Result<Empty> {
    manuals::delete(&core, &auth.scope, device_manual_id).await?;
    Ok(Empty)
}
