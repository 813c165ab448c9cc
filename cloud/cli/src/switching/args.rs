//! The options of `hub export tenant` and `hub import tenant`.

use std::path::PathBuf;

use hub_protocol::Timestamp;

use crate::global::Consent;

pub const EXPORT_TENANT_HELP: &str = "\
Writes configuration, releases of apps, devices, hubs, people, history and audit log. manifest.json
is written last; it has the SHA-256 of each file, and states what is left out and why. After an
interruption run the same command again: it continues. Only you can read the folder; it has data of
people, and no secrets. The role OWNER can read all parts.

Examples:
  hub export tenant --out warehouse
  hub export tenant --out warehouse --since 2026-01-01T00:00:00Z --skip telemetry --skip logs";

#[derive(Debug, clap::Args)]
pub struct ExportTenantOptions {
    /// Folder to write to: a new one, or one of an interrupted export
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// History, telemetry, logs and audit log from this time on [default: from their beginning]
    #[arg(long, value_name = "TIME")]
    pub since: Option<Timestamp>,
    /// Leave out a part of the history, or the files of releases
    #[arg(long, value_name = "PART", value_parser = ["events", "values", "telemetry", "logs", "jobs", "audit", "files"])]
    pub skip: Vec<String>,
}

pub const IMPORT_TENANT_HELP: &str = "\
Checks the digests of all files, shows what it will create, asks, and creates it in your tenant.
What is there already stays as it is. Releases of apps are published again with their signatures.
The journal beside the folder has the new ids: an interrupted import continues, and nothing is
created twice. Ends with a list of what needs a person, and of what the service refused.

With --claim-codes each hub gets a claim code, in a file beside the folder. When the hubs have
claimed, run the import again: it places them on their floor plans and sets what names them.

Events, values, telemetry, logs and the audit log stay in the folder: no service takes them in.

Examples:
  hub import tenant warehouse --dry-run
  hub import tenant warehouse --claim-codes --yes";

#[derive(Debug, clap::Args)]
pub struct ImportTenantOptions {
    /// Folder of `hub export tenant`
    pub directory: PathBuf,
    /// Show what would be created without creating it
    #[arg(long)]
    pub dry_run: bool,
    /// Create a claim code for each hub that has not claimed here, valid for 30 days
    #[arg(long)]
    pub claim_codes: bool,
    #[command(flatten)]
    pub consent: Consent,
}
