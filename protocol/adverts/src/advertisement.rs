//! Advertisements as hubs report them, as frames.

use hub_protocol::ble::{Advertisement, Payload};
use uuid::Uuid;

use crate::frame::{Address, AddressType};
use crate::language::uuid_of;
use crate::library::OwnedFrame;

/// The frame of an advertisement. Parts that are not well-formed are left out.
pub fn frame_of(advertisement: &Advertisement) -> OwnedFrame {
    let company = |(id, payload): (&String, &Payload)| {
        Some((u16::from_str_radix(id, 16).ok()?, payload.0.clone()))
    };
    let service = |(uuid, payload): (&String, &Payload)| -> Option<(Uuid, Vec<u8>)> {
        Some((uuid_of(uuid)?, payload.0.clone()))
    };
    OwnedFrame {
        address: address_of(&advertisement.address),
        address_type: address_type_of(advertisement.address_type.as_deref()),
        name: advertisement.name.clone(),
        manufacturer_data: advertisement
            .manufacturer_data
            .iter()
            .filter_map(company)
            .collect(),
        service_data: advertisement
            .service_data
            .iter()
            .filter_map(service)
            .collect(),
        service_uuids: advertisement
            .service_uuids
            .iter()
            .filter_map(|uuid| uuid_of(uuid))
            .collect(),
    }
}

/// Parses an address such as `AA:BB:CC:DD:EE:FF`.
pub fn address_of(text: &str) -> Option<Address> {
    let mut address = Address::default();
    let mut parts = text.split(':');
    for byte in &mut address {
        let part = parts.next().filter(|part| part.len() == 2)?;
        // The conversion itself accepts a sign.
        let digits = part.bytes().all(|digit| digit.is_ascii_hexdigit());
        *byte = digits
            .then(|| u8::from_str_radix(part, 16).ok())
            .flatten()?;
    }
    parts.next().is_none().then_some(address)
}

/// The address in the form `AA:BB:CC:DD:EE:FF`.
pub fn address_text(address: Address) -> String {
    address.map(|byte| format!("{byte:02X}")).join(":")
}

/// Parses an address type: `public` or `random`.
pub fn address_type_of(text: Option<&str>) -> Option<AddressType> {
    match text? {
        "public" => Some(AddressType::Public),
        "random" => Some(AddressType::Random),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::read;

    #[test]
    fn an_address_has_six_bytes_of_two_digits() {
        assert_eq!(
            address_of("C4:11:22:33:44:5f"),
            Some([0xC4, 0x11, 0x22, 0x33, 0x44, 0x5F])
        );
        for text in [
            "",
            "C4:11:22:33:44",
            "C4:11:22:33:44:55:66",
            "+A:11:22:33:44:55",
            "C4-11-22-33-44-55",
            "C4:11:22:33:44:5",
        ] {
            assert_eq!(address_of(text), None, "{text}");
        }
    }

    #[test]
    fn an_advertisement_is_read() {
        let advertisement = Advertisement {
            address: "C4:11:22:33:44:55".to_owned(),
            service_data: [(
                "fcd2".to_owned(),
                Payload(vec![0x40, 0x02, 0xCA, 0x09, 0x01, 0x61]),
            )]
            .into(),
            service_uuids: vec!["not one".to_owned()],
            ..Advertisement::default()
        };
        let frame = frame_of(&advertisement);
        assert_eq!(frame.address, Some([0xC4, 0x11, 0x22, 0x33, 0x44, 0x55]));
        let reading = frame.with(read).expect("a model");
        let texts: Vec<String> = reading
            .measurements
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            (reading.model.key.as_str(), texts.join(", ").as_str()),
            ("bthome/v2", "temperature 25.06 °C, battery 97 %")
        );
        let json = serde_json::to_value(&reading.measurements).expect("JSON");
        assert_eq!(
            json[1],
            serde_json::json!({"quantity": "battery", "value": 97, "unit": "%EL"})
        );
    }
}
