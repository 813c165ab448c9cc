//! Shares of a tenant's limit. In a minute that follows one in which the tenant reached its limit,
//! each live hub is first given a share of its own, and what is left is anybody's. So a hub that
//! floods the service takes nothing from the others for longer than a minute.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hub_base::db::bulk::{Bulk, Column};
use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_core::Core;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};

use super::kinds::Kind;

/// A hub that uploaded within this time is live.
const LIVE_SECS: i64 = 10 * 60;
/// A hub floods the service from this many refused uploads in a minute on, or from as many as its
/// share.
const LEAST_FLOOD: i64 = 5;

/// The shares of a tenant and kind, as its clock has them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shared {
    pub reached_minute: i64,
    pub shared_minute: i64,
    pub share: i64,
    pub rest: i64,
    pub left: i64,
}

/// The shares of a tenant and kind in the present minute.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    /// What each hub is given.
    pub share: i64,
    /// What is left beyond the shares, and what is left at all.
    rest: i64,
    left: i64,
    used: HashMap<HubUuid, i64>,
}

impl Shares {
    fn new(limit: i64, live_hubs: i64) -> Self {
        let live_hubs = live_hubs.max(1);
        let share = (limit / live_hubs).max(1);
        Self {
            share,
            rest: (limit - share.saturating_mul(live_hubs)).max(0),
            left: limit,
            used: HashMap::new(),
        }
    }

    /// Counts an upload of the hub, or refuses it.
    pub fn admit(&mut self, hub_uuid: HubUuid) -> bool {
        let used = self.used.entry(hub_uuid).or_default();
        let is_within = *used < self.share;
        if self.left <= 0 || !is_within && self.rest <= 0 {
            return false;
        }
        *used += 1;
        self.left -= 1;
        self.rest -= i64::from(!is_within);
        true
    }

    /// What the hub may still upload in this minute, by its share or from what is left.
    pub fn remaining(&self, hub_uuid: HubUuid) -> i64 {
        let used = self.used.get(&hub_uuid).copied().unwrap_or(0);
        ((self.share - used).max(0) + self.rest).clamp(0, self.left.max(0))
    }
}

/// The shares in force in this minute, by tenant and kind, with what the given hubs have used.
pub(super) async fn load(
    tx: &mut Tx,
    clocks: impl Iterator<Item = (TenantUuid, Kind, Shared, i64)>,
    hubs: &BTreeMap<(TenantUuid, Kind), BTreeSet<HubUuid>>,
    minute: i64,
    now: Timestamp,
) -> Result<HashMap<(TenantUuid, Kind), Shares>> {
    let mut shares = HashMap::new();
    for (tenant_uuid, kind, clock, limit) in clocks {
        let key = (tenant_uuid, kind);
        if clock.shared_minute == minute {
            let known = Shares {
                share: clock.share,
                rest: clock.rest,
                left: clock.left,
                used: used(tx, key, hubs.get(&key), minute).await?,
            };
            shares.insert(key, known);
        } else if clock.reached_minute == minute - 1 {
            let live_hubs = live_hubs(tx, tenant_uuid, now).await?;
            shares.insert(key, Shares::new(limit, live_hubs));
        }
    }
    Ok(shares)
}

async fn used(
    conn: &mut Conn,
    (tenant_uuid, kind): (TenantUuid, Kind),
    hubs: Option<&BTreeSet<HubUuid>>,
    minute: i64,
) -> Result<HashMap<HubUuid, i64>> {
    let Some(hubs) = hubs.filter(|hubs| !hubs.is_empty()) else {
        return Ok(HashMap::new());
    };
    let rows: Vec<(HubUuid, i64)> = sql("SELECT hub_uuid, requests FROM upload_shares \
         WHERE tenant_uuid = $1 AND kind = $2 AND minute = $3 AND hub_uuid IN ")
    .bind((tenant_uuid, kind.name(), minute))
    .push_list(hubs.iter().copied())
    .all(conn)
    .await?;
    Ok(rows.into_iter().collect())
}

