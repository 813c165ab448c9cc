//! `hub hubs move`: sends hubs to another service, by jobs that this service gives them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hub_client::{Client, Hub, HubDetail, operations};
use hub_protocol::{HubJobUuid, HubUuid};
use serde_json::{Value, json};

use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::global::{Consent, Global};
use crate::jobs;
use crate::lookup;
use crate::terminal::{Table, confirm, note, print, print_json, secret};
use crate::text::printable;

/// The longest file of claim codes: for far more hubs than a tenant has.
const MAX_CODES_BYTES: u64 = 64 << 20;

#[derive(Debug, clap::Args)]
pub struct MoveOptions {
    /// The hub
    #[arg(required_unless_present = "codes", conflicts_with = "codes")]
    pub hub: Option<String>,
    /// URL of the other service
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// Claim code of the other service; without it, it is typed, or the first line of standard
    /// input
    #[arg(long, value_name = "CODE", conflicts_with = "codes")]
    pub code: Option<String>,
    /// Move all hubs of a file that `hub import tenant --claim-codes` has written
    #[arg(long, value_name = "FILE")]
    pub codes: Option<PathBuf>,
    /// Wait until the hub has moved
    #[arg(long, conflicts_with = "codes")]
    pub wait: bool,
    #[command(flatten)]
    pub consent: Consent,
}

pub async fn run(global: &Global, options: &MoveOptions) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    match (&options.codes, &options.hub) {
        (Some(file), _) => all(global, &client, options, file).await,
        (None, Some(hub)) => one(global, &client, options, hub).await,
        (None, None) => Err(Failure::usage("name a hub, or give --codes")),
    }
}

/// What moving means, for the question before it.
fn consequence(what: &str, to: &str) -> String {
    format!(
        "{what} will move to {}: it uploads all that it has here, claims there, and is gone from \
         here. Its data stays here. This cannot be undone from here.",
        printable(to)
    )
}

async fn begin(client: &Client, hub: HubUuid, to: &str, code: &str) -> Result<HubJobUuid, Failure> {
    let call = operations::MOVE_HUB
        .call()
        .path("hubUuid", hub)
        .body(json!({"serviceUrl": to, "claimCode": code}));
    Ok(client.call(call).await?)
}

async fn one(
    global: &Global,
    client: &Client,
    options: &MoveOptions,
    named: &str,
) -> Result<(), Failure> {
    let hub = lookup::hub(client, named).await?;
    let detail: HubDetail = client
        .call(operations::HUB.call().path("hubUuid", hub))
        .await?;
    let code = match &options.code {
        Some(code) => code.clone(),
        None => secret("Claim code of the other service", false)?,
    };
    let what = format!("The hub {} ({hub})", printable(detail.hub.label()));
    confirm(&consequence(&what, &options.to), options.consent.yes)?;
    let job = begin(client, hub, &options.to, &code).await?;
    if options.wait {
        return jobs::wait_for(global, client, hub, job).await;
    }
    match global.json {
        true => print_json(&json!({"hubUuid": hub, "hubJobUuid": job})),
        false => {
            note(&format!("The hub {hub} will move, by the job"));
            print(&format!("{job}\n"))
        }
    }
}

/// The claim codes of a file, by hardware identity.
fn read_codes(file: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let failed = |error: String| Failure::failed(format!("{}: {error}", file.display()));
    let size = std::fs::metadata(file)
        .map_err(|error| failed(error.to_string()))?
        .len();
    if size > MAX_CODES_BYTES {
        return Err(failed("it is too long for a file of claim codes".into()));
    }
    let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
    parse_codes(&text).map_err(failed)
}

/// Lines of claim code, hardware identity and name, with tabs between them.
fn parse_codes(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut codes = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let mut columns = line.split('\t').map(str::trim);
        match (columns.next(), columns.next()) {
            (Some(code), Some(hardware)) if !code.is_empty() && !hardware.is_empty() => {
                codes.insert(hardware.to_owned(), code.to_owned());
            }
            _ if line.trim().is_empty() => {}
            _ => {
                return Err(format!(
                    "line {} is not a claim code, a tab and a hardware identity",
                    number + 1
                ));
            }
        }
    }
    Ok(codes)
}

/// A hub of the file, and its job or why it has none.
struct Planned {
    hub: Hub,
    code: String,
    job: Option<Result<HubJobUuid, Failure>>,
}

async fn all(
    global: &Global,
    client: &Client,
    options: &MoveOptions,
    file: &Path,
) -> Result<(), Failure> {
    let mut codes = read_codes(file)?;
    let hubs: Vec<Hub> = client.list(operations::HUBS.call()).await?;
    let mut planned: Vec<Planned> = hubs
        .into_iter()
        .filter_map(|hub| {
            let code = codes.remove(&hub.device_instance_id)?;
            Some(Planned {
                hub,
                code,
                job: None,
            })
        })
        .collect();
    for hardware in codes.keys() {
        note(&format!(
            "no hub has the hardware identity {}",
            printable(hardware)
        ));
    }
    if planned.is_empty() {
        return Err(Failure::failed("no hub of the file is here"));
    }
    let what = format!("Each of {} hubs", planned.len());
    confirm(&consequence(&what, &options.to), options.consent.yes)?;
    for plan in &mut planned {
        let begun = begin(client, plan.hub.hub_uuid, &options.to, &plan.code).await;
        plan.job = Some(begun);
    }
    show(global, &planned)?;
    let failed = planned
        .iter()
        .filter(|plan| !matches!(plan.job, Some(Ok(_))))
        .count();
    match failed + codes.len() {
        0 => Ok(()),
        _ => Err(Failure::failed(format!(
            "of the file, {failed} hubs do not move, and {} are not here",
            codes.len()
        ))),
    }
}

fn show(global: &Global, planned: &[Planned]) -> Result<(), Failure> {
    let outcome = |plan: &Planned| match &plan.job {
        Some(Ok(job)) => (Some(*job), None),
        Some(Err(failure)) => (None, Some(failure.message.clone())),
        None => (None, None),
    };
    if global.json {
        let records = planned.iter().map(|plan| {
            let (job, error) = outcome(plan);
            json!({
                "hubUuid": plan.hub.hub_uuid,
                "deviceInstanceId": plan.hub.device_instance_id,
                "hubJobUuid": job,
                "error": error,
            })
        });
        return print_json(&Value::Array(records.collect()));
    }
    let mut table = Table::new(&["NAME", "HUB", "JOB"]);
    for plan in planned {
        let (job, error) = outcome(plan);
        table.row(vec![
            printable(plan.hub.label()),
            plan.hub.hub_uuid.to_string(),
            job.map_or_else(|| error.unwrap_or_default(), |job| job.to_string()),
        ]);
    }
    table.print("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_hardware_identity() {
        let text = "7K3M-9QXT-0V4B-HD2R\thw-1\tRoof\n\nAAAA-BBBB-CCCC-DDDD\thw-2\t\n";
        let codes = parse_codes(text).expect("codes");
        assert_eq!(codes.len(), 2);
        assert_eq!(
            codes.get("hw-1").map(String::as_str),
            Some("7K3M-9QXT-0V4B-HD2R")
        );
        let wrong = parse_codes("7K3M-9QXT-0V4B-HD2R hw-1\n").expect_err("no tab");
        assert!(
            wrong.contains("line 1") && !wrong.contains("7K3M"),
            "{wrong}"
        );
    }
}
