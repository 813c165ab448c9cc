//! `/tenant/devices/{deviceInstanceId}/commands`: suppliers see the commands of everybody.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_devices::device_instances;
use hub_devices::device_instances::http::DevicePath;
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;

use super::super::store::{self, Seen};
use super::super::view::{self, DeviceCommandResponse};
use super::super::{DeviceCommands, Requester, not_found, settled, submit};
use super::{DeviceCommandRequest, WaitQuery};
use crate::Parts;
use crate::device_commands::http::DeviceCommandPath;

const TAG: &str = "tenant-devices";

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/devices/{deviceInstanceId}/commands",
            get_with(
                list,
                operation(
                    "deviceCommands.list",
                    TAG,
                    "The commands of a device, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[409, 429, 503],
                    "deviceCommands.create",
                    TAG,
                    "Have a device do something",
                ),
            ),
        )
        .api_route(
            "/tenant/devices/{deviceInstanceId}/commands/{commandUuid}",
            get_with(
                get,
                operation("deviceCommands.get", TAG, "One command of a device"),
            ),
        )
}

const OF_ALL: Seen = Seen {
    author_uuid: None,
    since: Timestamp::from_micros(0),
};

/// As in the app. An external endpoint is called with its own credentials.
async fn create(
    auth: Authorized<perm::DevicesOperate>,
    State(commands): State<DeviceCommands>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    Query(wait): Query<WaitQuery>,
    Json(request): Json<DeviceCommandRequest>,
) -> Result<Answer<DeviceCommandResponse>> {
    let wait = wait.checked()?;
    let requester = Requester {
        scope: auth.scope,
        device_instance_id,
        person: None,
    };
    let row = submit(&commands, &requester, request.checked()?).await?;
    Ok(Answer(
        settled(&commands, &requester.scope, row, wait).await?,
    ))
}

async fn list(
    auth: Authorized<perm::DevicesRead>,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    page: Page,
) -> Result<Listed<DeviceCommandResponse>> {
    let mut conn = core.db.read().await?;
    device_instances::require(&mut conn, &auth.scope, device_instance_id).await?;
    let (rows, total) = store::list(
        &mut conn,
        &auth.scope,
        device_instance_id,
        OF_ALL,
        page.slice(),
    )
    .await?;
    Ok(page.listed(
        view::all(&mut conn, &auth.scope, rows, core.clock.now()).await?,
        total,
    ))
}

async fn get(
    auth: Authorized<perm::DevicesRead>,
    State(core): State<Core>,
    Path(DeviceCommandPath {
        device_instance_id,
        command_uuid,
    }): Path<DeviceCommandPath>,
) -> Result<Answer<DeviceCommandResponse>> {
    let mut conn = core.db.read().await?;
    device_instances::require(&mut conn, &auth.scope, device_instance_id).await?;
    let row = store::get(
        &mut conn,
        &auth.scope,
        device_instance_id,
        OF_ALL,
        command_uuid,
    )
    .await?;
    let row = row.ok_or_else(not_found)?;
    Ok(Answer(
        view::one(&mut conn, &auth.scope, row, core.clock.now()).await?,
    ))
}
