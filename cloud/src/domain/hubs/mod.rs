//! Hubs: their identity, their credentials, what they report about themselves and what is wanted of them.

mod store;

use hub_protocol::HubUuid;
use uuid::Uuid;

use crate::db::Conn;
use crate::error::Result;

/// The id of the one access token of the hub that is in force; nothing when there is none.
pub async fn token_in_force(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Uuid>> {
    store::token_in_force(conn, hub_uuid).await
}
