//! What is published: advisories in the form of OSV, and the vulnerabilities that CISA knows to be
//! exploited (KEV). Imports bring in what is newer than what is there. An older feed, or one that
//! breaks off, takes nothing away.

pub mod http;
mod import;
pub mod mirror;
mod source;
mod store;

use hub_base::db::Conn;
use hub_base::error::{Error, Result};

pub use import::{Imported, Progress, import};
pub use store::{Exploited, FeedRow, Published, about, exploited, list, revision};

/// The feed of the known exploited vulnerabilities. Those of OSV have the names of ecosystems.
pub const KEV: &str = "KEV";

/// Why a feed was not brought in, or not as a whole.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file and what is wrong with it.
    #[error("{0}")]
    Unreadable(String),
    #[error(transparent)]
    Database(#[from] Error),
}

/// When a vulnerability was listed as exploited, if it was.
pub async fn exploited_one(conn: &mut Conn, vulnerability_id: &str) -> Result<Option<Exploited>> {
    let found = exploited(conn, &[vulnerability_id.to_owned()]).await?;
    Ok(found.into_iter().next())
}
