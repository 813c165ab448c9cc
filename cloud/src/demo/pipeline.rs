//! `--send-to`: the demo's decoded values leave through a pipeline. The models of the library
//! become the tenant's, so that the service recognises what the trace contains.

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Failure;
use super::client::Api;

/// The name by which the demo finds its pipeline again.
const NAME: &str = "Demo";
const PIPELINES: &str = "/tenant/data-pipelines";
const CATALOG: &str = "/tenant/device-catalog";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pipeline {
    pipeline_uuid: String,
    name: String,
}

#[derive(Deserialize)]
struct Template {
    key: String,
}

/// Whether `--send-to` can be used, and what the pipeline's destination is.
pub fn destination(url: &str) -> Result<Value, String> {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    match scheme {
        Some("http" | "https") => Ok(json!({"kind": "HTTP", "url": url})),
        Some("mqtt" | "mqtts") => {
            Ok(json!({"kind": "MQTT", "url": url, "topic": "hub-demo/{{address}}"}))
        }
        Some("nats" | "tls") => {
            Ok(json!({"kind": "NATS", "url": url, "subject": "hub-demo.{{deviceInstanceId}}"}))
        }
        _ => Err("must begin with http://, https://, mqtt://, mqtts:// or nats://".to_owned()),
    }
}

/// Sends decoded values to `url` from now on; without one, sends nothing any more.
pub async fn set_up(api: &Api, url: Option<&str>) -> Result<(), Failure> {
    let existing: Vec<Pipeline> = api
        .data(Method::GET, &format!("{PIPELINES}?size=100"), None)
        .await?;
    for pipeline in existing
        .into_iter()
        .filter(|pipeline| pipeline.name == NAME)
    {
        let path = format!("{PIPELINES}/{}", pipeline.pipeline_uuid);
        api.call(Method::DELETE, &path, None).await?;
    }
    let Some(url) = url else { return Ok(()) };
    know_library(api).await?;
    let destination = destination(url).map_err(Failure)?;
    let steps = json!([{"op": "map", "set": {
        "name": "name", "address": "address", "measurements": "measurements", "observedAt": "observedAt"
    }}]);
    let pipeline = json!({"name": NAME, "source": {"known": true}, "steps": steps, "destination": destination});
    let _: Value = api.data(Method::POST, PIPELINES, Some(pipeline)).await?;
    Ok(())
}

/// Makes the library's models known, once.
async fn know_library(api: &Api) -> Result<(), Failure> {
    let models: Vec<Value> = api
        .data(Method::GET, &format!("{CATALOG}?size=1"), None)
        .await?;
    if !models.is_empty() {
        return Ok(());
    }
    for page in 1.. {
        let path = format!("/public/device-library?size=100&page={page}");
        let templates: Vec<Template> = api.data(Method::GET, &path, None).await?;
        if templates.is_empty() {
            break;
        }
        for Template { key } in templates {
            let model = json!({"template": key, "autoRegister": true});
            let _: Value = api.data(Method::POST, CATALOG, Some(model)).await?;
        }
    }
    Ok(())
}
