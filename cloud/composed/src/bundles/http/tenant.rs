//! `/tenant/supplier-bundles`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::{Answer, Empty};
use hub_core::http::check::{Check, filled};
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::store::{self, BundleRow};
use super::super::{
    self as bundles, AtHubs, Changed, Given, MAX_NAME_CHARS, MAX_TEXT_CHARS, Status,
};
use super::TAG;
use crate::Parts;
use crate::bundles::http::BundlePath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/supplier-bundles",
            get_with(
                list,
                operation("bundles.list", TAG, "Bundles, newest first"),
            )
            .post_with(
                create,
                operation_failing(&[409], "bundles.create", TAG, "Create a bundle, as a draft"),
            ),
        )
        .api_route(
            "/tenant/supplier-bundles/{bundleUuid}",
            get_with(get, operation("bundles.get", TAG, "One bundle"))
                .patch_with(
                    update,
                    operation_failing(&[409], "bundles.update", TAG, "Change a draft"),
                )
                .delete_with(
                    delete,
                    operation_failing(&[409], "bundles.delete", TAG, "Delete a draft"),
                ),
        )
        .api_route(
            "/tenant/supplier-bundles/{bundleUuid}/publish",
            post_with(
                publish,
                operation_failing(&[409], "bundles.publish", TAG, "Publish a draft"),
            ),
        )
        .api_route(
            "/tenant/supplier-bundles/{bundleUuid}/archive",
            post_with(
                archive,
                operation_failing(&[409], "bundles.archive", TAG, "Archive a published bundle"),
            ),
        )
}

/// A bundle to create. It has no parts yet.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateBundleRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// Free-text description.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// Whether it is applied to hubs whose claim code names no bundle; false when absent.
    auto_apply: Option<bool>,
}

impl CreateBundleRequest {
    fn checked(self) -> Result<Given> {
        let mut check = Check::new();
        check.required("name", &self.name, MAX_NAME_CHARS);
        check.lines("description", self.description.as_deref(), MAX_TEXT_CHARS);
        check.done()?;
        Ok(Given {
            name: self.name.trim().to_owned(),
            description: filled(self.description.as_deref()).map(str::to_owned),
            auto_apply: self.auto_apply.unwrap_or(false),
        })
    }
}

/// Changes of a draft. An absent or null member stays unchanged.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateBundleRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// Free-text description; an empty one removes it.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// Whether it is applied to hubs whose claim code names no bundle.
    auto_apply: Option<bool>,
}

impl UpdateBundleRequest {
    fn checked(self) -> Result<Changed> {
        let mut check = Check::new();
        if let Some(name) = &self.name {
            check.required("name", name, MAX_NAME_CHARS);
        }
        check.lines("description", self.description.as_deref(), MAX_TEXT_CHARS);
        check.done()?;
        Ok(Changed {
            name: self.name.map(|name| name.trim().to_owned()),
            description: self.description,
            auto_apply: self.auto_apply,
        })
    }
}

/// The treatment of parts that hubs already have.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ArchiveQuery {
    /// The treatment; KEEP when absent. REMOVE is done in the background.
    at_hubs: Option<AtHubs>,
}

/// A bundle.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleResponse {
    /// The bundle.
    pub bundle_uuid: Uuid,
    /// Display name.
    name: String,
    /// Free-text description.
    description: Option<String>,
    /// The lifecycle state.
    status: Status,
    /// Whether it is applied to hubs whose claim code names no bundle.
    auto_apply: bool,
    /// The number of apps.
    #[schemars(range(min = 0))]
    app_count: i64,
    /// The number of device models.
    #[schemars(range(min = 0))]
    device_count: i64,
    /// The number of pipelines.
    #[schemars(range(min = 0))]
    pipeline_count: i64,
    /// When it was created.
    created_at: Timestamp,
    /// When it was published.
    published_at: Option<Timestamp>,
    /// When it was archived.
    archived_at: Option<Timestamp>,
}

impl From<BundleRow> for BundleResponse {
    fn from(row: BundleRow) -> Self {
        Self {
            bundle_uuid: row.bundle_uuid,
            name: row.name,
            description: row.description,
            status: row.status,
            auto_apply: row.auto_apply,
            app_count: row.app_count,
            device_count: row.device_count,
            pipeline_count: row.pipeline_count,
            created_at: row.created_at,
            published_at: row.published_at,
            archived_at: row.archived_at,
        }
    }
}

/// Filters of the bundles.
#[derive(Debug, Deserialize, JsonSchema)]
struct BundlesQuery {
    /// Bundles with this status alone.
    status: Option<Status>,
}

async fn list(
    auth: Authorized<perm::BundlesRead>,
    State(core): State<Core>,
    Query(query): Query<BundlesQuery>,
    page: Page,
) -> Result<Listed<BundleResponse>> {
    let mut conn = core.db.read().await?;
    let (rows, total) = store::list(&mut conn, &auth.scope, query.status, page.slice()).await?;
    Ok(page.listed(rows.into_iter().map(BundleResponse::from).collect(), total))
}

async fn create(
    auth: Authorized<perm::BundlesWrite>,
    State(core): State<Core>,
    Json(request): Json<CreateBundleRequest>,
) -> Result<Answer<BundleResponse>> {
    Ok(Answer(
        bundles::create(&core, &auth.scope, request.checked()?)
            .await?
            .into(),
    ))
}

async fn get(
    auth: Authorized<perm::BundlesRead>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
) -> Result<Answer<BundleResponse>> {
    Ok(Answer(
        bundles::get(&mut core.db.read().await?, &auth.scope, bundle_uuid)
            .await?
            .into(),
    ))
}

async fn update(
    auth: Authorized<perm::BundlesWrite>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
    Json(request): Json<UpdateBundleRequest>,
) -> Result<Answer<BundleResponse>> {
    let changed = request.checked()?;
    Ok(Answer(
        bundles::update(&core, &auth.scope, bundle_uuid, changed)
            .await?
            .into(),
    ))
}

async fn delete(
    auth: Authorized<perm::BundlesWrite>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
) -> Result<Empty> {
    bundles::delete(&core, &auth.scope, bundle_uuid).await?;
    Ok(Empty)
}

/// It requires OPERATE, since hubs install the apps of the bundle. Each of its apps needs a
/// release.
async fn publish(
    auth: Authorized<perm::BundlesPublish>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
) -> Result<Answer<BundleResponse>> {
    Ok(Answer(
        bundles::publish(&core, &auth.scope, bundle_uuid)
            .await?
            .into(),
    ))
}

/// A claim with a code that names the bundle is refused from now on. It requires OPERATE.
async fn archive(
    auth: Authorized<perm::BundlesPublish>,
    State(core): State<Core>,
    Path(BundlePath { bundle_uuid }): Path<BundlePath>,
    Query(query): Query<ArchiveQuery>,
) -> Result<Answer<BundleResponse>> {
    let at_hubs = query.at_hubs.unwrap_or_default();
    Ok(Answer(
        bundles::archive(&core, &auth.scope, bundle_uuid, at_hubs)
            .await?
            .into(),
    ))
}
