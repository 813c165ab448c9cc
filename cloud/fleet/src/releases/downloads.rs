//! Public downloads of the platform's releases: the newest of each kind, in one list.

use hub_base::db::Conn;
use hub_base::error::{Error, Result};

use super::agent_releases::{self, file_name};
use super::store::agent_releases::{self as store, AgentReleaseRow};
use super::urls::{self, SignedUrl};
use super::{Category, Status, precedence};
use crate::releases::Releases;

/// The latest releases of a channel that are considered.
const MAX_CANDIDATES: i64 = 1000;

/// The highest version in the channel for each name and architecture, ordered by name.
pub async fn newest(conn: &mut Conn, channel: &str) -> Result<Vec<AgentReleaseRow>> {
    let mut offered = store::offered(conn, channel, MAX_CANDIDATES).await?;
    let of = |row: &AgentReleaseRow| (row.name.clone(), row.architecture.clone());
    offered.sort_by(|a, b| {
        let newest_first = precedence(&b.version).cmp_precedence(&precedence(&a.version));
        of(a)
            .cmp(&of(b))
            .then(newest_first)
            .then(b.counter.cmp(&a.counter))
    });
    offered.dedup_by(|later, first| of(later) == of(first));
    Ok(offered)
}

/// The URL of a release's file. The release may be in any channel.
pub async fn asset_url(
    releases: &Releases,
    category: Category,
    asset_id: i64,
) -> Result<(AgentReleaseRow, SignedUrl)> {
    let found = store::get_asset(&mut releases.core.db.read().await?, asset_id).await?;
    let is_offered = |row: &AgentReleaseRow| {
        row.category == category && row.status == Status::Ready && row.active
    };
    let row = found
        .filter(is_offered)
        .ok_or_else(|| Error::not_found("asset"))?;
    let url = urls::download_url(releases, row.release_uuid, &file_name(&row)).await?;
    Ok((row, url))
}

/// The releases in the feed of a channel, with the URL of each file.
pub async fn feed(
    releases: &Releases,
    channel: &str,
    limit: i64,
) -> Result<Vec<(AgentReleaseRow, SignedUrl)>> {
    let channel = agent_releases::checked_word("filename", channel.to_owned())?;
    let offered = store::offered(&mut releases.core.db.read().await?, &channel, limit).await?;
    let mut listed = Vec::with_capacity(offered.len());
    for row in offered {
        let url = urls::download_url(releases, row.release_uuid, &file_name(&row)).await?;
        listed.push((row, url));
    }
    Ok(listed)
}
