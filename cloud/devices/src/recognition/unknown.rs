//! Advertisers of which no model is known, or that the known one does not read, until they are
//! written to the inbox of their tenant.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub_adverts::builtin::noise;
use hub_adverts::catalog::Read;
use hub_adverts::resolvable::{is_non_resolvable, is_resolvable};
use hub_adverts::{AddressType, Frame};
use hub_base::db::Tx;
use hub_base::error::Result;
use hub_protocol::ble::Advertisement;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use crate::unknown_advertisers::{self, MAX_ADVERTISERS, Seen};

/// The inbox of a tenant is written at most this often.
const WRITE_INTERVAL_MICROS: i64 = 10_000_000;
/// The most tenants with advertisers to write. Those of further tenants are left out meanwhile.
const MAX_TENANTS: usize = 1000;

/// One upload's sightings of an advertiser.
#[derive(Debug)]
struct Sighting {
    /// An event, as the hub sent it.
    sample: Arc<str>,
    count: i64,
    rssi_max: Option<i16>,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
    unread: Option<UnreadModel>,
}

/// The model that a frame fits, and why nothing was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadModel {
    pub device_uuid: Uuid,
    pub reason: &'static str,
}

impl UnreadModel {
    /// None of a frame that is of no model or was read, of one that a script reads, and of one
    /// without payloads.
    pub fn of(frame: &Frame<'_>, read: &Read<'_>) -> Option<Self> {
        let has_payload = !frame.manufacturer_data.is_empty() || !frame.service_data.is_empty();
        let is_script = read
            .protocol
            .is_some_and(|protocol| protocol.script().is_some());
        let model = read.model.filter(|_| has_payload && !is_script)?;
        let reason = read.unread_reason().filter(|_| read.instance.is_none())?;
        Some(Self {
            device_uuid: model.device_uuid,
            reason,
        })
    }
}

/// The advertisers of one upload, by their identity.
#[derive(Debug, Default)]
pub struct Sightings(HashMap<u64, Sighting>);