pub(super) async fn live_hubs(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    now: Timestamp,
) -> Result<i64> {
    sql(
        "SELECT COUNT(*) FROM hubs JOIN hub_contacts USING (tenant_uuid, hub_uuid) \
         WHERE tenant_uuid = $1 AND released_at IS NULL AND last_seen_at > $2",
    )
    .bind((tenant_uuid, now.plus_secs(-LIVE_SECS)))
    .scalar(conn)
    .await
}

/// Stores the shares after a group of uploads.
pub(super) async fn store(
    tx: &mut Tx,
    shares: &HashMap<(TenantUuid, Kind), Shares>,
    minute: i64,
) -> Result<()> {
    for ((tenant_uuid, kind), shares) in shares {
        sql(
            "UPDATE upload_clocks SET shared_minute = $3, share = $4, share_rest = $5, \
             share_left = $6 WHERE tenant_uuid = $1 AND kind = $2",
        )
        .bind((
            *tenant_uuid,
            kind.name(),
            minute,
            shares.share,
            shares.rest,
            shares.left,
        ))
        .run(tx)
        .await?;
        let used: BTreeMap<HubUuid, i64> = shares.used.iter().map(|(hub, n)| (*hub, *n)).collect();
        let count = used.len();
        Bulk {
            head: "INSERT INTO upload_shares (tenant_uuid, kind, hub_uuid, minute, requests)",
            columns: vec![
                Column::Uuid(vec![tenant_uuid.0; count]),
                Column::Word(vec![kind.name(); count]),
                Column::Uuid(used.keys().map(|hub_uuid| hub_uuid.0).collect()),
                Column::Int(vec![minute; count]),
                Column::Int(used.into_values().collect()),
            ],
            tail: "ON CONFLICT (tenant_uuid, kind, hub_uuid) DO UPDATE SET \
                   minute = excluded.minute, requests = excluded.requests",
        }
        .execute(tx)
        .await?;
    }
    Ok(())
}

/// Notes that requests were refused for the limit in this minute, so that the next one is shared.
pub(super) async fn note_reached(
    tx: &mut Tx,
    reached: &[(TenantUuid, Kind)],
    minute: i64,
) -> Result<()> {
    for (tenant_uuid, kind) in reached {
        sql("UPDATE upload_clocks SET reached_minute = $3 \
             WHERE tenant_uuid = $1 AND kind = $2 AND reached_minute < $3")
        .bind((*tenant_uuid, kind.name(), minute))
        .run(tx)
        .await?;
    }
    Ok(())
}

/// Whether this many refused uploads in one minute are a flood.
pub(super) fn is_flood(refused: i64, share: i64) -> bool {
    refused == share.max(LEAST_FLOOD)
}

/// Notes that the hub floods the service.
pub(super) async fn note_flood(core: &Core, hub_uuid: HubUuid) {
    if let Err(error) = try_note_flood(core, hub_uuid).await {
        tracing::debug!(%error, %hub_uuid, "a flood of uploads cannot be noted");
    }
}

async fn try_note_flood(core: &Core, hub_uuid: HubUuid) -> Result<()> {
    let now = core.clock.now();
    let mut tx = core.db.begin().await?;
    sql("UPDATE hubs SET flooded_at = $2 WHERE hub_uuid = $1")
        .bind((hub_uuid, now))
        .run(&mut tx)
        .await?;
    tx.commit_unaudited("what a hub does is no change by an actor")
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hub_has_its_share_and_one_may_have_what_is_left() {
        let [flooding, quiet, other] = [HubUuid::new(), HubUuid::new(), HubUuid::new()];
        let mut shares = Shares::new(100, 3);
        assert_eq!(shares.share, 33);
        let flooded = (0..1000).filter(|_| shares.admit(flooding)).count();
        assert_eq!(flooded, 34, "its share, and the one beyond the shares");
        for hub in [quiet, other] {
            assert_eq!(shares.remaining(hub), 33);
            assert_eq!((0..1000).filter(|_| shares.admit(hub)).count(), 33);
        }
        assert_eq!(shares.left, 0);
    }

    #[test]
    fn more_hubs_than_uploads_share_what_there_is() {
        let mut shares = Shares::new(2, 10);
        let admitted = (0..10).filter(|_| shares.admit(HubUuid::new())).count();
        assert_eq!((shares.share, admitted), (1, 2));
    }
}
