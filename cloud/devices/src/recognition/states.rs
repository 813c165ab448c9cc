//! What was last heard of devices. Each stored event is added in memory; a device's row is written
//! with the uploads, at most every few seconds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hub_adverts::Sequence;
use hub_base::db::{Conn, Tx};
use hub_base::error::Result;
use hub_ingest::{Due, HeardUpload};
use hub_protocol::{TenantUuid, Timestamp};

use super::tracked::Tracked;
use crate::device_instances::states;

/// A device's row is written at most this often.
const WRITE_INTERVAL_MICROS: i64 = 3_000_000;
/// The rows that one transaction writes. The others are written with the next one.
const MAX_ROWS: usize = 2000;
/// The most devices in memory. A device that was dropped is read from its row again.
const MAX_TRACKED: usize = 200_000;

#[derive(Default)]
pub struct States(Mutex<Devices>);

#[derive(Default)]
struct Devices {
    tracked: HashMap<i64, Tracked>,
    /// When the rows of changed devices are due, in microseconds, with the devices.
    due: BTreeSet<(i64, i64)>,
    /// The entries of `due`, and the time, of the transaction in progress.
    writing: Vec<((i64, i64), Timestamp)>,
}

impl Devices {
    /// Notes that a device has changed.
    fn changed(&mut self, device_instance_id: i64, now: Timestamp) {
        let Some(device) = self.tracked.get_mut(&device_instance_id) else {
            return;
        };
        if !device.is_dirty {
            device.is_dirty = true;
            let next = device
                .written_at
                .map_or(0, |at| at.as_micros() + WRITE_INTERVAL_MICROS);
            self.due
                .insert((next.max(now.as_micros()), device_instance_id));
        }
    }
}

impl States {
    fn lock(&self) -> MutexGuard<'_, Devices> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The given devices whose row has not been read.
    pub fn unknown(&self, ids: impl Iterator<Item = i64>) -> Vec<i64> {
        let devices = self.lock();
        let mut unknown: Vec<i64> = ids.filter(|id| !devices.tracked.contains_key(id)).collect();
        unknown.sort_unstable();
        unknown.dedup();
        unknown
    }

    /// Reads the rows of devices.
    pub async fn load(&self, conn: &mut Conn, tenant_uuid: TenantUuid, ids: &[i64]) -> Result<()> {
        let rows = states::read(conn, tenant_uuid, ids).await?;
        let mut devices = self.lock();
        if devices.tracked.len() + ids.len() > MAX_TRACKED {
            devices.tracked.retain(|_, device| device.is_dirty);
        }
        for id in ids {
            devices
                .tracked
                .entry(*id)
                .or_insert_with(|| Tracked::new(tenant_uuid));
        }
        for row in rows {
            if let Some(device) = devices.tracked.get_mut(&row.device_instance_id) {
                device.adopt(&row);
            }
        }
        Ok(())
    }

    /// Whether an authenticated counter of a device decreased.
    pub fn is_replayed(&self, device_instance_id: i64, sequence: Sequence, at: Timestamp) -> bool {
        let mut devices = self.lock();
        devices
            .tracked
            .get_mut(&device_instance_id)
            .is_some_and(|device| device.is_replayed(sequence, at))
    }

    /// Whether the audit log may name a device with a decreased counter: once an hour.
    pub fn may_audit_replay(&self, device_instance_id: i64, now: Timestamp) -> bool {
        let mut devices = self.lock();
        devices
            .tracked
            .get_mut(&device_instance_id)
            .is_some_and(|device| device.may_audit_replay(now))
    }

    /// Adds receptions. Returns the devices whose rows are due, in order.
    fn hear(&self, heard: &[HeardUpload<'_>], due: Due, now: Timestamp) -> Vec<(i64, i64)> {
        let mut devices = self.lock();
        for upload in heard {
            for device in upload.heard {
                let id = device.device_instance_id;
                let tracked = devices
                    .tracked
                    .entry(id)
                    .or_insert_with(|| Tracked::new(upload.tenant_uuid));
                tracked.hear(upload.hub_uuid, device, now);
                devices.changed(id, now);
            }
        }
        let most = if due == Due::All {
            usize::MAX
        } else {
            MAX_ROWS
        };
        let is_due = |(at, _): &&(i64, i64)| due == Due::All || *at <= now.as_micros();
        let tenants: HashSet<TenantUuid> = heard.iter().map(|upload| upload.tenant_uuid).collect();
        let is_theirs = |id: &i64| {
            let tracked = devices.tracked.get(id);
            tracked.is_some_and(|device| tenants.contains(&device.tenant_uuid))
        };
        let mut found: Vec<(i64, i64)> = devices
            .due
            .iter()
            .take_while(is_due)
            .filter(|(_, id)| due != Due::Theirs || is_theirs(id))
            .take(most)
            .copied()
            .collect();
        // In the order in which the rows are locked.
        found.sort_by_cached_key(|(_, id)| {
            let tracked = devices.tracked.get(id);
            (tracked.map(|device| device.tenant_uuid), *id)
        });
        found
    }

    /// Adds receptions, and writes the rows that are due.
    pub async fn write(
        &self,
        tx: &mut Tx,
        heard: &[HeardUpload<'_>],
        due: Due,
        now: Timestamp,
    ) -> Result<()> {
        let due = self.hear(heard, due, now);
        self.lock().writing = due.iter().map(|entry| (*entry, now)).collect();
        for part in due.chunks(MAX_ROWS) {
            self.write_rows(tx, part).await?;
        }
        Ok(())
    }

    async fn write_rows(&self, tx: &mut Tx, due: &[(i64, i64)]) -> Result<()> {
        let mut of_tenants: BTreeMap<TenantUuid, Vec<i64>> = BTreeMap::new();
        for (_, id) in due {
            if let Some(device) = self.lock().tracked.get(id) {
                of_tenants.entry(device.tenant_uuid).or_default().push(*id);
            }
        }
        let mut given = Vec::with_capacity(due.len());
        for (tenant_uuid, ids) in of_tenants {
            let rows = states::lock(tx, tenant_uuid, &ids).await?;
            let mut devices = self.lock();
            for (id, row) in rows {
                let Some(device) = devices.tracked.get_mut(&id) else {
                    continue;
                };
                row.iter().for_each(|row| device.adopt(row));
                given.push(device.state(id, row.map_or_else(BTreeMap::new, |row| row.values)));
            }
        }
        states::store(tx, &given).await
    }

    /// Marks the rows of the last call of `write` as written.
    pub fn committed(&self) {
        let mut devices = self.lock();
        for (entry, at) in std::mem::take(&mut devices.writing) {
            devices.due.remove(&entry);
            if let Some(device) = devices.tracked.get_mut(&entry.1) {
                device.written(at);
            }
        }
    }

    pub fn is_waiting(&self) -> bool {
        !self.lock().due.is_empty()
    }
}
