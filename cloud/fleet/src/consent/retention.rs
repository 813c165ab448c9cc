//! What users want to be deleted, and how much of it was.

use hub_base::db::{Conn, Tx};
use hub_base::error::Result;
use hub_protocol::HubUuid;

use super::store;
pub use super::store::{KeeperRow as Keeper, keepers};
use crate::hubs;

/// The hubs that a retention applies to and that are still the person's.
pub async fn hubs_of(conn: &mut Conn, keeper: &Keeper) -> Result<Vec<HubUuid>> {
    let mut owned = hubs::owned(conn, keeper.tenant_uuid, keeper.user_uuid).await?;
    owned.retain(|hub_uuid| keeper.hub_uuid.is_none_or(|only| only == *hub_uuid));
    Ok(owned)
}

/// Counts events that were deleted for it.
pub async fn add_deleted(tx: &mut Tx, keeper: &Keeper, events: i64) -> Result<()> {
    store::add_deleted(tx, keeper.consent_id, events).await
}
