//! `/tenant/dashboards`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::{Answer, Created, NoContent};
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::store::Dashboard;
use super::{Given, MAX_NAME_CHARS, MAX_TILES, Tile};
use crate::Parts;

const TAG: &str = "tenant-dashboards";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/dashboards",
            get_with(
                list,
                operation("dashboards.list", TAG, "Dashboards by name"),
            )
            .post_with(
                create,
                operation_failing(&[409], "dashboards.create", TAG, "Create a dashboard"),
            ),
        )
        .api_route(
            "/tenant/dashboards/{dashboardUuid}",
            get_with(get, operation("dashboards.get", TAG, "One dashboard"))
                .put_with(
                    replace,
                    operation("dashboards.replace", TAG, "Replace a dashboard"),
                )
                .delete_with(
                    delete,
                    operation("dashboards.delete", TAG, "Delete a dashboard"),
                ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DashboardPath {
    /// The id of the dashboard.
    pub dashboard_uuid: Uuid,
}

/// A dashboard as it shall be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DashboardRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: String,
    /// Whether the overview shows its tiles; any other dashboard leaves the overview then.
    #[serde(default)]
    on_overview: bool,
    /// What is shown, in this order.
    #[schemars(length(max = MAX_TILES))]
    tiles: Vec<Tile>,
}

impl From<DashboardRequest> for Given {
    fn from(request: DashboardRequest) -> Self {
        Self {
            name: request.name,
            is_on_overview: request.on_overview,
            tiles: request.tiles,
        }
    }
}

/// A dashboard.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DashboardResponse {
    /// The id of the dashboard.
    dashboard_uuid: Uuid,
    /// Display name.
    name: String,
    /// Whether the overview shows its tiles.
    on_overview: bool,
    /// What is shown, in this order.
    tiles: Vec<Tile>,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl From<Dashboard> for DashboardResponse {
    fn from(dashboard: Dashboard) -> Self {
        Self {
            dashboard_uuid: dashboard.dashboard_uuid,
            name: dashboard.name,
            on_overview: dashboard.is_on_overview,
            tiles: dashboard.tiles.0,
            created_at: dashboard.created_at,
            updated_at: dashboard.updated_at,
        }
    }
}

async fn list(
    auth: Authorized<perm::DevicesRead>,
    State(core): State<Core>,
) -> Result<Answer<Vec<DashboardResponse>>> {
    let dashboards = super::list(&mut core.db.read().await?, &auth.scope).await?;
    Ok(Answer(
        dashboards
            .into_iter()
            .map(DashboardResponse::from)
            .collect(),
    ))
}

async fn create(
    auth: Authorized<perm::DevicesWrite>,
    State(core): State<Core>,
    Json(request): Json<DashboardRequest>,
) -> Result<Created<DashboardResponse>> {
    Ok(Created(
        super::create(&core, &auth.scope, request.into())
            .await?
            .into(),
    ))
}

async fn get(
    auth: Authorized<perm::DevicesRead>,
    State(core): State<Core>,
    Path(DashboardPath { dashboard_uuid }): Path<DashboardPath>,
) -> Result<Answer<DashboardResponse>> {
    Ok(Answer(
        super::get(&mut core.db.read().await?, &auth.scope, dashboard_uuid)
            .await?
            .into(),
    ))
}

async fn replace(
    auth: Authorized<perm::DevicesWrite>,
    State(core): State<Core>,
    Path(DashboardPath { dashboard_uuid }): Path<DashboardPath>,
    Json(request): Json<DashboardRequest>,
) -> Result<Answer<DashboardResponse>> {
    Ok(Answer(
        super::replace(&core, &auth.scope, dashboard_uuid, request.into())
            .await?
            .into(),
    ))
}

async fn delete(
    auth: Authorized<perm::DevicesWrite>,
    State(core): State<Core>,
    Path(DashboardPath { dashboard_uuid }): Path<DashboardPath>,
) -> Result<NoContent> {
    super::delete(&core, &auth.scope, dashboard_uuid).await?;
    Ok(NoContent)
}
