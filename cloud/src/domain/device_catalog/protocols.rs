//! Protocols: how the frames of a model are read.

use hub_adverts::Measurement;
use hub_adverts::Outcome;
use hub_adverts::library::{ModelTest, Protocol};
use hub_protocol::text_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::store::protocols::ProtocolRow;
use super::store::{self, Table};
use super::{MAX_DOCUMENT_BYTES, MAX_ITEMS, Room, member_path, models};
use crate::audit::Audit;
use crate::authz::Scope;
use crate::core::Core;
use crate::db::Conn;
use crate::error::{Error, Result};
use crate::http::json;
use crate::scripts::{Decoded, Trial};
use crate::sealing;

pub const ROOM: Room =
    Room { table: Table::Protocols, of_model: 32, of_tenant: 4000, code: "TOO_MANY_PROTOCOLS", what: "protocols" };
/// Versions that a message names.
const NAMED_VERSIONS: i64 = 5;
/// Failed tests that an answer names.
const NAMED_FAILURES: usize = 32;

/// How a protocol is given.
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
    /// The representation in the audit log. Documents are told apart by their digests: tests may
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

/// What is given of a protocol. In a change, what is None stays.
#[derive(Debug)]
pub struct Given {
    pub name: Option<String>,
    pub kind: Option<ProtocolKind>,
    pub definition: Option<Value>,
    pub tests: Option<Vec<Map<String, Value>>>,
}

pub async fn get(conn: &mut Conn, scope: &Scope, id: i64) -> Result<ProtocolRow> {
    store::protocols::get(conn, scope, id).await?.ok_or_else(|| Error::not_found("device protocol"))
}

pub async fn create(core: &Core, scope: &Scope, device_uuid: Uuid, given: Given) -> Result<ProtocolRow> {
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
    let new = tried(core, scope, new).await?;
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
        true => tried(core, scope, changed).await?,
        false => changed,
    };
    let now = core.clock.now();
    let revision = before.revision + i64::from(is_read_otherwise);
    let after = ProtocolRow { revision, updated_at: now, ..changed };
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
    tx.commit(audit.changed(Some(before.state()), Some(after.state()))).await?;
    Ok(after)
}

/// Deletes a protocol that no version names.
pub async fn delete(core: &Core, scope: &Scope, id: i64) -> Result<()> {
    let mut tx = super::begin(core, scope).await?;
    let before = get(&mut tx, scope, id).await?;
    let versions = store::versions::names_with_protocol(&mut tx, scope, id, NAMED_VERSIONS).await?;
    if !versions.is_empty() {
        let message = format!("the protocol reads versions of its model ({}); change them first", versions.join(", "));
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
            name: self.name.map_or_else(|| before.name.clone(), |name| name.trim().to_owned()),
            kind: self.kind.unwrap_or(before.kind),
            definition: self.definition.map_or_else(|| before.definition.clone(), |definition| definition.to_string()),
            tests: self.tests.map_or_else(|| before.tests.clone(), |tests| Value::from(tests).to_string()),
            ..before.clone()
        }
    }
}

/// The protocol, if its definition is valid and reads what its tests expect. That is work on what a
/// caller wrote, so it happens outside of the request threads.
async fn tried(core: &Core, scope: &Scope, protocol: ProtocolRow) -> Result<ProtocolRow> {
    if protocol.kind == ProtocolKind::Script {
        try_script(core, scope, &protocol).await?;
        return Ok(protocol);
    }
    let work = move || check(protocol.kind, &protocol.definition, &protocol.tests).map(|()| protocol);
    core.bodies.work(work).await?
}

/// The members of a protocol's definition and its tests, each with its place.
fn parsed(definition: &str, tests: &str) -> Result<(Value, Vec<(String, ModelTest)>)> {
    for (member, text) in [("definition", definition), ("tests", tests)] {
        if text.len() > MAX_DOCUMENT_BYTES {
            let message = format!("must have at most {} KiB", MAX_DOCUMENT_BYTES / 1024);
            return Err(Error::field(member, message));
        }
        if json::depth(text) > json::MAX_DEPTH {
            let message = format!("must not be nested deeper than {} levels", json::MAX_DEPTH);
            return Err(Error::field(member, message));
        }
    }
    let definition: Value = serde_json::from_str(definition).map_err(Error::internal)?;
    let tests: Vec<Value> = serde_json::from_str(tests).map_err(Error::internal)?;
    if tests.len() > MAX_ITEMS {
        return Err(Error::field("tests", format!("must have at most {MAX_ITEMS} items")));
    }
    let test = |(at, test): (usize, &Value)| {
        let root = format!("tests[{at}]");
        let test =
            ModelTest::parse(test).map_err(|error| Error::field(member_path(&root, &error.pointer), error.problem))?;
        Ok((root, test))
    };
    Ok((definition, tests.iter().enumerate().map(test).collect::<Result<_>>()?))
}

