//! `/v1/hubs/{hubUuid}/desired-state`.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use std::time::Duration;

use axum::extract::{FromRef, State};
use hub_protocol::hub::DesiredState;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::authn::Authn;
use crate::authn::hub::Hub;
use crate::core::Core;
use crate::domain::hubs::Hubs;
use crate::error::{Error, Result};
use crate::http::etag::{IfNoneMatch, Tagged};
use crate::http::extract::{Path, Query};
use crate::http::operation::operation_failing;
use crate::http::paths::HubPath;

pub fn routes<S>() -> ApiRouter<S>
where
    S: Clone + Send + Sync + 'static,
    Core: FromRef<S>,
    Authn: FromRef<S>,
    Hubs: FromRef<S>,
{
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

/// How long to wait for a change.
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
