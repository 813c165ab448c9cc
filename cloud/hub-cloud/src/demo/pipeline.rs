//! The demo's decoded values leave through a pipeline, to `--send-to` or to the demo's own
//! receiver. The models of the library become the tenant's, so that the service recognises what
//! the radio hears.

use hub_client::operations::DELETE_PIPELINE;
use hub_client::{Call, Client, Operation, Pipeline, operations};
use hub_destinations as destinations;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Failure;

/// The name by which a later demo finds its pipeline.
const NAME: &str = "Demo";

static RESUME_PIPELINE: Operation =
    Operation::new("POST", "/tenant/data-pipelines/{pipelineUuid}/resume");

#[derive(Deserialize)]
struct Template {
    key: String,
}

/// Whether `--send-to` can be used, and what the pipeline's destination is.
pub fn destination(url: &str) -> Result<Value, String> {
    destinations::plain(url, "hub-demo").ok_or_else(|| {
        let schemes: Vec<String> = destinations::plain_schemes()
            .into_iter()
            .map(|scheme| format!("{scheme}://"))
            .collect();
        match schemes.split_last() {
            Some((last, others)) => format!("must begin with {} or {last}", others.join(", ")),
            None => "cannot be used".to_owned(),
        }
    })
}

/// Has the demo's pipeline send decoded values to `url`, or removes it without one. A pipeline that
/// sends there already goes on.
pub async fn set_up(client: &Client, url: Option<&str>) -> Result<(), Failure> {
    let existing: Vec<Pipeline> = client.list(operations::PIPELINES.call()).await?;
    let existing = existing.into_iter().find(|pipeline| pipeline.name == NAME);
    let Some(url) = url else {
        return match existing {
            Some(pipeline) => Ok(client.run(of(&DELETE_PIPELINE, &pipeline)).await?),
            None => Ok(()),
        };
    };
    let destination = destination(url).map_err(Failure)?;
    let is_same = |pipeline: &Pipeline| {
        let shown = &pipeline.destination;
        ["kind", "url"]
            .into_iter()
            .all(|name| shown.get(name) == destination.get(name))
    };
    if existing.as_ref().is_some_and(is_same) {
        return Ok(());
    }
    add_library_models(client).await?;
    let steps = json!([{"op": "map", "set": {
        "name": "name", "address": "address", "measurements": "measurements", "observedAt": "observedAt"
    }}]);
    let definition = json!({"name": NAME, "source": {"known": true}, "steps": steps, "destination": destination});
    match existing {
        Some(pipeline) => {
            let replace = of(&operations::REPLACE_PIPELINE, &pipeline);
            client.run(replace.body(definition)).await?;
            client.run(of(&RESUME_PIPELINE, &pipeline)).await?;
        }
        None => {
            let create = operations::CREATE_PIPELINE.call();
            client.run(create.body(definition)).await?;
        }
    }
    Ok(())
}

fn of(operation: &'static Operation, pipeline: &Pipeline) -> Call {
    operation
        .call()
        .path("pipelineUuid", pipeline.pipeline_uuid)
}

/// Adds the models of the library to the tenant's catalog, once.
async fn add_library_models(client: &Client) -> Result<(), Failure> {
    let models: Vec<Value> = client.first(operations::MODELS.call(), 1).await?;
    if !models.is_empty() {
        return Ok(());
    }
    let templates: Vec<Template> = client.list(operations::DEVICE_LIBRARY.call()).await?;
    for Template { key } in templates {
        let model = json!({"template": key, "autoRegister": true});
        client
            .run(operations::CREATE_MODEL_FROM_TEMPLATE.call().body(model))
            .await?;
    }
    Ok(())
}
