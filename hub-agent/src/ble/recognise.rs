//! The probable kind of an advertiser, in a few words to display. Names formats and vendors;
//! decodes nothing, and nothing may depend on the result. The identifiers are Bluetooth assigned
//! numbers, and those that vendors have published.

use hub_adverts::company::company_name;
use hub_protocol::ble::{Advertisement, Payload};

/// The most specific name: a format, else a vendor's kind of frame, else a service, else the
/// vendor.
pub fn recognise(advertisement: &Advertisement) -> Option<&'static str> {
    let services = || {
        advertisement
            .service_data
            .iter()
            .map(|(uuid, data)| (uuid.as_str(), data))
    };
    let vendors = || {
        advertisement
            .manufacturer_data
            .iter()
            .map(|(id, data)| (id.as_str(), data))
    };
    vendors()
        .find_map(|(id, data)| format_of_vendor(id, data))
        .or_else(|| services().find_map(|(uuid, data)| format_of_service(uuid, data)))
        .or_else(|| services().find_map(|(uuid, _)| service_name(uuid)))
        .or_else(|| {
            advertisement
                .service_uuids
                .iter()
                .find_map(|uuid| service_name(uuid))
        })
        .or_else(|| vendors().find_map(|(id, _)| company_name(u16::from_str_radix(id, 16).ok()?)))
}

fn format_of_service(uuid: &str, data: &Payload) -> Option<&'static str> {
    let data = data.0.as_slice();
    Some(match (uuid, data) {
        ("feaa", [0x00, ..]) if data.len() >= 18 => "Eddystone-UID",
        ("feaa", [0x10, _, _, ..]) => "Eddystone-URL",
        ("feaa", [0x20, ..]) if data.len() >= 14 => "Eddystone-TLM",
        ("feaa", [0x30, ..]) if data.len() >= 10 => "Eddystone-EID",
        ("feaa", [0x40 | 0x41, ..]) => "Google Find Hub tag",
        // Bits 5 to 7 of the first byte are the version, bit 0 means encrypted.
        ("fcd2", [info, ..]) if info >> 5 == 2 => {
            if info & 1 == 0 {
                "BTHome"
            } else {
                "BTHome (encrypted)"
            }
        }
        ("181c", [_, _, ..]) => "BTHome v1",
        ("181e", [_, _, ..]) => "BTHome v1 (encrypted)",
        // Bit 3 of the frame control means encrypted.
        ("fe95", [control, _, _, _, _, ..]) => {
            if control & 0x08 == 0 {
                "Xiaomi MiBeacon"
            } else {
                "Xiaomi MiBeacon (encrypted)"
            }
        }
        ("fdcd", _) => "Qingping sensor",
        ("fd6f", _) => "Exposure notification",
        ("fcb2", _) => "Tracker away from owner",
        _ => return None,
    })
}

fn format_of_vendor(id: &str, data: &Payload) -> Option<&'static str> {
    let data = data.0.as_slice();
    match (id, data) {
        ("004c", [kind, ..]) => apple_kind(*kind, data),
        ("0499", [0x03, ..]) if data.len() >= 14 => Some("Ruuvi (RAWv1)"),
        ("0499", [0x05, ..]) if data.len() >= 24 => Some("Ruuvi (RAWv2)"),
        ("0499", [0x06, ..]) => Some("Ruuvi Air"),
        ("0006", [0x01, ..]) => Some("Microsoft device"),
        ("0006", [0x03, ..]) => Some("Microsoft Swift Pair"),
        ("0075", [0x42, 0x04, ..]) => Some("Samsung TV or appliance"),
        // AltBeacon may have any vendor's identifier.
        (_, [0xbe, 0xac, ..]) if data.len() >= 24 => Some("AltBeacon"),
        _ => None,
    }
}

/// Apple's frames begin with their type and length.
fn apple_kind(kind: u8, data: &[u8]) -> Option<&'static str> {
    Some(match kind {
        0x02 if data.get(1) == Some(&0x15) && data.len() >= 23 => "iBeacon",
        0x03 => "Apple AirPrint",
        0x05 => "Apple AirDrop",
        0x06 => "Apple HomeKit",
        0x07 => "Apple AirPods",
        0x08 => "Apple Siri",
        0x09 => "Apple AirPlay target",
        0x0a => "Apple AirPlay source",
        0x0b => "Apple Watch",
        0x0c => "Apple Handoff",
        0x0d | 0x0e => "Apple hotspot",
        0x0f => "Apple nearby action",
        0x10 => "Apple device nearby",
        0x12 => "Apple Find My",
        _ => return None,
    })
}

