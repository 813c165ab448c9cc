//! Counts the BLE events of minutes that are over. Each event is read once, soon after it was
//! stored, by a connection that does not write.

use std::time::{Duration, Instant};

use hub_base::db::Db;
use hub_base::error::Result;
use hub_core::Core;
use hub_devices::ble;
use hub_protocol::{TenantUuid, Timestamp};
use uuid::Uuid;

use super::minute_of;
use super::store::{self, Behind};

/// A transaction of ingest that began in a minute has ended by then.
const SETTLED_SECS: i64 = 60;
/// The longest window of a summary, and a little more.
const KEPT_MINUTES: i64 = 1500;
/// Minutes that one query reads the events of.
const MINUTES: i64 = 10;
/// Tenants that one query finds.
const TENANTS: i64 = 100;
/// The time after which the next run continues.
const RUN_TIME: Duration = Duration::from_secs(20);
/// The longest rest between two queries. A rest is as long as the work before it.
const LONGEST_REST: Duration = Duration::from_millis(200);

/// Counts what is new, of all tenants. Returns whether there is more.
pub async fn roll_up(core: &Core) -> Result<bool> {
    let ends_at = Instant::now() + RUN_TIME;
    let now = core.clock.now();
    let to = minute_of(now.plus_secs(-SETTLED_SECS));
    let mut after = Uuid::nil();
    loop {
        let behind = store::behind(&mut core.db.read().await?, after, to, TENANTS).await?;
        let Some(last) = behind.last() else {
            return Ok(false);
        };
        after = last.tenant_uuid.0;
        for tenant in behind {
            let mut from = tenant.counted_to.max(to - KEPT_MINUTES);
            while from < to {
                if Instant::now() >= ends_at
                    || core.shutdown.is_cancelled()
                    || core.storage.is_full()
                {
                    return Ok(true);
                }
                let began = Instant::now();
                let until = (from + MINUTES).min(to);
                count(core, &tenant, from, until).await?;
                from = until;
                tokio::time::sleep(began.elapsed().min(LONGEST_REST)).await;
            }
        }
    }
}

async fn count(core: &Core, tenant: &Behind, from: i64, until: i64) -> Result<()> {
    let minutes = ble::count_minutes(core, tenant.tenant_uuid, (from, until)).await?;
    let mut tx = core.db.begin().await?;
    store::put_minutes(&mut tx, tenant.tenant_uuid, &minutes).await?;
    store::set_counted_to(&mut tx, tenant.tenant_uuid, until).await?;
    tx.commit_unaudited("counts of what is stored").await
}

/// Deletes minutes of a tenant that no summary looks back to, up to `limit`, and returns how many.
pub async fn forget(db: &Db, tenant: TenantUuid, now: Timestamp, limit: i64) -> Result<u64> {
    let mut tx = db.begin().await?;
    let before = minute_of(now) - KEPT_MINUTES;
    let deleted = store::delete_before(&mut tx, tenant, before, limit).await?;
    tx.commit_unaudited("counts that nobody looks at any more")
        .await?;
    Ok(deleted)
}
