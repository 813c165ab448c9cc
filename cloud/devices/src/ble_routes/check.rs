//! Whether rules make sense, and name only what is the tenant's.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;

use hub_adverts::quantity::quantity;
use hub_base::db::Conn;
use hub_base::error::Result;
use hub_core::http::check::Check;
use hub_fleet::hubs;
use hub_identity::authz::Scope;
use hub_protocol::scan_config::{RouteAction, RouteLayer, RouteMatch, RouteRule};
use uuid::Uuid;

use super::MAX_RULES;
use super::route::{company_of, service_of};
use crate::{delivery_status, device_catalog, device_instances};

/// A day.
const MAX_EVERY_SECS: i64 = 86_400;
const RSSI_DBM: std::ops::RangeInclusive<i16> = -128..=127;
const MAX_PIPELINES: usize = 100;
/// Pipelines that one statement looks for.
const PIPELINES: usize = 500;

/// Errors of one rule are named by its place.
struct Place<'a> {
    check: &'a mut Check,
    rule: usize,
}

impl Place<'_> {
    fn that(&mut self, holds: bool, member: &str, message: impl Into<String>) {
        self.check
            .that(holds, format!("rules[{}].{member}", self.rule), message);
    }
}

/// The rules in their stored form: identifiers in lower case. 400 naming every member at fault.
pub fn normalised(mut rules: Vec<RouteRule>) -> Result<Vec<RouteRule>> {
    let mut check = Check::new();
    check.that(
        rules.len() <= MAX_RULES,
        "rules",
        format!("must have at most {MAX_RULES} rules"),
    );
    for (at, rule) in rules.iter().enumerate().take(MAX_RULES) {
        let mut place = Place {
            check: &mut check,
            rule: at,
        };
        check_match(&mut place, &rule.fits);
        check_action(&mut place, rule);
    }
    check.done()?;
    for rule in &mut rules {
        for text in [&mut rule.fits.company_id, &mut rule.fits.service_uuid]
            .into_iter()
            .flatten()
        {
            text.make_ascii_lowercase();
        }
    }
    Ok(rules)
}

fn check_match(place: &mut Place<'_>, fits: &RouteMatch) {
    let is_dbm = fits.min_rssi_dbm.is_none_or(|dbm| RSSI_DBM.contains(&dbm));
    place.that(is_dbm, "match.minRssiDbm", "must be -128 to 127 dBm");
    let is_company = fits
        .company_id
        .as_deref()
        .is_none_or(|text| company_of(text).is_some());
    place.that(
        is_company,
        "match.companyId",
        "must be a company id of 4 hex digits",
    );
    let is_service = fits
        .service_uuid
        .as_deref()
        .is_none_or(|text| service_of(text).is_some());
    place.that(
        is_service,
        "match.serviceUuid",
        "must be 4 hex digits, or a longer UUID in full",
    );
}

fn check_action(place: &mut Place<'_>, rule: &RouteRule) {
    let is_cloud = rule.layer == RouteLayer::Cloud;
    let is_simple = matches!(rule.action, RouteAction::Forward | RouteAction::Drop);
    place.that(
        is_simple || !is_cloud,
        "action",
        "must be FORWARD or DROP in a CLOUD rule",
    );
    let is_timed = matches!(rule.action, RouteAction::Sample | RouteAction::Window);
    match (rule.every_seconds, is_timed) {
        (Some(secs), true) => {
            let message = format!("must be 1 to {MAX_EVERY_SECS} seconds");
            place.that(
                (1..=MAX_EVERY_SECS).contains(&secs),
                "everySeconds",
                message,
            );
        }
        (None, true) => place.that(false, "everySeconds", "is required with SAMPLE and WINDOW"),
        (Some(_), false) => place.that(false, "everySeconds", "is for SAMPLE and WINDOW only"),
        (None, false) => {}
    }
    match rule.action {
        RouteAction::OnChange => {
            place.that(
                !rule.quantities.is_empty(),
                "quantities",
                "is required with ON_CHANGE",
            );
            check_quantities(place, &rule.quantities);
        }
        _ => place.that(
            rule.quantities.is_empty(),
            "quantities",
            "is for ON_CHANGE only",
        ),
    }
    let pipelines = &rule.pipeline_uuids;
    place.that(
        is_cloud || pipelines.is_empty(),
        "pipelineUuids",
        "is for CLOUD rules only",
    );
    let is_dropped = rule.action == RouteAction::Drop;
    place.that(
        !is_dropped || pipelines.is_empty(),
        "pipelineUuids",
        "is for FORWARD only",
    );
    let message = format!("must have at most {MAX_PIPELINES} pipelines");
    place.that(pipelines.len() <= MAX_PIPELINES, "pipelineUuids", message);
}

