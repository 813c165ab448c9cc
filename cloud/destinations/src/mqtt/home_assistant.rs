//! Discovery documents of Home Assistant: what a device measures, and where to read it in the JSON
//! of an event.

use serde_json::{Map, Value, json};
use uuid::Uuid;

/// One sensor of a device.
pub struct Sensor {
    /// Where its document is published.
    pub topic: String,
    pub config: Value,
}

const MAX_SENSORS: usize = 64;

/// A device class with the units that Home Assistant allows for it, by quantity. It refuses the
/// sensor for any other.
const CLASSES: [(&str, &str, &[&str]); 33] = [
    ("ambient_temperature", "temperature", &["°C", "°F", "K"]),
    ("battery", "battery", &["%"]),
    ("co2", "carbon_dioxide", &["ppm"]),
    ("current", "current", &["A"]),
    ("dew_point", "temperature", &["°C", "°F", "K"]),
    ("distance", "distance", &["m"]),
    ("duration", "duration", &["s"]),
    ("energy", "energy", &["J"]),
    ("gas", "gas", &["m³"]),
    ("humidity", "humidity", &["%"]),
    ("illuminance", "illuminance", &["lx"]),
    ("mass", "weight", &["kg"]),
    ("moisture", "moisture", &["%"]),
    ("pm1", "pm1", &["µg/m³"]),
    ("pm10", "pm10", &["µg/m³"]),
    ("pm25", "pm25", &["µg/m³"]),
    ("pm4", "pm4", &["µg/m³"]),
    ("power", "power", &["W"]),
    ("pressure", "pressure", &["Pa"]),
    ("speed", "speed", &["m/s"]),
    ("temperature", "temperature", &["°C", "°F", "K"]),
    ("temperature_alarm_high", "temperature", &["°C", "°F", "K"]),
    ("temperature_alarm_low", "temperature", &["°C", "°F", "K"]),
    ("temperature_calibrated", "temperature", &["°C", "°F", "K"]),
    ("temperature_max", "temperature", &["°C", "°F", "K"]),
    ("temperature_min", "temperature", &["°C", "°F", "K"]),
    ("temperature_probe", "temperature", &["°C", "°F", "K"]),
    ("temperature_tip", "temperature", &["°C", "°F", "K"]),
    ("tvoc", "volatile_organic_compounds", &["µg/m³"]),
    ("voltage", "voltage", &["V"]),
    ("volume", "volume_storage", &["m³", "L"]),
    ("volume_stored", "volume_storage", &["m³", "L"]),
    ("water", "water", &["m³", "L"]),
];

/// A SenML unit as Home Assistant writes it.
fn unit_of(unit: &str) -> &str {
    match unit {
        "Cel" => "°C",
        "degF" => "°F",
        "%RH" | "%EL" => "%",
        "ug/m3" => "µg/m³",
        "m3" => "m³",
        "m3/s" => "m³/s",
        "l" => "L",
        "m/s2" => "m/s²",
        "Ohm" => "Ω",
        "deg" => "°",
        "beat/min" => "bpm",
        other => other,
    }
}

/// The sensors that an event shows, whose values are published under `state_topic`. None if the
/// event is of no device.
pub fn sensors(event: &Map<String, Value>, state_topic: &str, pipeline_uuid: Uuid) -> Vec<Sensor> {
    let Some(device) = device(event) else {
        return Vec::new();
    };
    let measurements = event
        .get("measurements")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let found = measurements.filter_map(|measurement| {
        let mut sensor = sensor(&device, event, measurement, state_topic)?;
        let config = sensor.config.as_object_mut()?;
        config.insert("origin".to_owned(), json!({"name": origin(pipeline_uuid)}));
        Some(sensor)
    });
    found.take(MAX_SENSORS).collect()
}

/// The device of an event, as it is in topics.
fn device(event: &Map<String, Value>) -> Option<String> {
    match event.get("deviceInstanceId")? {
        Value::Number(id) => Some(id.to_string()),
        Value::String(id)
            if id.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !id.is_empty() =>
        {
            Some(id.clone())
        }
        _ => None,
    }
}

/// Who announced a sensor.
fn origin(pipeline_uuid: Uuid) -> String {
    format!("hub-cloud pipeline {pipeline_uuid}")
}

