//! Device models.

use hub_adverts::library::{self, Model};
use hub_adverts::{Kind, Quantity, quantity};
use hub_base::db::Conn;
use hub_base::error::{Error, Result};
use hub_core::Core;
use hub_core::audit::Audit;
use hub_identity::authz::Scope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::identifiers::{self, NewIdentifier};
use super::protocols::{self, ProtocolKind};
use super::store::models::ModelRow;
use super::store::protocols::ProtocolRow;
use super::{MAX_ITEMS, Stored, changed_text, draft, filled, store};

/// Models of one tenant.
const MAX_MODELS: i64 = 1000;
/// A week.
pub const MAX_INTERVAL_SECS: i64 = 7 * 86_400;
/// The power of an advertisement at one metre that the radio may state (Bluetooth Core
/// Specification, Vol 4, Part E, 7.8.6).
pub const POWER_DBM: std::ops::RangeInclusive<i64> = -127..=20;
/// Bluetooth's value for an unknown power.
pub const UNKNOWN_POWER_DBM: i64 = 127;

/// The kind of a value, which decides whether it may be sampled or folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MetricKind {
    /// A physical value that can be sampled.
    Measurement,
    /// A state that lasts until it changes.
    State,
    /// An occurrence.
    Event,
    /// A number that only rises until it starts over.
    Counter,
}

impl From<Kind> for MetricKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Measurement => Self::Measurement,
            Kind::State => Self::State,
            Kind::Event => Self::Event,
            Kind::Counter => Self::Counter,
        }
    }
}

/// A quantity that a model measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub quantity: String,
    pub kind: MetricKind,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

impl Metric {
    /// The metrics of the library's model.
    pub fn of_template(model: &Model) -> Vec<Self> {
        let metric = |metric: &library::Metric| Self {
            quantity: metric.quantity.name.to_owned(),
            kind: metric.kind.into(),
            min: metric.min,
            max: metric.max,
        };
        model.metrics.iter().map(metric).collect()
    }

    /// The unit of the quantity; None for what has none.
    pub fn unit(&self) -> Option<&'static str> {
        quantity::quantity(&self.quantity).and_then(|quantity: &Quantity| quantity.unit)
    }
}

/// The values given for a model. In a change, None keeps the stored value, and blank text removes
/// it.
#[derive(Debug, Default)]
pub struct Given {
    pub name: Option<String>,
    pub brand: Option<String>,
    pub model: Option<String>,
    pub category: Option<String>,
    pub description: Option<String>,
    pub aliases: Option<Vec<String>>,
    pub image_url: Option<String>,
    pub auto_register: Option<bool>,
    /// 0 removes the interval.
    pub expected_interval_secs: Option<i64>,
    /// [`UNKNOWN_POWER_DBM`] removes the power.
    pub reference_power_dbm: Option<i64>,
    pub supported_until: Option<String>,
    pub metrics: Option<Vec<Metric>>,
}

impl Given {
    fn applied_to(self, before: &ModelRow) -> ModelRow {
        let (interval, power) = (self.expected_interval_secs, self.reference_power_dbm);
        ModelRow {
            name: self
                .name
                .map_or_else(|| before.name.clone(), |name| name.trim().to_owned()),
            brand: changed_text(&before.brand, self.brand),
            model: changed_text(&before.model, self.model),
            category: changed_text(&before.category, self.category),
            description: changed_text(&before.description, self.description),
            aliases: self.aliases.map_or_else(|| before.aliases.clone(), Stored),
            image_url: changed_text(&before.image_url, self.image_url),
            auto_register: self.auto_register.unwrap_or(before.auto_register),
            expected_interval_secs: interval
                .or(before.expected_interval_secs)
                .filter(|secs| *secs != 0),
            reference_power_dbm: power
                .or(before.reference_power_dbm)
                .filter(|dbm| *dbm != UNKNOWN_POWER_DBM),
            supported_until: changed_text(&before.supported_until, self.supported_until),
            metrics: self.metrics.map_or_else(|| before.metrics.clone(), Stored),
            ..before.clone()
        }
    }
}

