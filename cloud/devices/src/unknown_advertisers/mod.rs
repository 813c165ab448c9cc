//! The inbox of unknown advertisers: what hubs of a tenant heard within a day of which no model of
//! the tenant is known, or that the known one does not read. Bounded for each tenant; what
//! recognises uploads adds to it.

pub mod http;
mod store;

use hub_adverts::advertisement::frame_of;
use hub_adverts::library::{self, OwnedFrame};
use hub_base::db::{Conn, Db, Tx};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::ble::Advertisement;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

pub use store::record;

/// Advertisers that are kept of a tenant.
pub const MAX_ADVERTISERS: usize = 1000;
/// Hubs that are kept of an advertiser.
pub const MAX_HUBS: usize = 64;
/// Models that are suggested of an advertiser.
const MAX_SUGGESTIONS: usize = 10;
/// The retention of an advertiser after its last reception.
pub const KEPT_SECS: i64 = 24 * 3600;

/// The sightings of an advertiser.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The address, or of one that changes what is advertised. Unique within the tenant.
    pub key: String,
    /// The last address, in upper case.
    pub address: String,
    /// `public` or `random`.
    pub address_type: Option<String>,
    pub name: Option<String>,
    pub company_id: Option<u16>,
    pub service_uuids: Vec<String>,
    /// The number of advertisements.
    pub count: i64,
    pub hub_uuids: Vec<HubUuid>,
    /// The strongest signal, in dBm.
    pub rssi_max: Option<i16>,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// An advertisement as JSON, as a hub sent it.
    pub sample: String,
    /// The model that it fits, if it is not read.
    pub device_uuid: Option<Uuid>,
    /// Why it is not read, as a sentence.
    pub unread_reason: Option<String>,
}

impl Seen {
    /// The advertisement that was kept; None if it cannot be read any more.
    pub fn advertisement(&self) -> Option<Advertisement> {
        serde_json::from_str(&self.sample).ok()
    }

    /// Keys of the library's models that fit, the most specific first.
    pub fn suggestions(&self) -> Vec<&'static str> {
        let Some(advertisement) = self.advertisement() else {
            return Vec::new();
        };
        let frame: OwnedFrame = frame_of(&advertisement);
        let candidates = frame.with(|frame| library::recogniser().candidates(frame));
        let mut keys: Vec<&'static str> = Vec::new();
        for candidate in candidates {
            if let Some(model) = library::library().get(candidate.model)
                && !keys.contains(&model.key.as_str())
                && keys.len() < MAX_SUGGESTIONS
            {
                keys.push(&model.key);
            }
        }
        keys
    }

    /// Adds what else was seen of the same advertiser.
    pub fn join(&mut self, other: Self) {
        let first_seen_at = self.first_seen_at.min(other.first_seen_at);
        let count = self.count.saturating_add(other.count);
        let rssi_max = self.rssi_max.max(other.rssi_max);
        let mut hub_uuids = std::mem::take(&mut self.hub_uuids);
        let more = other
            .hub_uuids
            .iter()
            .filter(|hub| !hub_uuids.contains(hub))
            .copied()
            .collect::<Vec<_>>();
        hub_uuids.extend(
            more.into_iter()
                .take(MAX_HUBS.saturating_sub(hub_uuids.len())),
        );
        if other.last_seen_at >= self.last_seen_at {
            let name = self.name.take();
            *self = other;
            self.name = self.name.take().or(name);
        } else if self.name.is_none() {
            self.name = other.name;
        }
        self.first_seen_at = first_seen_at;
        self.count = count;
        self.rssi_max = rssi_max;
        self.hub_uuids = hub_uuids;
    }
}

/// The sightings of the tenant's unknown advertiser with this address; None without one.
pub async fn find(
    conn: &mut Conn,
    scope: &Scope,
    address: &str,
    now: Timestamp,
) -> Result<Option<Seen>> {
    store::by_address(
        conn,
        scope,
        now.plus_secs(-KEPT_SECS),
        &address.to_ascii_uppercase(),
    )
    .await
}

/// Deletes at most `limit` advertisers of a tenant without a reception for a day.
pub async fn forget(db: &Db, tenant: TenantUuid, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let deleted = store::delete_before(&mut tx, tenant, now.plus_secs(-KEPT_SECS), limit).await?;
    tx.commit_unaudited("advertisers that nobody hears any more")
        .await?;
    Ok(deleted)
}

/// Deletes the advertisers that a hub of the tenant has heard, also if other hubs have heard them.
pub async fn forget_hub(tx: &mut Tx, tenant_uuid: TenantUuid, hub_uuid: HubUuid) -> Result<()> {
    store::delete_of_hub(tx, tenant_uuid, hub_uuid).await
}
