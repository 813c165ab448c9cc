//! `hub dependency-track`: where the lists of packages and the releases that hubs run are sent.

use clap::Subcommand;
use hub_client::{DependencyTrack, operations};
use serde_json::{Value, json};

use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::global::Global;
use crate::terminal::{Table, note, print_json, secret, short_time};
use crate::text::printable;

pub const DEPENDENCY_TRACK_HELP: &str = "Examples:
  hub dependency-track show
  hub dependency-track set --url https://dtrack.example.com < api-key.txt
  hub dependency-track remove";

#[derive(Debug, Subcommand)]
pub enum DependencyTrackCommand {
    /// Show the server, and how far it has what hubs run
    #[command(after_help = DEPENDENCY_TRACK_HELP)]
    Show,
    /// Set the server; its API key is typed, or the first line of standard input
    #[command(after_help = DEPENDENCY_TRACK_HELP)]
    Set {
        /// The URL of its API server
        #[arg(long)]
        url: String,
        /// The name of the project there
        #[arg(long, value_name = "NAME", default_value = "hubs")]
        project: String,
    },
    /// Send nothing any more
    #[command(after_help = DEPENDENCY_TRACK_HELP)]
    Remove,
}

pub async fn run(global: &Global, command: DependencyTrackCommand) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    match command {
        DependencyTrackCommand::Show => {
            let record: Value = client.call(operations::DEPENDENCY_TRACK.call()).await?;
            show(global, record)
        }
        DependencyTrackCommand::Set { url, project } => {
            let key = secret("API key", false)?;
            let body = json!({"url": url, "project": project, "apiKey": key});
            let call = operations::SET_DEPENDENCY_TRACK.call().body(body);
            show(global, client.call(call).await?)
        }
        DependencyTrackCommand::Remove => {
            client
                .run(operations::REMOVE_DEPENDENCY_TRACK.call())
                .await?;
            note("Nothing is sent any more. The server keeps what it has.");
            Ok(())
        }
    }
}

fn show(global: &Global, record: Value) -> Result<(), Failure> {
    if global.json {
        return print_json(&record);
    }
    let server: DependencyTrack = serde_json::from_value(record)?;
    let mut table = Table::new(&[
        "SERVER",
        "PROJECT",
        "WHAT",
        "SENT",
        "REFUSED",
        "WAITING",
        "LAST SENT",
    ]);
    if let Some(url) = &server.url {
        let project = server.project.as_deref().unwrap_or("-");
        let of = &server.releases;
        let lists = [server.sent, server.refused, server.waiting];
        let releases = [of.sent, of.refused, of.waiting];
        for (what, project, counts) in [("lists", project, lists), ("releases", "by app", releases)]
        {
            let [sent, refused, waiting] = counts.map(|count| count.to_string());
            table.row(vec![
                printable(url),
                printable(project),
                what.to_owned(),
                sent,
                refused,
                waiting,
                server.last_sent_at.map_or("-".to_owned(), short_time),
            ]);
        }
    }
    table.print("No server is set: hub dependency-track set --url URL")?;
    if let (Some(error), Some(at)) = (&server.last_error, server.last_error_at) {
        note(&format!("{}: {}", short_time(at), printable(error)));
    }
    if let Some(at) = server.retry_at {
        note(&format!("The server is tried again at {}.", short_time(at)));
    }
    Ok(())
}