/// The name that Home Assistant shows of a device.
pub fn rename(sensor: &mut Sensor, name: &str) {
    if let Some(shown) = sensor.config.pointer_mut("/device/name") {
        *shown = name.into();
    }
}

/// The topics of all documents, or of those of one device.
pub fn filter(device_instance_id: Option<i64>) -> String {
    match device_instance_id {
        Some(id) => format!("homeassistant/+/{}/+/config", node(&id.to_string())),
        None => "homeassistant/+/+/+/config".to_owned(),
    }
}

/// Whether a document is one of this pipeline's.
pub fn is_of(document: &[u8], pipeline_uuid: Uuid) -> bool {
    let document: Value = serde_json::from_slice(document).unwrap_or_default();
    document.pointer("/origin/name").and_then(Value::as_str) == Some(&origin(pipeline_uuid))
}

fn node(device: &str) -> String {
    format!("hub_cloud_{device}")
}

fn sensor(
    device: &str,
    event: &Map<String, Value>,
    measurement: &Value,
    state_topic: &str,
) -> Option<Sensor> {
    let quantity = measurement.get("quantity")?.as_str()?;
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if quantity.is_empty() || quantity.len() > 64 || !quantity.bytes().all(is_name) {
        return None;
    }
    let index = measurement.get("index").and_then(Value::as_u64);
    let kind = measurement
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or("MEASUREMENT");
    let value = measurement.get("value")?;
    let id = match index {
        Some(index) => format!("{quantity}_{index}"),
        None => quantity.to_owned(),
    };
    let node = node(device);
    let name = |text: &str| event.get(text).and_then(Value::as_str).map(str::to_owned);
    let device_name = name("deviceName")
        .or_else(|| name("name"))
        .unwrap_or_else(|| format!("Device {device}"));
    let selected = match index {
        Some(index) => {
            format!("selectattr('quantity','eq','{quantity}') | selectattr('index','eq',{index})")
        }
        None => format!("selectattr('quantity','eq','{quantity}')"),
    };
    let found = format!(
        "{{% set m = value_json.measurements | {selected} | map(attribute='value') | list %}}"
    );
    let mut config = json!({
        "name": readable(&id),
        "unique_id": format!("{node}_{id}"),
        "state_topic": state_topic,
        "device": {"identifiers": [node], "name": device_name},
    });
    let members = config.as_object_mut()?;
    let component = match value {
        Value::Bool(_) => {
            // An event without the value leaves the state as it is.
            let template = "{{ ('ON' if m[0] else 'OFF') if m else '' }}";
            members.insert(
                "value_template".to_owned(),
                format!("{found}{template}").into(),
            );
            "binary_sensor"
        }
        value => {
            let unit = measurement.get("unit").and_then(Value::as_str).map(unit_of);
            let is_of = |(name, _, units): &&(&str, &str, &[&str])| {
                *name == quantity && unit.is_some_and(|unit| units.contains(&unit))
            };
            let class = CLASSES.iter().find(is_of).map(|(_, class, _)| *class);
            if let Some(class) = class {
                members.insert("device_class".to_owned(), class.into());
            }
            if let (Some(unit), Value::Number(_)) = (unit, value) {
                members.insert("unit_of_measurement".to_owned(), unit.into());
            }
            let state_class = match (value, kind) {
                (Value::Number(_), "COUNTER") => Some("total_increasing"),
                // Home Assistant accepts only counters for these classes.
                (_, "MEASUREMENT") if matches!(class, Some("energy" | "gas" | "water")) => None,
                (Value::Number(_), "MEASUREMENT") => Some("measurement"),
                _ => None,
            };
            // An empty text leaves a number as it is, and would be the state of anything else.
            let otherwise = if state_class.is_some() || (unit.is_some() && value.is_number()) {
                "''"
            } else {
                "this.state"
            };
            let template = format!("{found}{{{{ m[0] if m else {otherwise} }}}}");
            members.insert("value_template".to_owned(), template.into());
            if let Some(class) = state_class {
                members.insert("state_class".to_owned(), class.into());
            }
            "sensor"
        }
    };
    Some(Sensor {
        topic: format!("homeassistant/{component}/{node}/{id}/config"),
        config,
    })
}

/// `soil_moisture_2` as people write it: `Soil moisture 2`.
fn readable(id: &str) -> String {
    let text = id.replace('_', " ");
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}
