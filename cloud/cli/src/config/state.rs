//! The configuration of a tenant, read from the service.

use std::collections::BTreeMap;

use hub_client::{App, AppRelease, Client, operations};
use serde_json::{Value, json};

use super::models::{self, Model, set};
use super::names::Names;
use super::{ROUTE, members, text, tidy};
use crate::diff::canonical;
use crate::failure::Failure;
use crate::pipelines::{StoredPipeline, definition};
use crate::text::printable;

/// Documents by folder and name, as in files.
pub type Documents = BTreeMap<(String, String), Value>;

pub struct State {
    pub documents: Documents,
    pub names: Names,
    pub models: BTreeMap<String, Model>,
    pub pipelines: BTreeMap<String, StoredPipeline>,
    /// Uuid and status of each bundle, by name.
    pub bundles: BTreeMap<String, (String, String)>,
}

pub async fn read(client: &Client) -> Result<State, Failure> {
    let mut names = Names::default();
    let mut documents = Documents::new();
    let apps: Vec<App> = client.list(operations::APPS.call()).await?;
    for app in &apps {
        names.add("app", &app.name, &app.app_uuid.to_string());
        let releases: Vec<AppRelease> = client
            .list(
                operations::APP_RELEASES
                    .call()
                    .path("appUuid", app.app_uuid),
            )
            .await?;
        for release in releases {
            let name = format!("{} {} {}", app.name, release.version, release.architecture);
            names.add("release", &name, &release.release_uuid.to_string());
        }
        let document = tidy(json!({"name": app.name, "description": app.description}));
        add(&mut documents, "apps", &app.name, document)?;
    }
    for endpoint in client.list::<Value>(operations::ENDPOINTS.call()).await? {
        names.add("endpoint", &text(&endpoint, "name"), &text(&endpoint, "id"));
    }
    let mut models = BTreeMap::new();
    for model in models::read(client).await? {
        let name = text(&model.document, "name");
        names.add("model", &name, &model.uuid);
        add(&mut documents, "models", &name, model.document.clone())?;
        models.insert(name, model);
    }
    for action in client.list::<Value>(operations::ACTIONS.call()).await? {
        let document = tidy(members(&action, operations::ACTION_MEMBERS));
        add(
            &mut documents,
            "actions",
            &text(&action, "actionId"),
            document,
        )?;
    }
    let mut pipelines = BTreeMap::new();
    for record in client
        .list::<Value>(operations::PIPELINE_DOCUMENTS.call())
        .await?
    {
        let (name, uuid) = (text(&record, "name"), text(&record, "pipelineUuid"));
        names.add("pipeline", &name, &uuid);
        let definition = definition(&record);
        add(&mut documents, "pipelines", &name, definition.clone())?;
        pipelines.insert(name, StoredPipeline { uuid, definition });
    }
    let mut bundles = BTreeMap::new();
    for record in client.list::<Value>(operations::BUNDLES.call()).await? {
        let (name, uuid, status) = (
            text(&record, "name"),
            text(&record, "bundleUuid"),
            text(&record, "status"),
        );
        if status == "ARCHIVED" {
            continue;
        }
        add(
            &mut documents,
            "bundles",
            &name,
            bundle(client, &record, &uuid, &status).await?,
        )?;
        bundles.insert(name, (uuid, status));
    }
    let route: Value = client.call(operations::ROUTE.call()).await?;
    let route = canonical(members(&route, operations::ROUTE_MEMBERS));
    documents.insert((ROUTE.to_owned(), String::new()), route);
    let documents = documents
        .into_iter()
        .map(|(key, document)| (key, names.portable(document)))
        .collect();
    Ok(State {
        documents,
        names,
        models,
        pipelines,
        bundles,
    })
}

/// Adds a document under its name, which must be unique.
fn add(
    documents: &mut Documents,
    folder: &str,
    name: &str,
    document: Value,
) -> Result<(), Failure> {
    match documents.insert((folder.to_owned(), name.to_owned()), document) {
        None => Ok(()),
        Some(_) => Err(Failure::failed(format!(
            "two {folder} of the tenant are called `{}`; rename one, as files refer to them by name",
            printable(name)
        ))),
    }
}

async fn bundle(
    client: &Client,
    record: &Value,
    uuid: &str,
    status: &str,
) -> Result<Value, Failure> {
    let list = |operation: &'static hub_client::Operation| {
        client.list::<Value>(operation.call().path("bundleUuid", uuid))
    };
    let mut apps: Vec<Value> = Vec::new();
    for app in list(&operations::BUNDLE_APPS).await? {
        apps.push(json!({
            "app": app.get("appUuid"), "release": app.get("appReleaseUuid"), "channel": app.get("channel"),
        }));
    }
    let mut devices: Vec<Value> = Vec::new();
    for device in list(&operations::BUNDLE_DEVICES).await? {
        devices
            .push(json!({"model": device.get("deviceUuid"), "quantity": device.get("quantity")}));
    }
    let pipelines = list(&operations::BUNDLE_PIPELINES).await?;
    let mut document = members(record, operations::BUNDLE_MEMBERS);
    set(&mut document, "apps", Some(Value::Array(apps)));
    set(&mut document, "devices", Some(Value::Array(devices)));
    set(&mut document, "pipelines", Some(Value::Array(pipelines)));
    set(
        &mut document,
        "published",
        Some(Value::Bool(status == "PUBLISHED")),
    );
    Ok(tidy(document))
}
