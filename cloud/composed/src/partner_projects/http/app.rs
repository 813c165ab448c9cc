//! `/app/projects`.

use std::collections::HashMap;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::check::Check;
use hub_core::http::extract::{Json, Path};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_devices::device_instances::{self, ActivationStatus, Shown};
use hub_identity::authz::{EndUser, UserScope};
use hub_people::tenants;
use hub_protocol::{TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::store::{self, DeviceRow, ProjectRow, TenantRow};
use super::super::{MAX_ITEMS, changes, of_person, secret};
use super::{ProjectPath, ProjectTenantResponse};
use crate::Parts;

const TAG: &str = "app";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/projects",
            get_with(
                list,
                operation(
                    "appProjects.list",
                    TAG,
                    "The caller's projects, newest first",
                ),
            ),
        )
        .api_route(
            "/app/projects/{projectId}/devices",
            get_with(
                list_devices,
                operation(
                    "appProjects.listDevices",
                    TAG,
                    "Devices of a project, newest first",
                ),
            )
            .post_with(
                add_devices,
                operation_failing(
                    &[403, 409],
                    "appProjects.addDevices",
                    TAG,
                    "Add devices to a project, or none",
                ),
            )
            .delete_with(
                remove_devices,
                operation_failing(
                    &[403],
                    "appProjects.removeDevices",
                    TAG,
                    "Take devices out of a project, or none",
                ),
            ),
        )
        .api_route(
            "/app/projects/{projectId}/tenants",
            get_with(
                list_tenants,
                operation(
                    "appProjects.listTenants",
                    TAG,
                    "Tenants that take part in a project",
                ),
            )
            .post_with(
                join,
                operation_failing(
                    &[403, 409],
                    "appProjects.joinTenants",
                    TAG,
                    "Let tenants join, or none",
                ),
            )
            .delete_with(
                leave,
                operation_failing(
                    &[403],
                    "appProjects.leaveTenants",
                    TAG,
                    "Let tenants leave with their devices, or none",
                ),
            ),
        )
}

/// A project of the caller.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AppProjectResponse {
    /// The project, as the partner names it.
    project_id: String,
    /// Its name.
    name: String,
    /// The role of the caller, set by the partner.
    role: String,
    /// The tenants that take part.
    tenants: Vec<ProjectTenantResponse>,
    /// The number of devices that take part.
    #[schemars(range(min = 0))]
    device_count: i64,
}

/// The tenants as they are shown; deleted ones are left out.
pub async fn tenant_responses(
    conn: &mut Conn,
    rows: Vec<TenantRow>,
) -> Result<Vec<(String, ProjectTenantResponse)>> {
    let mut uuids: Vec<TenantUuid> = rows.iter().map(|row| row.tenant_uuid).collect();
    uuids.sort_unstable();
    uuids.dedup();
    let mut names = HashMap::new();
    for some in uuids.chunks(MAX_ITEMS) {
        names.extend(tenants::names(conn, some).await?);
    }
    let response = |row: TenantRow| {
        let name = names.get(&row.tenant_uuid)?.clone();
        let TenantRow {
            project_id,
            tenant_uuid,
            joined_at,
            device_count,
        } = row;
        Some((
            project_id,
            ProjectTenantResponse {
                tenant_uuid,
                name,
                device_count,
                joined_at,
            },
        ))
    };
    Ok(rows.into_iter().filter_map(response).collect())
}

/// The projects with their tenants, for their members.
async fn responses(
    conn: &mut Conn,
    scope: &UserScope,
    rows: Vec<ProjectRow>,
) -> Result<Vec<AppProjectResponse>> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<&str> = rows.iter().map(|row| row.project_id.as_str()).collect();
    let mut roles = store::roles(conn, scope, &ids).await?;
    let found = store::tenants(conn, &ids).await?;
    let mut by_project: HashMap<String, Vec<ProjectTenantResponse>> = HashMap::new();
    for (project_id, tenant) in tenant_responses(conn, found).await? {
        by_project.entry(project_id).or_default().push(tenant);
    }
    let response = |row: ProjectRow| {
        let tenants = by_project.remove(&row.project_id).unwrap_or_default();
        let device_count = tenants.iter().map(|tenant| tenant.device_count).sum();
        let role = roles.remove(&row.project_id)?;
        Some(AppProjectResponse {
            project_id: row.project_id,
            name: row.name,
            role,
            tenants,
            device_count,
        })
    };
    Ok(rows.into_iter().filter_map(response).collect())
}

/// The project after a change.
async fn answer(
    core: &Core,
    scope: &UserScope,
    project_id: &str,
) -> Result<Answer<AppProjectResponse>> {
    let mut conn = core.db.read().await?;
    let (project, _) = of_person(&mut conn, scope, project_id).await?;
    let response = responses(&mut conn, scope, vec![project]).await?.pop();
    response.map(Answer).ok_or_else(super::super::not_found)
}

async fn list(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    page: Page,
) -> Result<Listed<AppProjectResponse>> {
    secret(&core)?;
    let mut conn = core.db.read().await?;
    let (rows, total) = store::list(&mut conn, &scope, page.slice()).await?;
    Ok(page.listed(responses(&mut conn, &scope, rows).await?, total))
}

