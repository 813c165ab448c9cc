//! `hub pipelines`: lists, applies and deletes pipelines. A file has the form of the API; its
//! secrets come from environment variables.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use hub_client::{Client, Pipeline, now, operations};
use reqwest::Url;
use serde_json::{Map, Value, json};

use crate::args::{Global, PipelinesCommand};
use crate::connect::in_tenant;
use crate::diff::{canonical, lines};
use crate::failure::Failure;
use crate::terminal::{Table, ago, confirm, note, print, print_json, state};
use crate::text::printable;

/// The largest file that is read.
pub const MAX_FILE_BYTES: u64 = 8 << 20;

pub async fn run(global: &Global, command: PipelinesCommand) -> Result<(), Failure> {
    match command {
        PipelinesCommand::List => list(global).await,
        PipelinesCommand::Apply {
            file,
            dry_run,
            consent,
        } => apply(global, &file, dry_run, consent.yes).await,
        PipelinesCommand::Delete { pipeline, consent } => {
            delete(global, &pipeline, consent.yes).await
        }
    }
}

async fn list(global: &Global) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    let records: Vec<Value> = client.list(operations::PIPELINES.call()).await?;
    if global.json {
        return print_json(&Value::Array(records));
    }
    let mut table = Table::new(&[
        "NAME",
        "STATUS",
        "TO",
        "WAITING",
        "DELIVERED",
        "ERROR",
        "PIPELINE",
    ]);
    for record in records {
        let pipeline: Pipeline = serde_json::from_value(record)?;
        let to = |name: &str| {
            pipeline
                .destination
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        table.row(vec![
            printable(&pipeline.name),
            state(&pipeline.status),
            printable(&format!("{} {}", to("kind"), to("url"))),
            pipeline.lag_events.to_string(),
            ago(pipeline.last_delivered_at, now()),
            printable(&pipeline.last_error.unwrap_or_else(|| "-".to_owned())),
            pipeline.pipeline_uuid.to_string(),
        ]);
    }
    table.print("There are no pipelines yet: hub pipelines apply -f FILE")
}

/// A pipeline of the tenant: its uuid and its definition.
#[derive(Clone)]
pub struct StoredPipeline {
    pub uuid: String,
    pub definition: Value,
}

/// The definition in a record of the service, without the members that the service adds.
pub fn definition(record: &Value) -> Value {
    let member = |name: &&str| Some(((*name).to_owned(), record.get(*name)?.clone()));
    complete(Value::Object(
        operations::PIPELINE_MEMBERS
            .iter()
            .filter_map(member)
            .collect(),
    ))
}

/// A definition with its defaults filled in, so that two can be compared.
pub fn complete(definition: Value) -> Value {
    let Value::Object(mut members) = canonical(definition) else {
        return Value::Null;
    };
    let fill = |object: &mut Map<String, Value>, defaults: Value| {
        if let Value::Object(defaults) = defaults {
            for (name, value) in defaults {
                object.entry(name).or_insert(value);
            }
        }
    };
    if members.get("description").and_then(Value::as_str) == Some("") {
        members.remove("description");
    }
    fill(
        &mut members,
        json!({"enabled": true, "source": {}, "steps": [], "delivery": {}}),
    );
    let kind = members
        .get("destination")
        .and_then(|to| to.get("kind"))
        .and_then(Value::as_str)
        .unwrap_or_default();
    let kind = kind.to_owned();
    if let Some(Value::Object(destination)) = members.get_mut("destination") {
        fill(
            destination,
            match kind.as_str() {
                "HTTP" => json!({"format": "JSON"}),
                "MQTT" => {
                    json!({"version": "3.1.1", "qos": 1, "retain": false, "homeAssistantDiscovery": false})
                }
                "NATS" => json!({}),
                "S3" => json!({"everySeconds": 60}),
                _ => json!({}),
            },
        );
        // The service normalises URLs: with a slash after the host.
        if let Some(url) = destination
            .get("url")
            .and_then(Value::as_str)
            .and_then(|url| url.parse::<Url>().ok())
            && matches!(url.scheme(), "http" | "https")
        {
            destination.insert("url".to_owned(), Value::from(url.as_str()));
        }
        // The default is false.
        destination.retain(|name, value| name != "tlsFirst" || *value != Value::Bool(false));
    }
    let every = members
        .get("destination")
        .and_then(|to| to.get("everySeconds"))
        .and_then(Value::as_u64)
        .unwrap_or(60);
    if let Some(Value::Object(source)) = members.get_mut("source") {
        source.retain(|name, value| {
            let is_empty = value.as_array().is_some_and(Vec::is_empty)
                || *value == Value::Bool(false) && name != "known";
            !is_empty && name != "startAt"
        });
    }
    if let Some(Value::Object(delivery)) = members.get_mut("delivery") {
        let is_alone = delivery
            .get("concurrency")
            .and_then(Value::as_u64)
            .unwrap_or(1)
            == 1;
        fill(
            delivery,
            match kind.as_str() {
                "S3" => json!({"batchEvents": 1000, "batchMillis": every * 1000}),
                _ => json!({"batchEvents": 1, "batchMillis": 1000}),
            },
        );
        fill(
            delivery,
            json!({"concurrency": 1, "ordered": is_alone, "timeoutSeconds": 15}),
        );
    }
    canonical(Value::Object(members))
}

