//! Actions: what can be done with a device, and how it reaches the device.

use std::collections::BTreeSet;

use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_base::sealing;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::Check;
use hub_identity::authz::Scope;
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::actions::ActionRow;
use super::store::{self, Table};
use super::transport::Transport;
use super::{MAX_DOCUMENT_BYTES, NamedEndpoints, Room, changed_text, parameters, schema};
use crate::device_catalog;

const ROOM: Room = Room {
    table: Table::Actions,
    of_tenant: 1000,
    code: "TOO_MANY_ACTIONS",
    what: "actions",
};
const MAX_ID_BYTES: usize = 64;

/// The values given for an action. In a change, None keeps the stored value, and blank text removes
/// it.
#[derive(Debug)]
pub struct Given {
    /// The nil UUID removes.
    pub device_uuid: Option<Uuid>,
    pub name: Option<String>,
    pub description: Option<String>,
    /// The parameters as JSON; an empty object removes them.
    pub parameters: Option<String>,
    pub confirm: Option<bool>,
    pub transport: Option<Transport>,
}

impl Given {
    fn endpoints(&self) -> NamedEndpoints {
        self.transport
            .as_ref()
            .map(Transport::endpoints)
            .unwrap_or_default()
    }

    fn applied_to(self, before: &ActionRow) -> Result<ActionRow> {
        let transport = match &self.transport {
            None => before.transport.clone(),
            Some(transport) => serde_json::to_string(transport).map_err(Error::internal)?,
        };
        let parameters = self.parameters.or_else(|| before.parameters.clone());
        Ok(ActionRow {
            device_uuid: self
                .device_uuid
                .or(before.device_uuid)
                .filter(|uuid| !uuid.is_nil()),
            name: self
                .name
                .map_or_else(|| before.name.clone(), |name| name.trim().to_owned()),
            description: changed_text(&before.description, self.description),
            parameters: parameters.filter(|text| !is_empty_object(text)),
            confirm: self.confirm.unwrap_or(before.confirm),
            transport,
            ..before.clone()
        })
    }
}

fn is_empty_object(json: &str) -> bool {
    let inside = json
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    inside.is_some_and(|inside| inside.trim().is_empty())
}

impl ActionRow {
    /// The representation in the audit log. Documents are represented by their digests.
    fn state(&self) -> Value {
        json!({
            "deviceUuid": self.device_uuid,
            "name": self.name,
            "description": self.description,
            "parametersSha256": self.parameters.as_ref().map(|text| hex::encode(sealing::hash(text))),
            "confirm": self.confirm,
            "transportSha256": hex::encode(sealing::hash(&self.transport)),
        })
    }

    /// Fails unless the parameters are the schema of an object, and the transport can be carried
    /// out with them.
    fn check(&self) -> Result<()> {
        let mut check = Check::new();
        match self
            .parameters
            .as_deref()
            .map_or(Ok(BTreeSet::new()), schema::members)
        {
            Err(message) => check.that(false, "parameters", message),
            Ok(names) => {
                let transport: Transport =
                    serde_json::from_str(&self.transport).map_err(Error::internal)?;
                transport.check(&mut check, &names);
                let usable = self.parameters.as_deref().map_or(Ok(()), parameters::check);
                if let Err(message) = usable {
                    check.that(false, "parameters", message);
                }
            }
        }
        let message = format!("must have at most {} KiB", MAX_DOCUMENT_BYTES / 1024);
        check.that(
            self.transport.len() <= MAX_DOCUMENT_BYTES,
            "transport",
            message,
        );
        check.done()
    }
}

/// Whether an action may have this id.
pub fn is_id(text: &str) -> bool {
    let is_char =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    (1..=MAX_ID_BYTES).contains(&text.len()) && text.bytes().all(is_char)
}

/// The tenant's action. What is no id at all is not looked for: no database takes every text.
pub async fn get(conn: &mut Conn, scope: &Scope, action_id: &str) -> Result<ActionRow> {
    let row = match is_id(action_id) {
        true => store::actions::get(conn, scope, action_id).await?,
        false => None,
    };
    row.ok_or_else(|| Error::not_found("action"))
}

/// Creates an action. Its id is checked, and `given` has a name and a transport.
pub async fn create(
    core: &Core,
    scope: &Scope,
    action_id: String,
    given: Given,
) -> Result<ActionRow> {
    let now = core.clock.now();
    let blank = ActionRow {
        action_id,
        device_uuid: None,
        name: String::new(),
        description: None,
        parameters: None,
        confirm: false,
        transport: String::new(),
        created_at: now,
        updated_at: now,
    };
    let endpoints = given.endpoints();
    let row = given.applied_to(&blank)?;
    row.check()?;
    let mut tx = device_catalog::begin(core, scope).await?;
    require_model(&mut tx, scope, &row).await?;
    if store::actions::get(&mut tx, scope, &row.action_id)
        .await?
        .is_some()
    {
        let message = format!(
            "there is an action {:?} already; choose another id",
            row.action_id
        );
        return Err(Error::conflict("ACTION_EXISTS", message));
    }
    ROOM.require(&mut tx, scope).await?;
    endpoints.require(&mut tx, scope).await?;
    store::actions::insert(&mut tx, scope, &row).await?;
    let audit = Audit::new(scope, "action_definition.create", &row.action_id, now);
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(row)
}

async fn require_model(tx: &mut Tx, scope: &Scope, row: &ActionRow) -> Result<()> {
    match row.device_uuid {
        Some(device_uuid) => device_catalog::require_model(tx, scope, device_uuid).await,
        None => Ok(()),
    }
}

pub async fn update(
    core: &Core,
    scope: &Scope,
    action_id: &str,
    given: Given,
) -> Result<ActionRow> {
    let mut tx = device_catalog::begin(core, scope).await?;
    let before = get(&mut tx, scope, action_id).await?;
    let endpoints = given.endpoints();
    let changed = given.applied_to(&before)?;
    if changed == before {
        return Ok(before);
    }
    changed.check()?;
    require_model(&mut tx, scope, &changed).await?;
    endpoints.require(&mut tx, scope).await?;
    let now = core.clock.now();
    let after = ActionRow {
        updated_at: now,
        ..changed
    };
    store::actions::update(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, "action_definition.update", action_id, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

pub async fn delete(core: &Core, scope: &Scope, action_id: &str) -> Result<()> {
    let mut tx = device_catalog::begin(core, scope).await?;
    let before = get(&mut tx, scope, action_id).await?;
    store::actions::delete(&mut tx, scope, action_id).await?;
    let audit = Audit::new(
        scope,
        "action_definition.delete",
        action_id,
        core.clock.now(),
    );
    tx.commit(audit.changed(Some(before.state()), None)).await
}
