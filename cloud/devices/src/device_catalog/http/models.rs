//! `/tenant/device-catalog`, and the model of a protocol's page.

use aide::axum::ApiRouter;
use aide::axum::routing::get_with;
use axum::extract::State;
use hub_adverts::advertisement::address_of;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::http::answer::{Answer, Empty};
use hub_core::http::check::{Check, is_day, is_web_address};
use hub_core::http::extract::{Json, Path, Query};
use hub_core::http::operation::{operation, operation_failing};
use hub_core::http::page::{Listed, Page};
use hub_identity::authz::{Authorized, permission as perm};
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::super::models::{
    self, Given, MAX_INTERVAL_SECS, Metric, MetricKind, POWER_DBM, Source, UNKNOWN_POWER_DBM,
    filled_aliases,
};
use super::super::store::{self, models::ModelRow};
use super::super::{MAX_ITEMS, MAX_NAME_CHARS, MAX_TEXT_CHARS};
use super::TAG;
use crate::Parts;
use crate::device_catalog::http::DeviceModelPath;

pub fn routes() -> ApiRouter<Parts> {
    ApiRouter::new()
        .api_route(
            "/tenant/device-catalog",
            get_with(
                list,
                operation("deviceCatalog.list", TAG, "Device models, newest first"),
            )
            .post_with(
                create,
                operation_failing(
                    &[404, 409],
                    "deviceCatalog.create",
                    TAG,
                    "Create a device model, of its own or from the library",
                ),
            ),
        )
        .api_route(
            "/tenant/device-catalog/{deviceUuid}",
            get_with(get, operation("deviceCatalog.get", TAG, "One device model"))
                .patch_with(
                    update,
                    operation("deviceCatalog.update", TAG, "Change a device model"),
                )
                .delete_with(
                    delete,
                    operation_failing(
                        &[409],
                        "deviceCatalog.delete",
                        TAG,
                        "Delete a device model with its identifiers, protocols and versions",
                    ),
                ),
        )
        .api_route(
            "/tenant/device-protocols/devices/{deviceUuid}",
            get_with(
                get,
                operation(
                    "deviceCatalog.getOfProtocols",
                    TAG,
                    "The device model that protocols are of",
                ),
            ),
        )
}

/// A quantity that a device model measures.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct DeviceMetricRequest {
    /// The name of the quantity, as `GET /public/quantities` lists it.
    quantity: String,
    /// The kind of its values; the usual one of the quantity when absent.
    kind: Option<MetricKind>,
    /// The least value of this model, in the unit of the quantity.
    min: Option<f64>,
    /// The greatest value of this model.
    max: Option<f64>,
}

/// A quantity that a device model measures.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DeviceMetric {
    /// The name of the quantity.
    pub quantity: String,
    /// Its unit in SenML (RFC 8428); null for what has none.
    pub unit: Option<&'static str>,
    /// The kind of its values.
    pub kind: MetricKind,
    /// The least value, if it is known.
    pub min: Option<f64>,
    /// The greatest value, if it is known.
    pub max: Option<f64>,
}

impl From<Metric> for DeviceMetric {
    fn from(metric: Metric) -> Self {
        let unit = metric.unit();
        let Metric {
            quantity,
            kind,
            min,
            max,
        } = metric;
        Self {
            quantity,
            unit,
            kind,
            min,
            max,
        }
    }
}

/// A device model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeviceCatalogResponse {
    /// The model.
    device_uuid: Uuid,
    /// Its name.
    name: String,
    /// The brand.
    brand: Option<String>,
    /// The maker's name of the model.
    model: Option<String>,
    /// The category of the device.
    category: Option<String>,
    /// Free-text description.
    description: Option<String>,
    /// Other names of it.
    aliases: Vec<String>,
    /// A picture of it.
    image_url: Option<String>,
    /// The model of the library that it was made from, such as `ruuvi/ruuvitag`.
    template: Option<String>,
    /// Whether a device is registered when it is recognised for the first time.
    auto_register: bool,
    /// The usual interval of a device.
    #[schemars(range(min = 1, max = MAX_INTERVAL_SECS))]
    expected_interval_seconds: Option<i64>,
    /// The power received at a distance of one metre.
    #[schemars(range(min = *POWER_DBM.start(), max = *POWER_DBM.end()))]
    reference_power_dbm: Option<i64>,
    /// The last day on which the model is supported.
    supported_until: Option<String>,
    /// The metrics of the device.
    metrics: Vec<DeviceMetric>,
    /// The number of identifiers.
    #[schemars(range(min = 0))]
    identifier_count: i64,
    /// The number of devices.
    #[schemars(range(min = 0))]
    instance_count: i64,
    /// When it was created.
    created_at: Timestamp,
    /// When it was last changed.
    updated_at: Timestamp,
}