fn check_quantities(place: &mut Place<'_>, quantities: &BTreeMap<String, f64>) {
    for (name, delta) in quantities {
        if quantity(name).is_none() {
            place.that(
                false,
                "quantities",
                format!("{name:?} is not known; GET /public/quantities lists all"),
            );
            return;
        }
        let is_delta = delta.is_finite() && *delta > 0.0;
        place.that(
            is_delta,
            &format!("quantities.{name}"),
            "must be more than 0, in the unit of the quantity",
        );
    }
}

/// 400 naming every model, device, hub and pipeline of another tenant, or of none.
pub async fn require_own(conn: &mut Conn, scope: &Scope, rules: &[RouteRule]) -> Result<()> {
    let (models, devices, hubs) = (
        named(rules, |fits| fits.device_uuid),
        named(rules, |fits| fits.device_instance_id),
        named(rules, |fits| fits.hub_uuid),
    );
    let own_models = device_catalog::own(conn, scope, &models).await?;
    let own_devices = device_instances::existing(conn, scope.tenant_uuid(), &devices).await?;
    let own_hubs = hubs::own(conn, scope, &hubs).await?;
    let mut check = Check::new();
    for (at, rule) in rules.iter().enumerate() {
        let RouteMatch {
            device_uuid,
            device_instance_id,
            hub_uuid,
            ..
        } = &rule.fits;
        let mut place = Place {
            check: &mut check,
            rule: at,
        };
        let is_own = device_uuid.is_none_or(|uuid| own_models.contains(&uuid));
        place.that(
            is_own,
            "match.deviceUuid",
            "is no device model of this tenant",
        );
        let is_own = device_instance_id.is_none_or(|id| own_devices.contains(&id));
        place.that(
            is_own,
            "match.deviceInstanceId",
            "is no device of this tenant",
        );
        let is_own = hub_uuid.is_none_or(|uuid| own_hubs.contains(&uuid));
        place.that(is_own, "match.hubUuid", "is no hub of this tenant");
    }
    let named: HashSet<Uuid> = rules
        .iter()
        .flat_map(|rule| rule.pipeline_uuids.iter().copied())
        .collect();
    let own_pipelines = own_pipelines(conn, scope, named.into_iter().collect()).await?;
    for (at, rule) in rules.iter().enumerate() {
        let mut place = Place {
            check: &mut check,
            rule: at,
        };
        for (number, uuid) in rule.pipeline_uuids.iter().enumerate() {
            let is_own = own_pipelines.contains(uuid);
            place.that(
                is_own,
                &format!("pipelineUuids[{number}]"),
                "is no pipeline of this tenant",
            );
        }
    }
    check.done()
}

/// The given pipelines of the tenant. A tenant has at most some hundred; all rules may name many
/// that do not exist.
async fn own_pipelines(conn: &mut Conn, scope: &Scope, named: Vec<Uuid>) -> Result<HashSet<Uuid>> {
    let mut own = HashSet::new();
    for some in named.chunks(PIPELINES) {
        own.extend(delivery_status::own(conn, scope, some).await?);
    }
    Ok(own)
}

/// The objects of a kind that the rules name, without duplicates.
fn named<T: Eq + Hash>(rules: &[RouteRule], of: impl Fn(&RouteMatch) -> Option<T>) -> Vec<T> {
    rules
        .iter()
        .filter_map(|rule| of(&rule.fits))
        .collect::<HashSet<T>>()
        .into_iter()
        .collect()
}
