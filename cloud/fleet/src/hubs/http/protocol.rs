//! `/v1/hubs`: what a hub's agent calls for its tokens and adapters. Claims are in `bundles`, which
//! adds to them.

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::extract::State;
use hub_base::error::Result;
use hub_core::http::answer::Answer;
use hub_core::http::extract::Json;
use hub_core::http::idempotency::IdempotencyKey;
use hub_core::http::operation::{operation, operation_failing};
use hub_identity::authn::hub::{Hub, RefreshingHub};
use hub_ingest::UploadBody;
use hub_protocol::claim::{HubAccess, HubRefreshRequest};
use hub_protocol::hub::{AdapterSnapshot, AdapterSnapshotResult, HubTest};

use super::super::{self as hubs, Hubs, adapters};
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/v1/hubs/refresh",
            post_with(
                refresh,
                operation_failing(
                    &[403, 429],
                    "hub.refresh",
                    "hub-api",
                    "Refresh the access token",
                ),
            ),
        )
        .api_route(
            "/v1/hubs/adapters",
            post_with(
                store_adapters,
                operation(
                    "hub.reportAdapters",
                    "hub-api",
                    "Report all Bluetooth adapters",
                ),
            ),
        )
        .api_route(
            "/v1/test",
            get_with(
                test,
                operation("hub.test", "hub-api", "The hub as the service sees it"),
            ),
        )
}

async fn refresh(
    RefreshingHub(claims): RefreshingHub,
    State(hubs): State<Hubs>,
    Json(request): Json<HubRefreshRequest>,
) -> Result<Answer<HubAccess>> {
    hubs::refresh(&hubs, &claims, &request).await.map(Answer)
}

async fn store_adapters(
    hub: Hub,
    State(hubs): State<Hubs>,
    IdempotencyKey(key): IdempotencyKey,
    body: UploadBody<AdapterSnapshot>,
) -> Result<Answer<AdapterSnapshotResult>> {
    let (snapshot, _turn) = body
        .report(&hubs.core, &hubs.core.turns.reports, &hub)
        .await?;
    adapters::store_snapshot(&hubs, &hub, key?.as_deref(), snapshot)
        .await
        .map(Answer)
}

async fn test(hub: Hub, State(hubs): State<Hubs>) -> Answer<HubTest> {
    Answer(HubTest {
        hub_uuid: hub.hub_uuid,
        tenant_uuid: hub.tenant_uuid,
        time: hubs.core.clock.now(),
    })
}