impl From<ModelRow> for DeviceCatalogResponse {
    fn from(row: ModelRow) -> Self {
        Self {
            device_uuid: row.device_uuid,
            name: row.name,
            brand: row.brand,
            model: row.model,
            category: row.category,
            description: row.description,
            aliases: row.aliases.0,
            image_url: row.image_url,
            template: row.template,
            auto_register: row.auto_register,
            expected_interval_seconds: row.expected_interval_secs,
            reference_power_dbm: row.reference_power_dbm,
            supported_until: row.supported_until,
            metrics: row.metrics.0.into_iter().map(DeviceMetric::from).collect(),
            identifier_count: row.identifier_count,
            instance_count: row.instance_count,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// A device model to create. Absent members come from the template, if one is named.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeviceRequest {
    /// A model of the library, such as `ruuvi/ruuvitag`, whose identifiers, protocol and metrics
    /// the new model gets. They can be changed afterwards.
    template: Option<String>,
    /// The address of an advertiser of `GET /tenant/ble/unknown`. Without a template, the model
    /// gets its name and an identifier that fits what it advertised.
    #[schemars(regex(pattern = hub_protocol::patterns::ADDRESS))]
    from_unknown: Option<String>,
    /// Display name; required without a template and without an unknown advertiser.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// The brand.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    brand: Option<String>,
    /// The maker's name of the model.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    model: Option<String>,
    /// The category of the device, such as `climate`.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    category: Option<String>,
    /// Free-text description.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// Other names of it.
    #[schemars(length(max = MAX_ITEMS), inner(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE)))]
    aliases: Option<Vec<String>>,
    /// A picture of it: a URL with `https` or `http`.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    image_url: Option<String>,
    /// Whether a device is registered when it is recognised for the first time.
    auto_register: Option<bool>,
    /// The usual interval of a device, in seconds; 0 if it is not known.
    #[schemars(range(min = 0, max = MAX_INTERVAL_SECS))]
    expected_interval_seconds: Option<i64>,
    /// The power received at a distance of one metre, from -127 to 20; 127 if it is not known.
    #[schemars(range(min = *POWER_DBM.start(), max = UNKNOWN_POWER_DBM))]
    reference_power_dbm: Option<i64>,
    /// The last day on which the model is supported, such as 2026-01-31.
    #[schemars(length(max = 10))]
    supported_until: Option<String>,
    /// The metrics of the device.
    #[schemars(length(max = MAX_ITEMS))]
    metrics: Option<Vec<DeviceMetricRequest>>,
}

/// Changes to make. An absent or null member leaves the stored value unchanged, and empty text
/// removes it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateDeviceRequest {
    /// Display name.
    #[schemars(length(min = 1, max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    name: Option<String>,
    /// The brand.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    brand: Option<String>,
    /// The maker's name of the model.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    model: Option<String>,
    /// The category of the device, such as `climate`.
    #[schemars(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    category: Option<String>,
    /// Free-text description.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINES))]
    description: Option<String>,
    /// Other names of it, which replace all previous ones.
    #[schemars(length(max = MAX_ITEMS), inner(length(max = MAX_NAME_CHARS), regex(pattern = hub_protocol::patterns::LINE)))]
    aliases: Option<Vec<String>>,
    /// A picture of it: a URL with `https` or `http`.
    #[schemars(length(max = MAX_TEXT_CHARS), regex(pattern = hub_protocol::patterns::LINE))]
    image_url: Option<String>,
    /// Whether a device is registered when it is recognised for the first time.
    auto_register: Option<bool>,
    /// The usual interval of a device, in seconds; 0 removes it.
    #[schemars(range(min = 0, max = MAX_INTERVAL_SECS))]
    expected_interval_seconds: Option<i64>,
    /// The power received at a distance of one metre, from -127 to 20; 127 (not known) removes it.
    #[schemars(range(min = *POWER_DBM.start(), max = UNKNOWN_POWER_DBM))]
    reference_power_dbm: Option<i64>,
    /// The last day on which the model is supported, such as 2026-01-31.
    #[schemars(length(max = 10))]
    supported_until: Option<String>,
    /// The metrics of the device, which replace all previous ones.
    #[schemars(length(max = MAX_ITEMS))]
    metrics: Option<Vec<DeviceMetricRequest>>,
}

impl UpdateDeviceRequest {
    fn checked(self) -> Result<Given> {
        let mut check = Check::new();
        if let Some(name) = &self.name {
            check.required("name", name, MAX_NAME_CHARS);
        }
        check.line("brand", self.brand.as_deref(), MAX_NAME_CHARS);
        check.line("model", self.model.as_deref(), MAX_NAME_CHARS);
        check.line("category", self.category.as_deref(), MAX_NAME_CHARS);
        check.lines("description", self.description.as_deref(), MAX_TEXT_CHARS);
        let aliases = self.aliases.as_deref().unwrap_or_default();
        check.that(
            aliases.len() <= MAX_ITEMS,
            "aliases",
            format!("must have at most {MAX_ITEMS} items"),
        );
        for (at, alias) in aliases.iter().take(MAX_ITEMS).enumerate() {
            check.line(&format!("aliases[{at}]"), Some(alias), MAX_NAME_CHARS);
        }
        check.line("imageUrl", self.image_url.as_deref(), MAX_TEXT_CHARS);
        let is_picture = self
            .image_url
            .as_deref()
            .is_none_or(|url| url.trim().is_empty() || is_web_address(url));
        check.that(is_picture, "imageUrl", "must be a URL with https or http");
        let interval = self.expected_interval_seconds.unwrap_or(0);
        let message = format!("must be from 0 to {MAX_INTERVAL_SECS}");
        check.that(
            (0..=MAX_INTERVAL_SECS).contains(&interval),
            "expectedIntervalSeconds",
            message,
        );
        let power = self.reference_power_dbm.unwrap_or(UNKNOWN_POWER_DBM);
        let is_power = power == UNKNOWN_POWER_DBM || POWER_DBM.contains(&power);
        check.that(
            is_power,
            "referencePowerDbm",
            "must be from -127 to 20, or 127",
        );
        let is_end = self
            .supported_until
            .as_deref()
            .is_none_or(|day| day.trim().is_empty() || is_day(day));
        check.that(is_end, "supportedUntil", "must be a day such as 2026-01-31");
        check.done()?;
        let metrics: Option<Vec<Metric>> = self.metrics.map(|metrics| {
            metrics
                .into_iter()
                .map(DeviceMetricRequest::metric)
                .collect()
        });
        models::check_metrics(metrics.as_deref().unwrap_or_default())?;
        Ok(Given {
            name: self.name,
            brand: self.brand,
            model: self.model,
            category: self.category,
            description: self.description,
            aliases: self.aliases.map(filled_aliases),
            image_url: self.image_url,
            auto_register: self.auto_register,
            expected_interval_secs: self.expected_interval_seconds,
            reference_power_dbm: self.reference_power_dbm,
            supported_until: self.supported_until,
            metrics,
        })
    }
}

impl DeviceMetricRequest {
    fn metric(self) -> Metric {
        let usual =
            hub_adverts::quantity::quantity(&self.quantity).map(|quantity| quantity.kind.into());
        let kind = self.kind.or(usual).unwrap_or(MetricKind::Measurement);
        Metric {
            quantity: self.quantity,
            kind,
            min: self.min,
            max: self.max,
        }
    }
}

/// Filters of the models.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelQuery {
    /// Only models whose support ends before this day, such as 2026-01-31.
    #[schemars(length(max = 10))]
    support_ends_before: Option<String>,
}

