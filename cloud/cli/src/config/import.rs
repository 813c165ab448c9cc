//! `hub import`: shows the differences, asks, and applies them.

use hub_client::{Client, operations};
use serde_json::{Value, json};

use super::args::ImportOptions;
use super::models::{self, patch};
use super::state::{self, Documents, State};
use super::{FOLDERS, ROUTE, files, members, text};
use crate::connect::in_tenant;
use crate::diff::lines;
use crate::failure::Failure;
use crate::global::Global;
use crate::pipelines::{send, with_secrets, without_secrets};
use crate::terminal::{confirm, print, print_json};
use crate::text::printable;

/// A change to one object.
pub struct Change {
    folder: String,
    name: String,
    pub is_new: bool,
    differences: Vec<String>,
    document: Value,
}

impl Change {
    pub fn title(&self) -> String {
        let what = format!(
            "{} {}",
            self.folder.strip_suffix('s').unwrap_or(&self.folder),
            self.name
        );
        printable(what.trim_end())
    }
}

pub async fn import(global: &Global, options: &ImportOptions) -> Result<(), Failure> {
    let Some(directory) = &options.directory else {
        return Err(Failure::usage("give the directory of an export"));
    };
    let wanted = files::read(directory)?;
    let client = in_tenant(global).await?;
    let mut state = state::read(&client).await?;
    let changes = changes(&state, wanted)?;
    for change in changes.iter().filter(|_| !global.json) {
        let sign = if change.is_new {
            "+ create"
        } else {
            "~ change"
        };
        print(&format!("{sign} {}\n", change.title()))?;
        change
            .differences
            .iter()
            .try_for_each(|line| print(&format!("    {line}\n")))?;
    }
    let number = changes.len();
    for change in changes
        .iter()
        .filter(|change| change.folder == "pipelines" && !options.dry_run)
    {
        with_secrets(change.document.clone(), change.is_new)
            .map_err(|failure| failure.about(&change.title()))?;
    }
    if !options.dry_run && number > 0 {
        let what = "These objects are changed to match their files; pipelines and bundles take \
                    effect immediately.";
        confirm(what, options.consent.yes)?;
    }
    if !options.dry_run {
        for (done, change) in changes.iter().enumerate() {
            apply(&client, &mut state, change)
                .await
                .map_err(|failure| {
                    let about = failure.about(&change.title());
                    let message = format!(
                        "{}; {done} of {number} changes are made, run it again to continue",
                        about.message
                    );
                    Failure { message, ..about }
                })?;
        }
    }
    if global.json {
        let shown = changes.iter().map(|change| {
            let kind = if change.is_new { "create" } else { "change" };
            json!({"object": change.title(), "change": kind, "differences": change.differences})
        });
        return print_json(
            &json!({"changes": shown.collect::<Vec<_>>(), "applied": !options.dry_run}),
        );
    }
    print(match (number, options.dry_run) {
        (0, _) => "Nothing to change.\n",
        (_, true) => "Nothing was changed (--dry-run).\n",
        (_, false) => "Done.\n",
    })
}

/// The changes, in the order in which they are applied.
pub fn changes(state: &State, wanted: Documents) -> Result<Vec<Change>, Failure> {
    let mut changes = Vec::new();
    for ((folder, name), document) in wanted {
        let before = state.documents.get(&(folder.clone(), name.clone()));
        let shown = if folder == "pipelines" {
            without_secrets(document.clone())
        } else {
            document.clone()
        };
        let differences = lines(before.unwrap_or(&json!({})), &shown);
        if before.is_some() && differences.is_empty() {
            continue;
        }
        let change = Change {
            is_new: before.is_none(),
            folder,
            name,
            differences,
            document,
        };
        let is_published = change.folder == "bundles"
            && state
                .bundles
                .get(&change.name)
                .is_some_and(|(_, status)| status == "PUBLISHED");
        if is_published {
            let advice = "archive it first; the import then creates it again";
            return Err(Failure::failed(format!(
                "the {} differs and is published: {advice}",
                change.title()
            )));
        }
        if change.folder == "apps" && !change.is_new {
            return Err(Failure::failed(format!(
                "the {} has another description, which cannot change",
                change.title()
            )));
        }
        changes.push(change);
    }
    let rank = |change: &Change| match change.folder.as_str() {
        // Its rules name models and pipelines.
        ROUTE => FOLDERS.len() - 1,
        "bundles" => FOLDERS.len(),
        folder => FOLDERS.iter().position(|name| *name == folder).unwrap_or(0),
    };
    changes.sort_by_key(rank);
    Ok(changes)
}

