//! The documents that were built, of the tenants whose hubs asked last.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_identity::authz::Scope;
use hub_protocol::TenantUuid;
use tokio::sync::{OnceCell, Semaphore};

use super::Document;

/// The most bytes of documents that are kept, and the most tenants.
const MAX_BYTES: usize = 64 * 1024 * 1024;
const MAX_TENANTS: usize = 4096;
/// Documents that are built at a time.
const MAX_BUILDS: usize = 2;

/// State of the handlers. Cheap to clone.
#[derive(Clone)]
pub struct ScanConfigs(Arc<Inner>);

struct Inner {
    core: Core,
    cached: Mutex<Cached>,
    builds: Semaphore,
}

#[derive(Default)]
struct Cached {
    tenants: HashMap<TenantUuid, Entry>,
    /// Counts uses.
    uses: u64,
}

struct Entry {
    revision: i64,
    /// The cell is empty while one request builds the document, which all others wait for.
    document: Arc<OnceCell<Arc<Document>>>,
    last_use: u64,
}

impl ScanConfigs {
    pub fn new(core: Core) -> Self {
        Self(Arc::new(Inner {
            core,
            cached: Mutex::default(),
            builds: Semaphore::new(MAX_BUILDS),
        }))
    }

    pub fn core(&self) -> &Core {
        &self.0.core
    }

    /// The tenant's document as of now.
    pub async fn document(&self, scope: &Scope) -> Result<Arc<Document>> {
        let tenant_uuid = scope.tenant_uuid();
        let revision = super::revision(&mut self.0.core.db.read().await?, tenant_uuid).await?;
        let cell = self.lock().cell(tenant_uuid, revision);
        let build = || async {
            let _place = self.0.builds.acquire().await.map_err(Error::internal)?;
            super::build(&self.0.core, scope, revision)
                .await
                .map(Arc::new)
        };
        let was_built = cell.initialized();
        let document = cell.get_or_try_init(build).await?.clone();
        if !was_built {
            self.lock().trim(tenant_uuid);
        }
        Ok(document)
    }

    fn lock(&self) -> MutexGuard<'_, Cached> {
        self.0.cached.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Cached {
    /// The place of the tenant's document of this revision, or of a later one.
    fn cell(&mut self, tenant_uuid: TenantUuid, revision: i64) -> Arc<OnceCell<Arc<Document>>> {
        self.uses += 1;
        let fresh = || Entry {
            revision,
            document: Arc::default(),
            last_use: 0,
        };
        let entry = self.tenants.entry(tenant_uuid).or_insert_with(fresh);
        if entry.revision < revision {
            *entry = fresh();
        }
        entry.last_use = self.uses;
        entry.document.clone()
    }

    /// Drops the documents that were not used for the longest time, but not that of `kept`.
    fn trim(&mut self, kept: TenantUuid) {
        let bytes_of = |entry: &Entry| entry.document.get().map_or(0, |document| document.bytes());
        let mut bytes: usize = self.tenants.values().map(bytes_of).sum();
        while bytes > MAX_BYTES || self.tenants.len() > MAX_TENANTS {
            let others = self
                .tenants
                .iter()
                .filter(|(tenant_uuid, _)| **tenant_uuid != kept);
            let oldest = others
                .min_by_key(|(_, entry)| entry.last_use)
                .map(|(tenant_uuid, _)| *tenant_uuid);
            let Some(entry) = oldest.and_then(|oldest| self.tenants.remove(&oldest)) else {
                return;
            };
            bytes -= bytes_of(&entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use hub_protocol::scan_config::ScanConfig;

    use super::*;

    fn document(revision: i64) -> Arc<Document> {
        Arc::new(
            Document::of(
                ScanConfig {
                    revision,
                    ..ScanConfig::default()
                },
                false,
            )
            .expect("a document"),
        )
    }

    #[test]
    fn a_later_revision_takes_the_place_of_an_earlier_one() {
        let (mut cached, tenant) = (Cached::default(), TenantUuid::new());
        cached
            .cell(tenant, 3)
            .set(document(3))
            .expect("an empty place");
        assert!(cached.cell(tenant, 3).initialized());
        assert!(
            cached.cell(tenant, 2).initialized(),
            "a reader that was slow gets the later one"
        );
        assert!(!cached.cell(tenant, 4).initialized());
        assert_eq!(cached.tenants.len(), 1);
    }

    #[test]
    fn the_longest_unused_documents_are_forgotten() {
        let mut cached = Cached::default();
        let tenants: Vec<_> = (0..=MAX_TENANTS).map(|_| TenantUuid::new()).collect();
        for tenant in &tenants {
            cached.cell(*tenant, 1);
        }
        let (Some(first), Some(last)) = (tenants.first(), tenants.last()) else {
            panic!("tenants")
        };
        cached.cell(*first, 1);
        cached.trim(*last);
        assert_eq!(cached.tenants.len(), MAX_TENANTS);
        assert!(cached.tenants.contains_key(first) && cached.tenants.contains_key(last));
    }
}
