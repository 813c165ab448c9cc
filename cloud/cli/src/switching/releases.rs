//! Releases of apps: published again with the manifest and the signature that they have.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hub_client::{Call, Error, operations};
use serde_json::{Value, json};

use super::archive::{self, failed};
use super::importer::Import;
use super::release_files::{self, RELEASES};
use super::report::some;
use crate::apps::upload;
use crate::config::{State, members, text};
use crate::failure::{Failure, TRY_LATER};

const KIND: &str = "releases";
const DOCUMENTS: &str = "documents of releases";

/// A release of the export.
struct Old {
    uuid: String,
    /// App, version and architecture.
    title: String,
    record: Value,
}

/// Publishes releases in the order of their counters, which is the only one that a service accepts.
pub async fn import(import: &mut Import<'_>, state: &mut State) -> Result<(), Failure> {
    let mut here = BTreeMap::new();
    for app in import.client.list::<Value>(operations::APPS.call()).await? {
        here.insert(text(&app, "name"), text(&app, "appUuid"));
    }
    let (mut missing, mut untrusted) = (Vec::new(), Vec::new());
    for (app, mut releases) in read(import)? {
        releases.sort_by_key(|release| release.record.get("counter").and_then(Value::as_i64));
        let app_uuid = here.get(&app).cloned();
        if app_uuid.is_none() && !import.is_plan {
            let message = format!("{KIND}: {app}: this app is not here");
            import.report.failed.push(message);
            continue;
        }
        let mut listed = Vec::new();
        if let Some(app_uuid) = &app_uuid {
            let call = operations::APP_RELEASES.call().path("appUuid", app_uuid);
            listed = import.client.list::<Value>(call).await?;
        }
        for old in &releases {
            let is_same = |one: &&Value| {
                ["version", "architecture"].map(|name| text(one, name))
                    == ["version", "architecture"].map(|name| text(&old.record, name))
            };
            let found = match listed.iter().find(is_same) {
                Some(found) if text(found, "manifest") != text(&old.record, "manifest") => {
                    let message = format!("{KIND}: {}: it is here and differs", old.title);
                    import.report.left.push(message);
                    continue;
                }
                Some(found) if text(found, "status") == "READY" => {
                    import.report.there(KIND);
                    Some(found.clone())
                }
                _ => {
                    let app_uuid = app_uuid.as_deref().unwrap_or_default();
                    match publish(import, old, app_uuid, &mut untrusted).await? {
                        Published::Here(made) => Some(made),
                        Published::Planned => None,
                        Published::NoFile => {
                            missing.push(old.title.clone());
                            continue;
                        }
                        Published::Refused => continue,
                    }
                }
            };
            let new = found.as_ref().map(|found| text(found, "releaseUuid"));
            let new = new.unwrap_or_else(|| old.uuid.clone());
            state.names.add("release", &old.title, &new);
            import.releases.insert(old.uuid.clone(), new);
            documents(import, old, found.as_ref()).await?;
            support(import, old, found.as_ref()).await?;
        }
    }
    if !missing.is_empty() {
        import.report.todo.push(format!(
            "publish the releases whose files are not in the export, with hub apps publish FILE: {}",
            some(&missing)
        ));
    }
    if !untrusted.is_empty() {
        import.report.todo.push(format!(
            "ask the operator of the service to trust the keys that signed {} releases (setting \
             release-keys), then run the import again: {}",
            untrusted.len(),
            some(&untrusted)
        ));
    }
    Ok(())
}

/// Releases that had their files, by the names of their apps.
fn read(import: &Import<'_>) -> Result<BTreeMap<String, Vec<Old>>, Failure> {
    let apps: BTreeMap<String, String> = archive::records(import.directory, "apps.ndjson")?
        .iter()
        .map(|app| (text(app, "appUuid"), text(app, "name")))
        .collect();
    let mut found: BTreeMap<String, Vec<Old>> = BTreeMap::new();
    for record in archive::records(import.directory, RELEASES)? {
        let Some(app) = apps.get(&text(&record, "appUuid")) else {
            continue;
        };
        if text(&record, "status") != "READY" {
            continue;
        }
        let old = Old {
            uuid: text(&record, "releaseUuid"),
            title: format!(
                "{app} {} {}",
                text(&record, "version"),
                text(&record, "architecture")
            ),
            record,
        };
        found.entry(app.clone()).or_default().push(old);
    }
    Ok(found)
}

/// A file of the export, if it is there.
fn file(import: &Import<'_>, name: &str) -> Option<PathBuf> {
    let path = import.directory.join(name);
    path.is_file().then_some(path)
}

