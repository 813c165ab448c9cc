//! `/platform/summary`: the whole service at a glance, for those who run it.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::operation::operation;
use hub_core::{outbox, tasks};
use hub_fleet::hubs;
use hub_identity::authz::PlatformAdmin;
use hub_ingest as ingest;
use hub_people::tenants;
use hub_pipelines as pipelines;
use hub_protocol::{TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Parts, dashboard};

/// Whole minutes of which events are averaged.
const MINUTES: i64 = 5;
/// The share of a limit from which on a tenant is near it, in percent.
const NEAR_PERCENT: i64 = 80;
/// Tenants that are listed.
const MAX_TENANTS: i64 = 20;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/platform/summary",
        get_with(
            summary,
            operation(
                "platform.summary",
                "platform",
                "The whole service at a glance",
            ),
        ),
    )
}

/// The numbers of the whole service.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlatformSummary {
    /// Tenants that are not deleted.
    #[schemars(range(min = 0))]
    tenants: i64,
    /// Hubs that are not released.
    #[schemars(range(min = 0))]
    hubs: i64,
    /// Hubs with telemetry of the last ten minutes.
    #[schemars(range(min = 0))]
    hubs_online: i64,
    /// BLE events a minute, over the last five whole minutes that are counted.
    #[schemars(range(min = 0))]
    events_per_minute: f64,
    /// The text of all stored records, with 128 bytes for each.
    #[schemars(range(min = 0))]
    stored_bytes: i64,
    /// Replicas that are connected to the same bus, with the one that answers.
    #[schemars(range(min = 1))]
    replicas: i64,
    /// Pipelines whose receiver fails or that do not compile.
    #[schemars(range(min = 0))]
    pipelines_failing: i64,
    /// The age of the oldest event that a running pipeline has not delivered, in seconds.
    #[schemars(range(min = 0))]
    pipeline_lag_seconds: i64,
    /// Registration events that wait for their receivers.
    #[schemars(range(min = 0))]
    registration_events_pending: i64,
    /// Background work that is due, by lane; lanes without any are left out.
    queues: Vec<Queue>,
    /// Tenants that use most of what they may, the nearest to a limit first.
    #[schemars(length(max = 20))]
    near_limits: Vec<NearLimit>,
    /// When the numbers were read.
    generated_at: Timestamp,
}

/// The background work of a lane.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// The name of the lane.
    lane: String,
    /// Tasks that are due.
    #[schemars(range(min = 1))]
    due: i64,
    /// How long the oldest has been due, in seconds.
    #[schemars(range(min = 0))]
    delay_seconds: i64,
}

/// A limit of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Limit {
    /// Bytes that are stored.
    StoredBytes,
    /// Bytes of a day (UTC).
    BytesPerDay,
}

/// A tenant near one of its limits.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NearLimit {
    /// The tenant.
    tenant_uuid: TenantUuid,
    /// Its name.
    name: String,
    /// The limit.
    limit: Limit,
    /// What it uses.
    #[schemars(range(min = 0))]
    used: i64,
    /// What it may use.
    #[schemars(range(min = 0))]
    allowed: i64,
}

async fn summary(_: PlatformAdmin, State(core): State<Core>) -> Result<Answer<PlatformSummary>> {
    let mut conn = core.db.read().await?;
    Ok(Answer(read(&core, &mut conn).await?))
}

async fn read(core: &Core, conn: &mut Conn) -> Result<PlatformSummary> {
    let now = core.clock.now();
    let (hubs, hubs_online) = hubs::count_all(conn, now).await?;
    let minute = now.as_secs().div_euclid(60);
    let events = dashboard::events_of_all(conn, (minute - MINUTES, minute)).await?;
    let queue = |waiting: tasks::Backlog| Queue {
        delay_seconds: (now.as_secs() - waiting.oldest.as_secs()).max(0),
        lane: waiting.lane,
        due: waiting.due,
    };
    let queues = tasks::backlog(conn, now).await?;
    let (registration_events_pending, _) = outbox::backlog(conn).await?;
    let pipelines = pipelines::overview(conn, now).await?;
    Ok(PlatformSummary {
        tenants: tenants::count(conn).await?,
        hubs,
        hubs_online,
        events_per_minute: events as f64 / MINUTES as f64,
        stored_bytes: ingest::stored_in_total(conn).await?,
        replicas: core.metrics.replicas.get().max(1),
        pipelines_failing: pipelines.failing(),
        pipeline_lag_seconds: pipelines.lag_seconds,
        registration_events_pending,
        queues: queues.into_iter().map(queue).collect(),
        near_limits: near_limits(core, conn, now).await?,
        generated_at: now,
    })
}

async fn near_limits(core: &Core, conn: &mut Conn, now: Timestamp) -> Result<Vec<NearLimit>> {
    let defaults = &core.config.quotas;
    let stored = ingest::near_stored_bytes(
        conn,
        defaults.stored_bytes_per_tenant,
        NEAR_PERCENT,
        MAX_TENANTS,
    )
    .await?;
    let of_day = ingest::near_bytes_per_day(
        conn,
        now,
        defaults.bytes_per_day_per_tenant,
        NEAR_PERCENT,
        MAX_TENANTS,
    )
    .await?;
    let of = |limit: Limit| {
        move |row: ingest::Used| NearLimit {
            tenant_uuid: row.tenant_uuid,
            name: row.name,
            limit,
            used: row.used,
            allowed: row.allowed,
        }
    };
    let mut near: Vec<NearLimit> = stored
        .into_iter()
        .map(of(Limit::StoredBytes))
        .chain(of_day.into_iter().map(of(Limit::BytesPerDay)))
        .collect();
    let share = |near: &NearLimit| near.used as f64 / near.allowed.max(1) as f64;
    near.sort_by(|one, other| share(other).total_cmp(&share(one)));
    near.truncate(usize::try_from(MAX_TENANTS).unwrap_or(0));
    Ok(near)
}
