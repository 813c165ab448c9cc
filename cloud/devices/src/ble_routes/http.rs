//! `/tenant/ble/route`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Json;
use hub_core::http::operation::operation;
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use hub_protocol::scan_config::{Otherwise, RouteRule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MAX_RULES, Route};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/ble/route",
        get_with(
            get,
            operation(
                "bleRoute.get",
                "tenant-ble",
                "What hubs report, and what the service keeps",
            ),
        )
        .put_with(
            put,
            operation(
                "bleRoute.put",
                "tenant-ble",
                "Replace the route of BLE events",
            ),
        ),
    )
}

/// A whole route. It replaces the one before. A member that is not known is an error.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BleRouteConfigRequest {
    /// The rules in the order in which they are tried: of each layer, the first that fits decides.
    #[schemars(length(max = MAX_RULES))]
    rules: Vec<RouteRule>,
    /// The action for events that no rule of either layer fits; `FORWARD` when absent.
    otherwise: Option<Otherwise>,
}

/// A route.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleRouteConfigResponse {
    /// The rules in the order in which they are tried.
    rules: Vec<RouteRule>,
    /// The action for events that no rule of either layer fits.
    otherwise: Otherwise,
    /// Rises with every change; 0 of a tenant that has set no route.
    #[schemars(range(min = 0))]
    revision: i64,
    /// When it was last changed; null of a tenant that has set no route.
    updated_at: Option<Timestamp>,
}

impl From<Route> for BleRouteConfigResponse {
    fn from(route: Route) -> Self {
        let Route {
            rules,
            otherwise,
            revision,
            updated_at,
            ..
        } = route;
        Self {
            rules,
            otherwise,
            revision,
            updated_at,
        }
    }
}

async fn get(
    auth: Authorized<perm::BleRead>,
    State(core): State<Core>,
) -> Result<Answer<BleRouteConfigResponse>> {
    let route = super::get(&mut core.db.read().await?, auth.scope.tenant_uuid()).await?;
    Ok(Answer(route.into()))
}

async fn put(
    auth: Authorized<perm::BleRouteWrite>,
    State(core): State<Core>,
    Json(request): Json<BleRouteConfigRequest>,
) -> Result<Answer<BleRouteConfigResponse>> {
    let otherwise = request.otherwise.unwrap_or_default();
    let route = super::replace(&core, &auth.scope, request.rules, otherwise).await?;
    Ok(Answer(route.into()))
}