impl ModelRow {
    /// The representation in the audit log. Lists are counted.
    fn state(&self) -> Value {
        json!({
            "name": self.name,
            "brand": self.brand,
            "model": self.model,
            "category": self.category,
            "description": self.description,
            "aliases": self.aliases.0.len(),
            "imageUrl": self.image_url,
            "template": self.template,
            "autoRegister": self.auto_register,
            "expectedIntervalSeconds": self.expected_interval_secs,
            "referencePowerDbm": self.reference_power_dbm,
            "supportedUntil": self.supported_until,
            "metrics": self.metrics.0.len(),
        })
    }
}

/// A count in words, such as `3 devices`.
pub fn devices(count: i64) -> String {
    match count {
        1 => "1 device".to_owned(),
        count => format!("{count} devices"),
    }
}

pub async fn get(conn: &mut Conn, scope: &Scope, device_uuid: Uuid) -> Result<ModelRow> {
    store::models::get(conn, scope, device_uuid)
        .await?
        .ok_or_else(not_found)
}

fn not_found() -> Error {
    Error::not_found("device model")
}

/// The source of a model, besides the given values.
#[derive(Debug, Default)]
pub struct Source {
    /// The key of a model of the library.
    pub template: Option<String>,
    /// The address of an unknown advertiser.
    pub unknown: Option<String>,
}

/// Creates a model, with the identifiers, the protocol and the metrics of a model of the library if
/// `template` names one; else with the identifier of an unknown advertiser, if one is named.
pub async fn create(core: &Core, scope: &Scope, source: Source, given: Given) -> Result<ModelRow> {
    let find = |key: &str| library::model(key).ok_or_else(|| unknown_template(key));
    let template = source.template.as_deref().map(find).transpose()?;
    if template.is_none() && source.unknown.is_none() && given.name.is_none() {
        return Err(Error::field(
            "name",
            "is required unless `template` or `fromUnknown` is given",
        ));
    }
    let now = core.clock.now();
    let draft = match source.unknown.as_deref() {
        Some(address) => Some(draft::of_unknown(core, scope, address, template, now).await?),
        None => None,
    };
    let (drafted_name, drafted) = draft
        .map(|draft| (draft.name, draft.identifiers))
        .unwrap_or_default();
    let blank = ModelRow {
        device_uuid: Uuid::now_v7(),
        name: template
            .map(|model| model.name.clone())
            .or(drafted_name)
            .unwrap_or_default(),
        brand: template.map(|model| model.brand.clone()),
        model: template.map(|model| model.model.clone()),
        category: template.map(|model| model.category.clone()),
        description: template.and_then(|model| model.description.clone()),
        aliases: Stored(
            template
                .map(|model| model.aliases.clone())
                .unwrap_or_default(),
        ),
        image_url: None,
        template: template.map(|model| model.key.clone()),
        auto_register: false,
        expected_interval_secs: template
            .and_then(|model| model.expected_interval_seconds)
            .map(i64::from),
        reference_power_dbm: None,
        supported_until: None,
        metrics: Stored(template.map(Metric::of_template).unwrap_or_default()),
        created_at: now,
        updated_at: now,
        identifier_count: 0,
        instance_count: 0,
    };
    let mut row = given.applied_to(&blank);
    let definitions = template
        .map(|model| model.identifier_definitions.as_slice())
        .unwrap_or_default();
    let mut identifiers = definitions
        .iter()
        .map(NewIdentifier::of_template)
        .collect::<Result<Vec<_>>>()?;
    identifiers.extend(drafted);

    let mut tx = super::begin(core, scope).await?;
    if store::models::count(&mut tx, scope).await? >= MAX_MODELS {
        let message =
            format!("a tenant may have at most {MAX_MODELS} device models; delete one first");
        return Err(Error::conflict("TOO_MANY_MODELS", message));
    }
    store::models::insert(&mut tx, scope, &row).await?;
    identifiers::require_no_tie(&mut tx, scope, row.device_uuid, &identifiers).await?;
    identifiers::ROOM
        .require(&mut tx, scope, row.device_uuid, identifiers.len())
        .await?;
    for new in &identifiers {
        store::identifiers::insert(&mut tx, scope, row.device_uuid, new, now).await?;
        row.identifier_count += 1;
    }
    if let Some(template) = template {
        protocols::ROOM
            .require(&mut tx, scope, row.device_uuid, 1)
            .await?;
        store::protocols::insert(&mut tx, scope, &protocol_of(template, &row)?).await?;
    }
    super::raise_models(core, &mut tx, scope).await?;
    let audit = Audit::new(scope, "device_model.create", row.device_uuid, now);
    tx.commit(
        audit
            .changed(None, Some(row.state()))
            .with(json!({"identifiers": row.identifier_count})),
    )
    .await?;
    Ok(row)
}

