//! Shares of a tenant's bytes of the day. The first half of them is anybody's; once it is used,
//! each live hub has its share of the other half. So a hub that floods the service leaves the
//! others their day.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Tx, sql};
use hub_base::error::Result;
use hub_identity::authn::hub::Hub;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::quota::{Charge, day_of, secs_of_day_left};
use super::receipt::Refusal;
use super::shares::live_hubs;

/// The kind under which `upload_shares` has the bytes of a day, which it counts as a minute.
const KIND: &str = "DAY_BYTES";

/// The shares of one tenant.
struct DayShare {
    share: i64,
    used: HashMap<HubUuid, i64>,
}

/// The tenants that have used half of their day.
#[derive(Default)]
pub(super) struct DayShares(HashMap<TenantUuid, DayShare>);

impl DayShares {
    /// Counts what the hub uploads, or refuses it.
    pub fn admit(
        &mut self,
        hub: &Hub,
        charge: Charge,
        now: Timestamp,
    ) -> std::result::Result<(), Refusal> {
        let Some(of_tenant) = self.0.get_mut(&hub.tenant_uuid) else {
            return Ok(());
        };
        let used = of_tenant.used.entry(hub.hub_uuid).or_default();
        // What stores nothing is not refused, nor the first upload of a hub that was quiet.
        if charge.stored > 0 && *used > 0 && *used + charge.day > of_tenant.share {
            return Err(Refusal::DayShareExceeded {
                hub_uuid: hub.hub_uuid,
                share: of_tenant.share,
                reset_secs: secs_of_day_left(now),
            });
        }
        *used += charge.day;
        Ok(())
    }
}

/// The shares of tenants that have used half of their day, of which the limits are given, with what
/// the given hubs have used of them; nearly always none.
pub(super) async fn load(
    tx: &mut Tx,
    day_limits: &BTreeMap<TenantUuid, i64>,
    hubs: &BTreeMap<TenantUuid, BTreeSet<HubUuid>>,
    now: Timestamp,
) -> Result<DayShares> {
    let mut shares = HashMap::new();
    for (tenant_uuid, limit) in day_limits {
        let Some(hubs) = hubs.get(tenant_uuid) else {
            continue;
        };
        let live_hubs = live_hubs(tx, *tenant_uuid, now).await?.max(1);
        let rows: Vec<(HubUuid, i64)> = sql("SELECT hub_uuid, requests FROM upload_shares \
             WHERE tenant_uuid = $1 AND kind = $2 AND minute = $3 AND hub_uuid IN ")
        .bind((*tenant_uuid, KIND, day_of(now)))
        .push_list(hubs.iter().copied())
        .all(tx)
        .await?;
        let share = DayShare {
            share: (limit - limit / 2) / live_hubs,
            used: rows.into_iter().collect(),
        };
        shares.insert(*tenant_uuid, share);
    }
    Ok(DayShares(shares))
}

/// Stores the shares after a group of uploads.
pub(super) async fn store(tx: &mut Tx, shares: &DayShares, now: Timestamp) -> Result<()> {
    let used: BTreeMap<(TenantUuid, HubUuid), i64> = shares
        .0
        .iter()
        .flat_map(|(tenant_uuid, of_tenant)| {
            let used = of_tenant.used.iter();
            used.map(|(hub_uuid, bytes)| ((*tenant_uuid, *hub_uuid), *bytes))
        })
        .collect();
    if used.is_empty() {
        return Ok(());
    }
    let count = used.len();
    Bulk {
        head: "INSERT INTO upload_shares (tenant_uuid, kind, hub_uuid, minute, requests)",
        columns: vec![
            Column::Uuid(used.keys().map(|(tenant_uuid, _)| tenant_uuid.0).collect()),
            Column::Word(vec![KIND; count]),
            Column::Uuid(used.keys().map(|(_, hub_uuid)| hub_uuid.0).collect()),
            Column::Int(vec![day_of(now); count]),
            Column::Int(used.into_values().collect()),
        ],
        tail: "ON CONFLICT (tenant_uuid, kind, hub_uuid) DO UPDATE SET \
               minute = excluded.minute, requests = excluded.requests",
    }
    .execute(tx)
    .await
    .map(drop)
}
