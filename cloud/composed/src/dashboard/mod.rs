//! The summary of a tenant on one page. BLE events are counted by minute in the background, so that
//! a summary costs the same however many there are; only the minutes that are not counted yet are
//! read.

pub mod http;
mod rollup;
mod store;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hub_base::error::Result;
use hub_core::Core;
use hub_devices::ble::{self, MinuteCount};
use hub_devices::device_instances;
use hub_fleet::{hubs, jobs, telemetry};
use hub_identity::authz::Scope;
use hub_pipelines as pipelines;
use hub_protocol::{TenantUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use crate::notices::{self, AttentionItem, Subject};

pub use rollup::{forget, roll_up};
pub use store::events_of_all;

/// The lifetime of a cached summary.
const FRESH: Duration = Duration::from_secs(2);
/// Summaries that are kept.
const MAX_KEPT: usize = 500;
/// Points of the series, about.
const POINTS: i64 = 60;
/// Minutes that a summary counts itself, when the background is late.
const MAX_UNCOUNTED: i64 = 5;
/// The shortest time over which events are counted as a rate.
const LEAST_MICROS: i64 = 5_000_000;
/// A hub reports within this time, if it does at all.
const REPORT_SECS: i64 = 180;
const REPORTS: i64 = 30_000;

/// The summary of a tenant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DashboardSummary {
    /// The minutes that are looked back.
    #[schemars(range(min = 1, max = 1440))]
    window_minutes: i64,
    /// The hubs.
    hubs: HubNumbers,
    /// The devices that are not retired.
    devices: DeviceNumbers,
    /// The pipelines.
    pipelines: PipelineNumbers,
    /// Messages that could not be delivered and wait for somebody.
    #[schemars(range(min = 0))]
    dead_letters: i64,
    /// The BLE events of the window.
    ble: BleNumbers,
    /// The deliveries of the window.
    webhooks: WebhookNumbers,
    /// The jobs of hubs.
    jobs: JobNumbers,
    /// What needs somebody, the most severe first; a key sees what it may read.
    #[schemars(length(max = 70))]
    attention: Vec<AttentionItem>,
    /// When the numbers were read.
    generated_at: Timestamp,
}

impl DashboardSummary {
    /// With the items of attention that somebody may see.
    fn only(&self, may_see: impl Fn(Subject) -> bool) -> Self {
        let mut summary = self.clone();
        summary
            .attention
            .retain(|item| may_see(item.notice_type.subject()));
        summary
    }
}

/// The hubs of a tenant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubNumbers {
    /// All hubs.
    #[schemars(range(min = 0))]
    total: i64,
    /// Hubs with telemetry of the last ten minutes.
    #[schemars(range(min = 0))]
    online: i64,
    /// Blocked hubs.
    #[schemars(range(min = 0))]
    blocked: i64,
    /// Hubs without an adapter that receives.
    #[schemars(range(min = 0))]
    blind: i64,
}

/// The devices of a tenant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceNumbers {
    /// Devices that are not retired.
    #[schemars(range(min = 0))]
    total: i64,
    /// Active devices.
    #[schemars(range(min = 0))]
    active: i64,
    /// Active devices that are online.
    #[schemars(range(min = 0))]
    online: i64,
    /// Active devices that are offline.
    #[schemars(range(min = 0))]
    silent: i64,
}

/// The pipelines of a tenant.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipelineNumbers {
    /// All pipelines.
    #[schemars(range(min = 0))]
    total: i64,
    /// Enabled pipelines.
    #[schemars(range(min = 0))]
    enabled: i64,
    /// Pipelines that do not deliver.
    #[schemars(range(min = 0))]
    failing: i64,
}

/// The received events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BleNumbers {
    /// The events.
    #[schemars(range(min = 0))]
    events: i64,
    /// The average number in a minute, since the first event of the window.
    #[schemars(range(min = 0))]
    events_per_minute: f64,
    /// The share of them that was decoded, from 0 to 1; 0 without events.
    #[schemars(range(min = 0, max = 1))]
    decoded_share: f64,
    /// The events over time, oldest first; the points have the same distance.
    #[schemars(length(max = 100))]
    series: Vec<Point>,
}

