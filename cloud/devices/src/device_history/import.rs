//! Values by the hour that another service measured. A tenant that moves takes them along: events
//! stay with the service that received them.

use std::collections::BTreeMap;

use hub_base::error::Result;
use hub_core::Core;
use hub_core::audit::Audit;
use hub_core::http::check::Check;
use hub_identity::authz::Scope;
use hub_protocol::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::hour::{Hour, Numbers, Stat, hour_of};
use super::rollup::kept_from;
use super::{HOUR_SECS, store};
use crate::device_instances::{self, MAX_QUANTITY_CHARS};

/// Values of a request.
const MAX_VALUES: usize = 5000;
/// Characters of a value that is a text.
const MAX_TEXT_CHARS: usize = 255;
/// The values of a quantity within an hour: a thousand a second.
const MAX_COUNT: i64 = 3_600_000;
/// Errors that are answered.
const MAX_ERRORS: usize = 20;
/// By how much a mean may be beyond the least or the greatest value, as a part of it: it was
/// rounded.
const ROUNDED: f64 = 1e-9;

/// Values by the hour, as `sensor-data?every=1h` answers them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ImportValuesRequest {
    /// The values of each quantity and hour, in any order.
    #[schemars(length(min = 1, max = MAX_VALUES))]
    values: Vec<ImportedValue>,
}

/// The values of a quantity within an hour. Other members of a bucket are ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedValue {
    /// When the hour begins: a full hour (UTC) that is over.
    from: Timestamp,
    /// A quantity of `GET /public/quantities`, or `quantity[index]` of one that occurs more than
    /// once.
    #[schemars(length(min = 1, max = MAX_QUANTITY_CHARS), regex(pattern = hub_protocol::patterns::FILLED_LINE))]
    quantity: String,
    /// The number of values.
    #[schemars(range(min = 1, max = MAX_COUNT))]
    count: i64,
    /// The least value; null of what is no number.
    min: Option<f64>,
    /// The greatest value; null of what is no number.
    max: Option<f64>,
    /// The mean of the values; null of what is no number.
    mean: Option<f64>,
    /// The value that was observed last: a number, a text or a boolean.
    #[schemars(extend("type" = ["number", "string", "boolean"]))]
    last: Value,
}

/// What has been imported.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedValuesResponse {
    /// Values that are stored now.
    imported: usize,
    /// Values that are left out: the hour has values of the quantity already, or 64 quantities, or
    /// is older than hours are kept.
    left_out: usize,
}

impl ImportValuesRequest {
    /// The statistics by hour and quantity.
    fn checked(self, now: Timestamp) -> Result<BTreeMap<i64, BTreeMap<String, Stat>>> {
        let mut check = Check::new();
        check.that(
            (1..=MAX_VALUES).contains(&self.values.len()),
            "values",
            format!("must have 1 to {MAX_VALUES} values"),
        );
        let mut hours: BTreeMap<i64, BTreeMap<String, Stat>> = BTreeMap::new();
        for (at, value) in self.values.into_iter().take(MAX_VALUES).enumerate() {
            let hour = hour_of(value.from);
            let (quantity, stat) = value.checked(&mut check, at, now);
            let before = hours.entry(hour).or_default().insert(quantity, stat);
            check.that(
                before.is_none(),
                format!("values[{at}].quantity"),
                "is there twice for this hour",
            );
            if check.count() >= MAX_ERRORS {
                break;
            }
        }
        check.done()?;
        Ok(hours)
    }
}

impl ImportedValue {
    fn checked(self, check: &mut Check, at: usize, now: Timestamp) -> (String, Stat) {
        let field = |member: &str| format!("values[{at}].{member}");
        let start = hour_of(self.from);
        check.that(
            self.from.as_micros() == start.saturating_mul(1_000_000)
                && start.saturating_add(HOUR_SECS) <= now.as_secs(),
            field("from"),
            "must be the beginning of a full hour (UTC) that is over",
        );
        check.required(&field("quantity"), &self.quantity, MAX_QUANTITY_CHARS);
        check.that(
            (1..=MAX_COUNT).contains(&self.count),
            field("count"),
            format!("must be from 1 to {MAX_COUNT}"),
        );
        match &self.last {
            Value::Number(_) | Value::Bool(_) => {}
            Value::String(text) => check.line(&field("last"), Some(text), MAX_TEXT_CHARS),
            _ => check.that(
                false,
                field("last"),
                "must be a number, a text or a boolean",
            ),
        }
        let numbers = match (self.min, self.max, self.mean) {
            (None, None, None) => None,
            (Some(min), Some(max), Some(mean)) => {
                let rounded = min.abs().max(max.abs()) * ROUNDED;
                check.that(
                    min <= max && (min - rounded..=max + rounded).contains(&mean),
                    field("mean"),
                    "must be from `min` to `max`",
                );
                let sum = (mean * self.count as f64).clamp(f64::MIN, f64::MAX);
                Some(Numbers(self.count, min, max, sum))
            }
            _ => {
                check.that(
                    false,
                    field("min"),
                    "must be there together with `max` and `mean`, or none of them",
                );
                None
            }
        };
        let stat = Stat {
            count: self.count,
            numbers,
            last: self.last,
            last_at: self.from.as_micros(),
        };
        (self.quantity, stat)
    }
}

/// Adds values to the hours of a device. What an hour has already stays: the same request, sent
/// again, changes nothing.
pub async fn import(
    core: &Core,
    scope: &Scope,
    device_instance_id: i64,
    request: ImportValuesRequest,
) -> Result<ImportedValuesResponse> {
    let (tenant_uuid, now) = (scope.tenant_uuid(), core.clock.now());
    core.turns.history_imports.count(tenant_uuid.0, now)?;
    let mut hours = request.checked(now)?;
    let given: usize = hours.values().map(BTreeMap::len).sum();
    let oldest = hour_of(kept_from(core, now));
    hours.retain(|hour, _| *hour >= oldest);
    let _turn = core.turns.history_imports.take(tenant_uuid.0).await?;
    let mut tx = core.db.begin().await?;
    // Locked, so that its hours are not left behind when it is deleted.
    let device = device_instances::lock(&mut tx, scope, device_instance_id).await?;
    store::lock_cursor(&mut tx, tenant_uuid).await?;
    let keys: Vec<(i64, i64)> = hours
        .keys()
        .map(|hour| (device.device_instance_id, *hour))
        .collect();
    let mut stored: BTreeMap<(i64, i64), Hour> = store::stored(&mut tx, tenant_uuid, &keys)
        .await?
        .into_iter()
        .collect();
    let (mut changed, mut imported) = (Vec::new(), 0);
    for (hour, quantities) in hours {
        let key = (device.device_instance_id, hour);
        let mut joined = stored.remove(&key).unwrap_or_else(|| Hour::at(hour));
        let added = joined.add_missing(quantities);
        if added > 0 {
            imported += added;
            changed.push((key, joined));
        }
    }
    if let (Some(((_, first), _)), Some(((_, last), _))) = (changed.first(), changed.last()) {
        let time = |hour: i64| Timestamp::from_micros(hour.saturating_mul(1_000_000));
        let detail =
            json!({"values": imported, "from": time(*first), "to": time(last + HOUR_SECS)});
        store::put(&mut tx, tenant_uuid, changed).await?;
        let audit = Audit::new(scope, "device.values.import", device_instance_id, now);
        tx.commit(audit.with(detail)).await?;
    }
    Ok(ImportedValuesResponse {
        imported,
        left_out: given.saturating_sub(imported),
    })
}
