//! Validates the events of an upload. A valid event is stored exactly as the hub sent it, so only
//! what recognition needs of it is built. An invalid event is rejected by its index; the others are
//! stored.

use std::fmt;
use std::marker::PhantomData;

use hub_adverts::frame::uuid16;
use hub_adverts::library::OwnedFrame;
use hub_adverts::{AddressType, advertisement};
use hub_core::http::extract::plain;
use hub_protocol::Timestamp;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use uuid::Uuid;

/// The largest JSON object of one event.
const MAX_EVENT_BYTES: usize = 16 * 1024;
/// The longest advertising payload (Core Specification, Vol 6, Part B, 2.3.4.9), as base64.
const MAX_PAYLOAD_CHARS: usize = 2204;
const MAX_NAME_BYTES: usize = 248;
const MAX_ENTRIES: usize = 64;
/// The longest explanation of what is wrong with an event. It may quote the event.
const MAX_MESSAGE_BYTES: usize = 300;

/// The parts of a valid event that are used besides its text.
#[derive(Debug)]
pub struct Checked {
    /// The device that the hub took it for.
    pub device_instance_id: Option<i64>,
    /// The time of the event; of a window, its last time.
    pub observed_at: Timestamp,
    /// The signal strength; of a window, the mean.
    pub rssi_dbm: Option<i16>,
    /// The strongest signal of a window.
    pub strongest_dbm: Option<i16>,
    /// The trace that the hub began with it, if it names one at all.
    pub traceparent: Option<Box<RawValue>>,
    pub frame: OwnedFrame,
}

/// Validates one event of a plain upload. The error is meant for a reader of the hub's log.
pub fn event(text: &str) -> Result<Checked, String> {
    let event: Event = parse(text)?;
    Ok(Checked {
        device_instance_id: event.device_instance_id.map(|id| id.0),
        observed_at: event.observed_at,
        rssi_dbm: event.rssi.and_then(Dbm::known),
        strongest_dbm: event.rssi.and_then(Dbm::known),
        traceparent: event.traceparent,
        frame: frame_of(
            (event.address, event.address_type, event.name),
            (
                event.manufacturer_data,
                event.service_data,
                event.service_uuids,
            ),
        ),
    })
}

/// Validates one device of a windowed upload.
pub fn device(text: &str) -> Result<Checked, String> {
    let device: Device = parse(text)?;
    if device.rssi_min > device.rssi_max
        || !(f64::from(device.rssi_min.0)..=f64::from(device.rssi_max.0))
            .contains(&device.rssi_mean)
    {
        return Err("rssiMin, rssiMean and rssiMax must not decrease in this order".to_owned());
    }
    if device.first_seen_at > device.last_seen_at {
        return Err("firstSeenAt must not be after lastSeenAt".to_owned());
    }
    Ok(Checked {
        device_instance_id: device.device_instance_id.map(|id| id.0),
        observed_at: device.last_seen_at,
        // The mean is between two 16-bit numbers.
        rssi_dbm: Dbm(device.rssi_mean.round() as i16).known(),
        strongest_dbm: device.rssi_max.known(),
        traceparent: device.traceparent,
        frame: frame_of(
            (device.address, device.address_type, device.name),
            (
                device.manufacturer_data,
                device.service_data,
                device.service_uuids,
            ),
        ),
    })
}

type Advertiser = (Text<Address>, Option<Text<Kind>>, Option<Text<Name>>);
type Advertised = (
    Option<Payloads<CompanyId>>,
    Option<Payloads<ServiceUuid>>,
    Option<ServiceUuids>,
);

fn frame_of(
    (address, address_type, name): Advertiser,
    (manufacturer_data, service_data, service_uuids): Advertised,
) -> OwnedFrame {
    OwnedFrame {
        address: Some(address.0),
        address_type: address_type.map(|kind| kind.0),
        name: name.map(|name| name.0),
        manufacturer_data: manufacturer_data.map(|data| data.0).unwrap_or_default(),
        service_data: service_data.map(|data| data.0).unwrap_or_default(),
        service_uuids: service_uuids.map(|uuids| uuids.0).unwrap_or_default(),
    }
}

