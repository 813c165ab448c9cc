//! Hubs: their identity, their credentials, what they report about themselves and what is wanted of them. A hub's tokens are never stored:
//! its row holds the id of the one access token in force and the hash of the refresh token.

mod claim;
pub mod http;
mod refresh;
mod store;
mod turns;

pub use claim::claim;
use hub_protocol::HubUuid;
pub use refresh::refresh;
pub use turns::Turns;
use uuid::Uuid;

use crate::authz::Scope;
use crate::db::Conn;
use crate::error::{Error, Result};

/// The id of the one access token of the hub that is in force; nothing when there is none.
pub async fn token_in_force(conn: &mut Conn, hub_uuid: HubUuid) -> Result<Option<Uuid>> {
    store::token_in_force(conn, hub_uuid).await
}

/// 404 unless the tenant has the hub.
pub async fn require(conn: &mut Conn, scope: &Scope, hub_uuid: HubUuid) -> Result<()> {
    match store::exists(conn, scope, hub_uuid).await? {
        true => Ok(()),
        false => Err(Error::not_found("hub")),
    }
}

/// Longest label of a hub.
const MAX_IDENTIFIER_CHARS: usize = 200;

fn blocked(status: axum::http::StatusCode) -> Error {
    Error::new(status, "HUB_BLOCKED", "this hub is blocked; contact support")
}
