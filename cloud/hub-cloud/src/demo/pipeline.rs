//! `--send-to`: the demo's decoded values leave through a pipeline. The models of the library
//! become the tenant's, so that the service recognises what the trace contains.

use hub_client::{Client, Pipeline, operations};
use hub_destinations as destinations;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Failure;

/// The name by which a later demo finds its pipeline.
const NAME: &str = "Demo";

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

/// Replaces the demo's pipeline: it sends decoded values to `url`, or is removed without one.
pub async fn set_up(client: &Client, url: Option<&str>) -> Result<(), Failure> {
    let existing: Vec<Pipeline> = client.list(operations::PIPELINES.call()).await?;
    for pipeline in existing
        .into_iter()
        .filter(|pipeline| pipeline.name == NAME)
    {
        let call = operations::DELETE_PIPELINE.call();
        client
            .run(call.path("pipelineUuid", pipeline.pipeline_uuid))
            .await?;
    }
    let Some(url) = url else { return Ok(()) };
    add_library_models(client).await?;
    let destination = destination(url).map_err(Failure)?;
    let steps = json!([{"op": "map", "set": {
        "name": "name", "address": "address", "measurements": "measurements", "observedAt": "observedAt"
    }}]);
    let pipeline = json!({"name": NAME, "source": {"known": true}, "steps": steps, "destination": destination});
    client
        .run(operations::CREATE_PIPELINE.call().body(pipeline))
        .await?;
    Ok(())
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