/// The member that a message of [`event`] is about, and what is wrong with it; None if it is about
/// the event as a whole.
pub fn member_at_fault(message: &str) -> Option<(&str, &str)> {
    if let Some(name) = message
        .strip_prefix("missing field `")
        .and_then(|rest| rest.split('`').next())
    {
        return Some((name, "is required"));
    }
    let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"._-[]".contains(&byte);
    message
        .split_once(": ")
        .filter(|(path, _)| !path.is_empty() && path.bytes().all(is_path))
}

fn parse<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, String> {
    if text.len() > MAX_EVENT_BYTES {
        return Err(format!("is larger than {MAX_EVENT_BYTES} bytes"));
    }
    // serde would accept an array as the fields in their order.
    if !text.starts_with('{') {
        return Err("must be an object".to_owned());
    }
    serde_json::from_str(text).map_err(|_| explain::<T>(text))
}

/// Names the invalid field. Only failures get here, so the fast path does not track paths.
fn explain<'de, T: Deserialize<'de>>(text: &'de str) -> String {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Ok(_) => "is not valid".to_owned(),
        Err(error) => {
            let path = error.path().to_string();
            let message = plain(&error.into_inner().to_string());
            let mut message = if path == "." {
                message
            } else {
                format!("{path}: {message}")
            };
            if message.len() > MAX_MESSAGE_BYTES {
                message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
                message.push('…');
            }
            message
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(
    dead_code,
    reason = "parsing the fields validates them; most are not read"
)]
struct Event {
    event_uuid: Option<uuid::Uuid>,
    observed_at: Timestamp,
    adapter_address: Option<Text<Address>>,
    address: Text<Address>,
    address_type: Option<Text<Kind>>,
    rssi: Option<Dbm>,
    tx_power: Option<Dbm>,
    name: Option<Text<Name>>,
    manufacturer_data: Option<Payloads<CompanyId>>,
    service_data: Option<Payloads<ServiceUuid>>,
    service_uuids: Option<ServiceUuids>,
    device_instance_id: Option<Positive>,
    #[serde(default, deserialize_with = "any_value")]
    traceparent: Option<Box<RawValue>>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(
    dead_code,
    reason = "parsing the fields validates them; most are not read"
)]
struct Device {
    count: Positive,
    rssi_min: Dbm,
    rssi_max: Dbm,
    rssi_mean: f64,
    first_seen_at: Timestamp,
    last_seen_at: Timestamp,
    adapter_address: Option<Text<Address>>,
    address: Text<Address>,
    address_type: Option<Text<Kind>>,
    rssi: Option<Dbm>,
    tx_power: Option<Dbm>,
    name: Option<Text<Name>>,
    manufacturer_data: Option<Payloads<CompanyId>>,
    service_data: Option<Payloads<ServiceUuid>>,
    service_uuids: Option<ServiceUuids>,
    device_instance_id: Option<Positive>,
    #[serde(default, deserialize_with = "any_value")]
    traceparent: Option<Box<RawValue>>,
}

/// A member that may be anything, also null: it decides over nothing but what is recorded of the
/// event.
fn any_value<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::deserialize(deserializer).map(Some)
}

/// A rule for a string, and its parsed form.
trait Rule {
    const EXPECTED: &'static str;
    type Value;
    fn value(text: &str) -> Option<Self::Value>;
}

struct Address;
impl Rule for Address {
    const EXPECTED: &'static str = "an address such as AA:BB:CC:DD:EE:FF";
    type Value = hub_adverts::Address;
    fn value(text: &str) -> Option<Self::Value> {
        advertisement::address_of(text)
    }
}

struct Kind;
impl Rule for Kind {
    const EXPECTED: &'static str = "`public` or `random`";
    type Value = AddressType;
    fn value(text: &str) -> Option<AddressType> {
        advertisement::address_type_of(Some(text))
    }
}

struct Name;
impl Rule for Name {
    const EXPECTED: &'static str = "a name of at most 248 bytes";
    type Value = String;
    fn value(text: &str) -> Option<String> {
        (text.len() <= MAX_NAME_BYTES).then(|| text.to_owned())
    }
}