/// A device that takes part in a project.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProjectDeviceResponse {
    /// The id of the device.
    #[schemars(range(min = 1))]
    device_instance_id: i64,
    /// The tenant that it belongs to.
    tenant_uuid: TenantUuid,
    /// The model of the device.
    device_uuid: Uuid,
    /// The name of the model.
    device_name: String,
    /// The name that it was given.
    name: Option<String>,
    /// The name to show: `name`, else the model with the end of its serial number or address.
    display_name: String,
    /// The lifecycle state of the device.
    activation_status: ActivationStatus,
    /// When it was added.
    added_at: Timestamp,
}

async fn list_devices(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(ProjectPath { project_id }): Path<ProjectPath>,
    page: Page,
) -> Result<Listed<ProjectDeviceResponse>> {
    secret(&core)?;
    let mut conn = core.db.read().await?;
    of_person(&mut conn, &scope, &project_id).await?;
    let (rows, total) = store::devices(&mut conn, &project_id, page.slice()).await?;
    let ids: Vec<i64> = rows.iter().map(|row| row.device_instance_id).collect();
    let shown = device_instances::shown(&mut conn, &ids).await?;
    let mut by_id: HashMap<i64, Shown> = shown
        .into_iter()
        .map(|shown| (shown.instance.device_instance_id, shown))
        .collect();
    let response = |row: DeviceRow| {
        let shown = by_id.remove(&row.device_instance_id)?;
        let display_name = shown.display_name();
        let Shown {
            instance,
            device_name,
            ..
        } = shown;
        Some(ProjectDeviceResponse {
            device_instance_id: row.device_instance_id,
            tenant_uuid: row.tenant_uuid,
            device_uuid: instance.device_uuid,
            device_name,
            name: instance.name,
            display_name,
            activation_status: instance.activation_status,
            added_at: row.added_at,
        })
    };
    Ok(page.listed(rows.into_iter().filter_map(response).collect(), total))
}

/// The devices to add: all of them, or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AddDevicesRequest {
    /// Devices of tenants that take part.
    #[schemars(length(min = 1, max = MAX_ITEMS))]
    device_instance_ids: Vec<i64>,
}

/// The devices to take out: all of them, or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct RemoveDevicesRequest {
    /// Devices of the project.
    #[schemars(length(min = 1, max = MAX_ITEMS))]
    device_instance_ids: Vec<i64>,
}

/// The tenants that join: all of them, or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct JoinTenantsRequest {
    /// Tenants that the caller manages.
    #[schemars(length(min = 1, max = MAX_ITEMS))]
    tenant_uuids: Vec<TenantUuid>,
}

/// The tenants that leave, with their devices: all of them, or none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LeaveTenantsRequest {
    /// Tenants of the project that the caller manages.
    #[schemars(length(min = 1, max = MAX_ITEMS))]
    tenant_uuids: Vec<TenantUuid>,
}

fn check_length(field: &str, length: usize) -> Result<()> {
    let mut check = Check::new();
    check.that(
        (1..=MAX_ITEMS).contains(&length),
        field,
        format!("must have 1 to {MAX_ITEMS} items"),
    );
    check.done()
}

async fn add_devices(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(ProjectPath { project_id }): Path<ProjectPath>,
    Json(request): Json<AddDevicesRequest>,
) -> Result<Answer<AppProjectResponse>> {
    secret(&core)?;
    check_length("deviceInstanceIds", request.device_instance_ids.len())?;
    changes::add_devices(&core, &scope, &project_id, &request.device_instance_ids).await?;
    answer(&core, &scope, &project_id).await
}

async fn remove_devices(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(ProjectPath { project_id }): Path<ProjectPath>,
    Json(request): Json<RemoveDevicesRequest>,
) -> Result<Answer<AppProjectResponse>> {
    secret(&core)?;
    check_length("deviceInstanceIds", request.device_instance_ids.len())?;
    changes::remove_devices(&core, &scope, &project_id, &request.device_instance_ids).await?;
    answer(&core, &scope, &project_id).await
}

/// A project has so few tenants that the list has no pages.
async fn list_tenants(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(ProjectPath { project_id }): Path<ProjectPath>,
) -> Result<Answer<Vec<ProjectTenantResponse>>> {
    secret(&core)?;
    let mut conn = core.db.read().await?;
    of_person(&mut conn, &scope, &project_id).await?;
    let rows = store::tenants(&mut conn, &[project_id.as_str()]).await?;
    let tenants = tenant_responses(&mut conn, rows).await?;
    Ok(Answer(
        tenants.into_iter().map(|(_, tenant)| tenant).collect(),
    ))
}

async fn join(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(ProjectPath { project_id }): Path<ProjectPath>,
    Json(request): Json<JoinTenantsRequest>,
) -> Result<Answer<AppProjectResponse>> {
    secret(&core)?;
    check_length("tenantUuids", request.tenant_uuids.len())?;
    changes::join(&core, &scope, &project_id, &request.tenant_uuids).await?;
    answer(&core, &scope, &project_id).await
}

async fn leave(
    EndUser { scope, .. }: EndUser,
    State(core): State<Core>,
    Path(ProjectPath { project_id }): Path<ProjectPath>,
    Json(request): Json<LeaveTenantsRequest>,
) -> Result<Answer<AppProjectResponse>> {
    secret(&core)?;
    check_length("tenantUuids", request.tenant_uuids.len())?;
    changes::leave(&core, &scope, &project_id, &request.tenant_uuids).await?;
    answer(&core, &scope, &project_id).await
}