fn unknown_template(key: &str) -> Error {
    let message =
        format!("there is no model {key:?} in the library; GET /public/device-library lists them");
    Error::field("template", message)
}

/// The first protocol of a model that is made from a template.
fn protocol_of(template: &Model, row: &ModelRow) -> Result<ProtocolRow> {
    let kind = match template.protocol {
        library::Protocol::Builtin(_) => ProtocolKind::Builtin,
        library::Protocol::Declarative(_) => ProtocolKind::Declarative,
    };
    let definition = template
        .protocol_definition
        .get("definition")
        .unwrap_or(&Value::Null);
    Ok(ProtocolRow {
        device_protocol_id: 0,
        device_uuid: row.device_uuid,
        name: template.name.clone(),
        kind,
        definition: definition.to_string(),
        tests: "[]".to_owned(),
        revision: 1,
        created_at: row.created_at,
        updated_at: row.updated_at,
    })
}

/// Fails unless every quantity is known, is listed once, and has bounds in order.
pub fn check_metrics(metrics: &[Metric]) -> Result<()> {
    if metrics.len() > MAX_ITEMS {
        return Err(Error::field(
            "metrics",
            format!("must have at most {MAX_ITEMS} items"),
        ));
    }
    let mut seen = std::collections::HashSet::new();
    for (at, metric) in metrics.iter().enumerate() {
        let field = |member: &str| format!("metrics[{at}].{member}");
        if quantity::quantity(&metric.quantity).is_none() {
            return Err(Error::field(
                field("quantity"),
                "is not known; GET /public/quantities lists all",
            ));
        }
        if !seen.insert(metric.quantity.as_str()) {
            return Err(Error::field(field("quantity"), "is listed before"));
        }
        if metric
            .min
            .zip(metric.max)
            .is_some_and(|(min, max)| min > max)
        {
            return Err(Error::field(field("max"), "must not be less than `min`"));
        }
    }
    Ok(())
}

pub async fn update(
    core: &Core,
    scope: &Scope,
    device_uuid: Uuid,
    given: Given,
) -> Result<ModelRow> {
    let mut tx = super::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_uuid).await?;
    let changed = given.applied_to(&before);
    if changed == before {
        return Ok(before);
    }
    let now = core.clock.now();
    let after = ModelRow {
        updated_at: now,
        ..changed
    };
    store::models::update(&mut tx, scope, &after).await?;
    // The parts of a model that hubs and recognition use.
    let known = |row: &ModelRow| {
        (
            row.name.clone(),
            row.auto_register,
            row.expected_interval_secs,
        )
    };
    if known(&after) != known(&before) {
        super::raise_models(core, &mut tx, scope).await?;
    }
    let audit = Audit::new(scope, "device_model.update", device_uuid, now);
    tx.commit(audit.changed(Some(before.state()), Some(after.state())))
        .await?;
    Ok(after)
}

/// Deletes the model with all that belongs to it, unless a device is of it.
pub async fn delete(core: &Core, scope: &Scope, device_uuid: Uuid) -> Result<()> {
    let mut tx = super::begin(core, scope).await?;
    let before = get(&mut tx, scope, device_uuid).await?;
    if before.instance_count > 0 {
        let message = format!(
            "the model is used by {}; delete them first",
            devices(before.instance_count)
        );
        return Err(Error::conflict("MODEL_IN_USE", message));
    }
    if let Some(bundle) = store::models::published_bundle_with(&mut tx, device_uuid).await? {
        let message =
            format!("the published bundle {bundle} has the model; archive the bundle first");
        return Err(Error::conflict("MODEL_IN_USE", message));
    }
    store::models::delete(&mut tx, scope, device_uuid).await?;
    super::raise_models(core, &mut tx, scope).await?;
    let audit = Audit::new(scope, "device_model.delete", device_uuid, core.clock.now());
    let detail = json!({"identifiers": before.identifier_count});
    tx.commit(audit.changed(Some(before.state()), None).with(detail))
        .await
}

/// Other names in their stored form: blank ones are left out.
pub fn filled_aliases(aliases: Vec<String>) -> Vec<String> {
    aliases
        .into_iter()
        .filter_map(|alias| filled(Some(alias)))
        .collect()
}
