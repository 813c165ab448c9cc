//! `/app/devices/{deviceInstanceId}/commands`: people see the commands that they gave themselves.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_devices::device_instances::http::DevicePath;
use hub_identity::authz::{EndUser, Scope};

use super::super::store::{self, Seen};
use super::super::view::{self, DeviceCommandResponse};
use super::super::{DeviceCommands, Requester, not_found, settled, submit};
use super::{DeviceCommandRequest, WaitQuery};
use crate::Parts;
use crate::device_commands::http::DeviceCommandPath;
use crate::end_users;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/devices/{deviceInstanceId}/commands",
            get_with(
                list,
                operation(
                    "appDeviceCommands.list",
                    "app",
                    "The commands that the caller gave a device, newest first",
                ),
            )
            .post_with(
                create,
                operation_failing(
                    &[409, 429, 502, 503, 504],
                    "appDeviceCommands.create",
                    "app",
                    "Have a device of the caller do something",
                ),
            ),
        )
        .api_route(
            "/app/devices/{deviceInstanceId}/commands/{commandUuid}",
            get_with(
                get,
                operation(
                    "appDeviceCommands.get",
                    "app",
                    "One command that the caller gave a device",
                ),
            ),
        )
}

/// The request is held until the command has ended, for 10 seconds at most. A failed command is not
/// a failed request: `status` and `error` describe it.
async fn create(
    EndUser { scope, user }: EndUser,
    State(commands): State<DeviceCommands>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    Query(wait): Query<WaitQuery>,
    Json(request): Json<DeviceCommandRequest>,
) -> Result<Answer<DeviceCommandResponse>> {
    let wait = wait.checked()?;
    let order = request.checked()?;
    let mut conn = commands.core.db.read().await?;
    let person = end_users::of_caller(&commands.core, &mut conn, &scope).await?;
    let own = end_users::device(&mut conn, &person, device_instance_id).await?;
    drop(conn);
    let supplier = Scope::of_person(&user, own.tenant_uuid);
    let requester = Requester {
        scope: supplier,
        device_instance_id,
        person: Some((scope, person)),
    };
    let row = submit(&commands, &requester, order).await?;
    Ok(Answer(
        settled(&commands, &requester.scope, row, wait).await?,
    ))
}

async fn list(
    EndUser { scope, user }: EndUser,
    State(core): State<Core>,
    Path(DevicePath { device_instance_id }): Path<DevicePath>,
    page: Page,
) -> Result<Listed<DeviceCommandResponse>> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(&core, &mut conn, &scope).await?;
    let own = end_users::device(&mut conn, &person, device_instance_id).await?;
    let supplier = Scope::of_person(&user, own.tenant_uuid);
    let seen = Seen {
        author_uuid: Some(scope.user_uuid().0),
        since: own.since,
    };
    let (rows, total) =
        store::list(&mut conn, &supplier, device_instance_id, seen, page.slice()).await?;
    Ok(page.listed(
        view::all(&mut conn, &supplier, rows, core.clock.now()).await?,
        total,
    ))
}

async fn get(
    EndUser { scope, user }: EndUser,
    State(core): State<Core>,
    Path(DeviceCommandPath {
        device_instance_id,
        command_uuid,
    }): Path<DeviceCommandPath>,
) -> Result<Answer<DeviceCommandResponse>> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(&core, &mut conn, &scope).await?;
    let own = end_users::device(&mut conn, &person, device_instance_id).await?;
    let supplier = Scope::of_person(&user, own.tenant_uuid);
    let seen = Seen {
        author_uuid: Some(scope.user_uuid().0),
        since: own.since,
    };
    let row = store::get(&mut conn, &supplier, device_instance_id, seen, command_uuid)
        .await?
        .ok_or_else(not_found)?;
    Ok(Answer(
        view::one(&mut conn, &supplier, row, core.clock.now()).await?,
    ))
}