enum Published {
    Here(Value),
    Planned,
    /// The export has no file of it.
    NoFile,
    /// This is in the report.
    Refused,
}

async fn publish(
    import: &mut Import<'_>,
    old: &Old,
    app_uuid: &str,
    untrusted: &mut Vec<String>,
) -> Result<Published, Failure> {
    let Some(path) = file(import, &release_files::file_name(&old.uuid)) else {
        return Ok(Published::NoFile);
    };
    if import.is_plan {
        import.report.created(KIND);
        return Ok(Published::Planned);
    }
    let key = format!("release/{}", old.uuid);
    import.journal.begin(&key)?;
    let call = operations::CREATE_APP_RELEASE
        .call()
        .path("appUuid", app_uuid)
        .body(members(&old.record, &["manifest", "signature"]));
    let made = match import.client.call::<Value>(call).await {
        Ok(made) => made,
        Err(error) if is_untrusted(&error) => {
            untrusted.push(old.title.clone());
            let message = format!("{KIND}: {}: {}", old.title, Failure::from(error).message);
            import.report.failed.push(message);
            return Ok(Published::Refused);
        }
        Err(error) => {
            import.refused(KIND, &old.title, error)?;
            return Ok(Published::Refused);
        }
    };
    // Without a URL the file arrived before, and the response was lost.
    let url = text(&made, "uploadUrl");
    if !url.is_empty() {
        let size = std::fs::metadata(&path).map_err(|error| failed(&path, error))?;
        match upload(&import.client, &url, &path, size.len()).await {
            Ok(()) => {}
            Err(failure) if failure.exit_code == TRY_LATER => {
                return Err(failure.about(&old.title));
            }
            Err(failure) => {
                let message = format!("{KIND}: {}: {}", old.title, failure.message);
                import.report.failed.push(message);
                return Ok(Published::Refused);
            }
        }
    }
    import.report.created(KIND);
    let new = Value::from(text(&made, "releaseUuid"));
    import.journal.done(&key, new)?;
    Ok(Published::Here(made))
}

/// Whether the service does not know the key that signed a release.
fn is_untrusted(error: &Error) -> bool {
    let names_signature = match error {
        Error::Refused { problem, .. } => {
            let mut errors = problem.errors.iter();
            errors.any(|error| error.field == "signature")
        }
        _ => false,
    };
    names_signature || error.code() == Some("NO_RELEASE_KEYS")
}

/// Uploads the documents of a release that are not here. `found` is the release; none in a plan.
async fn documents(
    import: &mut Import<'_>,
    old: &Old,
    found: Option<&Value>,
) -> Result<(), Failure> {
    let here = found.map(release_files::documents).unwrap_or_default();
    for (document, sha256) in release_files::documents(&old.record) {
        if here.contains(&(document, sha256)) {
            import.report.there(DOCUMENTS);
            continue;
        }
        let name = release_files::document_name(&old.uuid, document);
        let Some(path) = file(import, &name) else {
            let message = format!("upload the {document} of {}, which is not here", old.title);
            import.report.todo.push(message);
            continue;
        };
        if import.is_plan {
            import.report.created(DOCUMENTS);
            continue;
        }
        let bytes = std::fs::read(&path).map_err(|error| failed(&path, error))?;
        let call = operations::PUT_RELEASE_DOCUMENT.call();
        let call = release_path(call, found).path("document", document);
        let title = format!("{} {document}", old.title);
        let key = format!("document/{}.{document}", old.uuid);
        import
            .create(DOCUMENTS, &title, &key, call.bytes(bytes))
            .await?;
    }
    Ok(())
}

fn release_path(call: Call, found: Option<&Value>) -> Call {
    let id = |name: &str| found.map(|found| text(found, name)).unwrap_or_default();
    call.path("appUuid", id("appUuid"))
        .path("releaseUuid", id("releaseUuid"))
}

/// Until when a release is supported, where nobody has said it here.
async fn support(import: &mut Import<'_>, old: &Old, found: Option<&Value>) -> Result<(), Failure> {
    let day = text(&old.record, "supportedUntil");
    let key = format!("support/{}", old.uuid);
    let is_set = found.is_some_and(|found| !text(found, "supportedUntil").is_empty());
    if day.is_empty() || is_set || import.journal.id(&key).is_some() {
        return Ok(());
    }
    let call = release_path(operations::UPDATE_APP_RELEASE.call(), found);
    let call = call.body(json!({"supportedUntil": day}));
    let kind = "support periods of releases";
    let made = import.create(kind, &old.title, &key, call).await?;
    match made {
        Some(_) => import.journal.done(&key, Value::Null),
        None => Ok(()),
    }
}
