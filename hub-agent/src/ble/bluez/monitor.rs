//! Passive scanning: the advertisement monitors on which bluetoothd calls back, and the answers to
//! its calls. BlueZ has no monitor for all advertisements, so the monitors select the first bytes
//! of what nearly every advertiser sends.

use std::collections::HashMap;

use super::bus::Bus;
use super::names::OBJECT_MANAGER;
use super::wire::{Message, Value};

const MONITOR: &str = "org.bluez.AdvertisementMonitor1";
/// The path of all monitors; each adapter's are under its own name.
const ROOT: &str = "/hub_agent/monitors";
const UNKNOWN_METHOD: &str = "org.freedesktop.DBus.Error.UnknownMethod";

/// Types of advertising data, as assigned by Bluetooth.
const FLAGS: u8 = 0x01;
const SERVICE_DATA_16: u8 = 0x16;
const MANUFACTURER: u8 = 0xff;

/// The patterns: the type of data and its first bytes. Each is a monitor of its own: bluetoothd
/// 5.66 corrupts its memory and crashes on a monitor with several patterns. The kernel accepts 32
/// monitors per adapter.
const PATTERNS: [(u8, &[u8]); 32] = [
    // Flags are sent by nearly every advertiser, in these combinations.
    (FLAGS, &[0x06]),
    (FLAGS, &[0x04]),
    (FLAGS, &[0x02]),
    (FLAGS, &[0x05]),
    (FLAGS, &[0x01]),
    (FLAGS, &[0x00]),
    (FLAGS, &[0x1a]),
    (FLAGS, &[0x1b]),
    (FLAGS, &[0x18]),
    (FLAGS, &[0x0a]),
    (FLAGS, &[0x0e]),
    (FLAGS, &[0x12]),
    // Beacons that send no flags, by their formats.
    (SERVICE_DATA_16, &[0xaa, 0xfe]),
    (SERVICE_DATA_16, &[0xd2, 0xfc]),
    (SERVICE_DATA_16, &[0x95, 0xfe]),
    (SERVICE_DATA_16, &[0x1a, 0x18]),
    (SERVICE_DATA_16, &[0x1c, 0x18]),
    (SERVICE_DATA_16, &[0xcd, 0xfd]),
    (SERVICE_DATA_16, &[0x6f, 0xfd]),
    (SERVICE_DATA_16, &[0x3d, 0xfd]),
    (SERVICE_DATA_16, &[0xf3, 0xfe]),
    (SERVICE_DATA_16, &[0x2c, 0xfe]),
    (MANUFACTURER, &[0x4c, 0x00]),
    (MANUFACTURER, &[0x06, 0x00]),
    (MANUFACTURER, &[0x99, 0x04]),
    (MANUFACTURER, &[0x75, 0x00]),
    (MANUFACTURER, &[0x59, 0x00]),
    (MANUFACTURER, &[0x0d, 0x00]),
    (MANUFACTURER, &[0xe5, 0x02]),
    (MANUFACTURER, &[0xa9, 0x0b]),
    (MANUFACTURER, &[0x69, 0x09]),
    (MANUFACTURER, &[0xff, 0xff]),
];

/// The state of an adapter's monitors at bluetoothd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Monitors {
    pub active: usize,
    pub released: usize,
}

impl Monitors {
    /// bluetoothd has accepted all of them.
    pub fn all_active(self) -> bool {
        self.active == PATTERNS.len() && self.released == 0
    }
}

/// The monitors of every adapter, by the path under which they are registered.
#[derive(Debug, Default)]
pub struct Registry(HashMap<String, Monitors>);

/// The path of an adapter's monitors.
pub fn root_of(adapter_path: &str) -> String {
    format!(
        "{ROOT}/{}",
        adapter_path.rsplit('/').next().unwrap_or_default()
    )
}

impl Registry {
    pub fn state(&self, root: &str) -> Monitors {
        self.0.get(root).copied().unwrap_or_default()
    }

    /// The monitors were unregistered: their state is no longer valid.
    pub fn forget(&mut self, root: &str) {
        self.0.remove(root);
    }

    /// Answers a call of bluetoothd. True if the state of a monitor changed.
    pub fn answer(&mut self, bus: &Bus, call: &Message<'_>) -> bool {
        match (call.interface, call.member) {
            (OBJECT_MANAGER, "GetManagedObjects") if call.path.starts_with(ROOT) => {
                let paths = paths_below(call.path);
                bus.reply(call, Ok(("a{oa{sa{sv}}}", &[objects(&paths)])));
                false
            }
            (MONITOR, member @ ("Activate" | "Release")) => {
                bus.reply(call, Ok(("", &[])));
                let root = call.path.rsplit_once('/').map_or("", |(root, _)| root);
                if !root.starts_with(ROOT) {
                    return false;
                }
                let state = self.0.entry(root.to_owned()).or_default();
                if member == "Activate" {
                    state.active += 1;
                } else {
                    state.released += 1;
                }
                true
            }
            (MONITOR, "DeviceFound" | "DeviceLost") => {
                bus.reply(call, Ok(("", &[])));
                false
            }
            _ => {
                bus.reply(call, Err(UNKNOWN_METHOD));
                false
            }
        }
    }
}

fn paths_below(root: &str) -> Vec<String> {
    (0..PATTERNS.len())
        .map(|number| format!("{root}/{number}"))
        .collect()
}

/// The monitors with all their properties, as an object manager lists them.
fn objects(paths: &[String]) -> Value<'_> {
    let entries = paths.iter().zip(PATTERNS).map(|(path, (kind, start))| {
        let pattern = Value::Struct(vec![
            Value::Int(0),
            Value::Int(kind.into()),
            Value::Bytes(start),
        ]);
        let properties = Value::Dict(vec![
            (Value::Str("Type"), Value::string("or_patterns")),
            (
                Value::Str("Patterns"),
                Value::Variant("a(yyay)", Box::new(Value::Array(vec![pattern]))),
            ),
        ]);
        (
            Value::Str(path.as_str()),
            Value::Dict(vec![(Value::Str(MONITOR), properties)]),
        )
    });
    Value::Dict(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ble::bluez::wire::{Kind, Outgoing};

    #[test]
    fn the_monitors_are_listed_with_one_pattern_each() {
        let paths = paths_below(&root_of("/org/bluez/hci7"));
        let answer = Outgoing {
            kind: Kind::Return,
            flags: 0,
            reply_serial: 3,
            destination: ":1.9",
            path: "",
            interface: "",
            member: "",
            error_name: "",
            signature: "a{oa{sa{sv}}}",
            body: &[objects(&paths)],
        };
        let bytes = answer.encode(1);
        let (message, _) = Message::parse(&bytes).unwrap().unwrap();
        let body = message.body().unwrap();
        assert_eq!(body[0].entries().len(), PATTERNS.len());
        for (path, interfaces) in body[0].entries() {
            assert!(
                path.as_str()
                    .unwrap()
                    .starts_with("/hub_agent/monitors/hci7/")
            );
            let properties = interfaces.get(MONITOR).unwrap();
            assert_eq!(
                properties.get("Type").and_then(Value::as_str),
                Some("or_patterns")
            );
            let patterns = properties.get("Patterns").unwrap().items();
            assert_eq!(patterns.len(), 1);
            for pattern in patterns {
                assert!(
                    matches!(pattern, Value::Struct(fields) if matches!(fields[..], [Value::Int(0), Value::Int(_), Value::Bytes(_)]))
                );
            }
        }
    }
}
