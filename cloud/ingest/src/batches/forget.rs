//! Entries of batches that are deleted in the same transaction.

use hub_base::db::{Tx, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, TenantUuid};

use super::heads;
use super::hours::HourCounts;

/// Batches whose entries one statement deletes.
const BATCHES: usize = 500;

/// Deletes the entries of all batches of a tenant in a range of ids, both included, or of those of
/// one hub. Of batches whose events are in files, the entries of their repeats are still needed.
pub async fn forget(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    hub_uuid: Option<HubUuid>,
    with_repeats: bool,
    (first_id, last_id): (i64, i64),
) -> Result<()> {
    let mut query = sql("SELECT first_id, hub_uuid, heads FROM ble_batches \
         WHERE tenant_uuid = $1 AND first_id >= $2 AND first_id <= $3")
    .bind((tenant_uuid, first_id, last_id));
    if let Some(hub_uuid) = hub_uuid {
        query = query.push(" AND hub_uuid = ").push_bind(hub_uuid);
    }
    // The batches are locked before the hours, as reprocessing does.
    let rows: Vec<(i64, HubUuid, Vec<u8>)> = query
        .push(" ORDER BY first_id")
        .for_update(tx)
        .all(tx)
        .await?;
    let mut hours = HourCounts::default();
    for (first_id, hub_uuid, heads) in &rows {
        let heads = heads::decode(*first_id, heads).unwrap_or_default();
        hours.subtract((tenant_uuid, *hub_uuid), *first_id, &heads);
    }
    hours.write(tx).await?;
    if !with_repeats {
        return Ok(());
    }
    for batches in rows.chunks(BATCHES) {
        sql("DELETE FROM ble_batch_repeats WHERE tenant_uuid = $1 AND observed_in IN ")
            .bind(tenant_uuid)
            .push_list(batches.iter().map(|(first_id, ..)| *first_id))
            .run(tx)
            .await?;
    }
    Ok(())
}