fn check(kind: ProtocolKind, definition: &str, tests: &str) -> Result<()> {
    let (definition, tests) = parsed(definition, tests)?;
    let protocol = Protocol::parse(&json!({"kind": kind, "definition": definition}))
        .map_err(|error| Error::field(error.pointer.trim_start_matches('/'), error.problem))?;
    let mut failures = Vec::new();
    for (root, test) in &tests {
        let mut measurements = Vec::new();
        let outcome = test.with(|frame, keys| protocol.decode(frame, keys, &mut measurements));
        let why = match outcome {
            Outcome::Decoded(_) => "",
            Outcome::NotMine => "; the decoder does not take this frame for one of its own",
            Outcome::Invalid => "; the decoder takes this frame for a broken one",
            Outcome::NeedsKey(_) => "; the frame is encrypted, and `secrets` or `address` is missing",
            Outcome::WrongKey(_) => "; the frame is encrypted with another key",
        };
        failures.extend(failures_of(root, test, why, &measurements));
        if failures.len() >= NAMED_FAILURES {
            break;
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(Error::fields(failures)) }
}

async fn try_script(core: &Core, scope: &Scope, protocol: &ProtocolRow) -> Result<()> {
    let (definition, tests) = parsed(&protocol.definition, &protocol.tests)?;
    let source = source_of(&definition)?;
    let frames: Vec<_> = tests.iter().map(|(_, test)| test.frame.clone()).collect();
    let decoded = core.scripts.trial(scope.tenant_uuid(), source, &frames).await;
    let decoded = decoded.map_err(|problem| match problem {
        Trial::Busy => Error::unavailable("BUSY", "too many scripts are being run; try again shortly"),
        Trial::Refused(problem) => Error::field("definition/source", problem),
    })?;
    let mut failures = Vec::new();
    for ((root, test), decoded) in tests.iter().zip(decoded) {
        let (measurements, why) = match decoded {
            Decoded::Values(measurements) => (measurements, String::new()),
            Decoded::NotMine => (Vec::new(), "; decode returns null for this frame".to_owned()),
            Decoded::Failed(problem) | Decoded::NotRun(problem) => {
                // Also if nothing is expected: a script that fails is at fault.
                if test.expect.values().all(Option::is_none) {
                    failures.push(hub_protocol::FieldError { field: root.clone(), message: problem });
                    continue;
                }
                (Vec::new(), format!("; {problem}"))
            }
        };
        failures.extend(failures_of(root, test, &why, &measurements));
    }
    failures.truncate(NAMED_FAILURES);
    if failures.is_empty() { Ok(()) } else { Err(Error::fields(failures)) }
}

/// The only member of a script's definition.
fn source_of(definition: &Value) -> Result<&str> {
    const SOURCE: &str = "definition/source";
    let members = definition.as_object().ok_or_else(|| Error::field("definition", "must be an object"))?;
    if let Some(unknown) = members.keys().find(|name| *name != "source") {
        return Err(Error::field(format!("definition/{unknown}"), "is not known; a script has `source` alone"));
    }
    let source = members.get("source").ok_or_else(|| Error::field("definition", "needs source"))?;
    let source = source.as_str().ok_or_else(|| Error::field(SOURCE, "must be text"))?;
    match source.contains('\0') {
        true => Err(Error::field(SOURCE, "must not contain a NUL character")),
        false => Ok(source),
    }
}

/// What of a test is not as expected, each with the quantity at fault, and why.
fn failures_of(root: &str, test: &ModelTest, why: &str, measurements: &[Measurement]) -> Vec<hub_protocol::FieldError> {
    let failure = |difference: hub_adverts::library::Difference| hub_protocol::FieldError {
        field: format!("{root}.expect.{}", difference.quantity),
        message: format!("{difference}{why}"),
    };
    test.differences(measurements).into_iter().map(failure).take(NAMED_FAILURES).collect()
}
