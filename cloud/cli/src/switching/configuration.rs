//! Apps, models, actions, pipelines, route and bundles, as `hub import` creates them.

use serde_json::Value;

use super::archive::CONFIGURATION;
use super::importer::Import;
use super::report::some;
use crate::config::{self, Documents, ROUTE, State};
use crate::failure::{Failure, TRY_LATER};
use crate::pipelines::with_secrets;

/// The documents of the export, and what is here.
pub async fn read(import: &mut Import<'_>) -> Result<(Documents, State), Failure> {
    let folder = import.directory.join(CONFIGURATION);
    let documents = match folder.is_dir() {
        true => config::read_files(&folder)?,
        false => {
            let missing = "models, pipelines, route and bundles are not in the export";
            import.report.failed.push(missing.to_owned());
            Documents::new()
        }
    };
    Ok((documents, config::read_state(&import.client).await?))
}

/// Creates the objects of some folders.
pub async fn import(
    import: &mut Import<'_>,
    state: &mut State,
    documents: &Documents,
    folders: &[&'static str],
) -> Result<(), Failure> {
    for &folder in folders {
        for ((of, name), document) in documents {
            if of == folder {
                one(import, state, folder, name, document.clone()).await?;
            }
        }
    }
    Ok(())
}

async fn one(
    import: &mut Import<'_>,
    state: &mut State,
    folder: &'static str,
    name: &str,
    document: Value,
) -> Result<(), Failure> {
    let key = format!("{folder}/{name}");
    let title = key.trim_end_matches('/').to_owned();
    let mut missing = Vec::new();
    let document = with_ids_of_here(import, folder, document, &mut missing);
    if !missing.is_empty() {
        import.report.todo.push(format!(
            "{title} names {}: when they are here, run the import again",
            some(&missing)
        ));
        return Ok(());
    }
    let is_default_route = folder == ROUTE && has_default_route(state);
    let wanted = Documents::from([((folder.to_owned(), name.to_owned()), document.clone())]);
    let change = match config::changes(state, wanted) {
        Ok(mut changes) => changes.pop(),
        Err(failure) => {
            import
                .report
                .left
                .push(format!("{title}: {}", failure.message));
            return Ok(());
        }
    };
    let Some(change) = change else {
        import.report.there(folder);
        return match import.is_plan || import.journal.id(&key).is_some() {
            true => Ok(()),
            false => import.journal.done(&key, Value::Null),
        };
    };
    let is_ours = import.journal.has_begun(&key) && import.journal.id(&key).is_none();
    if !change.is_new && !is_ours && !is_default_route {
        import
            .report
            .left
            .push(format!("{title}: it is here and differs"));
        return Ok(());
    }
    if folder == "pipelines" {
        let to = document.get("destination").cloned().unwrap_or_default();
        let to = ["kind", "url", "bucket"].map(|member| config::text(&to, member));
        let sends = format!("{title}: {}", to.join(" "));
        import.report.sends.push(sends.trim_end().to_owned());
    }
    if folder == "pipelines"
        && let Err(failure) = with_secrets(document, change.is_new)
    {
        import.report.todo.push(format!(
            "{title}: {}, then run the import again",
            failure.message
        ));
        return Ok(());
    }
    if import.is_plan {
        import.report.created(folder);
        return Ok(());
    }
    import.journal.begin(&key)?;
    match config::apply(&import.client, state, &change).await {
        Ok(()) => {
            import.report.created(folder);
            import.journal.done(&key, Value::Null)
        }
        Err(failure) if failure.exit_code == TRY_LATER => Err(failure.about(&title)),
        Err(failure) => {
            import
                .report
                .failed
                .push(format!("{title}: {}", failure.message));
            Ok(())
        }
    }
}

/// Whether nobody has set the route of this tenant.
fn has_default_route(state: &State) -> bool {
    let route = state.documents.get(&(ROUTE.to_owned(), String::new()));
    route.is_some_and(|route| {
        let has_rules = route
            .get("rules")
            .and_then(Value::as_array)
            .is_some_and(|rules| !rules.is_empty());
        !has_rules && config::text(route, "otherwise") == "FORWARD"
    })
}

/// A document with the hubs and devices of this tenant. Those that are not here are `missing`.
fn with_ids_of_here(
    import: &Import<'_>,
    folder: &str,
    mut document: Value,
    missing: &mut Vec<String>,
) -> Value {
    let member = match folder {
        "pipelines" => "source",
        ROUTE => "rules",
        _ => return document,
    };
    if let Some(part) = document.get_mut(member) {
        replace(import, part, missing);
    }
    document
}

fn replace(import: &Import<'_>, value: &mut Value, missing: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            for item in items {
                replace(import, item, missing);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "hubUuid" | "hubUuids" => each(value, &mut |id| hub(import, id, missing)),
                    "deviceInstanceId" | "deviceInstanceIds" => {
                        each(value, &mut |id| device(import, id, missing));
                    }
                    _ => replace(import, value, missing),
                }
            }
        }
        _ => {}
    }
}

/// A member is an id or a list of them.
fn each(value: &mut Value, change: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(change),
        Value::Null => {}
        id => change(id),
    }
}

fn hub(import: &Import<'_>, id: &mut Value, missing: &mut Vec<String>) {
    let old = id.as_str().unwrap_or_default().to_owned();
    match import.hubs.get(&old) {
        Some(new) => *id = Value::from(new.as_str()),
        None => missing.push(format!("the hub {old}")),
    }
}

fn device(import: &Import<'_>, id: &mut Value, missing: &mut Vec<String>) {
    match id.as_i64().and_then(|old| import.devices.get(&old)) {
        Some(new) => *id = Value::from(*new),
        None => missing.push(format!("the device {id}")),
    }
}
