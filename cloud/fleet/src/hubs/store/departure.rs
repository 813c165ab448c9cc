//! SQL of hubs whose owners delete their accounts.

use hub_base::db::{Conn, Tx, sql};
use hub_base::error::Result;
use hub_protocol::{HubUuid, Timestamp, UserUuid};

/// The owner of a hub, and the end of the ownership.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Ownership {
    pub owner_user_uuid: Option<UserUuid>,
    pub released_at: Option<Timestamp>,
    pub claimed_at: Timestamp,
}

/// The owner of a hub, and the end of the ownership. None without such a hub.
pub async fn ownership(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Ownership>> {
    sql("SELECT owner_user_uuid, released_at, claimed_at FROM hubs WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .optional(conn)
        .await
}

/// Deletes the names of a hub that was released, the addresses that it called from, and its
/// positions.
pub async fn forget_names(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    sql(
        "UPDATE hubs SET hub_identifier = NULL, description = NULL, hostname = NULL \
         WHERE hub_uuid = $1 AND released_at IS NOT NULL",
    )
    .bind(hub_uuid)
    .run(tx)
    .await?;
    super::clones::forget_appearances(tx, hub_uuid).await?;
    sql("UPDATE hub_refreshes SET address = NULL WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .run(tx)
        .await
}