impl Sightings {
    /// Adds an event that no model fits, or that was not read. Phones and the like are left out.
    pub fn add(
        &mut self,
        frame: &Frame<'_>,
        (sample, rssi_dbm, at): (&Arc<str>, Option<i16>, Timestamp),
        unread: Option<UnreadModel>,
    ) {
        let key = key_of(frame);
        if let Some(known) = self.0.get_mut(&key) {
            known.count += 1;
            known.rssi_max = known.rssi_max.max(rssi_dbm);
            known.first_seen_at = known.first_seen_at.min(at);
            known.last_seen_at = known.last_seen_at.max(at);
        } else if self.0.len() < MAX_ADVERTISERS && noise::of(frame).is_none() {
            let (sample, count) = (sample.clone(), 1);
            let sighting = Sighting {
                sample,
                count,
                rssi_max: rssi_dbm,
                first_seen_at: at,
                last_seen_at: at,
                unread,
            };
            self.0.insert(key, sighting);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The key of an advertiser: for an address that changes, the form of its advertisements without
/// their values; else the address.
fn key_of(frame: &Frame<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    if rotates(frame) {
        let companies = frame
            .manufacturer_data
            .iter()
            .map(|(company, payload)| (*company, payload.len()));
        companies.collect::<Vec<_>>().hash(&mut hasher);
        let services = frame
            .service_data
            .iter()
            .map(|(uuid, payload)| (*uuid, payload.len()));
        services.collect::<Vec<_>>().hash(&mut hasher);
        (frame.service_uuids, frame.name).hash(&mut hasher);
    } else {
        frame.address.hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether the device changes its address: it is a private one.
pub(super) fn rotates(frame: &Frame<'_>) -> bool {
    frame.address_type == Some(AddressType::Random)
        && frame
            .address
            .is_some_and(|address| is_resolvable(address) || is_non_resolvable(address))
}

#[derive(Debug, Default)]
struct Inbox {
    waiting: HashMap<u64, Seen>,
    written_at: Option<Timestamp>,
}

/// The sightings that are still to be written, by tenant.
#[derive(Debug, Default)]
pub struct Unknown {
    inboxes: Mutex<HashMap<TenantUuid, Inbox>>,
    /// The tenants of the transaction in progress.
    writing: Mutex<Vec<TenantUuid>>,
}

impl Unknown {
    fn lock(&self) -> MutexGuard<'_, HashMap<TenantUuid, Inbox>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the advertisers of a stored upload.
    pub fn note(
        &self,
        tenant_uuid: TenantUuid,
        hub_uuid: HubUuid,
        Sightings(sightings): Sightings,
    ) {
        let mut inboxes = self.lock();
        if inboxes.len() >= MAX_TENANTS && !inboxes.contains_key(&tenant_uuid) {
            inboxes.retain(|_, inbox| !inbox.waiting.is_empty());
            if inboxes.len() >= MAX_TENANTS {
                return;
            }
        }
        let waiting = &mut inboxes.entry(tenant_uuid).or_default().waiting;
        for (key, sighting) in sightings {
            let has_room = waiting.len() < MAX_ADVERTISERS;
            match waiting.get_mut(&key) {
                Some(known) => {
                    known.count = known.count.saturating_add(sighting.count);
                    known.rssi_max = known.rssi_max.max(sighting.rssi_max);
                    known.first_seen_at = known.first_seen_at.min(sighting.first_seen_at);
                    known.last_seen_at = known.last_seen_at.max(sighting.last_seen_at);
                    if !known.hub_uuids.contains(&hub_uuid)
                        && known.hub_uuids.len() < unknown_advertisers::MAX_HUBS
                    {
                        known.hub_uuids.push(hub_uuid);
                    }
                }
                None if has_room => {
                    waiting.extend(seen(hub_uuid, sighting).map(|seen| (key, seen)));
                }
                None => {}
            }
        }
    }

    pub fn is_waiting(&self) -> bool {
        self.lock().values().any(|inbox| !inbox.waiting.is_empty())
    }

    /// Writes the inboxes that are due, of these tenants if some are given; all if `is_last`.
    pub async fn write(
        &self,
        tx: &mut Tx,
        of: Option<&HashSet<TenantUuid>>,
        is_last: bool,
        now: Timestamp,
    ) -> Result<()> {
        let is_due = |inbox: &Inbox| {
            let is_old = |at: Timestamp| now.as_micros() - at.as_micros() >= WRITE_INTERVAL_MICROS;
            !inbox.waiting.is_empty() && (is_last || inbox.written_at.is_none_or(is_old))
        };
        let mut due: Vec<(TenantUuid, Vec<Seen>)> = self
            .lock()
            .iter()
            .filter(|(tenant, inbox)| is_due(inbox) && of.is_none_or(|of| of.contains(tenant)))
            .map(|(tenant, inbox)| (*tenant, inbox.waiting.values().cloned().collect()))
            .collect();
        // Rows are locked in this order by all replicas.
        due.sort_by_key(|(tenant, _)| *tenant);
        *self.writing.lock().unwrap_or_else(PoisonError::into_inner) =
            due.iter().map(|(tenant, _)| *tenant).collect();
        for (tenant, seen) in due {
            unknown_advertisers::record(tx, tenant, seen).await?;
        }
        Ok(())
    }

    pub fn committed(&self, now: Timestamp) {
        let written =
            std::mem::take(&mut *self.writing.lock().unwrap_or_else(PoisonError::into_inner));
        let mut inboxes = self.lock();
        for tenant in written {
            if let Some(inbox) = inboxes.get_mut(&tenant) {
                inbox.waiting.clear();
                inbox.written_at = Some(now);
            }
        }
    }
}

fn seen(hub_uuid: HubUuid, sighting: Sighting) -> Option<Seen> {
    let advertisement: Advertisement = serde_json::from_str(&sighting.sample).ok()?;
    let frame = hub_adverts::advertisement::frame_of(&advertisement);
    let key = frame.with(|frame| match rotates(frame) {
        true => format!("{:016x}", key_of(frame)),
        false => advertisement.address.to_ascii_uppercase(),
    });
    let mut service_uuids = advertisement.service_uuids;
    service_uuids.extend(advertisement.service_data.into_keys());
    service_uuids.sort_unstable();
    service_uuids.dedup();
    Some(Seen {
        key,
        address: advertisement.address.to_ascii_uppercase(),
        address_type: advertisement.address_type,
        // Some devices pad their names.
        name: advertisement
            .name
            .map(|name| name.trim_end_matches('\0').to_owned())
            .filter(|name| !name.is_empty()),
        company_id: frame.manufacturer_data.first().map(|(company, _)| *company),
        service_uuids,
        count: sighting.count,
        hub_uuids: vec![hub_uuid],
        rssi_max: sighting.rssi_max,
        first_seen_at: sighting.first_seen_at,
        last_seen_at: sighting.last_seen_at,
        sample: sighting.sample.to_string(),
        device_uuid: sighting.unread.map(|unread| unread.device_uuid),
        unread_reason: sighting.unread.map(|unread| unread.reason.to_owned()),
    })
}
