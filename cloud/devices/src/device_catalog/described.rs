//! The models of a tenant as hubs get them.

use std::collections::HashMap;

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_identity::authz::Scope;
use hub_protocol::scan_config::{ScanDevice, ScanIdentifier, ScanProtocol};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::protocols::ProtocolKind;
use super::store;

/// Definitions and conditions of all models that hubs may get.
const MAX_BYTES: i64 = 8 * 1024 * 1024;

/// The models of a tenant, how they are recognised and read.
pub struct Described {
    pub models: Vec<ScanDevice>,
    pub identifiers: Vec<ScanIdentifier>,
    /// The protocols without scripts, which never run on a hub.
    pub protocols: Vec<ScanProtocol>,
    /// The protocols that versions name, by version.
    pub of_versions: HashMap<Uuid, i64>,
}

/// The tenant's models, each list sorted. 409 if hubs cannot take so much.
pub async fn described(conn: &mut Conn, scope: &Scope) -> Result<Described> {
    if store::compiled::bytes(conn, scope).await? > MAX_BYTES {
        let message = format!(
            "the definitions of the device catalog have more than {} MiB, too much for hubs; delete some",
            MAX_BYTES / (1024 * 1024)
        );
        return Err(Error::conflict("SCAN_CONFIG_TOO_LARGE", message));
    }
    let rows = store::compiled::protocols(conn, scope).await?;
    // The newest protocol of a model has the highest id.
    let mut newest: HashMap<Uuid, (i64, ProtocolKind)> = HashMap::new();
    for row in &rows {
        let known = newest
            .entry(row.device_uuid)
            .or_insert((row.device_protocol_id, row.kind));
        if known.0 < row.device_protocol_id {
            *known = (row.device_protocol_id, row.kind);
        }
    }
    let of_versions = store::compiled::protocols_of_versions(conn, scope)
        .await?
        .into_iter()
        .collect();
    let protocols = rows
        .into_iter()
        .filter(|row| row.kind != ProtocolKind::Script)
        .map(|row| {
            let definition = parsed("definition", &row.definition)?;
            let (device_protocol_id, revision) = (row.device_protocol_id, row.revision);
            Ok(ScanProtocol {
                device_protocol_id,
                revision,
                kind: row.kind.name().to_owned(),
                definition,
            })
        });
    let mut protocols = protocols.collect::<Result<Vec<_>>>()?;
    protocols.sort_by_key(|protocol| protocol.device_protocol_id);
    let readable = |device_uuid: &Uuid| {
        newest
            .get(device_uuid)
            .filter(|(_, kind)| *kind != ProtocolKind::Script)
    };
    let models = store::compiled::models(conn, scope)
        .await?
        .into_iter()
        .map(|row| ScanDevice {
            device_uuid: row.device_uuid,
            device_protocol_id: readable(&row.device_uuid).map(|(id, _)| *id),
            name: Some(row.name),
            expected_interval_seconds: row.expected_interval_secs,
            ..ScanDevice::default()
        });
    let mut models: Vec<_> = models.collect();
    models.sort_by_key(|model| model.device_uuid);
    let identifiers = store::compiled::identifiers(conn, scope)
        .await?
        .into_iter()
        .map(|row| {
            let conditions = parsed("condition", &row.conditions)?;
            Ok(ScanIdentifier {
                id: row.device_identifier_id,
                device_uuid: row.device_uuid,
                conditions,
            })
        });
    let identifiers = identifiers.collect::<Result<Vec<_>>>()?;
    Ok(Described {
        models,
        identifiers,
        protocols,
        of_versions,
    })
}

fn parsed<T: DeserializeOwned>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::internal(format!("a stored {what} is malformed: {error}")))
}
