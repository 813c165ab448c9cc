//! `/public/device-library`, `/public/quantities` and `/public/schemas/decoder`: what is the same
//! for every tenant, and may be read by anyone.

use aide::OperationOutput;
use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use aide::generate::GenContext;
use aide::openapi::{Operation, Response as ApiResponse};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub_adverts::language;
use hub_adverts::library::{self, Model};
use hub_adverts::quantity::QUANTITIES;
use hub_base::error::{Error, Result};
use hub_core::http::answer::{Answer, typed_response};
use hub_core::http::check::searched;
use hub_core::http::extract::{Path, Query};
use hub_core::http::operation::operation;
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::Public;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::models::{Metric, MetricKind};
use super::models::DeviceMetric;
use crate::Parts;

const TAG: &str = "library";
const SCHEMA_TYPE: &str = "application/schema+json";
const MAX_SEARCH_CHARS: usize = 200;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/public/quantities",
            get_with(
                quantities,
                operation(
                    "library.listQuantities",
                    TAG,
                    "All quantities that can be measured",
                ),
            ),
        )
        .api_route(
            "/public/device-library",
            get_with(
                list,
                operation(
                    "library.list",
                    TAG,
                    "Device models that the service knows, by key",
                ),
            ),
        )
        .api_route(
            "/public/device-library/{brand}/{key}",
            get_with(
                get,
                operation("library.get", TAG, "One device model of the library"),
            ),
        )
        .api_route(
            "/public/schemas/decoder",
            get_with(
                decoder_schema,
                operation(
                    "library.getDecoderSchema",
                    TAG,
                    "The JSON Schema of decoders",
                ),
            ),
        )
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct LibraryPath {
    /// The first half of the key of a model, such as `ruuvi`.
    pub brand: String,
    /// The second half, such as `ruuvitag`.
    pub key: String,
}

/// A quantity that devices measure.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QuantityResponse {
    /// Its name, such as `temperature`.
    name: &'static str,
    /// Its unit in SenML (RFC 8428); null for what has none.
    unit: Option<&'static str>,
    /// The usual kind of its values.
    kind: MetricKind,
    /// Free-text description.
    description: &'static str,
    /// The least value that makes sense, in its unit; null without one.
    min: Option<f64>,
    /// The greatest value that makes sense; null without one.
    max: Option<f64>,
}

/// A device model of the library.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LibraryModelResponse {
    /// The key of the model as a `template`, such as `ruuvi/ruuvitag`.
    key: &'static str,
    /// Its name.
    name: &'static str,
    /// The brand.
    brand: &'static str,
    /// The maker's name of the model.
    model: &'static str,
    /// The category of the device.
    category: &'static str,
    /// Free-text description.
    description: Option<&'static str>,
    /// Other names under which it is sold.
    aliases: &'static [String],
    /// The metrics of the device.
    metrics: Vec<DeviceMetric>,
    /// The usual interval of a device.
    #[schemars(range(min = 1))]
    expected_interval_seconds: Option<u32>,
}

/// A device model of the library, with how it is recognised and read.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LibraryModelDetailResponse {
    #[serde(flatten)]
    model: LibraryModelResponse,
    /// The patterns of its advertisements: alternatives, in the form in which a tenant's
    /// identifiers are created.
    identifiers: &'static [Value],
    /// The protocol of its advertisements: `kind` and `definition` as in a tenant's protocol.
    protocol: &'static Value,
    /// The publication of the format.
    source: &'static str,
}

impl From<&'static Model> for LibraryModelResponse {
    fn from(model: &'static Model) -> Self {
        Self {
            key: &model.key,
            name: &model.name,
            brand: &model.brand,
            model: &model.model,
            category: &model.category,
            description: model.description.as_deref(),
            aliases: &model.aliases,
            metrics: Metric::of_template(model)
                .into_iter()
                .map(DeviceMetric::from)
                .collect(),
            expected_interval_seconds: model.expected_interval_seconds,
        }
    }
}

/// Filters of the library.
#[derive(Debug, Deserialize, JsonSchema)]
struct SearchQuery {
    /// A part of the key, name, brand, model or other names; case is ignored.
    #[schemars(length(max = MAX_SEARCH_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    q: Option<String>,
}

async fn quantities(_: Public) -> Answer<Vec<QuantityResponse>> {
    let quantity = |quantity: &hub_adverts::Quantity| QuantityResponse {
        name: quantity.name,
        unit: quantity.unit,
        kind: quantity.kind.into(),
        description: quantity.description,
        min: quantity.range.map(|(min, _)| min),
        max: quantity.range.map(|(_, max)| max),
    };
    Answer(QUANTITIES.iter().map(quantity).collect())
}

async fn list(
    _: Public,
    Query(SearchQuery { q }): Query<SearchQuery>,
    page: Page,
) -> Result<Listed<LibraryModelResponse>> {
    let wanted = searched(q.as_deref(), MAX_SEARCH_CHARS)?.map(str::to_lowercase);
    let fits = |model: &&'static Model| wanted.as_deref().is_none_or(|wanted| has(model, wanted));
    let found: Vec<&Model> = library::library().iter().filter(fits).collect();
    let total = i64::try_from(found.len()).unwrap_or(i64::MAX);
    let slice = page.slice();
    let place = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
    let models = found
        .into_iter()
        .skip(place(slice.offset))
        .take(place(slice.size));
    Ok(page.listed(models.map(LibraryModelResponse::from).collect(), total))
}

/// Whether one of the model's names contains the text, which is in lower case.
fn has(model: &Model, wanted: &str) -> bool {
    let names = [&model.key, &model.name, &model.brand, &model.model]
        .into_iter()
        .chain(&model.aliases);
    names
        .into_iter()
        .any(|name| name.to_lowercase().contains(wanted))
}

async fn get(
    _: Public,
    Path(LibraryPath { brand, key }): Path<LibraryPath>,
) -> Result<Answer<LibraryModelDetailResponse>> {
    let model = library::model(&format!("{brand}/{key}"))
        .ok_or_else(|| Error::not_found("model in the library"))?;
    Ok(Answer(LibraryModelDetailResponse {
        model: model.into(),
        identifiers: &model.identifier_definitions,
        protocol: &model.protocol_definition,
        source: &model.source,
    }))
}

/// A JSON Schema.
struct Schema(&'static str);

impl IntoResponse for Schema {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, SCHEMA_TYPE)], self.0).into_response()
    }
}

impl OperationOutput for Schema {
    type Inner = ();
    fn inferred_responses(
        _: &mut GenContext,
        _: &mut Operation,
    ) -> Vec<(Option<u16>, ApiResponse)> {
        let response = typed_response(
            SCHEMA_TYPE,
            "A JSON Schema (2020-12).",
            json!({"type": "object"}),
        );
        vec![(Some(200), response)]
    }
}

/// The schema of the definition of a DECLARATIVE protocol, for editors.
async fn decoder_schema(_: Public) -> Schema {
    Schema(language::SCHEMA)
}