fn service_name(uuid: &str) -> Option<&'static str> {
    Some(match uuid {
        "1808" => "Glucose meter",
        "1809" => "Thermometer",
        "180d" => "Heart rate monitor",
        "1810" => "Blood pressure monitor",
        "1812" => "Keyboard, mouse or remote",
        "1814" => "Running sensor",
        "1816" => "Cycling sensor",
        "1818" => "Cycling power meter",
        "1819" => "Location and navigation",
        "181a" => "Environmental sensor",
        "181b" | "181d" => "Scale",
        "1822" => "Pulse oximeter",
        "1826" => "Fitness machine",
        "1827" | "1828" => "Bluetooth mesh node",
        "184e" | "184f" | "1850" | "1852" | "1853" => "LE Audio",
        "1854" => "Hearing aid",
        "fd3d" => "SwitchBot",
        "fd50" => "Tuya",
        "fd5a" => "Samsung SmartTag",
        "fd84" | "feec" | "feed" => "Tile",
        "fe03" => "Amazon",
        "fe07" => "Sonos",
        "fe0f" => "Philips Hue",
        "fe2c" => "Google Fast Pair",
        "fe59" => "Nordic firmware update",
        "fe61" => "Logitech",
        "fe6a" => "Kontakt.io beacon",
        "fe95" => "Xiaomi",
        "fe9a" => "Estimote",
        "fe9f" | "fea0" | "fef3" => "Google",
        "feaa" => "Eddystone",
        "febe" => "Bose",
        "fee0" | "fee1" => "Amazfit",
        "fff6" => "Matter",
        "6e400001-b5a3-f393-e0a9-e50e24dcca9e" => "Nordic UART",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::collections::BTreeMap;

    const VECTORS: &str = include_str!("../../../tests/data/ble/vectors.jsonl");

    fn payloads(vector: &Value, field: &str) -> BTreeMap<String, Payload> {
        let entries = vector[field].as_object().into_iter().flatten();
        entries
            .map(|(key, hex)| {
                (
                    key.clone(),
                    Payload(hex::decode(hex.as_str().unwrap()).unwrap()),
                )
            })
            .collect()
    }

    fn advertisement(vector: &Value) -> Advertisement {
        let uuids = vector["serviceUuids"].as_array().into_iter().flatten();
        Advertisement {
            manufacturer_data: payloads(vector, "manufacturerData"),
            service_data: payloads(vector, "serviceData"),
            service_uuids: uuids
                .map(|uuid| uuid.as_str().unwrap().to_owned())
                .collect(),
            ..Advertisement::default()
        }
    }

    #[test]
    fn published_frames_are_recognised() {
        let mut checked = 0;
        for line in VECTORS.lines() {
            let vector: Value = serde_json::from_str(line).unwrap();
            let expected = match vector["format"].as_str().unwrap() {
                "ruuvi-df3" => "Ruuvi (RAWv1)",
                "ruuvi-df5" => "Ruuvi (RAWv2)",
                "bthome-v2" => "BTHome",
                "eddystone-uid" => "Eddystone-UID",
                "eddystone-url" => "Eddystone-URL",
                "eddystone-tlm" => "Eddystone-TLM",
                "eddystone-eid" => "Eddystone-EID",
                "ibeacon" => "iBeacon",
                "mibeacon" => "Xiaomi MiBeacon",
                _ => continue,
            };
            let advertisement = advertisement(&vector);
            if advertisement.service_data.contains_key("feaa")
                && advertisement.manufacturer_data.contains_key("004c")
            {
                // Two frames of one beacon, recorded as one: it is both.
                continue;
            }
            let label = recognise(&advertisement).unwrap_or_default();
            let is_it = label == expected || label == format!("{expected} (encrypted)");
            assert_eq!(
                is_it,
                !vector["expected"].is_null(),
                "{} is a {label:?}",
                vector["id"]
            );
            checked += 1;
        }
        assert!(checked > 150, "only {checked} vectors");
    }

    #[test]
    fn a_vendor_or_service_is_named_if_the_format_is_unknown() {
        for (vector, label) in [
            (
                serde_json::json!({"manufacturerData": {"004c": "1005aabb"}}),
                Some("Apple device nearby"),
            ),
            (
                serde_json::json!({"manufacturerData": {"004c": ""}}),
                Some("Apple"),
            ),
            (
                serde_json::json!({"manufacturerData": {"0006": "0109"}}),
                Some("Microsoft device"),
            ),
            (
                serde_json::json!({"manufacturerData": {"0059": "00"}, "serviceUuids": ["180d"]}),
                Some("Heart rate monitor"),
            ),
            (
                serde_json::json!({"serviceUuids": ["feaa"]}),
                Some("Eddystone"),
            ),
            (
                serde_json::json!({"manufacturerData": {"fffe": "00"}, "serviceUuids": ["abcd"]}),
                None,
            ),
            (serde_json::json!({}), None),
        ] {
            assert_eq!(recognise(&advertisement(&vector)), label, "{vector}");
        }
    }

    #[test]
    fn no_payload_of_any_length_panics() {
        for id in [
            "004c", "0499", "0006", "0075", "feaa", "fcd2", "fe95", "181c", "181e",
        ] {
            for first in 0..=255 {
                for length in 0..26 {
                    let mut bytes = vec![first; length];
                    bytes.truncate(length);
                    let data = BTreeMap::from([(id.to_owned(), Payload(bytes))]);
                    let mut advertisement = Advertisement {
                        service_data: data.clone(),
                        ..Advertisement::default()
                    };
                    recognise(&advertisement);
                    advertisement.manufacturer_data = data;
                    recognise(&advertisement);
                }
            }
        }
    }
}
