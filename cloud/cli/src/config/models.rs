//! Device models with their parts: identifiers, protocols, versions, forms and manuals.

use std::collections::BTreeMap;

use hub_client::{Call, Client, Operation, operations};
use serde_json::{Map, Value, json};

use super::names::Names;
use super::{members, text, tidy};
use crate::diff::canonical;
use crate::failure::Failure;
use crate::text::printable;

/// A kind of part.
pub struct Part {
    /// The member of a model's file.
    pub member: &'static str,
    members: &'static [&'static str],
    /// The members that identify a part within its model.
    key: &'static [&'static str],
    /// The name of its id in paths and responses.
    id: &'static str,
    create: &'static Operation,
    update: &'static Operation,
    delete: &'static Operation,
}

const IDENTIFIERS: Part = Part {
    member: "identifiers",
    members: operations::IDENTIFIER_MEMBERS,
    key: &["conditions"],
    id: "id",
    create: &operations::CREATE_IDENTIFIER,
    update: &operations::UPDATE_IDENTIFIER,
    delete: &operations::DELETE_IDENTIFIER,
};
const PROTOCOLS: Part = Part {
    member: "protocols",
    members: operations::PROTOCOL_MEMBERS,
    key: &["name"],
    id: "deviceProtocolId",
    create: &operations::CREATE_PROTOCOL,
    update: &operations::UPDATE_PROTOCOL,
    delete: &operations::DELETE_PROTOCOL,
};
const VERSIONS: Part = Part {
    member: "versions",
    members: operations::VERSION_MEMBERS,
    key: &["version"],
    id: "deviceVersionUuid",
    create: &operations::CREATE_VERSION,
    update: &operations::UPDATE_VERSION,
    delete: &operations::DELETE_VERSION,
};
const FORMS: Part = Part {
    member: "forms",
    members: operations::FORM_MEMBERS,
    key: &["name", "kind", "locale"],
    id: "deviceUiId",
    create: &operations::CREATE_FORM,
    update: &operations::UPDATE_FORM,
    delete: &operations::DELETE_FORM,
};
const MANUALS: Part = Part {
    member: "manuals",
    members: operations::MANUAL_MEMBERS,
    key: &["title", "format", "locale"],
    id: "deviceManualId",
    create: &operations::CREATE_MANUAL,
    update: &operations::UPDATE_MANUAL,
    delete: &operations::DELETE_MANUAL,
};
pub const PARTS: [&Part; 5] = [&IDENTIFIERS, &PROTOCOLS, &VERSIONS, &FORMS, &MANUALS];

/// A model of the tenant: its document as in its file, and its parts with their ids.
pub struct Model {
    pub uuid: String,
    pub document: Value,
    parts: BTreeMap<&'static str, Vec<(String, Value)>>,
}

/// All models of the tenant. Their documents still refer to other objects by id.
pub async fn read(client: &Client) -> Result<Vec<Model>, Failure> {
    let records: Vec<Value> = client.list(operations::MODELS.call()).await?;
    let mut lists: BTreeMap<&'static str, BTreeMap<String, Vec<Value>>> = BTreeMap::new();
    for (part, list) in [
        (&PROTOCOLS, &operations::PROTOCOLS),
        (&VERSIONS, &operations::VERSIONS),
        (&FORMS, &operations::FORMS),
        (&MANUALS, &operations::MANUALS),
    ] {
        let of_part = lists.entry(part.member).or_default();
        let mut found: Vec<Value> = client.list(list.call()).await?;
        // The lists begin with the newest.
        found.reverse();
        for record in found {
            of_part
                .entry(text(&record, "deviceUuid"))
                .or_default()
                .push(record);
        }
    }
    let mut models = Vec::new();
    for record in records {
        let uuid = text(&record, "deviceUuid");
        let identifiers = match record.get("identifierCount").and_then(Value::as_i64) {
            Some(0) => Vec::new(),
            _ => {
                client
                    .list(operations::IDENTIFIERS.call().path("deviceUuid", &uuid))
                    .await?
            }
        };
        let mut of_model: BTreeMap<&'static str, Vec<Value>> = lists
            .iter_mut()
            .map(|(member, lists)| (*member, lists.remove(&uuid).unwrap_or_default()))
            .collect();
        of_model.insert(IDENTIFIERS.member, identifiers);
        models.push(model(&record, uuid, of_model)?);
    }
    Ok(models)
}

