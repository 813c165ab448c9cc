//! Devices: registered under the models of this tenant, with the identity that they have.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hub_client::operations;
use serde_json::{Value, json};

use super::archive::Lines;
use super::importer::Import;
use super::pages::Pages;
use super::report::some;
use crate::config::{State, members, set, text};
use crate::diff::canonical;
use crate::failure::Failure;

const KIND: &str = "devices";

/// A device of the export, with what is needed of it.
struct Old {
    id: i64,
    status: String,
    /// The members to register it with; they still have the ids of the other tenant.
    document: Value,
    model: String,
    version: String,
    has_keys: bool,
}

/// A device that is here.
struct Found {
    id: i64,
    /// Nobody has named it: a hub has registered it.
    is_blank: bool,
}

/// Devices that are here, by what identifies them.
struct Here {
    found: HashMap<String, Vec<Found>>,
    ids: BTreeSet<i64>,
}

pub async fn import(import: &mut Import<'_>, state: &State) -> Result<(), Failure> {
    let models = models(import, state)?;
    let versions = versions(import, &models).await?;
    let mut here = here(import).await?;
    let (mut with_keys, mut retired) = (Vec::new(), 0_u64);
    let mut devices = Vec::new();
    let mut lines = Lines::open(import.directory, "devices.ndjson")?;
    while let Some(record) = lines.next()? {
        let device = old(&record)?;
        match device.status.as_str() {
            "RETIRED" => retired += 1,
            _ => devices.push(device),
        }
    }
    // The list begins with the newest.
    for mut device in devices.into_iter().rev() {
        let name = title(&device);
        let Some(model) = models.get(&device.model) else {
            import
                .report
                .failed
                .push(format!("devices: {name}: its model is not here"));
            continue;
        };
        set(
            &mut device.document,
            "deviceUuid",
            Some(Value::from(model.as_str())),
        );
        let version = versions.get(&device.version).cloned();
        set(
            &mut device.document,
            "deviceVersionUuid",
            version.map(Value::from),
        );
        if device.has_keys {
            with_keys.push(name.clone());
        }
        one(import, &mut here, &device, &name).await?;
    }
    if !with_keys.is_empty() {
        import.report.todo.push(format!(
            "enter the keys of {} devices, which are never exported: {}",
            with_keys.len(),
            some(&with_keys)
        ));
    }
    if retired > 0 {
        let text = format!("{retired} retired devices are in the folder only");
        import.report.left.push(text);
    }
    Ok(())
}

fn old(record: &Value) -> Result<Old, Failure> {
    let id = record.get("deviceInstanceId").and_then(Value::as_i64);
    let is_set = |name: &str| record.get(name) == Some(&Value::Bool(true));
    Ok(Old {
        id: id.ok_or_else(|| Failure::failed("a line of devices.ndjson has no id"))?,
        status: text(record, "activationStatus"),
        document: canonical(members(record, operations::DEVICE_MEMBERS)),
        model: text(record, "deviceUuid"),
        version: text(record, "deviceVersionUuid"),
        has_keys: is_set("identityResolvingKeySet") || text(record, "bindKeyStatus") != "NONE",
    })
}

fn title(device: &Old) -> String {
    let names = ["name", "address", "serialNumber"];
    let name = names.map(|member| text(&device.document, member));
    let name = name.into_iter().find(|name| !name.is_empty());
    name.unwrap_or_else(|| device.id.to_string())
}

/// Models of this tenant by their ids in the export. In a plan, one that will be created has its
/// old id.
pub fn models(import: &Import<'_>, state: &State) -> Result<BTreeMap<String, String>, Failure> {
    let mut found = BTreeMap::new();
    let mut lines = Lines::open(import.directory, "models.ndjson")?;
    while let Some(record) = lines.next()? {
        let old = text(&record, "deviceUuid");
        let reference = json!(format!("${{model:{}}}", text(&record, "name")));
        match (state.names.resolved(reference), import.is_plan) {
            (Ok(Value::String(new)), _) => drop(found.insert(old, new)),
            (_, true) => drop(found.insert(old.clone(), old)),
            (_, false) => {}
        }
    }
    Ok(found)
}

/// Versions of models of this tenant by their ids in the export.
async fn versions(
    import: &Import<'_>,
    models: &BTreeMap<String, String>,
) -> Result<HashMap<String, String>, Failure> {
    let mut here = HashMap::new();
    let call = operations::VERSIONS.call();
    let mut pages = Pages::new(&import.client, call, "deviceVersionUuid");
    while let Some(records) = pages.next().await? {
        for record in records {
            let key = (text(&record, "deviceUuid"), text(&record, "version"));
            here.insert(key, text(&record, "deviceVersionUuid"));
        }
    }
    let mut found = HashMap::new();
    let mut lines = Lines::open(import.directory, "device-versions.ndjson")?;
    while let Some(record) = lines.next()? {
        if let Some(model) = models.get(&text(&record, "deviceUuid"))
            && let Some(new) = here.get(&(model.clone(), text(&record, "version")))
        {
            found.insert(text(&record, "deviceVersionUuid"), new.clone());
        }
    }
    Ok(found)
}

