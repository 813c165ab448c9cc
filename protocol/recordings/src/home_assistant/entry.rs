//! One advertisement of a history: an object with all fields, or an address beside the list that
//! Python's tuple of an advertisement becomes.

use hub_protocol::ble::{Advertisement, Payload};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess};
use uuid::Uuid;

use super::values::{Binary, Lenient, List, Members, Scalar, lenient};
use crate::advertising_data::{name, parse, uuid_text};
use crate::trace::is_address;

/// What Home Assistant writes for a strength or a power that it does not know.
const UNKNOWN_DBM: f64 = -127.0;

#[derive(Clone, Debug, Default)]
pub struct Entry {
    address: Scalar,
    /// Seconds of a clock that begins anywhere.
    time: Scalar,
    raw: Binary,
    fields: Fields,
}

/// `name`, `manufacturer_data`, `service_data`, `service_uuids`, `tx_power` and `rssi`, which a
/// list has in this order.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    name: Scalar,
    manufacturer_data: Members<Binary>,
    service_data: Members<Binary>,
    service_uuids: List<Scalar>,
    tx_power: Scalar,
    rssi: Scalar,
}

impl<'de> Lenient<'de> for Fields {
    fn of_list<A: SeqAccess<'de>>(mut items: A) -> Result<Self, A::Error> {
        let fields = Self {
            name: items.next_element()?.unwrap_or_default(),
            manufacturer_data: items.next_element()?.unwrap_or_default(),
            service_data: items.next_element()?.unwrap_or_default(),
            service_uuids: items.next_element()?.unwrap_or_default(),
            tx_power: items.next_element()?.unwrap_or_default(),
            rssi: items.next_element()?.unwrap_or_default(),
        };
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(fields)
    }
}

impl<'de> Lenient<'de> for Entry {
    fn of_object<A: MapAccess<'de>>(mut members: A) -> Result<Self, A::Error> {
        let mut entry = Self::default();
        while let Some(key) = members.next_key::<String>()? {
            let fields = &mut entry.fields;
            match key.as_str() {
                "address" => entry.address = members.next_value()?,
                "time" => entry.time = members.next_value()?,
                "raw" => entry.raw = members.next_value()?,
                "name" => fields.name = members.next_value()?,
                "manufacturer_data" => fields.manufacturer_data = members.next_value()?,
                "service_data" => fields.service_data = members.next_value()?,
                "service_uuids" => fields.service_uuids = members.next_value()?,
                "tx_power" => fields.tx_power = members.next_value()?,
                "rssi" => fields.rssi = members.next_value()?,
                "advertisement_data" => *fields = members.next_value()?,
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(entry)
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        lenient(json)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        lenient(json)
    }
}

impl Entry {
    pub fn time_secs(&self) -> Option<f64> {
        self.time.number()
    }

    /// The advertisement, if it has the address of a device, and what is encrypted in it.
    pub fn advertisement(self) -> Option<(Advertisement, Vec<Vec<u8>>)> {
        let address = self.address.text()?.to_ascii_uppercase();
        if !is_address(&address) {
            return None;
        }
        let Fields {
            name: device_name,
            manufacturer_data,
            service_data,
            service_uuids,
            tx_power,
            rssi,
        } = self.fields;
        // The address stands for a name that is not known.
        let device_name = device_name
            .text()
            .filter(|name| !name.eq_ignore_ascii_case(&address));
        let company = |(id, data): (String, Binary)| {
            let id: u16 = id.parse().ok()?;
            Some((format!("{id:04x}"), Payload(data.0?)))
        };
        let service = |(id, data): (String, Binary)| Some((service_id(&id)?, Payload(data.0?)));
        let mut advertisement = Advertisement {
            name: device_name.and_then(|text| name(text.as_bytes())),
            address,
            rssi: dbm(&rssi),
            tx_power: dbm(&tx_power),
            manufacturer_data: manufacturer_data
                .0
                .into_iter()
                .filter_map(company)
                .collect(),
            service_data: service_data.0.into_iter().filter_map(service).collect(),
            service_uuids: service_uuids
                .0
                .iter()
                .filter_map(|uuid| service_id(uuid.text()?))
                .collect(),
            ..Advertisement::default()
        };
        let has_fields = !advertisement.manufacturer_data.is_empty()
            || !advertisement.service_data.is_empty()
            || !advertisement.service_uuids.is_empty();
        let raw = self.raw.0.unwrap_or_default();
        // What is encrypted is in the raw data alone.
        let encrypted = match has_fields {
            true => parse(&raw, &mut Advertisement::default()),
            false => parse(&raw, &mut advertisement),
        };
        Some((advertisement, encrypted))
    }
}

fn service_id(text: &str) -> Option<String> {
    Some(uuid_text(Uuid::try_parse(text).ok()?.as_u128()))
}

fn dbm(value: &Scalar) -> Option<i16> {
    let dbm = value.number().filter(|dbm| *dbm != UNKNOWN_DBM)?;
    (-127.0..=126.0).contains(&dbm).then_some(dbm as i16)
}