fn model(
    record: &Value,
    uuid: String,
    lists: BTreeMap<&'static str, Vec<Value>>,
) -> Result<Model, Failure> {
    let protocols = lists
        .get(PROTOCOLS.member)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let protocol_names: BTreeMap<String, String> = protocols
        .iter()
        .map(|protocol| (text(protocol, PROTOCOLS.id), text(protocol, "name")))
        .collect();
    let mut document = members(record, operations::MODEL_MEMBERS);
    let mut parts = BTreeMap::new();
    for part in PARTS {
        let records = lists
            .get(part.member)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let mut of_part: Vec<(String, Value)> = Vec::new();
        for record in records {
            let mut item = members(record, part.members);
            if part.member == VERSIONS.member {
                let protocol = protocol_names.get(&text(&item, PROTOCOLS.id)).cloned();
                set(&mut item, PROTOCOLS.id, None);
                set(&mut item, "protocol", protocol.map(Value::from));
            }
            of_part.push((text(record, part.id), tidy(item)));
        }
        // The newest protocol decodes a device, so the order matters.
        if part.member != PROTOCOLS.member {
            of_part.sort_by_key(|(_, item)| part.key(item));
        }
        let items: Vec<Value> = of_part.iter().map(|(_, item)| item.clone()).collect();
        check_keys(part, &items, &text(record, "name"))?;
        set(&mut document, part.member, Some(Value::Array(items)));
        parts.insert(part.member, of_part);
    }
    Ok(Model {
        uuid,
        document: tidy(document),
        parts,
    })
}

pub fn set(document: &mut Value, name: &str, value: Option<Value>) {
    if let Value::Object(members) = document {
        match value {
            Some(value) => members.insert(name.to_owned(), value),
            None => members.remove(name),
        };
    }
}

impl Part {
    fn key(&self, item: &Value) -> String {
        canonical(members(item, self.key)).to_string()
    }
}

/// Parts of one model must differ in their keys.
fn check_keys(part: &Part, items: &[Value], model: &str) -> Result<(), Failure> {
    let mut keys: Vec<String> = items.iter().map(|item| part.key(item)).collect();
    keys.sort();
    match keys.windows(2).find(|pair| pair.first() == pair.last()) {
        None => Ok(()),
        Some(pair) => {
            let (member, model) = (part.member, printable(model));
            let key = pair.first().map(|key| printable(key)).unwrap_or_default();
            Err(Failure::failed(format!(
                "two {member} of the model `{model}` are {key}; rename one, as files name them so"
            )))
        }
    }
}

/// The document of a file in the form that `Model::document` has.
pub fn of_file(document: Value) -> Result<Value, Failure> {
    let name = text(&document, "name");
    let mut document = document;
    for part in PARTS {
        let items = match document.get(part.member) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(items)) => items.clone(),
            Some(_) => {
                return Err(Failure::usage(format!(
                    "`{}` of the model `{}` is no list",
                    part.member,
                    printable(&name)
                )));
            }
        };
        let mut items: Vec<Value> = items.into_iter().map(tidy).collect();
        let allowed =
            |member: &String| part.members.contains(&member.as_str()) || member == "protocol";
        let unknown = items
            .iter()
            .filter_map(Value::as_object)
            .flat_map(Map::keys)
            .find(|member| !allowed(member));
        if let Some(unknown) = unknown {
            let (part, unknown, name) = (part.member, printable(unknown), printable(&name));
            return Err(Failure::usage(format!(
                "the {part} of the model `{name}` have no member `{unknown}`"
            )));
        }
        check_keys(part, &items, &name)?;
        if part.member != PROTOCOLS.member {
            items.sort_by_key(|item| part.key(item));
        }
        set(&mut document, part.member, Some(Value::Array(items)));
    }
    Ok(tidy(document))
}

/// The value that a PATCH sends for a removed member.
fn removed(member: &str) -> Value {
    match member {
        "expectedIntervalSeconds" | "deviceProtocolId" => json!(0),
        "referencePowerDbm" => json!(127),
        "aliases" | "metrics" | "tests" => json!([]),
        "autoRegister" | "released" | "confirm" => json!(false),
        "parameters" => json!({}),
        "deviceUuid" => json!(uuid::Uuid::nil()),
        _ => json!(""),
    }
}

/// The members to change, or none if the documents are equal.
pub fn patch(before: &Value, after: &Value, names: &[&str]) -> Option<Value> {
    let mut body = Map::new();
    for name in names {
        match (before.get(*name), after.get(*name)) {
            (before, after) if before == after => {}
            (_, Some(after)) => drop(body.insert((*name).to_owned(), after.clone())),
            // The format of a manual decides which of these members it has.
            (_, None) if matches!(*name, "content" | "url") => {}
            (_, None) => drop(body.insert((*name).to_owned(), removed(name))),
        }
    }
    (!body.is_empty()).then_some(Value::Object(body))
}

