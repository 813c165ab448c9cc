//! `GET /tenant/vulnerabilities/feeds`: what was brought in. Without a feed, that no vulnerability
//! is found says nothing.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_base::error::Result;
use hub_core::Core;
use hub_core::http::answer::Answer;
use hub_core::http::operation::operation;
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::FeedRow;
use crate::Parts;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new().api_route(
        "/tenant/vulnerabilities/feeds",
        get_with(
            list,
            operation(
                "vulnerabilities.listFeeds",
                "tenant-vulnerabilities",
                "The feeds of advisories that what hubs run is matched with",
            ),
        ),
    )
}

/// A feed of advisories that was brought in.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdvisoryFeedResponse {
    /// An ecosystem of OSV, such as `Debian` or `crates.io`; `KEV` is CISA's catalog of what is
    /// exploited.
    feed: String,
    /// The records that the last import had.
    #[schemars(range(min = 0))]
    records: i64,
    /// When the newest of its records was changed; null if none says so.
    newest_at: Option<Timestamp>,
    /// When it was last brought in.
    imported_at: Timestamp,
}

impl From<FeedRow> for AdvisoryFeedResponse {
    fn from(row: FeedRow) -> Self {
        Self {
            feed: row.feed,
            records: row.record_count,
            newest_at: row.newest_at,
            imported_at: row.imported_at,
        }
    }
}

/// Few: there is one for each ecosystem.
async fn list(
    _: Authorized<perm::VulnerabilitiesRead>,
    State(core): State<Core>,
) -> Result<Answer<Vec<AdvisoryFeedResponse>>> {
    let mut conn = core.db.read().await?;
    let feeds = super::list(&mut conn).await?;
    Ok(Answer(feeds.into_iter().map(Into::into).collect()))
}
