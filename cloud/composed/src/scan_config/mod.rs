//! What hubs need to recognise the devices of their tenant: a document that is built once for each
//! revision of a tenant's catalog, and kept as bytes. Only the keys at its end differ by hub. It
//! owns no table.

mod cache;
pub mod http;

use std::collections::HashSet;

use bytes::Bytes;
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::http::compression;
use hub_devices::{ble_routes, device_catalog, device_instances};
use hub_identity::authz::Scope;
use hub_protocol::scan_config::{Otherwise, RouteRule, ScanConfig, ScanKeys};
use hub_protocol::{Data, TenantUuid};

pub use cache::ScanConfigs;

/// The revisions of the tenants' documents; 0 of an empty one. A change of single devices makes
/// another one only where hubs have to know devices. So it wakes no hubs elsewhere, however many
/// devices are registered.
pub async fn revisions(conn: &mut Conn, tenants: Vec<TenantUuid>) -> Result<Vec<Revision>> {
    let rows = device_catalog::revisions_of(conn, tenants).await?;
    // The tenants whose devices have changed since the models.
    let differ = rows.iter().filter(|(_, catalog, models)| catalog != models);
    let tenants: Vec<TenantUuid> = differ.map(|(tenant_uuid, ..)| *tenant_uuid).collect();
    let with_devices = match tenants.is_empty() {
        true => HashSet::new(),
        false => ble_routes::with_known_devices(conn, tenants).await?,
    };
    let revision = |(tenant_uuid, catalog, models)| {
        let document = if with_devices.contains(&tenant_uuid) {
            catalog
        } else {
            models
        };
        Revision {
            tenant_uuid,
            catalog,
            document,
        }
    };
    Ok(rows.into_iter().map(revision).collect())
}

/// The revision of one tenant's document.
pub async fn revision(conn: &mut Conn, tenant_uuid: TenantUuid) -> Result<i64> {
    let revisions = revisions(conn, vec![tenant_uuid]).await?;
    Ok(revisions.first().map_or(0, |revision| revision.document))
}

/// The revision of a tenant's document.
#[derive(Clone, Copy, Debug)]
pub struct Revision {
    pub tenant_uuid: TenantUuid,
    pub catalog: i64,
    pub document: i64,
}

/// The end of a document without keys.
const END: &str = "[]}}";
/// The bytes of a hash in an entity tag.
const TAG_BYTES: usize = 8;

/// The document of a tenant's hubs.
#[derive(Debug)]
pub struct Document {
    /// The body `{"data": ScanConfig}` without keys.
    plain: Bytes,
    /// The same, compressed.
    zstd: Option<Bytes>,
    /// Differs from that of every other document.
    tag: String,
    /// Whether hubs get keys.
    needs_keys: bool,
}

impl Document {
    fn of(config: ScanConfig, needs_keys: bool) -> Result<Self> {
        let revision = config.revision;
        let text = serde_json::to_string(&Data { data: config }).map_err(Error::internal)?;
        if !text.ends_with(END) {
            return Err(Error::internal(
                "a scan configuration does not end with its keys",
            ));
        }
        let hash = sealing::hash(&text);
        let tag = format!(
            "{revision}.{}",
            hex::encode(hash.get(..TAG_BYTES).unwrap_or_default())
        );
        let plain = Bytes::from(text);
        Ok(Self {
            zstd: compression::zstd(&plain),
            plain,
            tag,
            needs_keys,
        })
    }

    /// The document with these keys, which are its last member.
    fn with_keys(&self, keys: &[ScanKeys]) -> Result<Vec<u8>> {
        let start = self
            .plain
            .get(..self.plain.len().saturating_sub(END.len()))
            .unwrap_or_default();
        let keys = serde_json::to_vec(keys).map_err(Error::internal)?;
        Ok([start, &keys, b"}}"].concat())
    }

    fn bytes(&self) -> usize {
        self.plain.len() + self.zstd.as_ref().map_or(0, Bytes::len)
    }
}

/// Builds the document of a tenant as of a revision. What changes meanwhile may be in it: hubs get
/// it once more with the next revision.
async fn build(core: &Core, scope: &Scope, revision: i64) -> Result<Document> {
    let mut conn = core.db.read().await?;
    let route = ble_routes::get(&mut conn, scope.tenant_uuid()).await?;
    let device_catalog::Described {
        models,
        identifiers,
        protocols,
        of_versions,
    } = device_catalog::described(&mut conn, scope).await?;
    let mut devices = models;
    if route.hubs_know_devices() {
        devices.extend(device_instances::described(&mut conn, scope, &of_versions).await?);
    }
    drop(conn);
    let routes: Vec<RouteRule> = route.hub_rules().cloned().collect();
    let otherwise: Otherwise = route.hub_otherwise();
    let config = ScanConfig {
        revision,
        devices,
        identifiers,
        protocols,
        routes,
        otherwise,
        keys: Vec::new(),
    };
    let needs_keys = route.hubs_need_keys();
    core.bodies
        .work(move || Document::of(config, needs_keys))
        .await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_put_at_the_end() {
        let config = ScanConfig {
            revision: 7,
            ..ScanConfig::default()
        };
        let document = Document::of(config.clone(), true).expect("a document");
        let keys = vec![ScanKeys {
            device_instance_id: 3,
            bind_key: Some("00".repeat(16)),
            identity_resolving_key: None,
        }];
        let text = document.with_keys(&keys).expect("text");
        let read: Data<ScanConfig> = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(
            read.data,
            ScanConfig {
                keys,
                ..config.clone()
            }
        );
        let read: Data<ScanConfig> = serde_json::from_slice(&document.plain).expect("JSON");
        assert_eq!(read.data, config);
    }
}
