//! SQL of what end users see: published bundles of all suppliers.

use hub_base::db::{Conn, Slice, Sql, sql};
use hub_base::error::Result;
use uuid::Uuid;

use super::{BundleRow, COLUMNS};

/// One page, latest first, and the total number.
pub async fn list(conn: &mut Conn, slice: Slice) -> Result<(Vec<BundleRow>, i64)> {
    published()
        .page(
            conn,
            COLUMNS,
            &["b.published_at DESC, b.bundle_uuid DESC"],
            slice,
        )
        .await
}

pub async fn get(conn: &mut Conn, bundle_uuid: Uuid) -> Result<Option<BundleRow>> {
    let found = sql("SELECT ").push(COLUMNS).push(" ").append(&published());
    found
        .push(" AND b.bundle_uuid = ")
        .push_bind(bundle_uuid)
        .optional(conn)
        .await
}

/// The bundles of a tenant that is deleted are archived.
fn published() -> Sql {
    sql("FROM supplier_bundles b WHERE b.status = 'PUBLISHED'")
}
