//! Who is exposed to which vulnerability: what follows from the lists of packages and from what is
//! published, and what a tenant states about it.

mod counts;
mod evidence;
pub mod http;
mod matching;
mod openvex;
mod own;
mod own_view;
mod platform;
mod standing;
mod statements;
mod store;
mod view;

use hub_base::db::{Conn, Tx};
use hub_base::error::Result;
use hub_identity::authz::Scope;
use hub_protocol::{ReleaseUuid, TenantUuid, Timestamp};

pub use counts::InCountry;
pub use matching::perform;
pub use statements::{Statement, VexJustification, VexStatus};
pub use store::report::Measure;
pub use store::{New, VulnerabilitySource};
pub use view::{AffectedPackage, Shown, countries, one};

/// Longest id of a vulnerability.
const MAX_ID_CHARS: usize = 100;
/// Releases that a report names as measures.
const MAX_MEASURES: i64 = 100;

/// The vulnerabilities that were first seen at the tenant since a time, the worst first, up to
/// `limit`. Those that nobody expects harm of are left out.
pub async fn new_since(
    conn: &mut Conn,
    scope: &Scope,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<New>> {
    store::new_since(conn, scope, since, limit).await
}

/// What the tenant states about a vulnerability, the last first.
pub async fn statements_about(
    conn: &mut Conn,
    scope: &Scope,
    vulnerability_id: &str,
) -> Result<Vec<Statement>> {
    store::statements::list(conn, scope, &[vulnerability_id.to_owned()]).await
}

/// What was done since it was first seen on hubs that have or had what a vulnerability affects, by
/// release.
pub async fn measures(conn: &mut Conn, scope: &Scope, shown: &Shown) -> Result<Vec<Measure>> {
    let (id, since) = (&shown.listed.vulnerability_id, shown.listed.first_seen_at);
    match shown.listed.source {
        VulnerabilitySource::Feed => {
            store::report::measures(conn, scope, id, since, MAX_MEASURES).await
        }
        VulnerabilitySource::Own => {
            let advisory = own::get(conn, scope, id).await?;
            let releases = own::affected_releases(conn, scope, &advisory).await?;
            match releases.is_empty() {
                true => Ok(Vec::new()),
                false => {
                    let (of, limit) = (releases.as_slice(), MAX_MEASURES);
                    store::report::measures_of_releases(conn, scope, of, since, limit).await
                }
            }
        }
    }
}

/// Replaces what the maker of a release states about vulnerabilities, each by one id.
pub async fn put_of_maker(
    tx: &mut Tx,
    tenant_uuid: TenantUuid,
    release_uuid: ReleaseUuid,
    statements: &[Statement],
) -> Result<()> {
    store::statements::replace_of_maker(tx, tenant_uuid, release_uuid, statements).await
}

/// Deletes what is left of a tenant that is being deleted, when its lists have gone.
pub async fn forget_all(tx: &mut Tx, tenant_uuid: TenantUuid) -> Result<()> {
    store::forget_all(tx, tenant_uuid).await
}
