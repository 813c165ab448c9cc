//! The report as a document of CSAF 2.0, in the profile of its base.

use serde_json::{Value, json};

use super::{DRAFT, Done, Facts};
use crate::purl::encoded;
use crate::vulnerabilities::{AffectedPackage, Statement, VexStatus, VulnerabilitySource};

const VERSION: &str = "0.1.0";

/// The document.
pub fn document(facts: &Facts) -> Value {
    let listed = &facts.shown.listed;
    let mut document = json!({
        "document": {
            "category": "csaf_base",
            "csaf_version": "2.0",
            "lang": "en",
            "title": format!("{}: draft of a report", listed.vulnerability_id),
            "notes": [
                {"category": "legal_disclaimer", "title": "Draft", "text": DRAFT},
                {"category": "summary", "title": "Hubs", "text": hubs(facts)},
                {"category": "details", "title": "Clock", "text": clock(facts)},
                {"category": "details", "title": "Countries", "text": countries(facts)},
                {"category": "details", "title": "Measures", "text": measures(facts)},
            ],
            "publisher": {
                "category": "vendor",
                "name": named(&facts.tenant, &facts.tenant_uuid),
                "namespace": format!("urn:uuid:{}", facts.tenant_uuid),
            },
            "tracking": {
                "id": format!("{}-{}", facts.tenant_uuid, listed.vulnerability_id),
                "status": "draft",
                "version": VERSION,
                "initial_release_date": facts.generated_at,
                "current_release_date": facts.generated_at,
                "revision_history": [
                    {"number": VERSION, "date": facts.generated_at, "summary": "Draft"},
                ],
                "generator": {"engine": {"name": "hub-cloud", "version": env!("CARGO_PKG_VERSION")}},
            },
        },
        "vulnerabilities": [vulnerability(facts)],
    });
    let products: Vec<Value> = facts
        .shown
        .packages
        .iter()
        .enumerate()
        .map(product)
        .collect();
    if let (false, Some(members)) = (products.is_empty(), document.as_object_mut()) {
        let tree = json!({"full_product_names": products});
        members.insert("product_tree".to_owned(), tree);
    }
    document
}

/// The name, or something else where it is empty: texts of CSAF are not.
fn named(name: &str, otherwise: &str) -> String {
    match name.trim().is_empty() {
        true => otherwise.to_owned(),
        false => name.to_owned(),
    }
}

fn hubs(facts: &Facts) -> String {
    let hubs = &facts.shown.hubs;
    format!(
        "{} hubs are exposed, {} exposed with an update running, {} not affected as stated, {} \
         fixed.",
        hubs.exposed, hubs.updating, hubs.not_affected, hubs.fixed
    )
}

fn countries(facts: &Facts) -> String {
    let countries = facts.countries.iter().map(|one| {
        let country = one.country.as_deref().unwrap_or("not stated");
        let hubs = &one.hubs;
        format!(
            "{country}: {} exposed, {} exposed with an update running, {} not affected as stated, \
             {} fixed",
            hubs.exposed, hubs.updating, hubs.not_affected, hubs.fixed
        )
    });
    let countries: Vec<String> = countries.collect();
    named(&countries.join("; "), "No hub is known.")
}

fn measures(facts: &Facts) -> String {
    let measures: Vec<String> = facts.measures.iter().map(measure).collect();
    named(&measures.join("; "), "No job was given since it is known.")
}

fn measure(done: &Done) -> String {
    let (what, release, progress) = (done.what(), done.release(), done.progress());
    format!("{}: {what} {release}, {progress}", done.measure.began_at)
}

/// A measure as a remediation. The service does not know whether it mends anything.
fn mitigation(done: &Done, products: &[String]) -> Value {
    json!({
        "category": "mitigation",
        "date": done.measure.began_at,
        "details": measure(done),
        "product_ids": products,
    })
}

fn clock(facts: &Facts) -> String {
    let clock = &facts.clock;
    format!(
        "Aware at {}. Early warning due at {} (24 hours), notification at {} (72 hours), final \
         report at {} (14 days).",
        clock.aware_at, clock.early_warning_at, clock.notification_at, clock.final_report_at
    )
}

