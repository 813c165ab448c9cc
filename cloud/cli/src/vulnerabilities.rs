//! `hub vulnerabilities`: lists vulnerabilities, and shows who is exposed.

use std::path::PathBuf;

use clap::Subcommand;
use hub_client::{AffectedPackage, Client, Vulnerability, VulnerableHub, operations};
use serde_json::{Value, json};

use crate::connect::in_tenant;
use crate::evidence;
use crate::failure::Failure;
use crate::global::Global;
use crate::lookup;
use crate::terminal::{Table, print, print_json, short_time, state};
use crate::text::{harmless_json, printable};

pub const VULNERABILITIES_HELP: &str = "Examples:
  hub vulnerabilities list --exploited
  hub vulnerabilities list --search openssl --hub roof
  hub vulnerabilities show CVE-2024-3094
  hub vulnerabilities export CVE-2024-3094 --csaf > draft.json
  hub vulnerabilities evidence CVE-2024-3094 --out evidence
  hub vulnerabilities openvex > openvex.json";

#[derive(Debug, Subcommand)]
pub enum VulnerabilitiesCommand {
    /// List vulnerabilities, those that are exploited first, then the most severe
    #[command(after_help = VULNERABILITIES_HELP)]
    List {
        /// Only those whose id or title has this text, or that are of this package
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Only those that affect this hub: its uuid, label or host name
        #[arg(long)]
        hub: Option<String>,
        /// Only those of this severity
        #[arg(long)]
        severity: Option<String>,
        /// Only those that are known to be exploited
        #[arg(long)]
        exploited: bool,
        /// The most to list
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 100)]
        limit: u32,
    },
    /// Show how hubs stand to a vulnerability
    #[command(after_help = VULNERABILITIES_HELP)]
    Show {
        /// Its id
        id: String,
    },
    /// Print the draft of a report about a vulnerability
    #[command(after_help = VULNERABILITIES_HELP)]
    Export {
        /// Its id
        id: String,
        /// As JSON of CSAF 2.0 instead of Markdown
        #[arg(long)]
        csaf: bool,
    },
    /// Write the signed evidence of which hub had what when, and the keys to verify it
    #[command(after_help = VULNERABILITIES_HELP)]
    Evidence {
        /// Its id
        id: String,
        /// The folder to write to
        #[arg(long, value_name = "FOLDER")]
        out: PathBuf,
    },
    /// Print all statements as a document of OpenVEX
    #[command(after_help = VULNERABILITIES_HELP)]
    Openvex,
}

pub async fn run(global: &Global, command: VulnerabilitiesCommand) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    match command {
        VulnerabilitiesCommand::List {
            search,
            hub,
            severity,
            exploited,
            limit,
        } => {
            let hub = match hub {
                Some(named) => Some(lookup::hub(&client, &named).await?),
                None => None,
            };
            let call = operations::VULNERABILITIES
                .call()
                .query("q", search)
                .query("hubUuid", hub)
                .query("severity", severity.map(|severity| severity.to_uppercase()))
                .query("exploited", exploited.then_some(true));
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            let records: Vec<Value> = client.first(call, limit).await?;
            if global.json {
                return print_json(&Value::Array(records));
            }
            list(records)
        }
        VulnerabilitiesCommand::Show { id } => show(global, &client, &id).await,
        VulnerabilitiesCommand::Export { id, csaf } => {
            let form = match csaf {
                true => "csaf",
                false => "markdown",
            };
            let call = operations::VULNERABILITY_REPORT
                .call()
                .path("vulnerabilityId", id)
                .query("form", Some(form));
            let report = client.file(call).await?;
            let report = String::from_utf8_lossy(&report);
            // Titles and names of packages come from others.
            match csaf {
                true => print(&(harmless_json(&report) + "\n")),
                false => {
                    let lines: Vec<String> = report.lines().map(printable).collect();
                    print(&(lines.join("\n") + "\n"))
                }
            }
        }
        VulnerabilitiesCommand::Evidence { id, out } => evidence::write(&client, id, &out).await,
        VulnerabilitiesCommand::Openvex => {
            let document = client.file(operations::OPENVEX.call()).await?;
            print(&(harmless_json(&String::from_utf8_lossy(&document)) + "\n"))
        }
    }
}

fn list(records: Vec<Value>) -> Result<(), Failure> {
    let mut table = Table::new(&[
        "ID",
        "SEVERITY",
        "EXPLOITED",
        "EXPOSED",
        "FIXED IN",
        "SINCE",
    ]);
    for record in records {
        let one: Vulnerability = serde_json::from_value(record)?;
        let exploited = match one.exploited {
            true => "yes",
            false => "-",
        };
        table.row(vec![
            printable(&one.id),
            state(&one.severity),
            exploited.to_owned(),
            (one.hubs.exposed + one.hubs.updating).to_string(),
            fixes(&one.packages),
            short_time(one.first_seen_at),
        ]);
    }
    table.print("No vulnerability of what hubs run is known.")
}

/// What fixes the packages, as far as something does.
fn fixes(packages: &[AffectedPackage]) -> String {
    let fixes: Vec<String> = packages
        .iter()
        .filter_map(|package| {
            let version = package.fixed_in.as_deref()?;
            Some(printable(&format!("{} {version}", package.name)))
        })
        .collect();
    match fixes.is_empty() {
        true => "-".to_owned(),
        false => fixes.join(", "),
    }
}

async fn show(global: &Global, client: &Client, id: &str) -> Result<(), Failure> {
    let call = operations::VULNERABLE_HUBS
        .call()
        .path("vulnerabilityId", id);
    let records: Vec<Value> = client.list(call).await?;
    if global.json {
        return print_json(&json!({"id": id, "hubs": records}));
    }
    let mut table = Table::new(&["NAME", "STATUS", "PACKAGES", "SINCE", "HUB"]);
    for record in records {
        let hub: VulnerableHub = serde_json::from_value(record)?;
        let packages: Vec<String> = hub
            .packages
            .iter()
            .map(|package| printable(&format!("{} {}", package.name, package.version)))
            .collect();
        table.row(vec![
            printable(hub.hub_identifier.as_deref().unwrap_or("-")),
            state(&hub.status),
            packages.join(", "),
            short_time(hub.since),
            hub.hub_uuid.to_string(),
        ]);
    }
    table.print("No hub has, or had, a package that it affects.")
}