const fn is_lower_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

/// The id, from 4 lower-case hex digits.
fn short_id(text: &str) -> Option<u16> {
    let is_id = text.len() == 4 && text.bytes().all(is_lower_hex);
    is_id.then(|| u16::from_str_radix(text, 16).ok()).flatten()
}

struct CompanyId;
impl Rule for CompanyId {
    const EXPECTED: &'static str = "a company id of 4 lower-case hex digits";
    type Value = u16;
    fn value(text: &str) -> Option<u16> {
        short_id(text)
    }
}

struct ServiceUuid;
impl Rule for ServiceUuid {
    const EXPECTED: &'static str =
        "a service uuid of 4 lower-case hex digits, or a longer one in full";
    type Value = Uuid;
    fn value(text: &str) -> Option<Uuid> {
        if text.len() == 4 {
            return short_id(text).map(uuid16);
        }
        let is_digit = |(index, byte): (usize, u8)| match index {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => is_lower_hex(byte),
        };
        let is_uuid = text.len() == 36 && text.bytes().enumerate().all(is_digit);
        is_uuid.then(|| Uuid::parse_str(text).ok()).flatten()
    }
}

struct Base64;
impl Rule for Base64 {
    const EXPECTED: &'static str = "base64 (RFC 4648, with padding) of at most 1650 bytes";
    type Value = Vec<u8>;
    fn value(text: &str) -> Option<Vec<u8>> {
        use base64::Engine;
        (text.len() <= MAX_PAYLOAD_CHARS)
            .then(|| base64::engine::general_purpose::STANDARD.decode(text).ok())
            .flatten()
    }
}

/// A string that satisfies a rule.
struct Text<R: Rule>(R::Value);

impl<'de, R: Rule> Deserialize<'de> for Text<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor<R>(PhantomData<R>);
        impl<R: Rule> Visitor<'_> for TextVisitor<R> {
            type Value = Text<R>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(R::EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<R>, E> {
                R::value(text)
                    .map(Text)
                    .ok_or_else(|| E::custom(format_args!("must be {}", R::EXPECTED)))
            }
        }
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

/// A map from identifiers that satisfy a rule to base64 payloads.
struct Payloads<K: Rule>(Vec<(K::Value, Vec<u8>)>);

impl<'de, K: Rule> Deserialize<'de> for Payloads<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MapVisitor<K>(PhantomData<K>);
        impl<'de, K: Rule> Visitor<'de> for MapVisitor<K> {
            type Value = Payloads<K>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a map from {} to base64", K::EXPECTED)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Payloads<K>, A::Error> {
                let mut payloads = Vec::new();
                while let Some((id, payload)) = map.next_entry::<Text<K>, Text<Base64>>()? {
                    payloads.push((id.0, payload.0));
                    if payloads.len() > MAX_ENTRIES {
                        return Err(de::Error::custom(format_args!(
                            "must have at most {MAX_ENTRIES} entries"
                        )));
                    }
                }
                Ok(Payloads(payloads))
            }
        }
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

struct ServiceUuids(Vec<Uuid>);

impl<'de> Deserialize<'de> for ServiceUuids {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SeqVisitor;
        impl<'de> Visitor<'de> for SeqVisitor {
            type Value = ServiceUuids;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of service uuids")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ServiceUuids, A::Error> {
                let mut uuids = Vec::new();
                for _ in 0..MAX_ENTRIES {
                    match seq.next_element::<Text<ServiceUuid>>()? {
                        Some(uuid) => uuids.push(uuid.0),
                        None => return Ok(ServiceUuids(uuids)),
                    }
                }
                match seq.next_element::<IgnoredAny>()? {
                    None => Ok(ServiceUuids(uuids)),
                    Some(_) => Err(de::Error::custom(format_args!(
                        "must have at most {MAX_ENTRIES} items"
                    ))),
                }
            }
        }
        deserializer.deserialize_seq(SeqVisitor)
    }
}

