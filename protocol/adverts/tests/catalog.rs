//! A compiled catalog: which device sent a frame, and what it says.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that meets what it does not expect fails"
)]

use std::sync::Arc;

use hub_adverts::catalog::{
    Calibration, Catalog, Instance, KeyUse, Model, Models, Protocol, Reader, Status, beacon_of,
};
use hub_adverts::frame::uuid16;
use hub_adverts::library::{self, whole_library};
use hub_adverts::matching::Identifier;
use hub_adverts::{AddressType, Frame, Value};
use hub_protocol::scan_config::{ScanConfig, ScanDevice, ScanIdentifier, ScanKeys, ScanProtocol};
use serde_json::{Value as Json, json};
use uuid::Uuid;

const THERMOMETER: Uuid = Uuid::from_u128(1);
const BEACON: Uuid = Uuid::from_u128(2);

fn protocol(id: i64, decoder: &str) -> Protocol {
    let decoder = json!({"kind": "BUILTIN", "definition": {"decoder": decoder}});
    let decoder = library::Protocol::parse(&decoder).expect("a protocol");
    Protocol {
        device_protocol_id: id,
        revision: 1,
        reader: Reader::Decoder(decoder),
    }
}

fn catalog(instances: Vec<Instance>) -> Catalog {
    let model = |device_uuid, id| Model {
        device_uuid,
        device_protocol_id: Some(id),
        ..Model::default()
    };
    let identifier = |kind: &str, value: &str| {
        Identifier::parse(&json!({"kind": kind, "value": value})).expect("valid")
    };
    let identifiers = vec![
        (11, THERMOMETER, identifier("SERVICE_DATA_UUID", "fcd2")),
        (12, BEACON, identifier("MANUFACTURER_PREFIX", "004c:0215")),
    ];
    let protocols = vec![protocol(21, "bthome"), protocol(22, "ibeacon")];
    Catalog::new(
        Arc::new(Models::new(
            vec![model(THERMOMETER, 21), model(BEACON, 22)],
            identifiers,
            protocols,
        )),
        instances,
    )
}

fn thermometer(id: i64) -> Instance {
    Instance {
        device_instance_id: id,
        device_uuid: THERMOMETER,
        ..Instance::default()
    }
}

/// 25.06 °C.
const PLAIN: &[u8] = &[0x40, 0x02, 0xCA, 0x09];
/// The example of an encrypted frame in the format's document, for 54:48:E6:8F:80:A5.
const ENCRYPTED: &[u8] = &[
    0x41, 0xA4, 0x72, 0x66, 0xC9, 0x5F, 0x73, 0x00, 0x11, 0x22, 0x33, 0x78, 0x23, 0x72, 0x14,
];
const ENCRYPTED_ADDRESS: [u8; 6] = [0x54, 0x48, 0xE6, 0x8F, 0x80, 0xA5];
const KEY: &str = "231d39c1d7cc1ab1aee224cd096db932";

