//! SQL of the list of a tenant's hubs, and what it is narrowed by.

use hub_base::db::{Conn, Slice, sql};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;

use super::super::versions::VersionFilter;
use super::{COLUMNS, HubRow, WITH_CONTACTS};

/// Filters of a list of hubs.
#[derive(Default)]
pub struct Filters {
    /// Whether they are blocked; of those that are not, whether they are online.
    pub status: Option<Status>,
    /// A part of the label, in any case.
    pub label: Option<String>,
    /// A part of the label, the host name or the hardware identity, in any case.
    pub search: Option<String>,
    pub version: Option<VersionFilter>,
    /// The time of last sight: this or later, and before this.
    pub seen_from: Option<Timestamp>,
    pub seen_to: Option<Timestamp>,
}

pub enum Status {
    Blocked,
    Online,
    Offline,
}

/// One page, newest first, and the total number. A part of a text has no index: the hubs of the
/// tenant are read, whose number is bounded.
pub async fn list(
    conn: &mut Conn,
    scope: &Scope,
    filters: Filters,
    online_since: Timestamp,
    slice: Slice,
) -> Result<(Vec<HubRow>, i64)> {
    let mut list = sql(WITH_CONTACTS)
        .push(" WHERE tenant_uuid = $1 AND released_at IS NULL")
        .bind(scope.tenant_uuid());
    list = match filters.status {
        Some(Status::Blocked) => list.push(" AND blocked_at IS NOT NULL"),
        Some(Status::Online) => list
            .push(" AND blocked_at IS NULL AND last_telemetry_at > ")
            .push_bind(online_since),
        Some(Status::Offline) => list
            .push(" AND blocked_at IS NULL AND (last_telemetry_at IS NULL OR last_telemetry_at <= ")
            .push_bind(online_since)
            .push(")"),
        None => list,
    };
    if let Some(label) = &filters.label {
        list = list
            .push(" AND ")
            .push_contains_text("LOWER(hub_identifier)", &label.to_lowercase());
    }
    if let Some(search) = &filters.search {
        let lower = search.to_lowercase();
        list = list
            .push(" AND (")
            .push_contains_text("LOWER(hub_identifier)", &lower)
            .push(" OR ")
            .push_contains_text("LOWER(hostname)", &lower)
            .push(" OR ")
            .push_contains_text("LOWER(device_instance_id)", &lower)
            .push(")");
    }
    if let Some(from) = filters.seen_from {
        list = list.push(" AND last_seen_at >= ").push_bind(from);
    }
    if let Some(to) = filters.seen_to {
        list = list
            .push(" AND (last_seen_at IS NULL OR last_seen_at < ")
            .push_bind(to)
            .push(")");
    }
    if let Some(version) = &filters.version {
        let fitting = fitting(conn, scope, version).await?;
        if fitting.is_empty() {
            return Ok((Vec::new(), 0));
        }
        list = list.push(" AND agent_version IN ").push_list(fitting);
    }
    list.page(conn, COLUMNS, &["created_at DESC, hub_uuid DESC"], slice)
        .await
}

/// The versions of the tenant's hubs that fit. Databases do not compare versions; there are few.
async fn fitting(conn: &mut Conn, scope: &Scope, filter: &VersionFilter) -> Result<Vec<String>> {
    let versions: Vec<String> = sql("SELECT DISTINCT agent_version FROM hubs \
         WHERE tenant_uuid = $1 AND released_at IS NULL AND agent_version IS NOT NULL")
    .bind(scope.tenant_uuid())
    .scalars(conn)
    .await?;
    Ok(versions
        .into_iter()
        .filter(|version| filter.fits(version))
        .collect())
}