/// The name of the secret member of `auth`.
fn secret_member(auth: &Value) -> Option<&'static str> {
    match auth.get("type")?.as_str()? {
        "BEARER" => Some("token"),
        "BASIC" => Some("password"),
        "HEADER" => Some("value"),
        "S3" => Some("secretAccessKey"),
        _ => None,
    }
}

fn auth_of(definition: &mut Value) -> Option<&mut Map<String, Value>> {
    definition
        .get_mut("destination")?
        .get_mut("auth")?
        .as_object_mut()
}

/// The definition as the service shows it: without secrets.
pub fn without_secrets(mut definition: Value) -> Value {
    if let Some(auth) = auth_of(&mut definition)
        && let Some(secret) = secret_member(&Value::Object(auth.clone()))
    {
        auth.remove(secret);
    }
    definition
}

/// The definition for a file: a variable takes the place of the secret that the service stores.
pub fn with_variables(mut definition: Value, name: &str) -> Value {
    if let Some(auth) = auth_of(&mut definition)
        && let Some(secret) = secret_member(&Value::Object(auth.clone()))
    {
        let upper = |c: char| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        };
        let name: String = name.chars().map(upper).collect();
        let member: String = secret.chars().map(upper).collect();
        auth.insert(
            secret.to_owned(),
            Value::from(format!("${{{VARIABLES}{name}_{member}}}")),
        );
    }
    canonical(definition)
}

/// Prefix of the variables that are read: a file from another source must not be able to send any
/// other variable to a server.
const VARIABLES: &str = "HUB_SECRET_";

/// The definition to send, with the values of the environment variables in `auth`. A secret whose
/// variable is not set is left out if the service stores one already.
pub fn with_secrets(mut definition: Value, is_new: bool) -> Result<Value, Failure> {
    let Some(auth) = auth_of(&mut definition) else {
        return Ok(definition);
    };
    let mut missing = Vec::new();
    for (name, value) in auth.iter_mut() {
        let variable = value
            .as_str()
            .and_then(|text| text.strip_prefix("${")?.strip_suffix('}'))
            .map(str::to_owned);
        let Some(variable) = variable else { continue };
        if !variable.starts_with(VARIABLES) {
            let variable = printable(&variable);
            return Err(Failure::usage(format!(
                "the variable {variable} of `auth` does not begin with {VARIABLES}"
            )));
        }
        match std::env::var(&variable) {
            Ok(secret) => *value = Value::from(secret),
            Err(_) if is_new => {
                return Err(Failure::usage(format!(
                    "set the environment variable {} to the secret",
                    printable(&variable)
                )));
            }
            Err(_) => missing.push(name.clone()),
        }
    }
    for name in missing {
        auth.remove(&name);
    }
    Ok(definition)
}

/// Reads a JSON file, or standard input.
pub fn read_json(path: &Path) -> Result<Value, Failure> {
    let failed =
        |error: std::io::Error| Failure::usage(format!("{}: cannot read: {error}", path.display()));
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin()
            .take(MAX_FILE_BYTES + 1)
            .read_to_string(&mut text),
        false => std::fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)),
    };
    read.map_err(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(Failure::usage(format!(
            "{} is larger than {MAX_FILE_BYTES} bytes",
            path.display()
        )));
    }
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!(
            "{} is not valid JSON: {}",
            path.display(),
            printable(&error.to_string())
        ))
    })
}

