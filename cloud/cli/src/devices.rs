//! `hub devices`: lists devices and shows what they last measured.

use clap::Subcommand;
use hub_adverts::quantity::{readable, shown_at};
use hub_client::{Device, now, operations};
use serde_json::Value;

use crate::connect::in_tenant;
use crate::failure::Failure;
use crate::global::Global;
use crate::lookup;
use crate::terminal::{Table, ago, print, print_json, state, value};
use crate::text::printable;

#[derive(Debug, Subcommand)]
pub enum DevicesCommand {
    /// List devices
    List {
        /// Only devices that are online
        #[arg(long, conflicts_with = "offline")]
        online: bool,
        /// Only devices that are offline
        #[arg(long)]
        offline: bool,
        /// Part of the name, the address or the serial number
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// Only devices whose nearest hub is this one: its uuid, label or host name
        #[arg(long)]
        hub: Option<String>,
    },
    /// Show a device with its values
    Show { device: i64 },
}

pub async fn run(global: &Global, command: DevicesCommand) -> Result<(), Failure> {
    let client = in_tenant(global).await?;
    match command {
        DevicesCommand::List {
            online,
            offline,
            search,
            hub,
        } => {
            let hub = match hub {
                Some(named) => Some(lookup::hub(&client, &named).await?),
                None => None,
            };
            let is_online = (online || offline).then_some(online);
            let call = operations::DEVICES
                .call()
                .query("online", is_online)
                .query("q", search)
                .query("hubUuid", hub);
            let records: Vec<Value> = client.list(call).await?;
            if global.json {
                return print_json(&Value::Array(records));
            }
            let now = now();
            let mut table = Table::new(&["ID", "NAME", "MODEL", "STATUS", "LAST SEEN", "VALUES"]);
            for record in records {
                let device: Device = serde_json::from_value(record)?;
                let values: Vec<String> = values(&device)
                    .into_iter()
                    .take(3)
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect();
                table.row(vec![
                    device.device_instance_id.to_string(),
                    printable(&device.display_name),
                    printable(&device.device_name),
                    state(if device.online { "online" } else { "offline" }),
                    ago(device.last_seen_at, now),
                    values.join(", "),
                ]);
            }
            table.print("There are no devices. Device models with automatic registration add them.")
        }
        DevicesCommand::Show { device } => {
            let record: Value = client
                .call(
                    operations::DEVICE_BY_ID
                        .call()
                        .path("deviceInstanceId", device),
                )
                .await?;
            if global.json {
                return print_json(&record);
            }
            let device: Device = serde_json::from_value(record)?;
            let name = printable(&device.display_name);
            let online = state(if device.online { "online" } else { "offline" });
            let mut text = format!("{name}  {online}\n");
            let mut line =
                |name: &str, value: &str| text.push_str(&format!("  {name:<18}{value}\n"));
            line("device", &device.device_instance_id.to_string());
            line("model", &printable(&device.device_name));
            line(
                "address",
                &printable(device.address.as_deref().unwrap_or("changes")),
            );
            line("status", &state(&device.activation_status));
            line("last seen", &ago(device.last_seen_at, now()));
            if let Some(nearest) = &device.nearest_hub {
                let rssi = nearest
                    .rssi_dbm
                    .map(|rssi| format!(" {rssi} dBm"))
                    .unwrap_or_default();
                line("nearest hub", &format!("{}{rssi}", nearest.hub_uuid));
            }
            for (quantity, shown) in values(&device) {
                line(&quantity, &shown);
            }
            print(&text)
        }
    }
}

/// The last measured values with their units, those first that people look for.
fn values(device: &Device) -> Vec<(String, String)> {
    let shown = |state: &Value| {
        let measured = state.get("value").unwrap_or(state);
        let unit = state.get("unit").and_then(Value::as_str);
        match (measured.as_f64(), unit) {
            (Some(number), Some(unit)) => {
                let (number, unit) = readable(number, unit);
                format!("{number} {}", printable(unit))
            }
            _ => value(measured),
        }
    };
    let mut values: Vec<(&String, &Value)> = device.state.iter().collect();
    values.sort_by_key(|(name, _)| shown_at(name.split('[').next().unwrap_or_default()));
    values
        .into_iter()
        .map(|(name, state)| (printable(name), shown(state)))
        .collect()
}