/// A point of the series.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// When it begins; it lasts until the next one.
    at: Timestamp,
    /// The events of it.
    #[schemars(range(min = 0))]
    events: i64,
}

/// The outcomes of deliveries.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookNumbers {
    /// The tries.
    #[schemars(range(min = 0))]
    attempts: i64,
    /// Deliveries that the receiver accepted.
    #[schemars(range(min = 0))]
    succeeded: i64,
    /// The share of them, from 0 to 1; null without tries.
    #[schemars(range(min = 0, max = 1))]
    success_share: Option<f64>,
}

/// The jobs of hubs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobNumbers {
    /// Running jobs.
    #[schemars(range(min = 0))]
    running: i64,
    /// Jobs of the period that failed or expired.
    #[schemars(range(min = 0))]
    failed: i64,
}

type Key = (TenantUuid, i64);
/// A summary, and when it was read.
type Kept = (Instant, Arc<DashboardSummary>);

/// The state of the handler. Cheap to clone.
#[derive(Clone)]
pub struct Dashboards {
    core: Core,
    kept: Arc<Mutex<HashMap<Key, Kept>>>,
}

impl Dashboards {
    pub fn new(core: Core) -> Self {
        Self {
            core,
            kept: Arc::default(),
        }
    }

    /// The summary of the tenant, which may be two seconds old: many clients that ask often cost no
    /// more than one.
    async fn summary(&self, scope: &Scope, window_minutes: i64) -> Result<Arc<DashboardSummary>> {
        let key = (scope.tenant_uuid(), window_minutes);
        let kept = self
            .kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        if let Some((at, summary)) = kept
            && at.elapsed() < FRESH
        {
            return Ok(summary);
        }
        let read_at = Instant::now();
        let summary = Arc::new(read(&self.core, scope, window_minutes).await?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (at, _)| at.elapsed() < FRESH);
        if kept.len() < MAX_KEPT {
            kept.insert(key, (read_at, summary.clone()));
        }
        Ok(summary)
    }
}

async fn read(core: &Core, scope: &Scope, window_minutes: i64) -> Result<DashboardSummary> {
    let now = core.clock.now();
    let from = now.plus_secs(-window_minutes * 60);
    let mut conn = core.db.read().await?;
    let hub_counts = hubs::counts(&mut conn, scope, now).await?;
    let sights = telemetry::sights(&mut conn, scope, now.plus_secs(-REPORT_SECS), REPORTS).await?;
    let blind: Vec<_> = sights
        .iter()
        .filter(|sight| sight.blind_since.is_some())
        .map(|sight| sight.hub_uuid)
        .collect();
    let blind = hubs::labels(&mut conn, scope, &blind).await?.len();
    let devices = device_instances::counts(&mut conn, scope, now).await?;
    let (running, failed) = jobs::counts(&mut conn, scope, from).await?;
    drop(conn);
    let ble = ble_numbers(core, scope.tenant_uuid(), from, now).await?;
    let mut conn = core.db.read().await?;
    let sent = pipelines::numbers(&mut conn, scope, from).await?;
    let attention = notices::attention(&mut conn, scope.tenant_uuid()).await?;
    Ok(DashboardSummary {
        window_minutes,
        hubs: HubNumbers {
            total: hub_counts.total,
            online: hub_counts.online,
            blocked: hub_counts.blocked,
            blind: i64::try_from(blind).unwrap_or(i64::MAX),
        },
        devices: DeviceNumbers {
            total: devices.total,
            active: devices.active,
            online: devices.online,
            silent: devices.active - devices.online,
        },
        pipelines: PipelineNumbers {
            total: sent.pipelines.total,
            enabled: sent.pipelines.enabled,
            failing: sent.pipelines.failing,
        },
        dead_letters: sent.dead_letters,
        ble,
        webhooks: WebhookNumbers {
            attempts: sent.attempts,
            succeeded: sent.succeeded,
            success_share: (sent.attempts > 0)
                .then(|| sent.succeeded as f64 / sent.attempts as f64),
        },
        jobs: JobNumbers { running, failed },
        attention,
        generated_at: now,
    })
}

