//! `/tenant/devices/{deviceInstanceId}/commands`: suppliers see the commands of everybody.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::{FromRef, State};
use hub_protocol::Timestamp;

use super::super::store::{self, Seen};
use super::super::view::{self, DeviceCommandResponse};
use super::super::{DeviceCommands, Giver, give, not_found, settled};
use super::{DeviceCommandRequest, WaitQuery};
use crate::authn::Authn;
use crate::authz::{Authorized, permission as perm};
use crate::core::Core;
use crate::domain::device_instances;
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::extract::{Json, Path, Query};
use crate::http::operation::{operation, operation_failing};
use crate::http::page::{Listed, Page};
use crate::http::paths::{DeviceCommandPath, DevicePath};

const TAG: &str = "tenant-devices";

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    DeviceCommands: FromRef<S>,
{
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
    let giver = Giver {
        scope: auth.scope,
        device_instance_id,
        person: None,
    };
    let row = give(&commands, &giver, request.checked()?).await?;
    Ok(Answer(settled(&commands, &giver.scope, row, wait).await?))
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
