//! `hub events`: follows the live stream of BLE events.

use std::collections::BTreeMap;

use clap::Subcommand;
use hub_client::{BleEvent, Client, operations};
use hub_protocol::{HubUuid, Timestamp};
use serde_json::Value;

use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::follow::Following;
use crate::global::Global;
use crate::lookup;
use crate::terminal::{note, print, print_json_line, short_time, value};
use crate::text::printable;

pub const EVENTS_HELP: &str = "\
Follows the live stream. A lost connection is resumed after the last event. Shows the values that
the device catalog decodes, else the payload.

Examples:
  hub events tail
  hub events tail --hub roof --min-rssi=-70
  hub events tail --quantity temperature
  hub events tail --since 2026-01-31T08:00:00Z --json | jq .measurements";

#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// Follow BLE events until Ctrl-C
    #[command(after_help = EVENTS_HELP)]
    Tail(TailOptions),
}

#[derive(Debug, clap::Args)]
pub struct TailOptions {
    /// Only what this hub receives: its uuid, label or host name
    #[arg(long)]
    pub hub: Option<String>,
    /// Only this device
    #[arg(long, value_name = "ID")]
    pub device: Option<i64>,
    /// Only addresses with this prefix
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Only signals of this strength or stronger, in dBm
    #[arg(long, value_name = "DBM", allow_negative_numbers = true)]
    pub min_rssi: Option<i16>,
    /// Only events with a value of this quantity
    #[arg(long)]
    pub quantity: Option<String>,
    /// Only events that the device catalog decodes
    #[arg(long)]
    pub decoded: bool,
    /// Start after this time instead of now
    #[arg(long, value_name = "TIME")]
    pub since: Option<Timestamp>,
    /// End after this number of events
    #[arg(short = 'n', long, value_name = "NUMBER")]
    pub count: Option<u64>,
    /// Show a frame only once if several hubs received it
    #[arg(long)]
    pub once: bool,
}

pub async fn run(global: &Global, command: EventsCommand) -> Result<(), Failure> {
    let EventsCommand::Tail(options) = command;
    let client = in_tenant(global).await?;
    let hub = match &options.hub {
        Some(named) => Some(lookup::hub(&client, named).await?),
        None => None,
    };
    let view = options.once.then_some("observations");
    let stream = client
        .follow(operations::BLE_EVENT_STREAM.call().query("view", view))
        .after(options.since);
    let mut following = Following::open(stream).await?;
    note("# following; Ctrl-C ends");
    let (mut seen, mut shown) = (0_u64, 0_u64);
    let mut names = Names {
        client: &client,
        models: BTreeMap::new(),
    };
    while options.count.is_none_or(|count| shown < count) {
        let Some(record) = following.next().await? else {
            break;
        };
        seen += 1;
        let event: BleEvent = serde_json::from_value(record.clone())?;
        if !is_wanted(&options, hub, &event) {
            continue;
        }
        shown += 1;
        match global.json {
            true => print_json_line(&record)?,
            false => print(&line(&event, &names.model(&event).await))?,
        }
    }
    note(&format!("# {shown} events shown of {seen}"));
    Ok(())
}

fn is_wanted(options: &TailOptions, hub: Option<HubUuid>, event: &BleEvent) -> bool {
    let has_address = |address: &String| {
        event
            .address
            .get(..address.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(address))
    };
    let measures = |quantity: &String| {
        event
            .measurements
            .iter()
            .any(|measured| measured.quantity == *quantity)
    };
    hub.is_none_or(|hub| event.hub_uuid == hub)
        && options
            .device
            .is_none_or(|device| event.device_instance_id == Some(device))
        && options.address.as_ref().is_none_or(has_address)
        && options
            .min_rssi
            .is_none_or(|least| event.rssi.is_some_and(|rssi| rssi >= least))
        && options.quantity.as_ref().is_none_or(measures)
        && (!options.decoded || !event.measurements.is_empty())
}

fn line(event: &BleEvent, model: &str) -> String {
    let rssi = event
        .rssi
        .map_or_else(|| "-".to_owned(), |rssi| format!("{rssi} dBm"));
    let name = [model, event.name.as_deref().unwrap_or_default()]
        .into_iter()
        .find(|name| !name.is_empty());
    let what = match event.measurements.is_empty() {
        true => payload(event),
        false => {
            let shown = event.measurements.iter().map(|measured| {
                let index = measured
                    .index
                    .map(|index| format!("_{index}"))
                    .unwrap_or_default();
                let unit = measured
                    .unit
                    .as_deref()
                    .map(|unit| format!(" {}", printable(unit)))
                    .unwrap_or_default();
                format!(
                    "{}{index} {}{unit}",
                    printable(&measured.quantity),
                    value(&measured.value)
                )
            });
            shown.collect::<Vec<_>>().join(", ")
        }
    };
    let time = short_time(event.received_at);
    let address = printable(&event.address);
    format!(
        "{time}  {address}  {rssi:>8}  {:<20}  {what}\n",
        printable(name.unwrap_or("-"))
    )
}

/// The payloads of an event without measurements.
fn payload(event: &BleEvent) -> String {
    let of_companies = event
        .manufacturer_data
        .iter()
        .map(|(id, data)| format!("manufacturer {id} {data}"));
    let of_services = event
        .service_data
        .iter()
        .map(|(id, data)| format!("service {id} {data}"));
    printable(
        &of_companies
            .chain(of_services)
            .collect::<Vec<_>>()
            .join(", "),
    )
}

/// The names of device models, each fetched once.
struct Names<'a> {
    client: &'a Client,
    models: BTreeMap<uuid::Uuid, String>,
}

impl Names<'_> {
    /// Empty if there is none, or if it cannot be fetched: the event is shown anyway.
    async fn model(&mut self, event: &BleEvent) -> String {
        let Some(uuid) = event.device_uuid else {
            return String::new();
        };
        if !self.models.contains_key(&uuid) {
            let found: Result<Vec<Value>, _> = self.client.list(operations::MODELS.call()).await;
            let pairs = found.unwrap_or_default().into_iter().filter_map(|model| {
                let text = |name: &str| model.get(name).and_then(Value::as_str).map(str::to_owned);
                Some((text("deviceUuid")?.parse().ok()?, text("name")?))
            });
            self.models.extend(pairs);
            self.models.entry(uuid).or_default();
        }
        self.models.get(&uuid).cloned().unwrap_or_default()
    }
}