/// Creates or changes a model as its document describes it, and returns its uuid.
pub async fn apply(
    client: &Client,
    before: Option<&Model>,
    document: &Value,
    names: &Names,
) -> Result<String, Failure> {
    let body = members(document, operations::MODEL_MEMBERS);
    let uuid = match before {
        None => text(
            &client
                .call::<Value>(operations::CREATE_MODEL.call().body(body))
                .await?,
            "deviceUuid",
        ),
        Some(model) => {
            if let Some(body) = patch(&model.document, document, operations::MODEL_MEMBERS) {
                client
                    .run(
                        operations::UPDATE_MODEL
                            .call()
                            .path("deviceUuid", &model.uuid)
                            .body(body),
                    )
                    .await?;
            }
            model.uuid.clone()
        }
    };
    let mut sync = Sync {
        client,
        uuid: &uuid,
        document,
        before,
        names,
        protocols: BTreeMap::new(),
    };
    // A version refers to a protocol: protocols are created first and deleted last.
    let unused_protocols = sync.keep(&PROTOCOLS).await?;
    let unused_versions = sync.keep(&VERSIONS).await?;
    sync.delete(&VERSIONS, unused_versions).await?;
    sync.delete(&PROTOCOLS, unused_protocols).await?;
    // The service refuses two identifiers for the same advertisement: the old one is deleted first.
    let unused = sync.unused(&IDENTIFIERS);
    sync.delete(&IDENTIFIERS, unused).await?;
    sync.keep(&IDENTIFIERS).await?;
    for part in [&FORMS, &MANUALS] {
        let unused = sync.keep(part).await?;
        sync.delete(part, unused).await?;
    }
    Ok(uuid)
}

struct Sync<'a> {
    client: &'a Client,
    uuid: &'a str,
    document: &'a Value,
    before: Option<&'a Model>,
    names: &'a Names,
    protocols: BTreeMap<String, Value>,
}

impl Sync<'_> {
    fn stored(&self, part: &Part) -> Vec<(String, Value)> {
        self.before
            .and_then(|model| model.parts.get(part.member))
            .cloned()
            .unwrap_or_default()
    }

    fn wanted(&self, part: &Part) -> Vec<Value> {
        self.document
            .get(part.member)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    }

    /// The ids of parts that the document does not have.
    fn unused(&self, part: &Part) -> Vec<String> {
        let wanted: Vec<String> = self
            .wanted(part)
            .iter()
            .map(|item| part.key(item))
            .collect();
        let stored = self.stored(part).into_iter();
        stored
            .filter(|(_, item)| !wanted.contains(&part.key(item)))
            .map(|(id, _)| id)
            .collect()
    }

    /// Creates and changes parts, and returns the ids of those to delete.
    async fn keep(&mut self, part: &Part) -> Result<Vec<String>, Failure> {
        let stored = self.stored(part);
        for item in self.wanted(part) {
            let before = stored
                .iter()
                .find(|(_, before)| part.key(before) == part.key(&item));
            let id = match before {
                Some((id, before)) => {
                    let changed = patch(
                        &self.sent(part, before)?,
                        &self.sent(part, &item)?,
                        part.members,
                    );
                    if let Some(body) = changed {
                        self.client
                            .run(self.call(part, part.update, id).body(body))
                            .await?;
                    }
                    id.clone()
                }
                None => {
                    let mut body = self.sent(part, &item)?;
                    if part.member != IDENTIFIERS.member {
                        set(&mut body, "deviceUuid", Some(Value::from(self.uuid)));
                    }
                    let call = part.create.call().path("deviceUuid", self.uuid).body(body);
                    text(&self.client.call::<Value>(call).await?, part.id)
                }
            };
            if part.member == PROTOCOLS.member {
                self.protocols.insert(
                    text(&item, "name"),
                    id.parse::<i64>().map(Value::from).unwrap_or_default(),
                );
            }
        }
        Ok(self.unused(part))
    }

    /// A part as a request body.
    fn sent(&self, part: &Part, item: &Value) -> Result<Value, Failure> {
        let mut item = self.names.resolved(item.clone())?;
        if part.member == VERSIONS.member
            && let Some(name) = item
                .get("protocol")
                .and_then(Value::as_str)
                .map(str::to_owned)
        {
            let missing = || {
                let model = printable(&text(self.document, "name"));
                Failure::usage(format!(
                    "the model `{model}` has no protocol `{}`",
                    printable(&name)
                ))
            };
            let stored = || {
                let of_name = |(_, protocol): &(String, Value)| text(protocol, "name") == name;
                let id = self.stored(&PROTOCOLS).into_iter().find(of_name)?.0;
                id.parse::<i64>().ok().map(Value::from)
            };
            let id = self
                .protocols
                .get(&name)
                .cloned()
                .or_else(stored)
                .ok_or_else(missing)?;
            set(&mut item, "protocol", None);
            set(&mut item, PROTOCOLS.id, Some(id));
        }
        Ok(item)
    }

    fn call(&self, part: &Part, operation: &'static Operation, id: &str) -> Call {
        operation
            .call()
            .path("deviceUuid", self.uuid)
            .path(part.id, id)
    }

    async fn delete(&self, part: &Part, ids: Vec<String>) -> Result<(), Failure> {
        for id in ids {
            self.client.run(self.call(part, part.delete, &id)).await?;
        }
        Ok(())
    }
}
