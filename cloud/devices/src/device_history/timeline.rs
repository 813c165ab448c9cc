//! When a device was heard, when it was silent, and when no hub could have heard it.

use std::collections::{BTreeMap, BTreeSet};

use hub_base::db::Direction;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_fleet::hubs;
use hub_identity::authz::Scope;
use hub_protocol::{HubUuid, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;

use super::hour::{Hour, hour_of};
use super::listening::listening;
use super::reader::{Device, Hours, Period};
use super::spans::{Span, common, union, without};
use super::store::{self, Part};
use super::{DAY_SECS, HOUR_SECS, MAX_EVENTS};
use crate::ble::Reception;

pub const MAX_SECS: i64 = 31 * DAY_SECS;
/// A device is not silent within three of its intervals, nor within this time.
const LEAST_ALLOWANCE_SECS: i64 = 600;
/// Hubs that are asked about, of those that could hear a device.
const MAX_HUBS: usize = 4;
const MINUTE_SECS: i64 = 60;
const SECOND: i64 = 1_000_000;

/// Whether a device was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TimelineStatus {
    /// Hubs received it within three of its intervals, or within 10 minutes.
    Heard,
    /// No hub received it, and one that could was listening.
    Silent,
    /// No hub that could receive it was listening.
    HubBlind,
}

/// A period of a device's timeline.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct TimelinePeriodResponse {
    /// When the period begins.
    pub from: Timestamp,
    /// When it ends, not included.
    pub to: Timestamp,
    /// Whether the device was heard.
    pub status: TimelineStatus,
}

/// A period without a reception, in microseconds, and the minute of the last reception before, in
/// seconds.
struct Gap {
    span: Span,
    heard_before: i64,
}

/// The periods in order, without gaps between them, from when the device was first heard.
/// Receptions are exact to the minute.
pub async fn read(
    core: &Core,
    scope: &Scope,
    device: Device,
    period: Period,
    interval_secs: Option<i64>,
) -> Result<Vec<TimelinePeriodResponse>> {
    let now = core.clock.now();
    let interval = interval_secs.unwrap_or(MINUTE_SECS).max(1);
    let allowance = interval.saturating_mul(3).max(LEAST_ALLOWANCE_SECS);
    let hours = heard(core, device, period, allowance, now).await?;
    let until = period.to.plus_secs(allowance).min(now);
    let minutes = minutes(&hours);
    let Some(first) = minutes.first().map(|minute| minute * SECOND) else {
        return Ok(Vec::new());
    };
    let gaps = gaps(&minutes, period, until, interval, allowance);

    let by_gap: Vec<BTreeSet<HubUuid>> = gaps
        .iter()
        .map(|gap| hubs_before(&hours, gap.heard_before))
        .collect();
    let all: BTreeSet<HubUuid> = by_gap.iter().flatten().copied().collect();
    let mut conn = core.db.read().await?;
    let seen = hubs::last_seen(&mut conn, scope, &all.iter().copied().collect::<Vec<_>>()).await?;
    let spans: Vec<Span> = gaps.iter().map(|gap| gap.span).collect();
    let mut listened: BTreeMap<HubUuid, Vec<Span>> = BTreeMap::new();
    for hub_uuid in all {
        // A gap of a hub that could not hear the device then costs samples, and changes nothing.
        let last_seen_at = seen.get(&hub_uuid).copied();
        let times = listening(
            &mut conn,
            device.tenant_uuid,
            hub_uuid,
            &spans,
            last_seen_at,
        )
        .await?;
        listened.insert(hub_uuid, times);
    }
    let mut periods: Vec<(Span, TimelineStatus)> = Vec::new();
    let begin = period.from.as_micros().max(first);
    let whole = [(begin, period.to.as_micros().max(begin))];
    periods.extend(
        without(&whole, &spans)
            .into_iter()
            .map(|span| (span, TimelineStatus::Heard)),
    );
    for (gap, hubs) in gaps.iter().zip(by_gap) {
        let times = union(
            hubs.iter()
                .filter_map(|hub| listened.get(hub))
                .flatten()
                .copied()
                .collect(),
        );
        let one = [gap.span];
        periods.extend(
            common(&one, &times)
                .into_iter()
                .map(|span| (span, TimelineStatus::Silent)),
        );
        periods.extend(
            without(&one, &times)
                .into_iter()
                .map(|span| (span, TimelineStatus::HubBlind)),
        );
    }
    periods.sort_unstable_by_key(|(span, _)| *span);
    Ok(joined(periods))
}

