//! The content of a UI schema: the steps that an app shows one after another.

use std::collections::{BTreeMap, BTreeSet};

use axum::http::{HeaderName, HeaderValue, header};
use hub_base::error::{Error, Result};
use hub_core::http::check::Check;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{
    ENDPOINT_PATH, EndpointMethod, MAX_DOCUMENT_BYTES, MAX_NAME_CHARS, MAX_STEPS, MAX_TEXT_CHARS,
    NamedEndpoints, check_path, parameters, schema,
};

/// Headers of one step.
const MAX_HEADERS: usize = 64;

/// The steps of a form, of 64 KiB at most.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeviceUiConfig")]
pub struct Config {
    /// The steps in the order in which they are shown.
    #[schemars(length(min = 1, max = MAX_STEPS))]
    steps: Vec<Step>,
}

/// A step of a form.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "DeviceUiStep")]
struct Step {
    /// The id, unique within the form.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    id: String,
    /// The heading of the step.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    title: String,
    /// Free-text description.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// The input fields: the JSON Schema (2020-12) of an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    fields: Option<Box<RawValue>>,
    /// The target of the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    submit: Option<Submit>,
    /// Headers that are sent with the answers. `Authorization` is left out.
    #[serde(rename = "external_headers", skip_serializing_if = "Option::is_none")]
    external_headers: Option<BTreeMap<String, String>>,
}

/// The target of the answers of a step.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DeviceUiSubmit")]
struct Submit {
    /// The external endpoint.
    external_endpoint_id: Uuid,
    /// The path at the endpoint, with or without a query.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = ENDPOINT_PATH))]
    path: String,
    /// The method of the request.
    method: EndpointMethod,
}

/// A form that is valid.
#[derive(Debug)]
pub struct Form {
    /// The document as it is stored.
    pub text: String,
    pub endpoints: NamedEndpoints,
}

impl Config {
    /// The form, if it is valid. `Authorization` is not stored: the credential of the supplier
    /// takes its place.
    pub fn checked(mut self) -> Result<Form> {
        let mut check = Check::new();
        let holds = (1..=MAX_STEPS).contains(&self.steps.len());
        check.that(
            holds,
            "configJson.steps",
            format!("must have 1 to {MAX_STEPS} items"),
        );
        let mut ids = BTreeSet::new();
        for (at, step) in self.steps.iter_mut().take(MAX_STEPS).enumerate() {
            let root = format!("configJson.steps[{at}]");
            if let Some(headers) = &mut step.external_headers {
                headers.retain(|name, _| {
                    !name
                        .trim()
                        .eq_ignore_ascii_case(header::AUTHORIZATION.as_str())
                });
            }
            step.check(&mut check, &root);
            check.that(
                ids.insert(step.id.as_str()),
                format!("{root}.id"),
                "is the id of an earlier step",
            );
        }
        check.done()?;
        let text = serde_json::to_string(&self).map_err(Error::internal)?;
        if text.len() > MAX_DOCUMENT_BYTES {
            let message = format!("must have at most {} KiB", MAX_DOCUMENT_BYTES / 1024);
            return Err(Error::field("configJson", message));
        }
        let endpoint_of = |(at, step): (usize, &Step)| {
            let field = format!("configJson.steps[{at}].submit.externalEndpointId");
            Some((field, step.submit.as_ref()?.external_endpoint_id))
        };
        let endpoints = NamedEndpoints(
            self.steps
                .iter()
                .enumerate()
                .filter_map(endpoint_of)
                .collect(),
        );
        Ok(Form { text, endpoints })
    }
}

/// The request, and its target, of a completed step of a stored form.
#[derive(Debug)]
pub struct Submission {
    pub external_endpoint_id: Uuid,
    pub path: String,
    pub method: EndpointMethod,
    pub headers: Vec<(String, String)>,
    /// The JSON Schema of what is asked for.
    fields: Option<String>,
}

impl Submission {
    /// Fails with 400 if the values do not fit what the step asks for. It takes a while for a
    /// large schema: not for a thread that serves requests.
    pub fn check(&self, values: &Map<String, Value>) -> Result<()> {
        self.fields
            .as_deref()
            .map_or(Ok(()), |schema| parameters::validate_values(schema, values))
    }
}

/// The step of a stored form: None if it has none of this id; the inner None if nothing is sent.
pub fn submission(config: &str, step_id: &str) -> Result<Option<Option<Submission>>> {
    let config: Config = serde_json::from_str(config).map_err(Error::internal)?;
    let Some(step) = config.steps.into_iter().find(|step| step.id == step_id) else {
        return Ok(None);
    };
    let headers = step
        .external_headers
        .unwrap_or_default()
        .into_iter()
        .collect();
    let fields = step.fields.map(|fields| fields.get().to_owned());
    Ok(Some(step.submit.map(|submit| Submission {
        external_endpoint_id: submit.external_endpoint_id,
        path: submit.path,
        method: submit.method,
        headers,
        fields,
    })))
}

impl Step {
    fn check(&self, check: &mut Check, root: &str) {
        check.required(&format!("{root}.id"), &self.id, MAX_NAME_CHARS);
        check.required(&format!("{root}.title"), &self.title, MAX_NAME_CHARS);
        check.lines(
            &format!("{root}.description"),
            self.description.as_deref(),
            MAX_TEXT_CHARS,
        );
        if let Some(Err(message)) = self
            .fields
            .as_ref()
            .map(|fields| schema::members(fields.get()))
        {
            check.that(false, format!("{root}.fields"), message);
        }
        if let Some(submit) = &self.submit {
            check_path(check, &format!("{root}.submit.path"), &submit.path);
        }
        let Some(headers) = &self.external_headers else {
            return;
        };
        let field = format!("{root}.external_headers");
        check.that(
            headers.len() <= MAX_HEADERS,
            field.as_str(),
            format!("must have at most {MAX_HEADERS} headers"),
        );
        for (name, value) in headers.iter().take(MAX_HEADERS) {
            let is_name =
                name.len() <= MAX_NAME_CHARS && HeaderName::from_bytes(name.as_bytes()).is_ok();
            check.that(
                is_name,
                field.as_str(),
                "must have names of headers as its members",
            );
            let is_value = value.len() <= MAX_TEXT_CHARS && HeaderValue::from_str(value).is_ok();
            let message = format!("must be one line of at most {MAX_TEXT_CHARS} bytes");
            check.that(is_value, format!("{field}.{name}"), message);
        }
    }
}
