//! `/v1/hubs/{hubUuid}/desired-state`.

use std::time::Duration;

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::{Error, Result};
use hub_core::http::etag::{IfNoneMatch, Tagged};
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation_failing;
use hub_fleet::hubs::Hubs;
use hub_fleet::hubs::http::HubPath;
use hub_identity::authn::hub::Hub;
use hub_protocol::hub::DesiredState;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/v1/hubs/{hubUuid}/desired-state",
        get_with(
            desired_state,
            operation_failing(
                &[429],
                "hub.getDesiredState",
                "hub-api",
                "The desired state of the hub, now or once it changes",
            ),
        ),
    )
}

/// Less than the one minute after which proxies commonly close idle connections.
const MAX_WAIT_SECS: u64 = 55;

/// The time to wait for a change.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct WaitQuery {
    /// Seconds to hold the request until the state changes; 0 when absent.
    #[schemars(range(max = MAX_WAIT_SECS))]
    wait: Option<u64>,
}

async fn desired_state(
    hub: Hub,
    State(hubs): State<Hubs>,
    Path(_): Path<HubPath>,
    Query(query): Query<WaitQuery>,
    known: IfNoneMatch,
) -> Result<Tagged<DesiredState>> {
    let wait = query.wait.unwrap_or(0);
    if wait > MAX_WAIT_SECS {
        return Err(Error::field(
            "wait",
            format!("must be between 0 and {MAX_WAIT_SECS}"),
        ));
    }
    super::desired_state(&hubs, &hub, &known, Duration::from_secs(wait)).await
}
