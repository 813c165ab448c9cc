//! `hub history`: shows the files of older BLE events.

use clap::Subcommand;
use hub_client::{History, HistoryFile, operations};
use hub_protocol::Timestamp;
use serde_json::Value;

use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::global::Global;
use crate::terminal::{Table, note, print, print_json, short_time};
use crate::text::printable;

pub const HISTORY_HELP: &str = "Examples:
  hub history show
  hub history files --from 2026-06-01T00:00:00Z
  hub history files --json | jq -r '.[].url' | xargs -n1 curl -sO";

#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// Show how much is in files, and in which folder
    #[command(after_help = HISTORY_HELP)]
    Show,
    /// List the files, which any reader of Parquet reads, oldest first
    #[command(after_help = HISTORY_HELP)]
    Files {
        /// Only files with events received at this time or later
        #[arg(long, value_name = "TIME")]
        from: Option<Timestamp>,
        /// Only files with events received before this time
        #[arg(long, value_name = "TIME")]
        to: Option<Timestamp>,
    },
}

pub async fn run(global: &Global, command: HistoryCommand) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    match command {
        HistoryCommand::Show => {
            let shown: Value = client.call(operations::HISTORY.call()).await?;
            if global.json {
                return print_json(&shown);
            }
            let history: History = serde_json::from_value(shown)?;
            print(&format!(
                "files   {} with {} events, {} bytes\nfolder  {}\n",
                history.files,
                history.events,
                history.file_bytes,
                printable(&history.location)
            ))?;
            note(&match (history.closed_to, history.after_secs) {
                (Some(closed_to), _) => format!(
                    "Events received before {} are in files; hub history files lists them.",
                    short_time(closed_to)
                ),
                (None, Some(secs)) => format!(
                    "A day of events moves to files {} hours after its end.",
                    secs / 3600
                ),
                (None, None) => "The service keeps all events in its database.".to_owned(),
            });
            Ok(())
        }
        HistoryCommand::Files { from, to } => {
            let call = operations::HISTORY_FILES
                .call()
                .query("from", from)
                .query("to", to);
            let records: Vec<Value> = client.list(call).await?;
            if global.json {
                return print_json(&Value::Array(records));
            }
            let mut table = Table::new(&["FROM", "TO", "EVENTS", "BYTES", "PATH"]);
            for record in records {
                let file: HistoryFile = serde_json::from_value(record)?;
                table.row(vec![
                    short_time(file.from),
                    short_time(file.to),
                    file.events.to_string(),
                    file.file_bytes.to_string(),
                    printable(&file.path),
                ]);
            }
            table.print("No events of this time are in files: hub history show")
        }
    }
}