/// The name of a definition. Unknown members are refused, as they may be misspelt.
pub fn check_definition(definition: &Value, place: &str) -> Result<String, Failure> {
    let members = definition
        .as_object()
        .ok_or_else(|| Failure::usage(format!("{place} is not a JSON object")))?;
    let unknown = members
        .keys()
        .find(|name| !operations::PIPELINE_MEMBERS.contains(&name.as_str()));
    if let Some(unknown) = unknown {
        return Err(Failure::usage(format!(
            "{place} has the unknown member `{}`; allowed are: {}",
            printable(unknown),
            operations::PIPELINE_MEMBERS.join(", ")
        )));
    }
    let name = members
        .get("name")
        .and_then(Value::as_str)
        .filter(|name| !name.trim().is_empty());
    name.map(str::to_owned)
        .ok_or_else(|| Failure::usage(format!("{place} has no `name`")))
}

async fn stored(client: &Client) -> Result<BTreeMap<String, Vec<StoredPipeline>>, Failure> {
    let records: Vec<Value> = client.list(operations::PIPELINE_DOCUMENTS.call()).await?;
    let mut found: BTreeMap<String, Vec<StoredPipeline>> = BTreeMap::new();
    for record in records {
        let text = |name: &str| {
            record
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let pipeline = StoredPipeline {
            uuid: text("pipelineUuid"),
            definition: definition(&record),
        };
        found.entry(text("name")).or_default().push(pipeline);
    }
    Ok(found)
}

/// Creates or replaces one pipeline and returns its record. The service shows a new signing secret
/// only in this response.
pub async fn send(
    client: &Client,
    before: Option<&StoredPipeline>,
    definition: Value,
) -> Result<Value, Failure> {
    let body = with_secrets(definition, before.is_none())?;
    let name = body
        .get("name")
        .and_then(Value::as_str)
        .map(printable)
        .unwrap_or_default();
    let call = match before {
        Some(before) => operations::REPLACE_PIPELINE
            .call()
            .path("pipelineUuid", &before.uuid),
        None => operations::CREATE_PIPELINE.call(),
    };
    let answer: Value = client.call(call.body(body)).await?;
    if let Some(secret) = answer.get("signingSecret").and_then(Value::as_str) {
        note(&format!(
            "The messages of {name} are signed with {}, which is shown once.",
            printable(secret)
        ));
    }
    Ok(answer)
}

async fn apply(global: &Global, file: &Path, dry_run: bool, yes: bool) -> Result<(), Failure> {
    let definitions = match read_json(file)? {
        Value::Array(definitions) => definitions,
        definition => vec![definition],
    };
    let mut wanted: BTreeMap<String, Value> = BTreeMap::new();
    for (at, definition) in definitions.into_iter().enumerate() {
        let name = check_definition(
            &definition,
            &format!("pipeline {} of {}", at + 1, file.display()),
        )?;
        if wanted.insert(name.clone(), definition).is_some() {
            return Err(Failure::usage(format!(
                "{} has two pipelines `{}`",
                file.display(),
                printable(&name)
            )));
        }
    }
    let client = in_tenant(global).await?;
    let mut stored = stored(&client).await?;
    let mut changes = Vec::new();
    for (name, definition) in wanted {
        let mut of_name = stored.remove(&name).unwrap_or_default();
        if of_name.len() > 1 {
            let name = printable(&name);
            return Err(Failure::failed(format!(
                "{} pipelines are called `{name}`; rename all but one",
                of_name.len()
            )));
        }
        let before = of_name.pop();
        let shown = without_secrets(complete(definition.clone()));
        let differences = match &before {
            Some(before) => lines(&before.definition, &shown),
            None => lines(&json!({}), &shown),
        };
        if before.is_none() || !differences.is_empty() {
            changes.push((name, before, definition, differences));
        }
    }
    for (name, before, _, differences) in changes.iter().filter(|_| !global.json) {
        let sign = if before.is_some() {
            "~ change"
        } else {
            "+ create"
        };
        print(&format!("{sign} pipeline {}\n", printable(name)))?;
        differences
            .iter()
            .try_for_each(|line| print(&format!("    {line}\n")))?;
    }
    let is_empty = changes.is_empty();
    for (_, before, definition, _) in changes.iter().filter(|_| !dry_run) {
        with_secrets(definition.clone(), before.is_none())?;
    }
    if !dry_run && !is_empty {
        let number = changes.len();
        let pipelines = if number == 1 {
            "1 pipeline".to_owned()
        } else {
            format!("{number} pipelines")
        };
        confirm(
            &format!("{pipelines} will be created or changed, and run from now on."),
            yes,
        )?;
    }
    let mut made = Vec::new();
    for (name, before, definition, differences) in changes {
        let change = if before.is_some() { "change" } else { "create" };
        let uuid = match dry_run {
            true => before.map(|before| Value::from(before.uuid)),
            false => {
                let sent = send(&client, before.as_ref(), definition).await;
                sent.map_err(|failure| failure.about(&name))?
                    .get("pipelineUuid")
                    .cloned()
            }
        };
        made.push(json!({"name": name, "change": change, "differences": differences, "pipelineUuid": uuid}));
    }
    match (global.json, is_empty, dry_run) {
        (true, ..) => print_json(&json!({"changes": made, "applied": !dry_run})),
        (false, true, _) => print("Nothing to change.\n"),
        (false, false, true) => print("Nothing was changed (--dry-run).\n"),
        (false, false, false) => print("Done.\n"),
    }
}

async fn delete(global: &Global, named: &str, yes: bool) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    let pipelines: Vec<Pipeline> = client.list(operations::PIPELINES.call()).await?;
    let is_named = |pipeline: &&Pipeline| {
        pipeline.name == named || pipeline.pipeline_uuid.to_string() == named
    };
    let mut found = pipelines.iter().filter(is_named);
    let pipeline = match (found.next(), found.next()) {
        (Some(pipeline), None) => pipeline,
        (None, _) => {
            return Err(Failure::failed(format!(
                "there is no pipeline `{}`; run `hub pipelines list`",
                printable(named)
            )));
        }
        (Some(_), Some(_)) => {
            return Err(Failure::usage(
                "several pipelines have this name; give the uuid",
            ));
        }
    };
    let (name, waiting) = (printable(&pipeline.name), pipeline.lag_events);
    let what = format!(
        "The pipeline {name} will be deleted, with its revisions and dead letters. {waiting} \
         events wait for it and are not sent. This cannot be undone."
    );
    confirm(&what, yes)?;
    client
        .run(
            operations::DELETE_PIPELINE
                .call()
                .path("pipelineUuid", pipeline.pipeline_uuid),
        )
        .await?;
    match global.json {
        true => print_json(&json!({"pipelineUuid": pipeline.pipeline_uuid})),
        false => {
            note(&format!("The pipeline {name} is deleted."));
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_what_the_service_takes_it_for() {
        let short = json!({"name": "a", "source": {"hubUuids": []}, "destination": {"kind": "HTTP", "url": "https://b"}});
        let long = json!({
            "name": "a", "description": null, "enabled": true, "source": {}, "steps": [],
            "destination": {"kind": "HTTP", "url": "https://b/", "format": "JSON"},
            "delivery": {"batchEvents": 1, "batchMillis": 1000, "concurrency": 1, "ordered": true, "timeoutSeconds": 15},
        });
        assert_eq!(complete(short), complete(long));
    }

    #[test]
    fn secrets_are_neither_compared_nor_written() {
        let given = json!({"destination": {"auth": {"type": "BEARER", "token": "s3cret"}}});
        assert!(
            !without_secrets(given.clone())
                .to_string()
                .contains("s3cret")
        );
        let written = with_variables(without_secrets(given), "to the plant");
        assert_eq!(
            written["destination"]["auth"]["token"],
            "${HUB_SECRET_TO_THE_PLANT_TOKEN}"
        );
        assert!(with_secrets(written.clone(), true).is_err());
        let foreign = json!({"destination": {"auth": {"type": "BEARER", "token": "${HOME}"}}});
        assert!(with_secrets(foreign, false).is_err());
        let sent = with_secrets(written, false).expect("the stored secret is kept");
        assert_eq!(sent["destination"]["auth"], json!({"type": "BEARER"}));
    }
}
