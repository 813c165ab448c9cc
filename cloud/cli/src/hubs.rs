//! `hub hubs`: lists, watches, blocks, readmits, moves and releases hubs.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Subcommand;
use hub_client::{Client, Hub, HubBlock, HubDetail, HubLog, now, operations};
use hub_protocol::{HubUuid, Timestamp};
use serde_json::{Value, json};

use crate::connect::{in_tenant, without_tenant};
use crate::failure::Failure;
use crate::follow::Following;
use crate::global::{Consent, Global, duration};
use crate::hub_moves::{self, MoveOptions};
use crate::lookup;
use crate::terminal::{
    Interrupt, Table, ago, confirm, note, print, print_json, print_json_line, short_time, state,
};
use crate::text::printable;

pub const HUBS_HELP: &str = "\
A hub is named by its uuid, or by its label or host name if only one hub has it.

Examples:
  hub hubs list --status offline
  hub hubs show roof
  hub hubs watch
  hub hubs logs roof -f
  hub hubs move roof --to https://hubs.new.example
  hub hubs release roof
  hub hubs block 0198c5d1-…          (platform administrators)";

#[derive(Debug, Subcommand)]
pub enum HubsCommand {
    /// List hubs
    List {
        /// Only hubs with this status: online, offline or blocked
        #[arg(long, value_name = "STATUS", value_parser = ["online", "offline", "blocked"])]
        status: Option<String>,
    },
    /// Show a hub with its adapters
    Show { hub: String },
    /// Show hubs and their changes, until Ctrl-C
    Watch {
        /// Seconds between two requests
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
        every: u64,
    },
    /// Show the log of a hub
    Logs {
        hub: String,
        /// Follow new records, until Ctrl-C
        #[arg(short, long)]
        follow: bool,
        /// Number of records to show first
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(0..=1000))]
        lines: u16,
    },
    /// Block a hub and revoke its credentials (platform administrators)
    Block {
        hub: HubUuid,
        #[command(flatten)]
        consent: Consent,
    },
    /// Allow a blocked hub to claim again (platform administrators)
    Unblock { hub: HubUuid },
    /// Readmit a hub that was offline for too long, with its current credentials
    Readmit {
        hub: String,
        /// Time in which it can reconnect, such as 12h or 30d
        #[arg(long, default_value = "7d", value_parser = duration)]
        valid: u64,
    },
    /// Send a hub to another service of this software, where it claims by itself
    Move(MoveOptions),
    /// Release a hub: revoke its credentials, so that its hardware can be claimed again
    Release {
        hub: String,
        #[command(flatten)]
        consent: Consent,
    },
}

const NO_HUBS: &str = "There are no hubs yet: hub codes create --qr";

pub async fn run(global: &Global, command: HubsCommand) -> Result<(), Failure> {
    match command {
        HubsCommand::List { status } => list(global, status.as_deref()).await,
        HubsCommand::Show { hub } => show(global, &hub).await,
        HubsCommand::Watch { every } => watch(global, Duration::from_secs(every)).await,
        HubsCommand::Logs { hub, follow, lines } => {
            logs(global, &hub, follow, usize::from(lines)).await
        }
        HubsCommand::Block { hub, consent } => block(global, hub, consent).await,
        HubsCommand::Unblock { hub } => {
            let client = without_tenant(global).await?;
            let block: Value = client
                .call(operations::UNBLOCK_HUB.call().path("hub_uuid", hub))
                .await?;
            done(
                global,
                &block,
                &format!("The hub {hub} can claim again with a new code."),
            )
        }
        HubsCommand::Readmit { hub, valid } => readmit(global, &hub, valid).await,
        HubsCommand::Move(options) => hub_moves::run(global, &options).await,
        HubsCommand::Release { hub, consent } => release(global, &hub, consent).await,
    }
}

fn done(global: &Global, answer: &Value, message: &str) -> Result<(), Failure> {
    match global.json {
        true => print_json(answer),
        false => {
            note(message);
            Ok(())
        }
    }
}

async fn list(global: &Global, status: Option<&str>) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    let mut records: Vec<Value> = client.list(operations::HUBS.call()).await?;
    if let Some(status) = status {
        records.retain(|hub| {
            hub.get("status")
                .and_then(Value::as_str)
                .is_some_and(|is| is.eq_ignore_ascii_case(status))
        });
    }
    if global.json {
        return print_json(&Value::Array(records));
    }
    let now = now();
    let mut table = Table::new(&["NAME", "STATUS", "LAST SEEN", "VERSION", "HUB"]);
    for record in records {
        table.row(row(&serde_json::from_value(record)?, now));
    }
    table.print(NO_HUBS)
}

