//! `/app/action-definitions`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation_failing;
use hub_core::http::page::{Listed, Page};
use hub_devices::device_pages::http::ActionPath;
use hub_devices::device_pages::{ActionDefinitionResponse, of_model};
use hub_identity::authz::{EndUser, Scope};
use hub_protocol::TenantUuid;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::{self as end_users, store};
use super::TAG;
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/app/action-definitions",
            get_with(
                list,
                operation_failing(
                    &[404, 503],
                    "appActionDefinitions.list",
                    TAG,
                    "The actions of a supplier of the caller's hubs, newest first",
                ),
            ),
        )
        .api_route(
            "/app/action-definitions/{actionId}",
            get_with(
                get,
                operation_failing(
                    &[409],
                    "appActionDefinitions.get",
                    TAG,
                    "One action of a supplier of the caller's hubs",
                ),
            ),
        )
}

/// The supplier of the actions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SupplierQuery {
    /// The supplier of a hub of the caller.
    supplier_uuid: TenantUuid,
}

/// The supplier of the action.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OneSupplierQuery {
    /// The supplier; needed if several suppliers of the caller's hubs have an action of this id.
    supplier_uuid: Option<TenantUuid>,
}

/// A page has at most 8 MiB of parameters and transports.
async fn list(
    EndUser { scope, user }: EndUser,
    State(core): State<Core>,
    Query(query): Query<SupplierQuery>,
    page: Page,
) -> Result<Listed<ActionDefinitionResponse>> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(&core, &mut conn, &scope).await?;
    end_users::require_supplier(&mut conn, &person, query.supplier_uuid).await?;
    let supplier = Scope::of_person(&user, query.supplier_uuid);
    let bytes = of_model::action_bytes(&mut conn, &supplier, page.slice()).await?;
    let _held = page.hold(&core, query.supplier_uuid, bytes, "actions")?;
    let (actions, total) = of_model::list_actions(&mut conn, &supplier, page.slice()).await?;
    Ok(page.listed(actions, total))
}

async fn get(
    EndUser { scope, user }: EndUser,
    State(core): State<Core>,
    Path(ActionPath { action_id }): Path<ActionPath>,
    Query(query): Query<OneSupplierQuery>,
) -> Result<Answer<ActionDefinitionResponse>> {
    let mut conn = core.db.read().await?;
    let person = end_users::of_caller(&core, &mut conn, &scope).await?;
    let mine = store::suppliers(&mut conn, &person).await?;
    let asked: Vec<TenantUuid> = mine
        .into_iter()
        .filter(|supplier| query.supplier_uuid.is_none_or(|asked| asked == *supplier))
        .collect();
    let having = of_model::suppliers_with_action(&mut conn, &action_id, &asked).await?;
    match having[..] {
        [] => Err(Error::not_found("action")),
        [supplier] => {
            let supplier = Scope::of_person(&user, supplier);
            Ok(Answer(
                of_model::action(&mut conn, &supplier, &action_id).await?,
            ))
        }
        _ => {
            let message = "several suppliers of your hubs have an action of this id; name one with `supplierUuid`";
            Err(Error::conflict("ACTION_AMBIGUOUS", message))
        }
    }
}
