//! Protocols: how the frames of a model are read.

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_protocol::text_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::store::protocols::ProtocolRow;
use super::store::{self, Table};
use super::{Room, models, trial};

pub const ROOM: Room = Room {
    table: Table::Protocols,
    of_model: 32,
    of_tenant: 4000,
    code: "TOO_MANY_PROTOCOLS",
    what: "protocols",
};
/// Versions that a message names.
const NAMED_VERSIONS: i64 = 5;

/// The kind of a protocol's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "DeviceProtocolKind")]
pub enum ProtocolKind {
    /// A decoder of the service: `{"decoder": "ruuvi"}`.
    Builtin,
    /// A decoder in JSON, whose schema is at `/public/schemas/decoder`.
    Declarative,
    /// A decoder in JavaScript, which the service runs: `{"source": "function decode(frame) ..."}`.
    Script,
}

text_enum!(ProtocolKind { Builtin = "BUILTIN", Declarative = "DECLARATIVE", Script = "SCRIPT" });

impl ProtocolRow {
    /// The representation in the audit log. Documents are represented by their digests: tests may
    /// contain keys.
    fn state(&self) -> Value {
        json!({
            "deviceUuid": self.device_uuid,
            "name": self.name,
            "kind": self.kind,
            "definitionSha256": hex::encode(sealing::hash(&self.definition)),
            "testsSha256": hex::encode(sealing::hash(&self.tests)),
            "revision": self.revision,
        })
    }
}

/// The values given for a protocol. In a change, None keeps the stored value.
#[derive(Debug)]
pub struct Given {
    pub name: Option<String>,
    pub kind: Option<ProtocolKind>,
    pub definition: Option<Value>,
    pub tests: Option<Vec<Map<String, Value>>>,
}

pub async fn get(conn: &mut Conn, scope: &Scope, id: i64) -> Result<ProtocolRow> {
    store::protocols::get(conn, scope, id)
        .await?
        .ok_or_else(|| Error::not_found("device protocol"))
}

pub async fn create(
    core: &Core,
    scope: &Scope,
    device_uuid: Uuid,
    given: Given,
) -> Result<ProtocolRow> {
    let now = core.clock.now();
    let blank = ProtocolRow {
        device_protocol_id: 0,
        device_uuid,
        name: String::new(),
        kind: ProtocolKind::Declarative,
        definition: String::new(),
        tests: "[]".to_owned(),
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    let new = given.applied_to(&blank);
    models::get(&mut core.db.read().await?, scope, device_uuid).await?;
    let new = passed(core, scope, new).await?;
    let mut tx = super::begin(core, scope).await?;
    models::get(&mut tx, scope, device_uuid).await?;
    ROOM.require(&mut tx, scope, device_uuid, 1).await?;
    let row = store::protocols::insert(&mut tx, scope, &new).await?;
    super::raise_models(core, &mut tx, scope).await?;
    let audit = Audit::new(scope, "device_protocol.create", row.device_protocol_id, now);
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(row)
}

/// Changes a protocol. Another kind or definition is another revision.
pub async fn update(core: &Core, scope: &Scope, id: i64, given: Given) -> Result<ProtocolRow> {
    let before = get(&mut core.db.read().await?, scope, id).await?;
    let changed = given.applied_to(&before);
    if changed == before {
        return Ok(before);
    }
    let is_read_otherwise = changed.kind != before.kind || changed.definition != before.definition;
    let changed = match is_read_otherwise || changed.tests != before.tests {
        true => passed(core, scope, changed).await?,
        false => changed,
    };
    let now = core.clock.now();
    let revision = before.revision + i64::from(is_read_otherwise);
    let after = ProtocolRow {
        revision,
        updated_at: now,
        ..changed
    };
    let mut tx = super::begin(core, scope).await?;
    if get(&mut tx, scope, id).await? != before {
        let message = "the protocol was changed by somebody else meanwhile; read it and try again";
        return Err(Error::conflict("CHANGED_MEANWHILE", message));
    }
    store::protocols::update(&mut tx, scope, &after).await?;
    if is_read_otherwise {
        super::raise_models(core, &mut tx, scope).await?;
    }
    let audit = Audit::new(scope, "device_protocol.update", id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

/// Deletes a protocol that no version names.
pub async fn delete(core: &Core, scope: &Scope, id: i64) -> Result<()> {
    let mut tx = super::begin(core, scope).await?;
    let before = get(&mut tx, scope, id).await?;
    let versions = store::versions::names_with_protocol(&mut tx, scope, id, NAMED_VERSIONS).await?;
    if !versions.is_empty() {
        let message = format!(
            "the protocol reads versions of its model ({}); change them first",
            versions.join(", ")
        );
        return Err(Error::conflict("PROTOCOL_IN_USE", message));
    }
    store::protocols::delete(&mut tx, scope, id).await?;
    super::raise_models(core, &mut tx, scope).await?;
    let audit = Audit::new(scope, "device_protocol.delete", id, core.clock.now());
    tx.commit(audit.changed(Some(before.state()), None)).await
}

impl Given {
    fn applied_to(self, before: &ProtocolRow) -> ProtocolRow {
        ProtocolRow {
            name: self
                .name
                .map_or_else(|| before.name.clone(), |name| name.trim().to_owned()),
            kind: self.kind.unwrap_or(before.kind),
            definition: self.definition.map_or_else(
                || before.definition.clone(),
                |definition| definition.to_string(),
            ),
            tests: self.tests.map_or_else(
                || before.tests.clone(),
                |tests| Value::from(tests).to_string(),
            ),
            ..before.clone()
        }
    }
}

/// The protocol, if its definition is valid and reads what its tests expect.
async fn passed(core: &Core, scope: &Scope, protocol: ProtocolRow) -> Result<ProtocolRow> {
    let ProtocolRow {
        kind,
        definition,
        tests,
        ..
    } = &protocol;
    let readings = trial::run(core, scope, *kind, definition.clone(), tests.clone()).await?;
    trial::require_passed(&readings)?;
    Ok(protocol)
}
