//! Keeps the metrics current that no request counts: hubs, background work, connections,
//! pipelines. Gives back
//! the memory that the database no longer needs.

use std::time::Duration;

use hub_base::error::Result;
use hub_base::metrics::{InLane, OfPool};
use hub_core::outbox;
use hub_core::tasks;
use hub_fleet::hubs;
use hub_pipelines as pipelines;

use crate::app::App;
use crate::upkeep::LANES;

const INTERVAL: Duration = Duration::from_secs(15);

/// Runs until the service ends.
pub async fn run(app: App) {
    let mut is_away = false;
    while !app.shutdown.is_cancelled() {
        let done = match app.db.release_memory().await {
            Ok(()) => once(&app).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(()) if is_away => {
                is_away = false;
                tracing::warn!("the database answers again");
            }
            Err(error) if !is_away && !app.shutdown.is_cancelled() => {
                is_away = true;
                tracing::error!(%error, "the database does not answer; requests get 503 until it does");
            }
            Ok(()) | Err(_) => {}
        }
        tokio::select! {
            () = app.shutdown.cancelled() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
    }
}

/// Brings them up to date.
pub async fn once(app: &App) -> Result<()> {
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
    metrics.set_flooding(hubs::all_flooding(&mut conn, now).await?.into_iter());
    Ok(())
}
