//! How far pipelines are behind the log.

use std::collections::HashMap;

use hub_base::db::MAX_COUNT;
use hub_base::error::Result;
use hub_core::Core;
use hub_devices::ble;
use hub_ingest::{self as ingest, Kind};
use hub_protocol::{TenantUuid, Timestamp};

/// What of the log is after a cursor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lag {
    /// Counted up to [`MAX_COUNT`].
    pub events: i64,
    /// The age of the oldest one; 0 if there is none.
    pub seconds: i64,
}

/// The lag of each cursor. All cursors are in one log, so the events between two of them are
/// counted once, and no more than [`MAX_COUNT`] in all and once more.
pub async fn of(
    core: &Core,
    tenant_uuid: TenantUuid,
    mut cursors: Vec<i64>,
    now: Timestamp,
) -> Result<HashMap<i64, Lag>> {
    cursors.sort_unstable_by(|one, other| other.cmp(one));
    cursors.dedup();
    let last_id = {
        let mut conn = core.db.read().await?;
        ingest::last_id(&mut conn, (tenant_uuid, Kind::BleEvents)).await?
    };
    let mut lags = HashMap::with_capacity(cursors.len());
    let (mut above, mut counted, mut oldest) = (last_id, 0, None);
    for cursor in cursors {
        let mut first = None;
        if cursor < above {
            let left = (MAX_COUNT - counted).max(1);
            let (found, count) =
                ble::count_between(core, tenant_uuid, (cursor, above), left).await?;
            first = found;
            counted = (counted + count).min(MAX_COUNT);
            above = cursor;
        }
        oldest = first.or(oldest);
        let age = |id: i64| {
            now.as_secs()
                .saturating_sub(Timestamp::from_micros(id).as_secs())
                .max(0)
        };
        lags.insert(
            cursor,
            Lag {
                events: counted,
                seconds: oldest.map_or(0, age),
            },
        );
    }
    Ok(lags)
}
