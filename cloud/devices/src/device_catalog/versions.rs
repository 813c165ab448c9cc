//! Versions of a model, each of which may have a protocol of its own.

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::versions::VersionRow;
use super::store::{self, Table};
use super::{Room, changed_text, models};

const ROOM: Room = Room {
    table: Table::Versions,
    of_model: 256,
    of_tenant: 20_000,
    code: "TOO_MANY_VERSIONS",
    what: "versions",
};

/// The values given for a version. In a change, None keeps the stored value, and blank text removes
/// it.
#[derive(Debug, Default)]
pub struct Given {
    pub version: Option<String>,
    pub hardware_version: Option<String>,
    pub firmware_version: Option<String>,
    /// 0 removes the protocol.
    pub device_protocol_id: Option<i64>,
    pub notes: Option<String>,
    pub released: Option<bool>,
}

impl Given {
    fn applied_to(self, before: &VersionRow) -> VersionRow {
        let protocol_id = self.device_protocol_id;
        VersionRow {
            version: self.version.map_or_else(
                || before.version.clone(),
                |version| version.trim().to_owned(),
            ),
            hardware_version: changed_text(&before.hardware_version, self.hardware_version),
            firmware_version: changed_text(&before.firmware_version, self.firmware_version),
            device_protocol_id: protocol_id
                .or(before.device_protocol_id)
                .filter(|id| *id != 0),
            notes: changed_text(&before.notes, self.notes),
            released: self.released.unwrap_or(before.released),
            ..before.clone()
        }
    }
}

impl VersionRow {
    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "deviceUuid": self.device_uuid,
            "version": self.version,
            "hardwareVersion": self.hardware_version,
            "firmwareVersion": self.firmware_version,
            "deviceProtocolId": self.device_protocol_id,
            "notes": self.notes,
            "released": self.released,
        })
    }
}

pub async fn get(conn: &mut Conn, scope: &Scope, device_version_uuid: Uuid) -> Result<VersionRow> {
    let row = store::versions::get(conn, scope, device_version_uuid).await?;
    row.ok_or_else(|| Error::not_found("device version"))
}

pub async fn create(
    core: &Core,
    scope: &Scope,
    device_uuid: Uuid,
    given: Given,
) -> Result<VersionRow> {
    let now = core.clock.now();
    let blank = VersionRow {
        device_version_uuid: Uuid::now_v7(),
        device_uuid,
        version: String::new(),
        hardware_version: None,
        firmware_version: None,
        device_protocol_id: None,
        notes: None,
        released: false,
        created_at: now,
        updated_at: now,
    };
    let row = given.applied_to(&blank);
    let mut tx = super::begin(core, scope).await?;
    models::get(&mut tx, scope, device_uuid).await?;
    ROOM.require(&mut tx, scope, device_uuid, 1).await?;
    check(&mut tx, scope, &row).await?;
    store::versions::insert(&mut tx, scope, &row).await?;
    let audit = Audit::new(scope, "device_version.create", row.device_version_uuid, now);
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(row)
}

/// Fails if the model has another version of this name, or not the protocol.
async fn check(tx: &mut Tx, scope: &Scope, row: &VersionRow) -> Result<()> {
    let named = store::versions::named(tx, scope, row.device_uuid, &row.version).await?;
    if named.is_some_and(|other| other != row.device_version_uuid) {
        let message = format!(
            "the model has a version {:?} already; choose another name",
            row.version
        );
        return Err(Error::conflict("VERSION_EXISTS", message));
    }
    if let Some(id) = row.device_protocol_id
        && !store::protocols::exists(tx, scope, row.device_uuid, id).await?
    {
        return Err(Error::field(
            "deviceProtocolId",
            "must be a protocol of the same model",
        ));
    }
    Ok(())
}

pub async fn update(
    core: &Core,
    scope: &Scope,
    device_version_uuid: Uuid,
    given: Given,
) -> Result<VersionRow> {
    let mut tx = super::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_version_uuid).await?;
    let changed = given.applied_to(&before);
    if changed == before {
        return Ok(before);
    }
    check(&mut tx, scope, &changed).await?;
    let now = core.clock.now();
    let after = VersionRow {
        updated_at: now,
        ..changed
    };
    store::versions::update(&mut tx, scope, &after).await?;
    // The version of a device decides how its frames are read.
    if after.device_protocol_id != before.device_protocol_id {
        super::raise_models(core, &mut tx, scope).await?;
    }
    let audit = Audit::new(scope, "device_version.update", device_version_uuid, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

/// Deletes a version that no device is of.
pub async fn delete(core: &Core, scope: &Scope, device_version_uuid: Uuid) -> Result<()> {
    let mut tx = super::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_version_uuid).await?;
    let instances = store::versions::instances(&mut tx, scope, device_version_uuid).await?;
    if instances > 0 {
        let message = format!(
            "the version is used by {}; change or delete them first",
            models::devices(instances)
        );
        return Err(Error::conflict("VERSION_IN_USE", message));
    }
    store::versions::delete(&mut tx, scope, device_version_uuid).await?;
    if before.device_protocol_id.is_some() {
        super::raise_models(core, &mut tx, scope).await?;
    }
    let audit = Audit::new(
        scope,
        "device_version.delete",
        device_version_uuid,
        core.clock.now(),
    );
    tx.commit(audit.changed(Some(before.state()), None)).await
}