impl ModelQuery {
    fn checked(self) -> Result<Option<String>> {
        let mut check = Check::new();
        let day = self.support_ends_before;
        let is_end = day.as_deref().is_none_or(is_day);
        check.that(
            is_end,
            "supportEndsBefore",
            "must be a day such as 2026-01-31",
        );
        check.done().map(|()| day)
    }
}

async fn list(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    page: Page,
    Query(query): Query<ModelQuery>,
) -> Result<Listed<DeviceCatalogResponse>> {
    let ends_before = query.checked()?;
    let mut conn = core.db.read().await?;
    let (rows, total) =
        store::models::list(&mut conn, &auth.scope, ends_before.as_deref(), page.slice()).await?;
    Ok(page.listed(
        rows.into_iter().map(DeviceCatalogResponse::from).collect(),
        total,
    ))
}

async fn create(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Json(request): Json<CreateDeviceRequest>,
) -> Result<Answer<DeviceCatalogResponse>> {
    let given = UpdateDeviceRequest {
        name: request.name,
        brand: request.brand,
        model: request.model,
        category: request.category,
        description: request.description,
        aliases: request.aliases,
        image_url: request.image_url,
        auto_register: request.auto_register,
        expected_interval_seconds: request.expected_interval_seconds,
        reference_power_dbm: request.reference_power_dbm,
        supported_until: request.supported_until,
        metrics: request.metrics,
    };
    if request
        .from_unknown
        .as_deref()
        .is_some_and(|address| address_of(address).is_none())
    {
        return Err(Error::field(
            "fromUnknown",
            "must be an address such as AA:BB:CC:DD:EE:FF",
        ));
    }
    let source = Source {
        template: request.template,
        unknown: request.from_unknown,
    };
    let row = models::create(&core, &auth.scope, source, given.checked()?).await?;
    Ok(Answer(row.into()))
}

async fn get(
    auth: Authorized<perm::CatalogRead>,
    State(core): State<Core>,
    Path(DeviceModelPath { device_uuid }): Path<DeviceModelPath>,
) -> Result<Answer<DeviceCatalogResponse>> {
    let row = models::get(&mut core.db.read().await?, &auth.scope, device_uuid).await?;
    Ok(Answer(row.into()))
}

async fn update(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceModelPath { device_uuid }): Path<DeviceModelPath>,
    Json(request): Json<UpdateDeviceRequest>,
) -> Result<Answer<DeviceCatalogResponse>> {
    let row = models::update(&core, &auth.scope, device_uuid, request.checked()?).await?;
    Ok(Answer(row.into()))
}

async fn delete(
    auth: Authorized<perm::CatalogWrite>,
    State(core): State<Core>,
    Path(DeviceModelPath { device_uuid }): Path<DeviceModelPath>,
) -> Result<Empty> {
    models::delete(&core, &auth.scope, device_uuid).await?;
    Ok(Empty)
}
