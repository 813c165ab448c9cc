//! SQL of hubs whose owners delete their accounts.

use hub_protocol::{HubUuid, Timestamp, UserUuid};

use crate::db::{Conn, Tx, sql};
use crate::error::Result;

/// Whose a hub is, and until when it was.
#[derive(Clone, Copy, Debug, sqlx::FromRow)]
pub struct Ownership {
    pub owner_user_uuid: Option<UserUuid>,
    pub released_at: Option<Timestamp>,
    pub claimed_at: Timestamp,
}

pub async fn ownership(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Ownership>> {
    sql("SELECT owner_user_uuid, released_at, claimed_at FROM hubs WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .optional(conn)
        .await
}

/// Deletes what people called a hub that was released, and where it was.
pub async fn forget_names(tx: &mut Tx, hub_uuid: HubUuid) -> Result<()> {
    sql(
        "UPDATE hubs SET hub_identifier = NULL, description = NULL, hostname = NULL \
         WHERE hub_uuid = $1 AND released_at IS NOT NULL",
    )
    .bind(hub_uuid)
    .run(tx)
    .await?;
    sql("UPDATE hub_refreshes SET address = NULL WHERE hub_uuid = $1")
        .bind(hub_uuid)
        .run(tx)
        .await
}