/// The hours with receptions of the device: those of the period, and of a day before its last
/// reception.
async fn heard(
    core: &Core,
    device: Device,
    period: Period,
    allowance: i64,
    now: Timestamp,
) -> Result<BTreeMap<i64, Hour>> {
    let Device {
        tenant_uuid,
        device_instance_id,
    } = device;
    let next_hour = hour_of(period.from) + HOUR_SECS;
    let mut conn = core.db.read().await?;
    let last =
        store::last_hour_before(&mut conn, tenant_uuid, device_instance_id, next_hour).await?;
    let begin = last.map_or(period.from, |hour| {
        Timestamp::from_micros(hour * SECOND).min(period.from)
    });
    let wide = Period {
        from: begin.plus_secs(-DAY_SECS),
        to: period.to.plus_secs(allowance).min(now),
    };
    let hours = Hours::read(&mut conn, device, wide, Part::Heard).await?;
    drop(conn);
    let mut new: BTreeMap<i64, Hour> = BTreeMap::new();
    let take = |reception: Reception| {
        new.entry(hour_of(reception.observed_at))
            .or_default()
            .add(reception)
    };
    if !hours
        .each(core, |_| false, Direction::Ascending, MAX_EVENTS, take)
        .await?
    {
        let message = "the events of this time are not counted yet; try again in a few minutes";
        return Err(Error::unavailable("BUSY", message));
    }
    for (start, hour) in hours.hours {
        new.entry(start).or_default().join(hour);
    }
    Ok(new)
}

/// The minutes with receptions of the device, in seconds since 1970.
fn minutes(hours: &BTreeMap<i64, Hour>) -> Vec<i64> {
    let of_hour = |(start, hour): (&i64, &Hour)| {
        let (start, bits) = (*start, hour.minutes);
        (0..60)
            .filter(move |bit| bits >> bit & 1 == 1)
            .map(move |bit| start + bit * MINUTE_SECS)
    };
    hours.iter().flat_map(of_hour).collect()
}

/// The times within the period without a reception for longer than is allowed. The rollups reach
/// until `until`.
fn gaps(
    minutes: &[i64],
    period: Period,
    until: Timestamp,
    interval: i64,
    allowance: i64,
) -> Vec<Gap> {
    let mut gaps = Vec::new();
    let mut add = |from: i64, to: i64, heard_before: i64| {
        let span = (
            from.max(period.from.as_micros()),
            to.min(period.to.as_micros()),
        );
        if span.0 < span.1 {
            gaps.push(Gap { span, heard_before });
        }
    };
    let mut before: Option<i64> = None;
    for minute in minutes.iter().copied() {
        if let Some(last) = before
            && minute - (last + MINUTE_SECS) > allowance
        {
            let from = (last + MINUTE_SECS + interval).min(minute);
            add(from * SECOND, minute * SECOND, last);
        }
        before = Some(minute);
    }
    if let Some(last) = before
        && until.as_secs() - (last + MINUTE_SECS) > allowance
    {
        add((last + MINUTE_SECS + interval) * SECOND, i64::MAX, last);
    }
    gaps
}

/// The hubs with most receptions of the device within the day before, which could have heard it
/// again.
fn hubs_before(hours: &BTreeMap<i64, Hour>, minute: i64) -> BTreeSet<HubUuid> {
    let mut counts: BTreeMap<HubUuid, i64> = BTreeMap::new();
    for hour in hours
        .range(minute - DAY_SECS..=minute)
        .map(|(_, hour)| hour)
    {
        for (hub_uuid, signal) in &hour.hubs {
            *counts.entry(*hub_uuid).or_default() += signal.count;
        }
    }
    let mut hubs: Vec<(i64, HubUuid)> = counts
        .into_iter()
        .map(|(hub_uuid, count)| (count, hub_uuid))
        .collect();
    hubs.sort_unstable_by_key(|hub| std::cmp::Reverse(*hub));
    hubs.into_iter()
        .take(MAX_HUBS)
        .map(|(_, hub_uuid)| hub_uuid)
        .collect()
}

fn joined(periods: Vec<(Span, TimelineStatus)>) -> Vec<TimelinePeriodResponse> {
    let mut joined: Vec<TimelinePeriodResponse> = Vec::with_capacity(periods.len());
    for ((from, to), status) in periods {
        match joined.last_mut() {
            Some(last) if last.status == status => last.to = Timestamp::from_micros(to),
            _ => joined.push(TimelinePeriodResponse {
                from: Timestamp::from_micros(from),
                to: Timestamp::from_micros(to),
                status,
            }),
        }
    }
    joined
}