fn row(hub: &Hub, now: Timestamp) -> Vec<String> {
    let version = printable(hub.agent_version.as_deref().unwrap_or("-"));
    vec![
        printable(hub.label()),
        state(&hub.status),
        ago(hub.last_seen_at, now),
        version,
        hub.hub_uuid.to_string(),
    ]
}

async fn show(global: &Global, named: &str) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    let uuid = lookup::hub(&client, named).await?;
    let record: Value = client
        .call(operations::HUB.call().path("hubUuid", uuid))
        .await?;
    if global.json {
        return print_json(&record);
    }
    let HubDetail {
        hub,
        description,
        blocked_at,
        adapters,
    } = serde_json::from_value(record)?;
    let now = now();
    let mut text = format!("{}  {}\n", printable(hub.label()), state(&hub.status));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<12}{value}\n"));
    line("hub", hub.hub_uuid.to_string());
    line("hardware", printable(&hub.device_instance_id));
    if let Some(hostname) = &hub.hostname {
        line("host name", printable(hostname));
    }
    if let Some(description) = &description {
        line("about", printable(description));
    }
    line(
        "version",
        printable(hub.agent_version.as_deref().unwrap_or("unknown")),
    );
    line("last seen", ago(hub.last_seen_at, now));
    line("telemetry", ago(hub.last_telemetry_at, now));
    line("claimed", short_time(hub.claimed_at));
    if let Some(blocked_at) = blocked_at {
        line("blocked", short_time(blocked_at));
    }
    if let Some(expires_at) = hub.refresh_expires_at {
        line("comes back", format!("until {}", short_time(expires_at)));
    }
    if hub.suspected_clone {
        line("warning", "two machines use its credentials".to_owned());
    }
    if hub.flooding {
        line(
            "warning",
            "it uploads far more than its share of the limit".to_owned(),
        );
    }
    for adapter in adapters {
        let power = if adapter.powered { "on" } else { "off" };
        let scanning = if adapter.discovering == Some(true) {
            ", scanning"
        } else {
            ""
        };
        let role = adapter
            .role
            .map(|role| format!(", {}", printable(&role).to_lowercase()))
            .unwrap_or_default();
        let address = printable(&adapter.address);
        line(
            "adapter",
            format!(
                "{} {address} {power}{scanning}{role}",
                printable(&adapter.name)
            ),
        );
    }
    print(&text)
}

/// Shows the hubs, then each change, until Ctrl-C.
async fn watch(global: &Global, every: Duration) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    let mut interrupt = Interrupt::listen();
    tokio::select! {
        ended = changes(global, &client, every) => ended,
        () = interrupt.pressed() => Ok(()),
    }
}

async fn changes(global: &Global, client: &Client, every: Duration) -> Result<(), Failure> {
    let mut known: BTreeMap<HubUuid, String> = BTreeMap::new();
    let mut is_first = true;
    let mut lost_at: Option<Timestamp> = None;
    loop {
        let records: Vec<Value> = match client.list(operations::HUBS.call()).await {
            Ok(records) => records,
            // A call that never succeeded is wrong, so its failure is final.
            Err(error) if is_first || !error.is_temporary() => return Err(error.into()),
            Err(error) => {
                if lost_at.is_none() {
                    lost_at = Some(now());
                    note(&format!("# {}", printable(&error.to_string())));
                }
                tokio::time::sleep(every).await;
                continue;
            }
        };
        if let Some(lost_at) = lost_at.take() {
            let seconds = now().as_secs() - lost_at.as_secs();
            note(&format!(
                "# connected again after {seconds} s; changes in between are shown as one"
            ));
        }
        let mut seen = BTreeMap::new();
        for record in records {
            let hub: Hub = serde_json::from_value(record.clone())?;
            // Only changes of these are shown; the time of the last upload changes all the time.
            let shown = format!("{} {} {:?}", hub.label(), hub.status, hub.agent_version);
            if known.get(&hub.hub_uuid) != Some(&shown) {
                match global.json {
                    true => print_json_line(&record)?,
                    false => print(&format!(
                        "{}  {}\n",
                        short_time(now()),
                        row(&hub, now()).join("  ")
                    ))?,
                }
            }
            seen.insert(hub.hub_uuid, shown);
        }
        for uuid in known.keys().filter(|uuid| !seen.contains_key(uuid)) {
            match global.json {
                true => print_json_line(&json!({"hubUuid": uuid, "status": "RELEASED"}))?,
                false => print(&format!("{}  {uuid}  RELEASED\n", short_time(now())))?,
            }
        }
        if is_first && seen.is_empty() {
            note(NO_HUBS);
        }
        (known, is_first) = (seen, false);
        tokio::time::sleep(every).await;
    }
}

