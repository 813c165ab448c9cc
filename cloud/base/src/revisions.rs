//! The latest revision of something of each tenant that this process has heard of, so that readers
//! of it notice a change without asking the database.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hub_protocol::TenantUuid;

/// The most tenants that are remembered. Of the others, readers ask the database.
const MAX_TENANTS: usize = 100_000;

#[derive(Debug, Default)]
pub struct Revisions(Mutex<HashMap<TenantUuid, i64>>);

impl Revisions {
    /// A revision that was read or committed.
    pub fn note(&self, tenant_uuid: TenantUuid, revision: i64) {
        let mut known = self.lock();
        if known.len() >= MAX_TENANTS && !known.contains_key(&tenant_uuid) {
            known.clear();
        }
        let latest = known.entry(tenant_uuid).or_insert(revision);
        *latest = revision.max(*latest);
    }

    /// The latest revision; None if this process has none.
    pub fn latest(&self, tenant_uuid: TenantUuid) -> Option<i64> {
        self.lock().get(&tenant_uuid).copied()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<TenantUuid, i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_revision_is_kept() {
        let (revisions, tenant) = (Revisions::default(), TenantUuid::new());
        assert_eq!(revisions.latest(tenant), None);
        revisions.note(tenant, 5);
        revisions.note(tenant, 3);
        assert_eq!(
            (
                revisions.latest(tenant),
                revisions.latest(TenantUuid::new())
            ),
            (Some(5), None)
        );
    }
}
