//! Advertising data as parsed fields (Bluetooth Core Specification Supplement, part A; types in the
//! Bluetooth assigned numbers). Structures that are not well-formed are left out.

use hub_protocol::ble::{Advertisement, Payload};
use uuid::Uuid;

use crate::bytes::Bytes;

/// The longest name, and the most entries of a kind, that an upload may carry.
pub const LONGEST_NAME: usize = 248;
pub const MOST_ENTRIES: usize = 64;

/// The tail of a UUID that has a short form.
const BASE_UUID: u128 = 0x0000_0000_0000_1000_8000_0080_5F9B_34FB;

/// Adds the fields of advertising data to an advertisement, and gives back what is encrypted: the
/// values of AD structures of type 0x31.
pub fn parse(data: &[u8], advertisement: &mut Advertisement) -> Vec<Vec<u8>> {
    let mut encrypted = Vec::new();
    let mut data = Bytes(data);
    let mut has_whole_name = advertisement.name.is_some();
    // A length of zero ends the data early.
    while let Some(length) = data.u8().filter(|length| *length > 0) {
        let Some(structure) = data.take(usize::from(length)) else {
            break;
        };
        let mut value = Bytes(structure);
        let Some(kind) = value.u8() else { break };
        match kind {
            0x02 | 0x03 => uuids::<2>(value, advertisement),
            0x04 | 0x05 => uuids::<4>(value, advertisement),
            0x06 | 0x07 => uuids::<16>(value, advertisement),
            // A shortened name stands only where the data has no other.
            0x08 | 0x09 if !has_whole_name => {
                has_whole_name = kind == 0x09;
                advertisement.name = name(value.rest());
            }
            0x0A => advertisement.tx_power = value.i8().map(i16::from),
            0x16 => service::<2>(value, advertisement),
            0x20 => service::<4>(value, advertisement),
            0x21 => service::<16>(value, advertisement),
            0x31 => encrypted.push(value.rest().to_vec()),
            0xFF => manufacturer(value, advertisement),
            _ => {}
        }
    }
    encrypted
}

/// The text of a name, cut at a character.
pub fn name(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\0');
    let text = text.get(..text.floor_char_boundary(LONGEST_NAME))?;
    (!text.is_empty()).then(|| text.to_owned())
}

/// A UUID as uploads have it: 4 hexadecimal digits where it has such a form, else in full.
pub fn uuid_text(uuid: u128) -> String {
    let short = uuid.wrapping_sub(BASE_UUID);
    match u16::try_from(short >> 96) {
        Ok(short_id) if short << 32 == 0 => format!("{short_id:04x}"),
        _ => Uuid::from_u128(uuid).to_string(),
    }
}

/// A UUID of 2, 4 or 16 bytes, the last byte first.
fn uuid<const N: usize>(bytes: [u8; N]) -> u128 {
    let number = bytes
        .iter()
        .rev()
        .fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    match N {
        16 => number,
        _ => BASE_UUID | number << 96,
    }
}

fn uuids<const N: usize>(mut value: Bytes<'_>, advertisement: &mut Advertisement) {
    while let Some(bytes) = value.array::<N>() {
        let text = uuid_text(uuid(bytes));
        let uuids = &mut advertisement.service_uuids;
        if uuids.len() < MOST_ENTRIES && !uuids.contains(&text) {
            uuids.push(text);
        }
    }
}

fn service<const N: usize>(mut value: Bytes<'_>, advertisement: &mut Advertisement) {
    if let Some(bytes) = value.array::<N>()
        && advertisement.service_data.len() < MOST_ENTRIES
    {
        let data = Payload(value.rest().to_vec());
        advertisement
            .service_data
            .insert(uuid_text(uuid(bytes)), data);
    }
}

fn manufacturer(mut value: Bytes<'_>, advertisement: &mut Advertisement) {
    if let Some(company) = value.u16_le()
        && advertisement.manufacturer_data.len() < MOST_ENTRIES
    {
        let data = Payload(value.rest().to_vec());
        advertisement
            .manufacturer_data
            .insert(format!("{company:04x}"), data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(hex_digits: &str) -> serde_json::Value {
        let mut advertisement = Advertisement::default();
        let encrypted = parse(&hex::decode(hex_digits).unwrap(), &mut advertisement);
        assert_eq!(encrypted, Vec::<Vec<u8>>::new());
        serde_json::to_value(advertisement).unwrap()
    }

    #[test]
    fn every_kind_of_field_is_read() {
        let fields = parsed(concat!(
            "020106",
            "03030d18",
            "0504f0debc9a",
            "1107fdea73e2ca5da89f1f46a81518b2a16b",
            "04085461",
            "67",
            "0409546167",
            "020af4",
            "0416d2fc40",
            "0620d2fc000041",
            "05ff99040501",
        ));
        assert_eq!(
            fields,
            serde_json::json!({
                "address": "", "name": "Tag", "txPower": -12,
                "serviceUuids": ["180d", "9abcdef0-0000-1000-8000-00805f9b34fb",
                                 "6ba1b218-15a8-461f-9fa8-5dcae273eafd"],
                "serviceData": {"fcd2": "QQ=="}, "manufacturerData": {"0499": "BQE="},
            })
        );
    }

    #[test]
    fn what_is_encrypted_is_given_back() {
        let mut advertisement = Advertisement::default();
        let data = hex::decode("02010603310102013104310a0b0c").unwrap();
        let encrypted = parse(&data, &mut advertisement);
        assert_eq!(
            encrypted,
            [vec![1, 2], Vec::new(), vec![0x0A, 0x0B, 0x0C]],
            "in order, also where one is empty"
        );
        assert_eq!(advertisement, Advertisement::default());
    }

    #[test]
    fn what_is_cut_or_empty_is_left_out() {
        let nothing = serde_json::json!({"address": ""});
        for digits in [
            "",
            "00",
            "0000000000",
            "02",
            "03ff99",
            "02ff99",
            "01ff",
            "0116",
            "0108",
        ] {
            assert_eq!(parsed(digits), nothing, "{digits}");
        }
        assert_eq!(parsed("0409546167ff")["name"], "Tag");
        assert_eq!(parsed("0308ff41")["name"], "\u{fffd}A");
        let long = format!("fa09{}", "c3a4".repeat(124) + "c3");
        let name = parsed(&long)["name"].as_str().map(str::len);
        assert_eq!(name, Some(248));
    }
}
