//! What people get to see of a device: the forms, manuals and actions of its model.

use hub_base::db::{Conn, Slice};
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::TenantUuid;
use uuid::Uuid;

use super::config::{self, Submission};
use super::http::{ActionDefinitionResponse, DeviceUiResponse};
use super::store::manuals::ManualRow;
use super::{actions, store, uis};

/// The newest objects of each kind.
const MOST: Slice = Slice {
    size: 20,
    offset: 0,
};

/// The forms, manuals and actions of a model.
pub struct PagesOfModel {
    pub uis: Vec<DeviceUiResponse>,
    pub manuals: Vec<ManualRow>,
    pub actions: Vec<ActionDefinitionResponse>,
}

/// The bytes of documents that [`pages`] reads.
pub async fn bytes(conn: &mut Conn, scope: &Scope, device_uuid: Uuid) -> Result<i64> {
    let uis = store::uis::page_bytes(conn, scope, Some(device_uuid), MOST).await?;
    let manuals = store::manuals::page_bytes(conn, scope, Some(device_uuid), MOST).await?;
    Ok(uis + manuals + store::actions::page_bytes(conn, scope, Some(device_uuid), MOST).await?)
}

/// The newest forms and manuals of the tenant's model, and the newest actions of it or of all
/// models.
pub async fn pages(conn: &mut Conn, scope: &Scope, device_uuid: Uuid) -> Result<PagesOfModel> {
    let (uis, _) = store::uis::list(conn, scope, Some(device_uuid), MOST).await?;
    let (manuals, _) = store::manuals::list(conn, scope, Some(device_uuid), MOST).await?;
    let (rows, _) = store::actions::list(conn, scope, Some(device_uuid), MOST).await?;
    let action = |row| ActionDefinitionResponse::new(scope.tenant_uuid(), row);
    Ok(PagesOfModel {
        uis: uis
            .into_iter()
            .map(DeviceUiResponse::new)
            .collect::<Result<_>>()?,
        manuals,
        actions: rows.into_iter().map(action).collect::<Result<_>>()?,
    })
}

/// The most setup forms in one answer.
const MOST_SETUP: Slice = Slice {
    size: 100,
    offset: 0,
};

/// The bytes of documents that [`setup_forms`] reads.
pub async fn setup_form_bytes(conn: &mut Conn, scope: &Scope) -> Result<i64> {
    store::uis::setup_bytes(conn, scope, MOST_SETUP).await
}

/// The newest forms of the tenant that set devices up.
pub async fn setup_forms(conn: &mut Conn, scope: &Scope) -> Result<Vec<DeviceUiResponse>> {
    let (rows, _) = store::uis::list_setup(conn, scope, MOST_SETUP).await?;
    rows.into_iter().map(DeviceUiResponse::new).collect()
}

/// The request of a step of a form of the tenant; 404 without such a form or step, 409 if the step
/// sends none.
pub async fn submission(
    conn: &mut Conn,
    scope: &Scope,
    device_ui_id: i64,
    step_id: &str,
) -> Result<Submission> {
    let form = uis::get(conn, scope, device_ui_id).await?;
    let step = config::submission(&form.config, step_id)?
        .ok_or_else(|| Error::not_found("step of the UI schema"))?;
    step.ok_or_else(|| {
        Error::conflict(
            "STEP_SENDS_NOTHING",
            "this step of the form has no `submit`: it sends nothing",
        )
    })
}

/// The bytes of documents in a page of the tenant's actions.
pub async fn action_bytes(conn: &mut Conn, scope: &Scope, slice: Slice) -> Result<i64> {
    store::actions::page_bytes(conn, scope, None, slice).await
}

/// A page of the tenant's actions, newest first, and how many there are.
pub async fn list_actions(
    conn: &mut Conn,
    scope: &Scope,
    slice: Slice,
) -> Result<(Vec<ActionDefinitionResponse>, i64)> {
    let (rows, total) = store::actions::list(conn, scope, None, slice).await?;
    let action = |row| ActionDefinitionResponse::new(scope.tenant_uuid(), row);
    Ok((rows.into_iter().map(action).collect::<Result<_>>()?, total))
}

/// The given suppliers with an action of this id; at most two.
pub async fn suppliers_with_action(
    conn: &mut Conn,
    action_id: &str,
    suppliers: &[TenantUuid],
) -> Result<Vec<TenantUuid>> {
    match suppliers.is_empty() || !actions::is_id(action_id) {
        true => Ok(Vec::new()),
        false => store::actions::suppliers_of(conn, action_id, suppliers).await,
    }
}

/// The tenant's action.
pub async fn action(
    conn: &mut Conn,
    scope: &Scope,
    action_id: &str,
) -> Result<ActionDefinitionResponse> {
    ActionDefinitionResponse::new(
        scope.tenant_uuid(),
        actions::get(conn, scope, action_id).await?,
    )
}
