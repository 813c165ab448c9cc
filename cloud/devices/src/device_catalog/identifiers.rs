//! Identifiers: what a frame of a model looks like. Those of one model are alternatives. No frame
//! may fit identifiers of two models equally well.

use hub_adverts::DefinitionError;
use hub_adverts::matching::Identifier;
use hub_base::db::{Conn, Tx};
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::store::identifiers::IdentifierRow;
use super::store::{self, Table};
use super::{Room, Stored, changed_text, member_path, models};

const OF_MODEL: i64 = 512;
/// The most characters, more than any well-formed value has.
pub const MAX_VALUE_CHARS: usize = 300;

pub const ROOM: Room = Room {
    table: Table::Identifiers,
    of_model: OF_MODEL,
    of_tenant: 10_000,
    code: "TOO_MANY_IDENTIFIERS",
    what: "identifiers",
};

/// The subject of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schemars(rename = "DeviceConditionKind")]
pub enum ConditionKind {
    /// The company identifier of manufacturer data, such as `0499`.
    ManufacturerId,
    /// A prefix of manufacturer data, such as `0499:05`.
    ManufacturerPrefix,
    /// An advertised service, such as `180f`, or its UUID in full.
    ServiceUuid,
    /// A service with data, such as `fcd2`, or its UUID in full.
    ServiceDataUuid,
    /// A prefix of service data, such as `fcd2:40`.
    ServiceDataPrefix,
    /// The whole name.
    Name,
    /// The beginning of the name.
    NamePrefix,
    /// The beginning of the address, such as `C4:11`.
    AddressPrefix,
    /// An iBeacon, as `uuid`, `uuid/major` or `uuid/major/minor`.
    Ibeacon,
    /// An Eddystone-UID frame, as `namespace` or `namespace/instance` in hexadecimal.
    EddystoneUid,
    /// The length of manufacturer or service data in bytes, such as `0499:24`.
    PayloadLength,
}

/// A condition for an advertisement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeviceCondition")]
pub struct Condition {
    /// The subject of the condition.
    pub kind: ConditionKind,
    /// The required value, in the form of the kind.
    #[schemars(length(min = 1, max = MAX_VALUE_CHARS))]
    pub value: String,
    /// The bits of a prefix that count, as many bytes in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_VALUE_CHARS))]
    pub mask: Option<String>,
}

/// An identifier that is to be stored.
#[derive(Clone, Debug)]
pub struct NewIdentifier {
    pub conditions: Stored<Vec<Condition>>,
    pub identifier: Identifier,
    pub label: Option<String>,
    pub notes: Option<String>,
}

impl NewIdentifier {
    /// The error names the condition at fault.
    pub fn checked(
        conditions: Vec<Condition>,
        label: Option<String>,
        notes: Option<String>,
    ) -> Result<Self> {
        let identifier = parse(&conditions)
            .map_err(|error| Error::field(path(&error.pointer), error.problem))?;
        Ok(Self {
            conditions: Stored(conditions),
            identifier,
            label,
            notes,
        })
    }

    /// As [`NewIdentifier::checked`], for a condition whose members are in the request itself.
    pub fn single(
        condition: Condition,
        label: Option<String>,
        notes: Option<String>,
    ) -> Result<Self> {
        let conditions = vec![condition];
        let below = |pointer: &str| path(pointer.strip_prefix("/conditions/0").unwrap_or(pointer));
        let identifier = parse(&conditions)
            .map_err(|error| Error::field(below(&error.pointer), error.problem))?;
        Ok(Self {
            conditions: Stored(conditions),
            identifier,
            label,
            notes,
        })
    }

    /// An identifier of the library, in the form of its files.
    pub fn of_template(definition: &Value) -> Result<Self> {
        #[derive(Deserialize)]
        struct File {
            conditions: Option<Vec<Condition>>,
            kind: Option<ConditionKind>,
            value: Option<String>,
            mask: Option<String>,
            label: Option<String>,
            notes: Option<String>,
        }
        let File {
            conditions,
            kind,
            value,
            mask,
            label,
            notes,
        } = File::deserialize(definition).map_err(Error::internal)?;
        let single = kind
            .zip(value)
            .map(|(kind, value)| vec![Condition { kind, value, mask }]);
        Self::checked(conditions.or(single).unwrap_or_default(), label, notes)
    }
}

/// The place of an error, as the path of a member of the request.
fn path(pointer: &str) -> String {
    member_path("", pointer)
}

