//! The options of `hub export` and `hub import`.

use std::path::PathBuf;

use clap::Subcommand;

use crate::global::Consent;
use crate::switching::args::{
    EXPORT_TENANT_HELP, ExportTenantOptions, IMPORT_TENANT_HELP, ImportTenantOptions,
};

pub const EXPORT_HELP: &str = "\
Writes apps/, models/, actions/, pipelines/, bundles/ and route.json in a stable order, for
version control: without secrets, ids and times. Files name each other's objects by their names. A
secret of a pipeline becomes ${HUB_SECRET_...}, the environment variable that `hub import` reads.
Hubs, devices and the files of releases are not written; `hub export tenant` writes all that a
tenant has.

Examples:
  hub export hub-config && git -C hub-config diff
  hub export tenant --out warehouse";

#[derive(Debug, clap::Args)]
#[command(subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub struct ExportOptions {
    #[command(subcommand)]
    pub command: Option<ExportCommand>,
    /// Directory: a new one, or one of an earlier export, whose files are replaced
    #[arg(required = true)]
    pub directory: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum ExportCommand {
    /// Write all that a tenant has, to take it to another service
    #[command(after_help = EXPORT_TENANT_HELP)]
    Tenant(ExportTenantOptions),
}

pub const IMPORT_HELP: &str = "\
Shows the changes, then asks. A second import changes nothing. Objects without a file are kept,
except for parts of a device model: its identifiers, protocols, versions, forms and manuals are
replaced by those of the file. A published bundle does not change: archive it first, and the import
creates it again. `hub import tenant` takes in what `hub export tenant` wrote.

Examples:
  hub import hub-config --dry-run
  hub import hub-config --tenant Staging --yes
  hub import tenant warehouse --dry-run";

#[derive(Debug, clap::Args)]
#[command(subcommand_negates_reqs = true, disable_help_subcommand = true)]
pub struct ImportOptions {
    #[command(subcommand)]
    pub command: Option<ImportCommand>,
    /// Directory of an export
    #[arg(required = true)]
    pub directory: Option<PathBuf>,
    /// Show the changes without applying them
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub consent: Consent,
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    /// Create what another tenant had, here or at another service
    #[command(after_help = IMPORT_TENANT_HELP)]
    Tenant(ImportTenantOptions),
}