/// The counts from the minute of `from` to the present one.
async fn ble_numbers(
    core: &Core,
    tenant_uuid: TenantUuid,
    from: Timestamp,
    now: Timestamp,
) -> Result<BleNumbers> {
    let (from, last) = (minute_of(from), minute_of(now));
    let mut conn = core.db.read().await?;
    let counted_to = store::counted_to(&mut conn, tenant_uuid)
        .await?
        .unwrap_or(0);
    let mut minutes = store::minutes(&mut conn, tenant_uuid, from, last).await?;
    drop(conn);
    let uncounted = counted_to.max(from).max(last + 1 - MAX_UNCOUNTED);
    minutes.extend(ble::count_minutes(core, tenant_uuid, (uncounted, last + 1)).await?);
    let first = minutes.iter().map(|count| count.minute).min();
    let begin = match first {
        Some(minute) if minute > from => {
            ble::first_received(core, tenant_uuid, (minute, minute + 1)).await?
        }
        _ => None,
    };
    Ok(numbers(&minutes, from, begin, now))
}

fn minute_of(at: Timestamp) -> i64 {
    at.as_secs().div_euclid(60)
}

/// Sums up minutes, none of which is before `from`. `begin` is the first event, if there is none in
/// the minute of `from`.
fn numbers(
    minutes: &[MinuteCount],
    from: i64,
    begin: Option<Timestamp>,
    now: Timestamp,
) -> BleNumbers {
    let span = minute_of(now) + 1 - from;
    let width = (span + POINTS - 1) / POINTS;
    let points = (span + width - 1) / width;
    let mut series: Vec<Point> = (0..points)
        .map(|point| Point {
            at: Timestamp::from_micros((from + point * width) * 60_000_000),
            events: 0,
        })
        .collect();
    let (mut events, mut decoded) = (0, 0);
    for count in minutes {
        events += count.events;
        decoded += count.decoded;
        let point = usize::try_from((count.minute - from) / width).ok();
        if let Some(point) = point.and_then(|point| series.get_mut(point)) {
            point.events += count.events;
        }
    }
    // Both are far below the limit of a float's exact integers. A few events within a moment are
    // not many events a minute.
    let begin = begin.map_or(from * 60_000_000, Timestamp::as_micros);
    let lasted = (now.as_micros() - begin).max(LEAST_MICROS) as f64 / 60e6;
    let events_per_minute = (events as f64 / lasted * 100.0).round() / 100.0;
    let decoded_share = if events > 0 {
        (decoded as f64 / events as f64).min(1.0)
    } else {
        0.0
    };
    BleNumbers {
        events,
        events_per_minute,
        decoded_share,
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_has_every_event_once_and_few_points() {
        let now = Timestamp::from_micros(1_800_014_430_000_000);
        for window in [1, 5, 59, 60, 61, 1440] {
            let from = minute_of(now.plus_secs(-window * 60));
            let minutes: Vec<MinuteCount> = (from..=minute_of(now))
                .map(|minute| MinuteCount {
                    minute,
                    events: 2,
                    decoded: 1,
                })
                .collect();
            let summary = numbers(&minutes, from, None, now);
            assert_eq!(summary.events, 2 * (window + 1));
            assert_eq!(
                summary.series.iter().map(|point| point.events).sum::<i64>(),
                summary.events,
                "{window}"
            );
            assert!(
                summary.series.len() <= 61 && summary.series[0].at.as_secs() == from * 60,
                "{window}"
            );
            assert!((summary.decoded_share - 0.5).abs() < 1e-9);
            assert!(
                summary.events_per_minute > 1.9 && summary.events_per_minute < 4.1,
                "{summary:?}"
            );
        }
        assert_eq!(numbers(&[], minute_of(now), None, now).events, 0);
    }

    #[test]
    fn a_rate_is_that_of_the_time_in_which_events_came() {
        let now = Timestamp::from_micros(1_800_014_430_000_000);
        let from = minute_of(now.plus_secs(-3600));
        for (secs, events, expected) in [(90, 3600, 2400.0), (15, 600, 2400.0), (0, 1, 12.0)] {
            let begin = now.plus_secs(-secs);
            let count = MinuteCount {
                minute: minute_of(begin),
                events,
                decoded: 0,
            };
            let summary = numbers(&[count], from, Some(begin), now);
            assert_eq!(summary.events_per_minute, expected, "{secs} s");
        }
    }
}
