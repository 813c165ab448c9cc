//! Keeps the metrics current that no request counts: hubs, background work, connections,
//! pipelines; and logs conditions of the whole service. Gives back the memory that the database no
//! longer needs.

use std::time::Duration;

use hub_base::error::Result;
use hub_base::metrics::{InLane, OfPool};
use hub_core::outbox;
use hub_core::tasks;
use hub_fleet::hubs::{self, Flooding};
use hub_pipelines as pipelines;

use crate::app::App;
use crate::conditions::{self, Conditions};
use crate::upkeep::LANES;

const INTERVAL: Duration = Duration::from_secs(5);
/// What counts rows is done once in so many intervals.
const ROUND: u32 = 3;

/// Runs until the service ends.
pub async fn run(app: App) {
    let mut found = Conditions::default();
    let mut is_failing = false;
    for interval in (0..ROUND).cycle() {
        if app.shutdown.is_cancelled() {
            return;
        }
        conditions::watch_database(&app).await;
        conditions::watch_bus(&app);
        app.surges.log_ends();
        if interval == 0 {
            match round(&app, &mut found).await {
                Ok(()) if is_failing => {
                    tracing::warn!("the metrics of hubs and background work are current again");
                    is_failing = false;
                }
                Ok(()) => {}
                Err(error) if is_failing || error.is_watched() => {}
                Err(error) => {
                    tracing::error!(%error, "the metrics of hubs and background work are not current");
                    is_failing = true;
                }
            }
        }
        tokio::select! {
            () = app.shutdown.cancelled() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

async fn round(app: &App, found: &mut Conditions) -> Result<()> {
    app.db.release_memory().await?;
    let flooding = once(app).await?;
    let now = app.clock.now();
    found
        .look(app, &mut app.db.read().await?, &flooding, now)
        .await
}

/// Brings them up to date. Returns the hubs that flood.
pub async fn once(app: &App) -> Result<Vec<Flooding>> {
    let metrics = &app.metrics;
    for (pool, open, idle) in app.db.connections() {
        metrics
            .pool_connections
            .get_or_create(&OfPool { pool })
            .set(open);
        metrics
            .pool_idle_connections
            .get_or_create(&OfPool { pool })
            .set(idle);
    }
    let now = app.clock.now();
    let mut conn = app.db.read().await?;
    let backlog = tasks::backlog(&mut conn, now).await?;
    for lane in LANES {
        let waiting = backlog.iter().find(|waiting| waiting.lane == lane.name);
        let lane = InLane { lane: lane.name };
        metrics
            .tasks_due
            .get_or_create(&lane)
            .set(waiting.map_or(0, |waiting| waiting.due));
        let delay = waiting.map_or(0, |waiting| now.as_secs() - waiting.oldest.as_secs());
        metrics.task_delay_seconds.get_or_create(&lane).set(delay);
    }
    let (pending, oldest) = outbox::backlog(&mut conn).await?;
    metrics.registration_events_pending.set(pending);
    let age = oldest.map_or(0, |oldest| now.as_secs() - oldest.as_secs());
    metrics.registration_event_age_seconds.set(age);
    let overview = pipelines::overview(&mut conn, now).await?;
    for (status, count) in overview.by_status {
        metrics.pipelines.count(status, count);
    }
    metrics.pipelines.lag_seconds.set(overview.lag_seconds);
    let (hubs, online) = hubs::count_all(&mut conn, now).await?;
    metrics.hubs.set(hubs);
    metrics.hubs_online.set(online);
    let flooding = hubs::all_flooding(&mut conn, now).await?;
    metrics.set_flooding(flooding.iter().map(|hub| hub.hub_uuid));
    Ok(flooding)
}
