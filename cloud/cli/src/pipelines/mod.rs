//! `hub pipelines`: lists, applies and deletes pipelines. A file has the form of the API; its
//! secrets come from environment variables.

pub mod args;
mod definitions;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use hub_client::{Client, Pipeline, now, operations};
use serde_json::{Value, json};

use crate::connect::in_tenant;
use crate::diff::lines;
use crate::failure::Failure;
use crate::global::Global;
use crate::terminal::{Table, ago, confirm, note, print, print_json, state};
use crate::text::printable;
use args::PipelinesCommand;
pub use definitions::{
    check_definition, complete, definition, with_secrets, with_variables, without_secrets,
};

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