pub async fn apply(client: &Client, state: &mut State, change: &Change) -> Result<(), Failure> {
    let name = &change.name;
    let resolved = || state.names.resolved(change.document.clone());
    match change.folder.as_str() {
        "apps" => {
            let app: Value = client
                .call(operations::CREATE_APP.call().body(change.document.clone()))
                .await?;
            state.names.add("app", name, &text(&app, "appUuid"));
        }
        "models" => {
            let uuid = models::apply(
                client,
                state.models.get(name),
                &change.document,
                &state.names,
            )
            .await?;
            state.names.add("model", name, &uuid);
        }
        "actions" => {
            let document = resolved()?;
            match state.documents.get(&("actions".to_owned(), name.clone())) {
                None => {
                    client
                        .run(operations::CREATE_ACTION.call().body(document))
                        .await?
                }
                Some(before) => {
                    let before = state.names.resolved(before.clone())?;
                    let body =
                        patch(&before, &document, operations::ACTION_MEMBERS).unwrap_or_default();
                    client
                        .run(
                            operations::UPDATE_ACTION
                                .call()
                                .path("actionId", name)
                                .body(body),
                        )
                        .await?;
                }
            }
        }
        "pipelines" => {
            let made = send(client, state.pipelines.get(name), resolved()?).await?;
            state
                .names
                .add("pipeline", name, &text(&made, "pipelineUuid"));
        }
        ROUTE => {
            client
                .run(operations::REPLACE_ROUTE.call().body(resolved()?))
                .await?
        }
        _ => bundle(client, state, name, &resolved()?).await?,
    }
    Ok(())
}

async fn bundle(
    client: &Client,
    state: &State,
    name: &str,
    document: &Value,
) -> Result<(), Failure> {
    let body = members(document, operations::BUNDLE_MEMBERS);
    let uuid = match state.bundles.get(name) {
        Some((uuid, _)) => {
            let before = state
                .documents
                .get(&("bundles".to_owned(), name.to_owned()))
                .cloned()
                .unwrap_or_default();
            if let Some(body) = patch(&before, document, operations::BUNDLE_MEMBERS) {
                client
                    .run(
                        operations::UPDATE_BUNDLE
                            .call()
                            .path("bundleUuid", uuid)
                            .body(body),
                    )
                    .await?;
            }
            uuid.clone()
        }
        None => text(
            &client
                .call::<Value>(operations::CREATE_BUNDLE.call().body(body))
                .await?,
            "bundleUuid",
        ),
    };
    let items = |member: &str| {
        document
            .get(member)
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default()
    };
    let apps = items("apps").into_iter().map(
        |app| json!({"appUuid": app.get("app"), "appReleaseUuid": app.get("release"), "channel": app.get("channel")}),
    );
    let devices = items("devices").into_iter().map(
        |device| json!({"deviceUuid": device.get("model"), "quantity": device.get("quantity")}),
    );
    for (operation, body) in [
        (&operations::REPLACE_BUNDLE_APPS, apps.collect()),
        (&operations::REPLACE_BUNDLE_DEVICES, devices.collect()),
        (&operations::REPLACE_BUNDLE_PIPELINES, items("pipelines")),
    ] {
        client
            .run(
                operation
                    .call()
                    .path("bundleUuid", &uuid)
                    .body(Value::Array(body)),
            )
            .await?;
    }
    if document.get("published") == Some(&Value::Bool(true)) {
        client
            .run(operations::PUBLISH_BUNDLE.call().path("bundleUuid", &uuid))
            .await?;
    }
    Ok(())
}
