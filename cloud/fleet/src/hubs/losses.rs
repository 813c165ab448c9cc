//! Hubs of a tenant that go offline together, as when a site or a network fails. One hub that goes
//! offline is everyday.

use hub_base::db::Conn;
use hub_base::error::Result;
use hub_protocol::{TenantUuid, Timestamp};

use super::ONLINE_SECS;
use super::store::watch;

/// So many hubs that go offline within a minute do so together.
pub const MANY_LOST: i64 = 5;
const TOGETHER_SECS: i64 = 60;

/// Hubs that went offline together.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    pub tenant_uuid: TenantUuid,
    pub hubs: i64,
    /// They were heard of after this time.
    pub heard_after: Timestamp,
}

/// The hubs that went offline within the last minute, by tenants of which there are many; at most
/// 100 tenants.
pub async fn lost(conn: &mut Conn, now: Timestamp) -> Result<Vec<Lost>> {
    let until = now.plus_secs(-ONLINE_SECS);
    let heard_after = until.plus_secs(-TOGETHER_SECS);
    let tenants = watch::fallen_silent(conn, (heard_after, until), MANY_LOST).await?;
    let lost = |(tenant_uuid, hubs)| Lost {
        tenant_uuid,
        hubs,
        heard_after,
    };
    Ok(tenants.into_iter().map(lost).collect())
}

/// How many hubs of the tenant that were heard of after that time are offline now.
pub async fn missing(
    conn: &mut Conn,
    tenant_uuid: TenantUuid,
    heard_after: Timestamp,
    now: Timestamp,
) -> Result<i64> {
    watch::count_silent(
        conn,
        tenant_uuid,
        (heard_after, now.plus_secs(-ONLINE_SECS)),
    )
    .await
}
