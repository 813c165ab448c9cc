//! The models of a tenant as recognition uses them.

use std::collections::{BTreeMap, HashMap};

use hub_adverts::catalog::{Model, Models, Protocol, Reader};
use hub_adverts::library;
use hub_adverts::matching::Identifier;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_identity::authz::Scope;
use serde_json::{Value, json};
use uuid::Uuid;

use super::protocols::ProtocolKind;
use super::store;

/// The tenant's models, compiled. What was accepted once and cannot be compiled now, because it is
/// of another version of the service, is left out and logged.
pub async fn compiled(conn: &mut Conn, scope: &Scope) -> Result<Models> {
    let protocol_rows = store::compiled::protocols(conn, scope).await?;
    // The newest protocol of a model has the highest id.
    let mut newest: HashMap<Uuid, i64> = HashMap::new();
    for row in &protocol_rows {
        let id = newest
            .entry(row.device_uuid)
            .or_insert(row.device_protocol_id);
        *id = row.device_protocol_id.max(*id);
    }
    let models = store::compiled::models(conn, scope)
        .await?
        .into_iter()
        .map(|row| Model {
            device_uuid: row.device_uuid,
            name: row.name,
            expected_interval_secs: row.expected_interval_secs,
            auto_register: row.auto_register,
            device_protocol_id: newest.get(&row.device_uuid).copied(),
        });
    let models = models.collect();
    let mut identifiers = Vec::new();
    for row in store::compiled::identifiers(conn, scope).await? {
        let conditions: Value = serde_json::from_str(&row.conditions).unwrap_or_default();
        match Identifier::parse(&json!({"conditions": conditions})) {
            Ok(identifier) => {
                identifiers.push((row.device_identifier_id, row.device_uuid, identifier))
            }
            Err(error) => left_out(
                scope,
                "identifier",
                row.device_identifier_id,
                &error.to_string(),
            ),
        }
    }
    let mut protocols = Vec::new();
    for row in protocol_rows {
        let definition: Value = serde_json::from_str(&row.definition).unwrap_or_default();
        let (device_protocol_id, revision) = (row.device_protocol_id, row.revision);
        if row.kind == ProtocolKind::Script {
            let source = definition
                .get("source")
                .and_then(Value::as_str)
                .unwrap_or_default();
            protocols.push(Protocol {
                device_protocol_id,
                revision,
                reader: Reader::Script(source.into()),
            });
            continue;
        }
        match library::Protocol::parse(&json!({"kind": row.kind.name(), "definition": definition}))
        {
            Ok(decoder) => {
                protocols.push(Protocol {
                    device_protocol_id,
                    revision,
                    reader: Reader::Decoder(decoder),
                });
            }
            Err(error) => left_out(
                scope,
                "protocol",
                row.device_protocol_id,
                &error.to_string(),
            ),
        }
    }
    Ok(Models::new(models, identifiers, protocols))
}

fn left_out(scope: &Scope, what: &'static str, id: i64, error: &str) {
    tracing::error!(tenant_uuid = %scope.tenant_uuid(), what, id, error, "a stored definition cannot be compiled");
}

/// The protocols that versions name, by version.
pub async fn protocols_of_versions(conn: &mut Conn, scope: &Scope) -> Result<BTreeMap<Uuid, i64>> {
    Ok(store::compiled::protocols_of_versions(conn, scope)
        .await?
        .into_iter()
        .collect())
}
