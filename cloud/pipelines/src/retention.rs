//! Deletes what pipelines keep for a while only.

use hub_base::db::{Conn, Tx};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid, Timestamp};
use uuid::Uuid;

use super::store::{dead_letters, deliveries, operators};

/// How long dead letters are kept.
pub const DEAD_LETTER_DAYS: i64 = 30;
/// How long replays are kept that have ended.
pub const REPLAY_DAYS: i64 = 7;

/// The next tenant after `after` that has deliveries.
pub async fn next_tenant(conn: &mut Conn, after: Uuid) -> Result<Option<TenantUuid>> {
    deliveries::next_tenant(conn, after).await
}

/// Deletes up to `limit` deliveries of a tenant that began before a time, and returns how many.
pub async fn delete_deliveries(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    before: Timestamp,
    limit: i64,
) -> Result<u64> {
    deliveries::delete_before(tx, tenant_uuid, before, limit).await
}

/// Deletes up to `limit` dead letters that were made before a time, and returns how many.
pub async fn delete_dead_letters(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    dead_letters::delete_before(tx, before, limit).await
}

/// Deletes up to `limit` replays that ended before a time, and returns how many.
pub async fn delete_replays(tx: &mut Tx, before: Timestamp, limit: i64) -> Result<u64> {
    operators::delete_replays_before(tx, before, limit).await
}

/// Deletes up to `limit` dead letters with events that a hub sent since a time, and returns how
/// many.
pub async fn delete_dead_letters_of_hub(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: HubUuid,
    since: Timestamp,
    limit: i64,
) -> Result<u64> {
    dead_letters::delete_of_hub(tx, tenant_uuid, hub_uuid, since.as_micros(), limit).await
}
