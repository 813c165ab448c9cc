//! What people download of the platform's releases: the newest of each kind, in one list.

use super::agent_releases::{self, file_name};
use super::store::agent_releases::{self as store, AgentReleaseRow};
use super::urls::{self, SignedUrl};
use super::{Category, Status, precedence};
use crate::app::App;
use crate::db::Conn;
use crate::error::{Error, Result};

/// Releases of a channel that are looked at: the latest.
const MAX_LOOKED_AT: i64 = 1000;

/// Of what the channel offers, the highest version of each name and architecture, in the order of their names.
pub async fn newest(conn: &mut Conn, channel: &str) -> Result<Vec<AgentReleaseRow>> {
    let mut offered = store::offered(conn, channel, MAX_LOOKED_AT).await?;
    let of = |row: &AgentReleaseRow| (row.name.clone(), row.architecture.clone());
    offered.sort_by(|a, b| {
        let newest_first = precedence(&b.version).cmp_precedence(&precedence(&a.version));
        of(a).cmp(&of(b)).then(newest_first).then(b.counter.cmp(&a.counter))
    });
    offered.dedup_by(|later, first| of(later) == of(first));
    Ok(offered)
}

/// Where the file of a release is, that may be downloaded from this channel or any other.
pub async fn asset_url(app: &App, category: Category, asset_id: i64) -> Result<(AgentReleaseRow, SignedUrl)> {
    let found = store::get_asset(&mut app.db.read().await?, asset_id).await?;
    let is_offered = |row: &AgentReleaseRow| row.category == category && row.status == Status::Ready && row.active;
    let row = found.filter(is_offered).ok_or_else(|| Error::not_found("asset"))?;
    let url = urls::download_url(app, row.release_uuid, &file_name(&row)).await?;
    Ok((row, url))
}

/// What the feed of a channel lists, and where each file is.
pub async fn feed(app: &App, channel: &str, limit: i64) -> Result<Vec<(AgentReleaseRow, SignedUrl)>> {
    let channel = agent_releases::checked_word("filename", channel.to_owned())?;
    let offered = store::offered(&mut app.db.read().await?, &channel, limit).await?;
    let mut listed = Vec::with_capacity(offered.len());
    for row in offered {
        let url = urls::download_url(app, row.release_uuid, &file_name(&row)).await?;
        listed.push((row, url));
    }
    Ok(listed)
}
