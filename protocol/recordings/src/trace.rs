//! The project's own trace: a JSON object a line, in the order of time.

use std::collections::BTreeMap;

use hub_protocol::ble::{Advertisement, Payload};
use serde::Deserialize;

use crate::error::RecordingError;
use crate::input::Input;
use crate::report::Report;

pub struct Trace {
    input: Input,
    text: Vec<u8>,
    line: u64,
    t_ms: u64,
}

impl Trace {
    pub fn new(input: Input) -> Self {
        Self {
            input,
            text: Vec::new(),
            line: 0,
            t_ms: 0,
        }
    }

    pub fn next(&mut self) -> Result<Option<Report>, RecordingError> {
        let mut offset = self.input.offset();
        loop {
            self.line += 1;
            if self.input.line(&mut self.text)?.is_none() {
                return Ok(None);
            }
            if !self.text.trim_ascii().is_empty() {
                break;
            }
            offset = self.input.offset();
        }
        let (t_ms, advertisement) = parse(&self.text).map_err(|fault| self.refused(fault))?;
        if t_ms < self.t_ms {
            let before = self.t_ms;
            let fault = format!("t_ms is {t_ms}, but the line before it has {before}");
            return Err(self.refused(fault));
        }
        self.t_ms = t_ms;
        Ok(Some(Report {
            offset,
            time_us: t_ms.saturating_mul(1_000),
            received_at: None,
            is_scan_response: false,
            advertisement,
            encrypted: Vec::new(),
        }))
    }

    fn refused(&self, fault: String) -> RecordingError {
        let line = self.line;
        RecordingError::Line { line, fault }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Recorded {
    #[serde(rename = "t_ms")]
    t_ms: u64,
    address: String,
    address_type: Option<String>,
    rssi: Option<i16>,
    name: Option<String>,
    tx_power: Option<i16>,
    #[serde(default)]
    manufacturer_data: BTreeMap<String, String>,
    #[serde(default)]
    service_data: BTreeMap<String, String>,
    #[serde(default)]
    service_uuids: Vec<String>,
}

fn parse(text: &[u8]) -> Result<(u64, Advertisement), String> {
    let recorded: Recorded = serde_json::from_slice(text).map_err(|error| {
        // serde_json also counts lines, and would always report 1.
        let message = error.to_string();
        let message = message.split(" at line ").next();
        message.unwrap_or_default().to_owned()
    })?;
    let address = recorded.address.to_ascii_uppercase();
    if !is_address(&address) {
        return Err(format!(
            "address {:?} is not of the form AA:BB:CC:DD:EE:FF",
            recorded.address
        ));
    }
    if let Some(kind) = recorded.address_type.as_deref()
        && !matches!(kind, "public" | "random")
    {
        return Err(format!(
            "addressType must be \"public\" or \"random\", not {kind:?}"
        ));
    }
    if let Some(wrong) = recorded
        .manufacturer_data
        .keys()
        .find(|key| !is_short_id(key))
    {
        return Err(format!(
            "manufacturerData key {wrong:?} is not a company identifier of 4 lower-case hex digits"
        ));
    }
    if let Some(wrong) = recorded
        .service_data
        .keys()
        .chain(&recorded.service_uuids)
        .find(|key| !is_uuid(key))
    {
        return Err(format!(
            "{wrong:?} is neither 4 lower-case hex digits nor a UUID in full"
        ));
    }
    let advertisement = Advertisement {
        address,
        address_type: recorded.address_type,
        rssi: recorded.rssi,
        tx_power: recorded.tx_power,
        name: recorded.name,
        manufacturer_data: payloads("manufacturerData", recorded.manufacturer_data)?,
        service_data: payloads("serviceData", recorded.service_data)?,
        service_uuids: recorded.service_uuids,
        ..Advertisement::default()
    };
    Ok((recorded.t_ms, advertisement))
}

fn payloads(
    field: &str,
    recorded: BTreeMap<String, String>,
) -> Result<BTreeMap<String, Payload>, String> {
    recorded
        .into_iter()
        .map(|(key, digits)| match hex::decode(&digits) {
            Ok(bytes) => Ok((key, Payload(bytes))),
            Err(error) => Err(format!("{field}.{key} is not hex: {error}")),
        })
        .collect()
}

/// Six upper-case hex octets with colons.
pub fn is_address(text: &str) -> bool {
    let mut octets = text.split(':');
    let is_octet = |octet: &str| {
        let mut digits = octet.bytes();
        octet.len() == 2 && digits.all(|digit| matches!(digit, b'0'..=b'9' | b'A'..=b'F'))
    };
    octets
        .by_ref()
        .take(6)
        .filter(|octet| is_octet(octet))
        .count()
        == 6
        && octets.next().is_none()
}

fn is_short_id(text: &str) -> bool {
    text.len() == 4
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_uuid(text: &str) -> bool {
    is_short_id(text)
        || (text.len() == 36
            && !text.bytes().any(|byte| byte.is_ascii_uppercase())
            && uuid::Uuid::try_parse(text).is_ok())
}
