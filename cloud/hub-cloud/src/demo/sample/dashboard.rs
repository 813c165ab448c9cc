//! The dashboard of the sample, which the overview shows.

use hub_client::{Client, Operation};
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::Failure;
use super::sensors::SENSORS;
use super::{DEVICES, Device};

/// What is shown, by the names of the sensors.
const TILES: [(&str, &str, Option<&str>); 8] = [
    ("VALUE", "Cold store", Some("temperature")),
    ("VALUE", "Freezer", Some("temperature")),
    ("VALUE", "Office", Some("temperature")),
    ("VALUE", "Hall", Some("humidity")),
    ("VALUE", "Dock door", Some("door")),
    ("STATE", "Archive", None),
    ("CHART", "Cold store", Some("temperature")),
    ("CHART", "Office", Some("temperature")),
];

static DASHBOARDS: Operation = Operation::new("GET", "/tenant/dashboards");
static CREATE_DASHBOARD: Operation = Operation::new("POST", "/tenant/dashboards");

#[derive(Deserialize)]
struct Existing {}

pub async fn make(client: &Client) -> Result<(), Failure> {
    let existing: Vec<Existing> = client.list(DASHBOARDS.call()).await?;
    if !existing.is_empty() {
        return Ok(());
    }
    let devices: Vec<Device> = client.list(DEVICES.call()).await?;
    let id_of = |name: &str| {
        let sensor = SENSORS.iter().find(|sensor| sensor.name == name)?;
        let is_it = |device: &&Device| device.address.as_deref() == Some(sensor.address);
        Some(devices.iter().find(is_it)?.device_instance_id)
    };
    let tile = |(kind, name, quantity)| {
        let id = id_of(name)?;
        Some(json!({"kind": kind, "deviceInstanceId": id, "quantity": quantity}))
    };
    let tiles: Vec<Value> = TILES.into_iter().filter_map(tile).collect();
    let body = json!({"name": "Cold rooms and doors", "onOverview": true, "tiles": tiles});
    client.run(CREATE_DASHBOARD.call().body(body)).await?;
    Ok(())
}