fn parse(conditions: &[Condition]) -> Result<Identifier, DefinitionError> {
    for (at, condition) in conditions.iter().enumerate() {
        for (member, text) in [
            ("value", Some(&condition.value)),
            ("mask", condition.mask.as_ref()),
        ] {
            if text.is_some_and(|text| text.len() > MAX_VALUE_CHARS) {
                let problem = format!("must have at most {MAX_VALUE_CHARS} bytes");
                return Err(DefinitionError {
                    pointer: format!("/conditions/{at}/{member}"),
                    problem,
                });
            }
        }
    }
    Identifier::parse(&json!({"conditions": conditions}))
}

impl IdentifierRow {
    /// The representation in the audit log.
    fn state(&self) -> Value {
        json!({
            "deviceUuid": self.device_uuid,
            "conditions": self.conditions.0,
            "label": self.label,
            "notes": self.notes,
        })
    }
}

/// All identifiers of a model, in the order in which they were created.
pub async fn list(conn: &mut Conn, scope: &Scope, device_uuid: Uuid) -> Result<Vec<IdentifierRow>> {
    models::get(conn, scope, device_uuid).await?;
    store::identifiers::list(conn, scope, device_uuid, OF_MODEL).await
}

pub async fn create(
    core: &Core,
    scope: &Scope,
    device_uuid: Uuid,
    new: NewIdentifier,
) -> Result<IdentifierRow> {
    let now = core.clock.now();
    let mut tx = super::begin(core, scope).await?;
    models::get(&mut tx, scope, device_uuid).await?;
    ROOM.require(&mut tx, scope, device_uuid, 1).await?;
    require_no_tie(&mut tx, scope, device_uuid, std::slice::from_ref(&new)).await?;
    let row = store::identifiers::insert(&mut tx, scope, device_uuid, &new, now).await?;
    super::raise_models(core, &mut tx, scope).await?;
    let audit = Audit::new(
        scope,
        "device_identifier.create",
        row.device_identifier_id,
        now,
    );
    tx.commit(audit.changed(None, Some(row.state()))).await?;
    Ok(row)
}

/// Fails if a frame can fit one of the identifiers and that of another model equally well. The
/// catalog is locked.
pub async fn require_no_tie(
    tx: &mut Tx,
    scope: &Scope,
    device_uuid: Uuid,
    new: &[NewIdentifier],
) -> Result<()> {
    let mut specificities: Vec<i64> = new
        .iter()
        .map(|new| i64::from(new.identifier.specificity()))
        .collect();
    specificities.sort_unstable();
    specificities.dedup();
    if specificities.is_empty() {
        return Ok(());
    }
    for rival in store::identifiers::rivals(tx, scope, device_uuid, &specificities).await? {
        // An identifier that is not valid anymore recognises no advertisement.
        let Ok(other) = parse(&rival.conditions.0) else {
            continue;
        };
        if new.iter().any(|new| new.identifier.ties(&other)) {
            return Err(tie(tx, scope, &rival).await?);
        }
    }
    Ok(())
}

async fn tie(tx: &mut Tx, scope: &Scope, rival: &IdentifierRow) -> Result<Error> {
    let name = store::models::name(tx, scope, rival.device_uuid)
        .await?
        .unwrap_or_default();
    let message = format!(
        "an advertisement can fit this and identifier {} of the model {name:?} ({}) equally well; add a condition to one of them, or delete one",
        rival.device_identifier_id, rival.device_uuid
    );
    Ok(Error::conflict("IDENTIFIER_TIE", message))
}

/// Changes label and notes.
pub async fn update(
    core: &Core,
    scope: &Scope,
    device_uuid: Uuid,
    id: i64,
    label: Option<String>,
    notes: Option<String>,
) -> Result<IdentifierRow> {
    let mut tx = super::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_uuid, id).await?;
    let after = IdentifierRow {
        label: changed_text(&before.label, label),
        notes: changed_text(&before.notes, notes),
        ..before.clone()
    };
    if after == before {
        return Ok(after);
    }
    store::identifiers::describe(&mut tx, scope, &after).await?;
    let audit = Audit::new(scope, "device_identifier.update", id, core.clock.now());
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

pub async fn delete(core: &Core, scope: &Scope, device_uuid: Uuid, id: i64) -> Result<()> {
    let mut tx = super::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_uuid, id).await?;
    store::identifiers::delete(&mut tx, scope, id).await?;
    super::raise_models(core, &mut tx, scope).await?;
    let audit = Audit::new(scope, "device_identifier.delete", id, core.clock.now());
    tx.commit(audit.changed(Some(before.state()), None)).await
}

async fn get(conn: &mut Conn, scope: &Scope, device_uuid: Uuid, id: i64) -> Result<IdentifierRow> {
    let row = store::identifiers::get(conn, scope, device_uuid, id).await?;
    row.ok_or_else(|| Error::not_found("identifier"))
}