async fn readmit(global: &Global, named: &str, valid_for_secs: u64) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    let uuid = lookup::hub(&client, named).await?;
    let call = operations::READMIT_HUB
        .call()
        .path("hubUuid", uuid)
        .body(json!({"validForSeconds": valid_for_secs}));
    let hub: Value = client.call(call).await?;
    done(
        global,
        &hub,
        &format!(
            "The hub {uuid} can reconnect with its current credentials; it tries every ten minutes."
        ),
    )
}

async fn logs(global: &Global, named: &str, follow: bool, lines: usize) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    let uuid = lookup::hub(&client, named).await?;
    let mut records: Vec<Value> = match lines {
        0 => Vec::new(),
        _ => {
            client
                .first(operations::HUB_LOGS.call().path("hubUuid", uuid), lines)
                .await?
        }
    };
    records.reverse();
    let latest = records
        .last()
        .and_then(|record| record.get("receivedAt"))
        .and_then(Value::as_str);
    let latest: Option<Timestamp> = latest.and_then(|time| time.parse().ok());
    if !follow && global.json {
        return print_json(&Value::Array(records));
    }
    for record in &records {
        log_line(global, record)?;
    }
    if !follow {
        if records.is_empty() {
            note("The hub has sent no log yet.");
        }
        return Ok(());
    }
    // After the last record that was listed, so that no record is missed.
    let stream = client
        .follow(operations::HUB_LOG_STREAM.call().path("hubUuid", uuid))
        .after(latest);
    let mut following = Following::open(stream).await?;
    while let Some(record) = following.next().await? {
        log_line(global, &record)?;
    }
    Ok(())
}

fn log_line(global: &Global, record: &Value) -> Result<(), Failure> {
    if global.json {
        return print_json_line(record);
    }
    let log: HubLog = serde_json::from_value(record.clone())?;
    // Agents send a list of entries; other data is shown as JSON.
    let lines = log
        .data
        .get("entries")
        .or(log.data.get("logs"))
        .and_then(Value::as_array);
    let entries = lines.cloned().unwrap_or_else(|| vec![log.data.clone()]);
    for entry in entries {
        let member = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| entry.get(*name))
                .and_then(Value::as_str)
        };
        let time = member(&["time", "timestamp", "at"])
            .map_or_else(|| short_time(log.received_at), printable);
        let text = match (member(&["level"]), member(&["message"])) {
            (level, Some(message)) => format!(
                "{:<5} {}",
                printable(level.unwrap_or("")),
                printable(message)
            ),
            (_, None) => printable(&entry.to_string()),
        };
        print(&format!("{time}  {text}\n"))?;
    }
    Ok(())
}

async fn block(global: &Global, hub: HubUuid, consent: Consent) -> Result<(), Failure> {
    let client = without_tenant(global).await?;
    let what = format!(
        "The hub {hub} will be blocked: its credentials are revoked immediately, it can no longer \
         upload, and it can claim again only after `hub hubs unblock`, with a new code."
    );
    confirm(&what, consent.yes)?;
    let answer: Value = client
        .call(operations::BLOCK_HUB.call().path("hub_uuid", hub))
        .await?;
    let block: HubBlock = serde_json::from_value(answer.clone())?;
    let since = block.blocked_at.map(short_time).unwrap_or_default();
    done(
        global,
        &answer,
        &format!("The hub {hub} is blocked since {since}."),
    )
}

async fn release(global: &Global, named: &str, consent: Consent) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    let uuid = lookup::hub(&client, named).await?;
    let detail: HubDetail = client
        .call(operations::HUB.call().path("hubUuid", uuid))
        .await?;
    let what = format!(
        "The hub {} ({uuid}) will be released: its credentials are revoked immediately, its open \
         jobs are cancelled, and anyone with a claim code can claim its hardware. Its data is \
         kept for the retention time. This cannot be undone.",
        printable(detail.hub.label())
    );
    confirm(&what, consent.yes)?;
    client
        .run(operations::RELEASE_HUB.call().path("hubUuid", uuid))
        .await?;
    done(
        global,
        &json!({"hubUuid": uuid}),
        &format!("The hub {uuid} is released."),
    )
}
