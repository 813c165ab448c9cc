//! `/app/devices/{deviceInstanceId}/commands`: people see the commands that they gave themselves.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::{FromRef, State};

use super::super::store::{self, Seen};
use super::super::view::{self, DeviceCommandResponse};
use super::super::{DeviceCommands, Giver, give, not_found, settled};
use super::{DeviceCommandRequest, WaitQuery};
use crate::authn::Authn;
use crate::authz::{EndUser, Scope};
use crate::core::Core;
use crate::domain::end_users;
use crate::error::Result;
use crate::http::answer::Answer;
use crate::http::extract::{Json, Path, Query};
use crate::http::operation::{operation, operation_failing};
use crate::http::page::{Listed, Page};
use crate::http::paths::{DeviceCommandPath, DevicePath};

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    DeviceCommands: FromRef<S>,
{
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

/// The request is held until the command has ended, for 10 seconds at most. What is not carried out
/// is no failure of the request: `status` and `error` say so.
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
    let giver = Giver {
        scope: supplier,
        device_instance_id,
        person: Some((scope, person)),
    };
    let row = give(&commands, &giver, order).await?;
    Ok(Answer(settled(&commands, &giver.scope, row, wait).await?))
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