/// Reads a frame of the thermometer's service.
fn read<T>(
    catalog: &Catalog,
    address: [u8; 6],
    data: &[u8],
    see: impl FnOnce(hub_adverts::catalog::Read<'_>, &[hub_adverts::Measurement]) -> T,
) -> T {
    let service_data = [(uuid16(0xFCD2), data)];
    let frame = Frame {
        address: Some(address),
        address_type: Some(AddressType::Random),
        service_data: &service_data,
        ..Frame::default()
    };
    let mut out = Vec::new();
    let read = catalog.read(&frame, &mut out);
    see(read, &out)
}

#[test]
fn a_frame_is_recognised_without_any_device() {
    let catalog = catalog(Vec::new());
    read(&catalog, [1; 6], PLAIN, |read, values| {
        assert_eq!(read.status, Status::Decoded);
        assert_eq!(
            read.identifier
                .map(|found| (found.identifier_id, found.specificity)),
            Some((11, 16))
        );
        assert_eq!(
            values.first().map(|value| &value.value),
            Some(&Value::Number(25.06))
        );
        assert!(read.instance.is_none());
    });
    read(&catalog, [1; 6], &PLAIN[..3], |read, values| {
        assert_eq!((read.status, values.len()), (Status::Failed, 0));
    });
    let frame = Frame {
        address: Some([1; 6]),
        ..Frame::default()
    };
    assert_eq!(
        catalog.read(&frame, &mut Vec::new()).status,
        Status::Unmatched
    );
}

#[test]
fn a_device_is_found_by_its_address_and_calibrated() {
    let calibration = [(
        "temperature".to_owned(),
        Calibration {
            offset: -0.5,
            scale: 2.0,
        },
    )]
    .into();
    let catalog = catalog(vec![Instance {
        address: Some([0xC1; 6]),
        calibration,
        ..thermometer(5)
    }]);
    read(&catalog, [0xC1; 6], PLAIN, |read, values| {
        assert_eq!(
            read.instance.map(|instance| instance.device_instance_id),
            Some(5)
        );
        assert_eq!(
            values.first().map(|value| &value.value),
            Some(&Value::Number(49.62))
        );
    });
    read(&catalog, [0xC2; 6], PLAIN, |read, _| {
        assert!(read.instance.is_none())
    });
}

#[test]
fn a_rotating_address_is_resolved() {
    // Sample data of the Core Specification, Vol 3, Part H, appendix D.7.
    let irk = 0xEC02_34A3_57C8_AD05_3410_10A6_0A39_7D9B_u128.to_be_bytes();
    let catalog = catalog(vec![Instance {
        identity_resolving_key: Some(irk),
        ..thermometer(6)
    }]);
    for _ in 0..2 {
        read(
            &catalog,
            [0x70, 0x81, 0x94, 0x0D, 0xFB, 0xAA],
            PLAIN,
            |read, _| {
                assert_eq!(
                    read.instance.map(|instance| instance.device_instance_id),
                    Some(6)
                );
            },
        );
        read(
            &catalog,
            [0x70, 0x81, 0x94, 0x0D, 0xFB, 0xAB],
            PLAIN,
            |read, _| assert!(read.instance.is_none()),
        );
    }
}

#[test]
fn what_the_payload_names_comes_before_the_address() {
    let beacon = json!({"uuid": "f7826da6-4fa2-4e98-8024-bc5b71e0893e", "major": 1, "minor": 2});
    let Json::Object(beacon) = beacon else {
        unreachable!()
    };
    let named = Instance {
        device_instance_id: 7,
        device_uuid: BEACON,
        beacon: beacon_of(&beacon),
        ..Instance::default()
    };
    let addressed = Instance {
        address: Some([0xC1; 6]),
        ..thermometer(8)
    };
    let catalog = catalog(vec![named, addressed]);
    let payload = [
        0x02, 0x15, 0xF7, 0x82, 0x6D, 0xA6, 0x4F, 0xA2, 0x4E, 0x98, 0x80, 0x24, 0xBC, 0x5B, 0x71,
        0xE0, 0x89, 0x3E, 0, 1, 0, 2, 0xC5,
    ];
    let manufacturer_data = [(0x004C, payload.as_slice())];
    let frame = Frame {
        address: Some([0xC1; 6]),
        manufacturer_data: &manufacturer_data,
        ..Frame::default()
    };
    let mut out = Vec::new();
    let read = catalog.read(&frame, &mut out);
    assert_eq!(
        read.instance.map(|instance| instance.device_instance_id),
        Some(7)
    );
    assert_eq!(
        (read.status, read.model.map(|model| model.device_uuid)),
        (Status::Decoded, Some(BEACON))
    );
}

#[test]
fn a_key_is_verified_wrong_or_missing() {
    let with_key = |key: Option<&str>| {
        let bind_key = key.map(|digits| hex::decode(digits).expect("hex"));
        catalog(vec![Instance {
            address: Some(ENCRYPTED_ADDRESS),
            bind_key,
            ..thermometer(9)
        }])
    };
    for (key, status, used, count) in [
        (None, Status::Matched, KeyUse::Missing, 0),
        (Some(KEY), Status::Decoded, KeyUse::Verified, 2),
        (
            Some("00000000000000000000000000000000"),
            Status::Failed,
            KeyUse::Wrong,
            0,
        ),
    ] {
        read(
            &with_key(key),
            ENCRYPTED_ADDRESS,
            ENCRYPTED,
            |read, values| {
                assert_eq!(
                    (read.status, read.key, values.len()),
                    (status, Some(used), count),
                    "{key:?}"
                );
            },
        );
    }
}

#[test]
fn changed_devices_replace_the_earlier_ones() {
    let before = catalog(vec![
        Instance {
            address: Some([0xC1; 6]),
            ..thermometer(1)
        },
        Instance {
            address: Some([0xC2; 6]),
            ..thermometer(2)
        },
    ]);
    let after = before.with(
        vec![Instance {
            address: Some([0xC3; 6]),
            ..thermometer(1)
        }],
        &[2],
    );
    for (address, expected) in [([0xC1; 6], None), ([0xC2; 6], None), ([0xC3; 6], Some(1))] {
        read(&after, address, PLAIN, |read, _| {
            assert_eq!(
                read.instance.map(|instance| instance.device_instance_id),
                expected,
                "{address:?}"
            );
        });
    }
}

#[test]
fn a_hub_reads_as_the_service_does() {
    let definition = |decoder: &str| {
        json!({"decoder": decoder})
            .as_object()
            .cloned()
            .unwrap_or_default()
    };
    let condition = json!({"kind": "SERVICE_DATA_UUID", "value": "fcd2"})
        .as_object()
        .cloned()
        .unwrap_or_default();
    let config = ScanConfig {
        devices: vec![
            ScanDevice {
                device_uuid: THERMOMETER,
                device_protocol_id: Some(21),
                ..ScanDevice::default()
            },
            ScanDevice {
                device_uuid: THERMOMETER,
                device_instance_id: Some(9),
                address: Some("54:48:E6:8F:80:A5".to_owned()),
                ..ScanDevice::default()
            },
        ],
        identifiers: vec![ScanIdentifier {
            id: 11,
            device_uuid: THERMOMETER,
            conditions: vec![condition],
        }],
        protocols: vec![ScanProtocol {
            device_protocol_id: 21,
            revision: 1,
            kind: "BUILTIN".to_owned(),
            definition: definition("bthome"),
        }],
        keys: vec![ScanKeys {
            device_instance_id: 9,
            bind_key: Some(KEY.to_owned()),
            identity_resolving_key: None,
        }],
        ..ScanConfig::default()
    };
    assert!(!format!("{config:?}").contains(KEY), "keys are not shown");
    let hub = Catalog::from_scan_config(&config).expect("a catalog");
    let bind_key = Some(hex::decode(KEY).expect("hex"));
    let service = catalog(vec![Instance {
        address: Some(ENCRYPTED_ADDRESS),
        bind_key,
        ..thermometer(9)
    }]);
    for data in [PLAIN, ENCRYPTED] {
        let at_hub = read(&hub, ENCRYPTED_ADDRESS, data, |read, values| {
            (read.status, values.to_vec())
        });
        assert_eq!(
            at_hub,
            read(&service, ENCRYPTED_ADDRESS, data, |read, values| (
                read.status,
                values.to_vec()
            ))
        );
        assert_eq!(at_hub.0, Status::Decoded);
    }
    let broken = ScanConfig {
        protocols: vec![ScanProtocol {
            device_protocol_id: 21,
            revision: 1,
            kind: "BUILTIN".to_owned(),
            definition: definition("none such"),
        }],
        ..ScanConfig::default()
    };
    assert!(
        Catalog::from_scan_config(&broken)
            .expect_err("an error")
            .starts_with("protocol 21")
    );
}

/// The model, and the values by their keys.
fn read_whole(frame: &Frame<'_>) -> (String, Status, Vec<(String, Value)>) {
    let catalog = whole_library();
    let mut out = Vec::new();
    let read = catalog.read(frame, &mut out);
    let model = read.model.map(|model| model.name.clone());
    let values = out.iter().map(|one| (one.key(), one.value.clone()));
    (model.unwrap_or_default(), read.status, values.collect())
}

const IBEACON: &[u8] = &[
    0x02, 0x15, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 0, 1, 0, 2, 0xC5,
];
/// 3,000 mV, 21.5 °C, 100 frames, 50 s (Eddystone-TLM).
const TLM: &[u8] = &[
    0x20, 0, 0x0B, 0xB8, 0x15, 0x80, 0, 0, 0, 100, 0, 0, 0x01, 0xF4,
];

#[test]
fn a_beacon_beside_a_sensor_names_no_device_and_its_values_are_joined() {
    let services = [(uuid16(0xFCD2), PLAIN)];
    let companies = [(0x004C, IBEACON)];
    let (model, status, values) = read_whole(&Frame {
        manufacturer_data: &companies,
        service_data: &services,
        ..Frame::default()
    });
    assert_eq!((model.as_str(), status), ("bthome/v2", Status::Decoded));
    let has = |key: &str| values.iter().find(|(known, _)| known == key);
    assert_eq!(
        has("temperature").map(|(_, value)| value),
        Some(&Value::Number(25.06))
    );
    assert!(
        has("beacon_uuid").is_some() || has("tx_power").is_some(),
        "{values:?}"
    );
}

#[test]
fn both_frames_of_a_beacon_are_read() {
    let services = [(uuid16(0xFEAA), TLM)];
    let companies = [(0x004C, IBEACON)];
    let (_, status, values) = read_whole(&Frame {
        manufacturer_data: &companies,
        service_data: &services,
        ..Frame::default()
    });
    assert_eq!(status, Status::Decoded);
    assert!(
        values.contains(&("temperature".to_owned(), Value::Number(21.5))),
        "{values:?}"
    );
}

/// ATC's own format has hundredths (pvvx: 22.59 °C), MiBeacon tenths.
#[test]
fn of_two_values_of_one_quantity_the_more_exact_one_stays() {
    // pvvx's custom format: MAC, temperature, humidity, battery mV, battery %, counter, flags.
    let custom = [
        0xA4, 0xC1, 0x38, 0x11, 0x22, 0x33, 0xD3, 0x08, 0xB8, 0x13, 0xB8, 0x0B, 90, 7, 5,
    ];
    // MiBeacon version 5 without encryption, LYWSD03MMC, object 0x1004: 22.6 °C.
    let mibeacon = [
        0x50, 0x50, 0x5B, 0x05, 7, 0x33, 0x22, 0x11, 0x38, 0xC1, 0xA4, 0x04, 0x10, 2, 0xE2, 0,
    ];
    let services = [
        (uuid16(0xFE95), mibeacon.as_slice()),
        (uuid16(0x181A), custom.as_slice()),
    ];
    let (model, _, values) = read_whole(&Frame {
        service_data: &services,
        ..Frame::default()
    });
    let temperatures: Vec<_> = values
        .iter()
        .filter(|(key, _)| key == "temperature")
        .collect();
    let expected = ("temperature".to_owned(), Value::Number(22.59));
    assert_eq!(temperatures, [&expected], "{model}: {values:?}");
}

/// Two frames under one packet id (BTHome 0x00), of one address.
#[test]
fn two_frames_with_one_number_are_two_observations() {
    let catalog = catalog(Vec::new());
    let first: &[u8] = &[0x40, 0x00, 0x07, 0x02, 0xCA, 0x09];
    let second: &[u8] = &[0x40, 0x00, 0x07, 0x03, 0x8D, 0x11];
    let hash = |data: &[u8], company: &[(u16, &[u8])]| {
        let services = [(uuid16(0xFCD2), data)];
        let frame = Frame {
            address: Some([1, 2, 3, 4, 5, 6]),
            service_data: &services,
            manufacturer_data: company,
            ..Frame::default()
        };
        let mut out = Vec::new();
        let read = catalog.read(&frame, &mut out);
        read.observation(&frame, &out).hash
    };
    assert_ne!(hash(first, &[]), hash(second, &[]));
    assert_eq!(hash(first, &[]), hash(first, &[]));
    assert_eq!(
        hash(first, &[]),
        hash(first, &[(0x1234, &[1])]),
        "what one hub's system still reports changes nothing"
    );
}

/// A maker who puts values into the company id, as BlueZ reports it after two frames.
#[test]
fn of_company_ids_that_pile_up_the_changed_one_is_read() {
    let definition = json!({
        "match": {"manufacturer": "any", "length": 6, "bytes": {"at": 0, "is": "c2"}},
        "read": [{"quantity": "temperature", "at": 1, "type": "i16", "scale": 0.1}]
    });
    let decoder = hub_adverts::Decoder::compile(&definition).expect("a definition");
    let data: Vec<(u16, &[u8])> = vec![
        (0xD4C2, &[0x00, 0x37, 0x02, 0x2C]),
        (0xD9C2, &[0x00, 0x30, 0x02, 0x2C]),
        (0xDAC2, &[0x00, 0x30, 0x02, 0x2C]),
        (0xDBC2, &[0x00, 0x30, 0x02, 0x2C]),
        (0xDCC2, &[0x00, 0x30, 0x02, 0x2C]),
        (0x004C, IBEACON),
    ];
    let read = |count: usize, changed: Option<&[u16]>| {
        let mut out = Vec::new();
        let frame = Frame {
            manufacturer_data: &data[..count],
            changed_companies: changed,
            ..Frame::default()
        };
        decoder.decode(&frame, hub_adverts::Keys::default(), &mut out);
        out.first().map(|one| one.value.clone())
    };
    assert_eq!(read(1, None), Some(Value::Number(21.2)));
    assert_eq!(read(2, None), None, "which is the last one is not known");
    assert_eq!(read(2, Some(&[0xD9C2])), Some(Value::Number(21.7)));
    assert_eq!(read(6, Some(&[0xDCC2, 0x004C])), Some(Value::Number(22.0)));
    assert_eq!(read(6, Some(&[])), None);
    assert_eq!(read(6, Some(&[0xD4C2, 0xD9C2])), None);
}
