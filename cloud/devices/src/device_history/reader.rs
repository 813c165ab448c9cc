//! Reads what was heard of a device within a period, by the time of observation: whole hours from
//! rollups, and single events only where those do not suffice. Rollups know between which ids the
//! events of an hour are, since the log is in the order of receipt.

use hub_base::db::{Conn, Direction};
use hub_base::error::Result;
use hub_core::Core;
use hub_protocol::{TenantUuid, Timestamp};

use super::HOUR_SECS;
use super::hour::{Hour, hour_of};
use super::store::{self, Part};
use crate::ble::{self, Reception};

/// Events that one query reads.
const READ: i64 = 1000;
/// Ids are microseconds. Ranges that are not further apart than this are read as one: there are few
/// other events of the device between them.
const NEAR_MICROS: i64 = 6 * 3600 * 1_000_000;

/// A device of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    pub tenant_uuid: TenantUuid,
    pub device_instance_id: i64,
}

/// A period from a time up to another one, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    pub from: Timestamp,
    pub to: Timestamp,
}

impl Period {
    pub fn has(&self, at: Timestamp) -> bool {
        self.from <= at && at < self.to
    }

    /// The hour in which it begins, and the end of the hour in which it ends.
    fn hours(&self) -> (i64, i64) {
        (hour_of(self.from), hour_of(self.to) + HOUR_SECS)
    }

    /// The first whole hour, and the end of the last one.
    pub fn whole_hours(&self) -> (i64, i64) {
        let first = hour_of(self.from.plus_micros(HOUR_SECS * 1_000_000 - 1));
        (first, hour_of(self.to).max(first))
    }
}

/// The rollups of a device within a period.
pub struct Hours {
    device: Device,
    period: Period,
    /// The last event that is in a rollup.
    cursor: i64,
    pub hours: Vec<(i64, Hour)>,
}

impl Hours {
    pub async fn read(conn: &mut Conn, device: Device, period: Period, part: Part) -> Result<Self> {
        let (cursor, hours) = store::hours(
            conn,
            device.tenant_uuid,
            device.device_instance_id,
            period.hours(),
            part,
        )
        .await?;
        Ok(Self {
            device,
            period,
            cursor,
            hours,
        })
    }

    /// The same without the hours that lie in the period as a whole. Their measurements are
    /// returned, joined in buckets of so many seconds.
    pub async fn read_joined(
        conn: &mut Conn,
        device: Device,
        period: Period,
        every_secs: i64,
    ) -> Result<(Self, Vec<(i64, String)>)> {
        let joined = store::joined_hours(
            conn,
            device.tenant_uuid,
            device.device_instance_id,
            period.hours(),
            period.whole_hours(),
            every_secs,
        )
        .await?;
        let hours = Self {
            device,
            period,
            cursor: joined.cursor,
            hours: joined.edges,
        };
        Ok((hours, joined.measured))
    }

    /// A reader of all events of a device, without any rollup.
    pub const fn none(device: Device, period: Period) -> Self {
        Self {
            device,
            period,
            cursor: 0,
            hours: Vec::new(),
        }
    }

    /// The ranges of ids with the events of the wanted hours, and of those that are in no rollup
    /// yet. The ranges are in order, and do not overlap.
    fn ranges(&self, is_wanted: impl Fn(i64) -> bool) -> Vec<(i64, i64)> {
        let wanted = self.hours.iter().filter(|(start, _)| is_wanted(*start));
        let mut ranges: Vec<(i64, i64)> = wanted
            .map(|(_, hour)| (hour.first_id, hour.last_id))
            .collect();
        ranges.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::new();
        for (first, last) in ranges {
            match merged.last_mut() {
                Some(before) if first.saturating_sub(before.1) <= NEAR_MICROS => {
                    before.1 = before.1.max(last)
                }
                _ => merged.push((first, last)),
            }
        }
        merged.push((self.cursor.saturating_add(1), i64::MAX));
        merged
    }

    /// Passes on the events of the period that are in no rollup, and those of the hours that are
    /// wanted. Returns false if there were more than `limit` to read.
    pub async fn each(
        &self,
        core: &Core,
        is_wanted: impl Fn(i64) -> bool,
        direction: Direction,
        limit: i64,
        mut take: impl FnMut(Reception),
    ) -> Result<bool> {
        let Device {
            tenant_uuid,
            device_instance_id,
        } = self.device;
        let mut ranges = self.ranges(&is_wanted);
        if direction == Direction::Descending {
            ranges.reverse();
        }
        let mut left = limit;
        for (mut first, mut last) in ranges {
            loop {
                let batch = ble::receptions_of(
                    core,
                    tenant_uuid,
                    device_instance_id,
                    (first, last),
                    direction,
                    READ,
                )
                .await?;
                for reception in batch.receptions {
                    let at = reception.observed_at;
                    let is_new = reception.ble_event_id > self.cursor;
                    if self.period.has(at) && (is_new || is_wanted(hour_of(at))) {
                        take(reception);
                    }
                }
                let Some(last_id) = batch.last_id else { break };
                left -= READ;
                if left <= 0 {
                    return Ok(false);
                }
                match direction {
                    Direction::Ascending => first = last_id.saturating_add(1),
                    Direction::Descending => last = last_id.saturating_sub(1),
                }
            }
        }
        Ok(true)
    }
}