/// A signal strength: one signed byte in the radio protocol; 127 means "not available".
#[derive(Clone, Copy, PartialEq, PartialOrd)]
struct Dbm(i16);

impl Dbm {
    fn known(self) -> Option<i16> {
        Some(self.0).filter(|dbm| *dbm != 127)
    }
}

impl<'de> Deserialize<'de> for Dbm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i16::deserialize(deserializer)? {
            dbm @ -128..=127 => Ok(Self(dbm)),
            _ => Err(de::Error::custom("must be -128 to 127 dBm")),
        }
    }
}

struct Positive(i64);

impl<'de> Deserialize<'de> for Positive {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i64::deserialize(deserializer)? {
            number @ 1.. => Ok(Self(number)),
            _ => Err(de::Error::custom("must be 1 or more")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hub_protocol::ble::{BleDeviceWindow, BleEvent};

    const GOOD: &str = r#"{"observedAt":"2026-01-31T08:00:00Z","address":"AA:BB:CC:DD:EE:FF","addressType":"random","rssi":-60,
        "name":"x\u0000y","manufacturerData":{"0499":"BRL8"},"serviceData":{"fcd2":"QA=="},"serviceUuids":["fcd2"],"deviceInstanceId":7,"new":1}"#;

    #[test]
    fn valid_events_can_be_parsed() {
        let checked = event(GOOD).expect("valid");
        assert_eq!(
            (checked.device_instance_id, checked.rssi_dbm),
            (Some(7), Some(-60))
        );
        assert_eq!(
            checked.frame.manufacturer_data,
            [(0x0499, vec![0x05, 0x12, 0xFC])]
        );
        assert_eq!(checked.frame.service_uuids, [uuid16(0xFCD2)]);
        serde_json::from_str::<BleEvent>(GOOD).expect("parses as an event");
        let window = r#"{"address":"AA:BB:CC:DD:EE:FF","count":3,"rssiMin":-90,"rssiMax":-50,"rssiMean":-70.5,
            "firstSeenAt":"2026-01-31T08:00:00Z","lastSeenAt":"2026-01-31T08:00:09Z","manufacturerData":{"0499":"BRL8"}}"#;
        assert_eq!(device(window).expect("valid").rssi_dbm, Some(-71));
        serde_json::from_str::<BleDeviceWindow>(window).expect("parses as a window");
    }

    #[test]
    fn an_array_is_refused() {
        let fields = r#"[null,"2026-01-31T08:00:00Z",null,"AA:BB:CC:DD:EE:FF",null,null,null,null,null,null,null,null]"#;
        assert_eq!(event(fields).expect_err("a refusal"), "must be an object");
    }

    #[test]
    fn errors_do_not_repeat_a_whole_event() {
        let error = event(&GOOD.replacen("random", &"é".repeat(5000), 1)).expect_err("a refusal");
        assert!(
            error.starts_with("addressType") && error.len() <= MAX_MESSAGE_BYTES + 3,
            "{error}"
        );
        let error = event(&GOOD.replacen("-60", &format!("\"{}\"", "x".repeat(5000)), 1))
            .expect_err("a refusal");
        assert!(
            error.starts_with("rssi") && error.len() <= MAX_MESSAGE_BYTES + 3,
            "{error}"
        );
    }

    #[test]
    fn errors_name_the_invalid_field() {
        for (from, to, field) in [
            ("2026-01-31T08:00:00Z", "yesterday", "observedAt"),
            ("AA:BB", "AA-BB", "address"),
            ("random", "static", "addressType"),
            ("-60", "-129", "rssi"),
            ("-60", "1e99", "rssi"),
            ("0499", "04zz", "manufacturerData"),
            ("BRL8", "BRL", "manufacturerData"),
            ("\"fcd2\"]", "\"FCD2\"]", "serviceUuids"),
            (":7", ":0", "deviceInstanceId"),
            ("\"address\"", "\"adress\"", "address"),
        ] {
            let error = event(&GOOD.replacen(from, to, 1)).expect_err(field);
            assert!(error.contains(field), "{error} should name {field}");
        }
    }
}