/// What identifies a device: its beacon or its address; else what its people know it by.
fn identity(document: &Value) -> String {
    match (document.get("beacon"), document.get("address")) {
        (Some(beacon @ Value::Object(_)), _) => canonical(beacon.clone()).to_string(),
        (_, Some(Value::String(address))) => address.to_uppercase(),
        _ => {
            let parts = ["deviceUuid", "name", "serialNumber"];
            json!(parts.map(|member| text(document, member))).to_string()
        }
    }
}

async fn here(import: &Import<'_>) -> Result<Here, Failure> {
    let done = import.journal.ids("device").filter_map(Value::as_i64);
    let done: BTreeSet<i64> = done.collect();
    let mut here = Here {
        found: HashMap::new(),
        ids: BTreeSet::new(),
    };
    let call = operations::DEVICES.call();
    let mut pages = Pages::new(&import.client, call, "deviceInstanceId");
    while let Some(records) = pages.next().await? {
        for record in records {
            let id = record.get("deviceInstanceId").and_then(Value::as_i64);
            let Some(id) = id.filter(|_| text(&record, "activationStatus") != "RETIRED") else {
                continue;
            };
            here.ids.insert(id);
            if done.contains(&id) {
                continue;
            }
            let has_labels = record
                .get("labels")
                .and_then(Value::as_object)
                .is_some_and(|labels| !labels.is_empty());
            let is_blank = !has_labels
                && text(&record, "name").is_empty()
                && text(&record, "serialNumber").is_empty();
            let of_identity = here.found.entry(identity(&record)).or_default();
            of_identity.push(Found { id, is_blank });
        }
    }
    Ok(here)
}

async fn one(
    import: &mut Import<'_>,
    here: &mut Here,
    device: &Old,
    name: &str,
) -> Result<(), Failure> {
    let key = format!("device/{}", device.id);
    if let Some(id) = import.journal.id(&key).and_then(Value::as_i64) {
        // One that somebody has deleted since is not created again.
        if here.ids.contains(&id) {
            import.devices.insert(device.id, id);
            import.report.there(KIND);
        }
        return Ok(());
    }
    let found = here.found.get_mut(&identity(&device.document));
    let found = found.and_then(Vec::pop);
    let has_begun = import.journal.has_begun(&key);
    let id = match found {
        Some(found) if !has_begun && !found.is_blank => {
            import.devices.insert(device.id, found.id);
            import.report.there(KIND);
            return match import.is_plan {
                true => Ok(()),
                false => import.journal.done(&key, Value::from(found.id)),
            };
        }
        Some(found) if import.is_plan => {
            import.devices.insert(device.id, found.id);
            import.report.created(KIND);
            return Ok(());
        }
        Some(found) => {
            import.journal.begin(&key)?;
            let update = [
                "name",
                "serialNumber",
                "deviceVersionUuid",
                "labels",
                "calibration",
            ];
            let call = operations::UPDATE_DEVICE
                .call()
                .path("deviceInstanceId", found.id)
                .body(members(&device.document, &update));
            if import.send(KIND, name, call).await?.is_none() {
                return Ok(());
            }
            import.report.created(KIND);
            found.id
        }
        None => {
            let call = operations::CREATE_DEVICE
                .call()
                .body(device.document.clone());
            let Some(made) = import.create(KIND, name, &key, call).await? else {
                // In a plan, its dashboards and pipelines find it by its old id.
                if import.is_plan {
                    import.devices.insert(device.id, device.id);
                }
                return Ok(());
            };
            let id = made.get("deviceInstanceId").and_then(Value::as_i64);
            id.ok_or_else(|| Failure::failed("the service answered a device without an id"))?
        }
    };
    import.devices.insert(device.id, id);
    let operation = match device.status.as_str() {
        "ACTIVE" => Some(&operations::ACTIVATE_DEVICE),
        "SUSPENDED" => Some(&operations::SUSPEND_DEVICE),
        _ => None,
    };
    if let Some(operation) = operation {
        let call = operation.call().path("deviceInstanceId", id);
        if import.send(KIND, name, call).await?.is_none() {
            return Ok(());
        }
    }
    import.journal.done(&key, Value::from(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_what_identifies_it() {
        let one = json!({"address": "c4:11:7d:da:71:13", "name": "a", "deviceUuid": "m"});
        let same = json!({"address": "C4:11:7D:DA:71:13", "name": "b", "deviceUuid": "n"});
        assert_eq!(identity(&one), identity(&same));
        let beacon = json!({"beacon": {"uuid": "u", "major": 1, "minor": 2}, "address": "a"});
        let same = json!({"beacon": {"minor": 2, "major": 1, "uuid": "u"}});
        assert_eq!(identity(&beacon), identity(&same));
        let plain = json!({"deviceUuid": "m", "name": "a", "beacon": null});
        assert_eq!(
            identity(&plain),
            identity(&json!({"deviceUuid": "m", "name": "a"}))
        );
        assert_ne!(
            identity(&plain),
            identity(&json!({"deviceUuid": "n", "name": "a"}))
        );
    }
}
