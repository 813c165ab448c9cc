//! SQL of hubs and their adapters.

use hub_protocol::HubUuid;
use uuid::Uuid;

use crate::db::{Conn, sql};
use crate::error::Result;

pub async fn token_in_force(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Uuid>> {
    let row: Option<(Option<Uuid>,)> =
        sql("SELECT access_token_id FROM hubs WHERE hub_uuid = $1").bind(hub_uuid).optional(conn).await?;
    Ok(row.and_then(|(token_id,)| token_id))
}
