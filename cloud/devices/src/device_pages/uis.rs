//! UI schemas: forms for setting up, controlling and watching devices of a model.

use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use hub_protocol::text_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::config::Form;
use super::store::uis::UiRow;
use super::store::{self, Table};
use super::{NamedEndpoints, Room, changed_text};
use crate::device_catalog;

const ROOM: Room = Room {
    table: Table::Uis,
    of_tenant: 1000,
    code: "TOO_MANY_UI_SCHEMAS",
    what: "UI schemas",
};

/// The purpose of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "DeviceUiKind")]
pub enum UiKind {
    /// The form sets up a new device.
    Setup,
    /// The form operates a device.
    Control,
    /// The form shows the reports of a device.
    Dashboard,
}

text_enum!(UiKind { Setup = "SETUP", Control = "CONTROL", Dashboard = "DASHBOARD" });

/// The values of a new UI schema.
#[derive(Debug)]
pub struct New {
    pub device_uuid: Uuid,
    pub kind: UiKind,
    pub name: String,
    pub locale: Option<String>,
    pub config: Form,
}

/// The values given in a change. None keeps the stored value, and blank text removes it.
#[derive(Debug)]
pub struct Given {
    pub kind: Option<UiKind>,
    pub name: Option<String>,
    pub locale: Option<String>,
    pub config: Option<Form>,
}

impl Given {
    /// A change of the form raises the revision.
    fn applied_to(self, before: &UiRow) -> (UiRow, NamedEndpoints) {
        let (config, endpoints) = match self.config {
            Some(Form { text, endpoints }) => (text, endpoints),
            None => (before.config.clone(), NamedEndpoints::default()),
        };
        let row = UiRow {
            kind: self.kind.unwrap_or(before.kind),
            name: self
                .name
                .map_or_else(|| before.name.clone(), |name| name.trim().to_owned()),
            locale: changed_text(&before.locale, self.locale),
            revision: before.revision + i64::from(config != before.config),
            config,
            ..before.clone()
        };
        (row, endpoints)
    }
}

impl UiRow {
    /// The representation in the audit log. Headers of a form may be secret, so the form is
    /// represented by its digest.
    fn state(&self) -> Value {
        json!({
            "deviceUuid": self.device_uuid,
            "kind": self.kind,
            "name": self.name,
            "locale": self.locale,
            "configSha256": hex::encode(sealing::hash(&self.config)),
            "revision": self.revision,
        })
    }
}

pub async fn get(conn: &mut Conn, scope: &Scope, device_ui_id: i64) -> Result<UiRow> {
    let row = store::uis::get(conn, scope, device_ui_id).await?;
    row.ok_or_else(|| Error::not_found("UI schema"))
}

pub async fn create(core: &Core, scope: &Scope, new: New) -> Result<UiRow> {
    let now = core.clock.now();
    let row = UiRow {
        device_ui_id: 0,
        device_uuid: new.device_uuid,
        kind: new.kind,
        name: new.name.trim().to_owned(),
        locale: changed_text(&None, new.locale),
        config: new.config.text,
        revision: 1,
        created_at: now,
        updated_at: now,
    };
    let mut tx = device_catalog::begin(core, scope).await?;
    device_catalog::require_model(&mut tx, scope, row.device_uuid).await?;
    ROOM.require(&mut tx, scope).await?;
    new.config.endpoints.require(&mut tx, scope).await?;
    let row = store::uis::insert(&mut tx, scope, &row).await?;
    let audit = Audit::new(scope, "device_ui.create", row.device_ui_id, now);
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(row)
}

pub async fn update(core: &Core, scope: &Scope, device_ui_id: i64, given: Given) -> Result<UiRow> {
    let mut tx = device_catalog::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_ui_id).await?;
    let (changed, endpoints) = given.applied_to(&before);
    if changed == before {
        return Ok(before);
    }
    endpoints.require(&mut tx, scope).await?;
    let now = core.clock.now();
    let after = UiRow {
        updated_at: now,
        ..changed
    };
    store::uis::update(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, "device_ui.update", device_ui_id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

pub async fn delete(core: &Core, scope: &Scope, device_ui_id: i64) -> Result<()> {
    let mut tx = device_catalog::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_ui_id).await?;
    store::uis::delete(&mut tx, scope, device_ui_id).await?;
    let audit = Audit::new(scope, "device_ui.delete", device_ui_id, core.clock.now());
    tx.commit(audit.changed(Some(before.state()), None)).await
}
