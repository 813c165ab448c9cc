//! `/tenant/supplier-bundles`.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::{FromRef, State};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::store::{self, BundleRow};
use super::super::{
    self as bundles, AtHubs, Changed, Given, MAX_NAME_CHARS, MAX_TEXT_CHARS, Status,
};
use super::TAG;
use crate::authn::Authn;
use crate::authz::{Authorized, permission as perm};
use crate::core::Core;
use crate::error::Result;
use crate::http::answer::{Answer, Empty};
use crate::http::check::{Check, filled};
use crate::http::extract::{Json, Path, Query};
use crate::http::operation::{operation, operation_failing};
use crate::http::page::{Listed, Page};
use crate::http::paths::BundlePath;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
{
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
    /// A name for people.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// A text for people.
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
    /// A name for people.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// A text for people; an empty one removes it.
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
        let name = self.name.map(|name| name.trim().to_owned());
        Ok(Changed {
            name,
            description: self.description,
            auto_apply: self.auto_apply,
        })
    }
}

/// What becomes of what the bundle has brought to hubs.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ArchiveQuery {
    /// KEEP when absent. REMOVE is done by and by.
    at_hubs: Option<AtHubs>,
}

/// A bundle.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleResponse {
    /// The bundle.
    pub bundle_uuid: Uuid,
    /// A name for people.
    name: String,
    /// A text for people.
    description: Option<String>,
    /// Where it is in its life.
    status: Status,
    /// Whether it is applied to hubs whose claim code names no bundle.
    auto_apply: bool,
    /// How many apps it has.
    #[schemars(range(min = 0))]
    app_count: i64,
    /// How many device models it has.
    #[schemars(range(min = 0))]
    device_count: i64,
    /// How many pipelines it has.
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

/// Which bundles to list.
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

/// It requires OPERATE, since hubs install what the bundle has. Each of its apps needs a release.
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
