//! The options of `hub pipelines`.

use std::path::PathBuf;

use clap::Subcommand;

use crate::global::Consent;

pub const PIPELINES_HELP: &str = "\
A file has one pipeline or a list of them, in the form of the API (docs/api/pipelines.md). A
pipeline is found by its name. Changes are shown first; a second run changes nothing. Secrets stay
out of the file: ${HUB_SECRET_NAME} in `destination.auth` is that environment variable. An absent
secret keeps the stored one.

Examples:
  hub pipelines list
  hub pipelines apply -f readings.json
  hub pipelines apply -f readings.json --dry-run
  HUB_SECRET_PLANT=... hub pipelines apply -f pipelines.json --yes
  hub pipelines delete readings";

#[derive(Debug, Subcommand)]
pub enum PipelinesCommand {
    /// List pipelines with their status
    List,
    /// Create or change the pipelines of a file
    #[command(after_help = PIPELINES_HELP)]
    Apply {
        /// File with one pipeline or a list; `-` for standard input
        #[arg(short, long, value_name = "FILE")]
        file: PathBuf,
        /// Show the changes without applying them
        #[arg(long)]
        dry_run: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Delete a pipeline: its uuid or its name
    Delete {
        pipeline: String,
        #[command(flatten)]
        consent: Consent,
    },
}