fn product_id(index: usize) -> String {
    format!("PACKAGE-{:04}", index + 1)
}

fn product((index, package): (usize, &AffectedPackage)) -> Value {
    let AffectedPackage {
        ecosystem,
        name,
        version,
        ..
    } = package;
    let mut product = json!({
        "product_id": product_id(index),
        "name": format!("{name} {version} ({ecosystem})"),
    });
    if let (Some(release), Some(members)) =
        (ecosystem.strip_prefix("Debian:"), product.as_object_mut())
    {
        let purl = format!(
            "pkg:deb/debian/{}@{}?arch=source&distro=debian-{}",
            encoded(name),
            encoded(version),
            encoded(release)
        );
        members.insert(
            "product_identification_helper".to_owned(),
            json!({"purl": purl}),
        );
    }
    product
}

fn vulnerability(facts: &Facts) -> Value {
    let listed = &facts.shown.listed;
    let id = &listed.vulnerability_id;
    let summary = named(&listed.title, id);
    let mut vulnerability = json!({
        "title": summary,
        "notes": [{"category": "description", "text": summary}],
        "discovery_date": listed.first_seen_at,
    });
    let Some(members) = vulnerability.as_object_mut() else {
        return vulnerability;
    };
    match id.starts_with("CVE-") {
        true => members.insert("cve".to_owned(), json!(id)),
        false => members.insert(
            "ids".to_owned(),
            json!([{"system_name": system_of(facts), "text": id}]),
        ),
    };
    let products: Vec<String> = (0..facts.shown.packages.len()).map(product_id).collect();
    if let Some(known) = &facts.exploited {
        let details = format!("Listed by CISA as exploited since {}", known.added_on);
        let threat = json!({"category": "exploit_status", "details": details});
        members.insert("threats".to_owned(), json!([threat]));
    }
    if products.is_empty() {
        return vulnerability;
    }
    let of_all = facts
        .statements
        .iter()
        .find(|statement| statement.release_uuid.is_none());
    let status = match of_all.map(|statement| statement.status) {
        Some(VexStatus::NotAffected) => "known_not_affected",
        Some(VexStatus::UnderInvestigation) => "under_investigation",
        Some(VexStatus::Fixed) => "fixed",
        Some(VexStatus::Affected) | None => "known_affected",
    };
    members.insert("product_status".to_owned(), json!({status: products}));
    if let Some(flag) = of_all.and_then(|statement| flag(statement, &products)) {
        members.insert("flags".to_owned(), json!([flag]));
    }
    if status == "known_affected" {
        let fixes = facts.shown.packages.iter().enumerate().map(remediation);
        let measures = facts.measures.iter();
        let measures = measures.map(|done| mitigation(done, &products));
        let remediations: Vec<Value> = fixes.chain(measures).collect();
        members.insert("remediations".to_owned(), json!(remediations));
    }
    let statements: Vec<Value> = facts.statements.iter().filter_map(impact).collect();
    if status == "known_not_affected" && !statements.is_empty() {
        let threats = members.entry("threats").or_insert_with(|| json!([]));
        if let Some(threats) = threats.as_array_mut() {
            threats.extend(statements);
        }
    }
    vulnerability
}

/// Who has given the vulnerability its id.
fn system_of(facts: &Facts) -> String {
    match facts.shown.listed.source {
        VulnerabilitySource::Feed => "OSV".to_owned(),
        VulnerabilitySource::Own => named(&facts.tenant, &facts.tenant_uuid),
    }
}

fn flag(statement: &Statement, products: &[String]) -> Option<Value> {
    let label = statement.justification?;
    Some(json!({"label": label, "product_ids": products, "date": statement.updated_at}))
}

fn impact(statement: &Statement) -> Option<Value> {
    let details = statement.impact.as_ref()?;
    Some(json!({"category": "impact", "details": details, "date": statement.updated_at}))
}

fn remediation((index, package): (usize, &AffectedPackage)) -> Value {
    let (category, details) = match &package.fixed_in {
        Some(version) => ("vendor_fix", format!("Fixed in {} {version}", package.name)),
        None => ("none_available", "No version fixes it yet".to_owned()),
    };
    json!({"category": category, "details": details, "product_ids": [product_id(index)]})
}
